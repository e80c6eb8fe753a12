import FKMiddleware

/// A repository of a Hugging Face hub: `hf:[datasets/]OWNER/REPO[@REV]`.
public struct HubReference: Sendable, Hashable, CustomStringConvertible {
    /// `OWNER/REPO`, with the prefix `datasets/` for a data set.
    public let repository: String
    /// A branch, tag or commit. The default is `main`.
    public let revision: String

    /// Parses `hf:[datasets/]OWNER/REPO[@REV]`.
    ///
    /// - Throws: `.invalidArgument` for any other text.
    public init(parsing text: String) throws(DownloadError) {
        let parts = text.dropFirst(3).split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
        let path = parts.first.map(String.init) ?? ""
        var names = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        if names.count == 3, names[0] == "datasets" || names[0] == "models" { names.removeFirst() }
        guard text.hasPrefix("hf:"), names.count == 2, names.allSatisfy(Self.isName) else {
            throw DownloadError(
                .invalidArgument,
                "'\(text.visible)' is no repository of a hub: write hf:OWNER/REPO, hf:OWNER/REPO@REVISION or "
                    + "hf:datasets/OWNER/REPO.")
        }
        let revision = parts.count > 1 ? String(parts[1]) : "main"
        guard !revision.isEmpty, revision.utf8.count <= 255,
            !revision.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f })
        else {
            throw DownloadError(
                .invalidArgument, "'\(text.visible)' has no revision behind the @: a branch, tag or commit.")
        }
        repository = (path.hasPrefix("datasets/") ? "datasets/" : "") + names.joined(separator: "/")
        self.revision = revision
    }

    /// The form that `init(parsing:)` reads.
    public var description: String { "hf:\(rest)" }
    /// The text behind the scheme.
    var rest: String { "\(repository)@\(revision)" }

    /// The path of its API: `api/models/OWNER/REPO`.
    var apiPath: String { "api/" + (repository.hasPrefix("datasets/") ? "" : "models/") + repository }

    private static func isName(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= 96 && name != "." && name != ".."
            && name.utf8.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || "-_.".utf8.contains($0) }
    }
}
