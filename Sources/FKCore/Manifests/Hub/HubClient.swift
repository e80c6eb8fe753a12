import FKMiddleware
import FKTransport
import Foundation

/// Asks a Hugging Face hub for the files of a repository.
public struct HubClient: Sendable {
    /// The URL of the hub, such as `https://huggingface.co`.
    public var endpoint: String
    /// The token, which is sent to the hub's own origin only; nil for none.
    public var token: String?
    /// The options of the requests: proxy, TLS and time-outs.
    public var options = TaskOptions()

    /// The usual hub.
    public static let defaultEndpoint = "https://huggingface.co"

    /// Creates a client.
    ///
    /// - Throws: `.invalidURL` or `.unsupportedScheme` for an endpoint that is no URL.
    public init(endpoint: String = defaultEndpoint, token: String? = nil) throws(DownloadError) {
        var text = try URLNormalizer.normalize(endpoint)
        while text.hasSuffix("/") { text.removeLast() }
        self.endpoint = text
        self.token = token
    }

    /// The files of a repository at the commit that its revision has now.
    ///
    /// - Parameters:
    ///   - include: patterns of the paths to take, such as `*.safetensors`; empty, the default, takes all. `*` also
    ///     stands for slashes.
    ///   - exclude: patterns of the paths to leave out; the default is none.
    /// - Returns: a list with URL, size and digest of each file. Its facts have the repository and the commit. A file
    ///   with a bad name or digest is in `faults`.
    /// - Throws: `DownloadError` if the hub refuses, or answers something else; `.protocolViolation` if its list does not
    ///   end.
    public func files(
        of reference: HubReference, include: [String] = [], exclude: [String] = []
    ) async throws(DownloadError) -> Manifest {
        let transport = try TransportKind.automatic.makeTransport()
        defer { transport.shutdown() }
        var entries: [Manifest.Entry] = []
        let list: ServerList
        do {
            list = try await self.list(of: reference, include: include, exclude: exclude, over: transport) { files, _ in
                entries += files.map(Manifest.Entry.init)
            }
        } catch {
            throw DownloadError(wrapping: error, code: .protocolViolation, message: "The hub's list cannot be read.")
        }
        var manifest = list.manifest
        manifest.entries = entries
        return manifest
    }

    /// Asks for the files, a page at a time.
    func list(
        of reference: HubReference, include: [String], exclude: [String], over transport: any Transport,
        _ take: ([Manifest.FileFacts], Manifest.Form) throws -> Void
    ) async throws -> ServerList {
        let commit = try await commit(of: reference, over: transport)
        var reading = Manifest.Reading()
        reading.hub = Manifest.Hub(endpoint: endpoint, repository: reference.repository, commit: commit)
        var pages = SourcePages(ServerList(.hubTree), include: include, exclude: exclude)
        var next: String? = "\(endpoint)/\(reference.apiPath)/tree/\(commit)?recursive=true&expand=false"
        while let url = next {
            let answer = try await get(url, over: transport)
            do {
                _ = try pages.add(answer.bytes ?? [], ServerListReader(.hubTree, reading), from: url, take)
            } catch let error as ManifestError {
                throw DownloadError(
                    .protocolViolation, "The hub's list cannot be read. \(error.description)", url: url)
            }
            next = try nextPage(answer.head, url)
        }
        var list = pages.list
        list.origin = "hf:\(reference.repository)"
        list.commit = commit
        return list
    }

    private func commit(of reference: HubReference, over transport: any Transport) async throws(DownloadError) -> String
    {
        let revision = BaseURL.encoded(reference.revision).replacing("/", with: "%2F")
        let url = "\(endpoint)/\(reference.apiPath)/revision/\(revision)"
        let bytes = try await get(url, over: transport).bytes ?? []
        var reader = JSONReader(bytes)
        let text: String?
        do throws(JSONReader.Fault) { text = try reader.value().object?["sha"]?.string } catch { text = nil }
        guard let commit = text, (40...64).contains(commit.utf8.count), commit.utf8.allSatisfy({ $0.hexValue != nil })
        else {
            throw DownloadError(
                .protocolViolation, "The hub did not tell the commit of \(reference): is it a Hugging Face hub?",
                url: url)
        }
        return commit.lowercased()
    }

    private func get(_ url: String, over transport: any Transport) async throws(DownloadError) -> DocumentRequest.Answer
    {
        var request = DocumentRequest(url: url, options: options)
        request.origin = URLOrigin(endpoint)
        if let token {
            request.headers = [HeaderField("Authorization", "Bearer \(token)")]
            request.secretHeaders = ["authorization"]
        }
        do { return try await request.fetch(over: transport) } catch {
            guard error.code == .httpStatus, [401, 403, 404].contains(error.status) else { throw error }
            var error = error
            error.message +=
                token == nil
                ? " The repository may not exist, or it may need a token: set HF_TOKEN, or log in with the hub's client."
                : " The repository may not exist, or the token may not have access to it."
            throw error
        }
    }

    /// The URL of the next page; nil on the last one. The token must not leave the hub.
    private func nextPage(_ head: ResponseHead, _ url: String) throws(DownloadError) -> String? {
        let links = LinkField.parse(head.values(of: "Link"))
        guard let link = links.first(where: { $0.relations.contains("next") }) else { return nil }
        guard let next = URL(string: link.target, relativeTo: URL(string: url))?.absoluteString,
            URLOrigin(next) == URLOrigin(endpoint)
        else {
            throw DownloadError(
                .protocolViolation, "The hub's list continues at another host: that host was not asked.",
                url: URLMasking.mask(link.target))
        }
        return next
    }
}
