import FKMiddleware

/// A release of a repository: `gh:OWNER/REPO` or `gh:OWNER/REPO@TAG`.
struct ReleaseReference: Sendable, Hashable, CustomStringConvertible {
    /// `OWNER/REPO`.
    let repository: String
    /// The tag; nil for the latest release.
    let tag: String?

    static func isOne(_ text: String) -> Bool { text.hasPrefix("gh:") }

    /// Parses a reference.
    ///
    /// - Throws: `.invalidArgument` for another text.
    init(parsing text: String) throws(DownloadError) {
        let parts = text.dropFirst(3).split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
        let names = (parts.first ?? "").split(separator: "/", omittingEmptySubsequences: false)
        guard Self.isOne(text), names.count == 2, names.allSatisfy(Self.isName) else {
            throw DownloadError(
                .invalidArgument,
                "'\(text.prefix(200).visible)' is no release: write gh:OWNER/REPO or gh:OWNER/REPO@TAG."
            )
        }
        repository = names.joined(separator: "/")
        guard parts.count > 1 else {
            tag = nil
            return
        }
        let tag = String(parts[1])
        guard (1...255).contains(tag.utf8.count), !tag.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f }) else {
            throw DownloadError(.invalidArgument, "'\(text.prefix(200).visible)' has no tag behind the @.")
        }
        self.tag = tag
    }

    /// The form that `init(parsing:)` reads.
    var description: String { "gh:\(repository)" + (tag.map { "@\($0)" } ?? "") }

    func url(at api: String) -> String {
        let tag = tag.map { "tags/" + BaseURL.encoded($0).replacing("/", with: "%2F") } ?? "latest"
        return "\(api)/repos/\(repository)/releases/\(tag)"
    }

    private static func isName(_ name: Substring) -> Bool {
        (1...100).contains(name.utf8.count) && name != "." && name != ".."
            && name.utf8.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || "-_.".utf8.contains($0) }
    }
}

/// A release with its files, as GitHub's API tells it. That of Gitea and Forgejo is alike, without digests.
struct Release: Sendable {
    struct Asset: Sendable, Hashable {
        var name: String
        /// The address that browsers use.
        var url: String
        /// The address at the API, which also serves private files; nil at Gitea's.
        var apiURL: String?
        var size: Int64?
        var digest: Checksum?
        /// When it was last changed, as written; nil if the server does not say.
        var updated: String?
    }

    var tag: String
    /// True for a release that its author calls preliminary.
    var isPrerelease: Bool
    /// True for one that is not published.
    var isDraft: Bool
    var assets: [Asset] = []
    /// The files that are not complete yet.
    var unfinished: [String] = []

    /// The most files of a release. GitHub allows 1,000.
    static let maxAssets = 10_000

    /// Reads the answer of the API.
    init(_ bytes: [UInt8]) throws(AnswerFault) {
        let object: JSONReader.Object = try SourceJSON.object(bytes, "the release")
        guard let tag = object["tag_name"]?.string, !tag.isEmpty else { throw AnswerFault("the release has no tag") }
        self.tag = tag
        isPrerelease = object["prerelease"]?.isTrue ?? false
        isDraft = object["draft"]?.isTrue ?? false
        let assets = object["assets"]?.array ?? []
        guard assets.count <= Self.maxAssets else {
            throw AnswerFault("the release has more than \(Self.maxAssets) files")
        }
        for value in assets {
            guard let asset = value.object, let name = asset["name"]?.string, !name.isEmpty,
                let url = asset["browser_download_url"]?.string
            else { throw AnswerFault("a file of the release has no name or no address") }
            if let state = asset["state"]?.string, state != "uploaded" {
                unfinished.append(name)
                continue
            }
            let size = asset["size"]?.integer
            guard size ?? 0 >= 0 else { throw AnswerFault("the size of '\(name)' is negative") }
            self.assets.append(
                Asset(
                    name: name, url: url, apiURL: asset["url"]?.string, size: size,
                    digest: try Self.digest(asset["digest"], of: name), updated: asset["updated_at"]?.string))
        }
    }

    private static func digest(_ value: JSONReader.Value?, of name: String) throws(AnswerFault) -> Checksum? {
        guard let text = value?.string else { return nil }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let algorithm = Checksum.Algorithm(listed: String(parts[0])) else { return nil }
        guard let digest = Checksum(listed: algorithm, hex: parts[1]) else {
            throw AnswerFault("the digest of '\(name)' is malformed")
        }
        return digest
    }
}
