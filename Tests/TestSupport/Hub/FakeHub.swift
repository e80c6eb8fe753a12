import FKMiddleware
import Foundation

/// A Hugging Face hub with one model and one data set on a `FaultServer`: revisions, a list of files in pages, files in
/// and outside of LFS, and a second server for the bytes, whose links expire.
///
/// The hub's own client and `fk` are both pointed at it with `HF_ENDPOINT`.
package final class FakeHub: Sendable {
    /// A file of the repository.
    package struct File: Sendable {
        package var path: String
        package var bytes: [UInt8]
        /// True for a file in LFS: it has a SHA-256 and comes from the server of the bytes.
        package var isLarge: Bool

        package init(_ path: String, _ bytes: [UInt8], isLarge: Bool = false) {
            self.path = path
            self.bytes = bytes
            self.isLarge = isLarge
        }

        /// Git's id of the file.
        var blob: String {
            let digester = Digester(.gitBlob, length: Int64(bytes.count))
            bytes.withUnsafeBytes { digester.update($0) }
            return digester.hex()
        }

        var sha256: String {
            let digester = Digester(.sha256)
            bytes.withUnsafeBytes { digester.update($0) }
            return digester.hex()
        }
    }

    package static let commit = "0123456789abcdef0123456789abcdef01234567"

    package let server: FaultServer
    /// The server of large files.
    package let storage: FaultServer
    /// The token that the hub wants; nil for none.
    private let token: String?
    private let links = Locked<(count: Int, uses: [String: Int])>((0, [:]))
    /// The number of requests that a link of the storage answers. Another one is 403.
    private let usesOfLink: Int

    package var endpoint: String { server.base }

    /// Starts a hub.
    ///
    /// - Parameters:
    ///   - repository: `OWNER/REPO`, or with the prefix `datasets/`.
    ///   - pageSize: the files on a page of the list.
    ///   - token: the token that every request to the hub must have; the default is none.
    ///   - usesOfLink: the number of requests that a link to a large file answers; the default is any.
    package init(
        _ files: [File], repository: String = "owner/repo", pageSize: Int = 3, token: String? = nil,
        usesOfLink: Int = .max
    ) throws {
        server = try FaultServer()
        storage = try FaultServer()
        self.token = token
        self.usesOfLink = usesOfLink
        let api = repository.hasPrefix("datasets/") ? "/api/\(repository)" : "/api/models/\(repository)"
        for revision in ["main", Self.commit] {
            serve("\(api)/revision/\(revision)") { [weak self] _ in self?.info(files) }
        }
        serve("\(api)/tree/\(Self.commit)") { [weak self] request in
            self?.page(files, pageSize, request, "\(api)/tree/\(Self.commit)")
        }
        for file in files {
            let path = file.path.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? file.path
            serve("/\(repository)/resolve/\(Self.commit)/\(path)") { [weak self] request in self?.file(file, request) }
        }
        for file in files where file.isLarge {
            storage.route("/lfs/\(file.sha256)") { [weak self] request in
                self?.stored(file, request) ?? .status(500)
            }
        }
    }

    /// The paths of files whose bytes were asked from the storage.
    package var tokensAtStorage: [String] { storage.requests.compactMap { $0["Authorization"] } }

    private func serve(_ path: String, _ respond: @escaping @Sendable (FaultRequest) -> FaultResponse?) {
        let token = token
        server.route(path) { request in
            if let token, request["Authorization"] != "Bearer \(token)" {
                return .status(401, body: Array("{\"error\":\"Invalid username or password.\"}".utf8))
            }
            return respond(request) ?? .status(500)
        }
    }

    private func info(_ files: [File]) -> FaultResponse {
        let siblings = files.map { "{\"rfilename\":\(Self.quoted($0.path))}" }.joined(separator: ",")
        return .ok(
            Array(
                "{\"id\":\"owner/repo\",\"sha\":\"\(Self.commit)\",\"private\":false,\"siblings\":[\(siblings)]}".utf8),
            headers: ["Content-Type": "application/json"])
    }

    private func page(_ files: [File], _ size: Int, _ request: FaultRequest, _ path: String) -> FaultResponse {
        let start =
            request.query.split(separator: "&").first { $0.hasPrefix("cursor=") }.flatMap { Int($0.dropFirst(7)) } ?? 0
        let part = files.dropFirst(start).prefix(size)
        var entries = part.map { file in
            let lfs =
                file.isLarge
                ? ",\"lfs\":{\"oid\":\"\(file.sha256)\",\"size\":\(file.bytes.count),\"pointerSize\":134}" : ""
            return "{\"type\":\"file\",\"oid\":\"\(file.isLarge ? String(repeating: "1", count: 40) : file.blob)\","
                + "\"size\":\(file.bytes.count),\"path\":\(Self.quoted(file.path))\(lfs)}"
        }
        if start == 0 {
            entries.append(
                "{\"type\":\"directory\",\"oid\":\"\(String(repeating: "2", count: 40))\",\"size\":0,\"path\":\"sub\"}")
        }
        let answer = FaultResponse.ok(
            Array("[\(entries.joined(separator: ","))]".utf8), headers: ["Content-Type": "application/json"])
        guard start + size < files.count else { return answer }
        return answer.adding(
            "Link", "<\(server.url(path))?recursive=true&expand=false&cursor=\(start + size)>; rel=\"next\"")
    }

    private func file(_ file: File, _ request: FaultRequest) -> FaultResponse {
        let commit: (FaultResponse) -> FaultResponse = { $0.adding("X-Repo-Commit", Self.commit) }
        guard file.isLarge else {
            return commit(.ranged(file.bytes, for: request, etag: "\"\(file.blob)\""))
        }
        let number = links.withLock { links in
            links.count += 1
            return links.count
        }
        // The hub's client asks for no compression, and takes the length from here.
        return commit(.redirect(to: "\(storage.url("/lfs/\(file.sha256)"))?Expires=1&link=\(number)"))
            .adding("X-Linked-Size", String(file.bytes.count)).adding("X-Linked-ETag", "\"\(file.sha256)\"")
            .adding("ETag", "\"\(file.sha256)\"")
    }

    private func stored(_ file: File, _ request: FaultRequest) -> FaultResponse {
        let isOpen = links.withLock { links in
            links.uses[request.query, default: 0] += 1
            return links.uses[request.query, default: 0] <= usesOfLink
        }
        guard isOpen else { return .status(403, body: Array("Request has expired".utf8)) }
        return .ranged(file.bytes, for: request, etag: "\"s-\(file.sha256.prefix(8))\"")
    }

    private static func quoted(_ text: String) -> String {
        let data = try? JSONSerialization.data(withJSONObject: text, options: .fragmentsAllowed)
        return data.map { String(decoding: $0, as: UTF8.self) } ?? "\"\""
    }
}
