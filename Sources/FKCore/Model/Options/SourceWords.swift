/// What the owner said about the source of a barrel besides its name, so that it can be asked again.
package struct SourceWords: Codable, Sendable, Hashable {
    /// Patterns of the names to take; nil for all.
    package var include: [String]?
    /// Patterns of the names to leave out; nil for none.
    package var exclude: [String]?
    /// The depth that the owner has chosen; nil for the usual one.
    package var depth: Int?
    /// True for a folder with its subfolders: the answer has to be a listing. nil means false.
    package var isRecursive: Bool?
    /// True takes names that begin with a dot everywhere. nil means false.
    package var takesHidden: Bool?
    /// True if lists of digests in the folders bind their files. nil means false.
    package var takesDigests: Bool?
    /// The platform of an image, as `OS/ARCH`; nil for this machine's.
    package var platform: String?
    /// True signs no request to a bucket. nil means false.
    package var isAnonymous: Bool?
    /// How the files are laid out on the disk: `hub`, `oci` or `ollama`; nil for their names.
    package var layout: String?
    /// The origin of the server, for a name that does not say it: the environment has it. nil for a place that is a URL.
    package var server: String?

    package init() {}

    package var isEmpty: Bool { self == SourceWords() }
}
