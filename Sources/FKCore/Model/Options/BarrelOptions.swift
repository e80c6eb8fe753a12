/// Settings of a barrel that its later members inherit.
package struct BarrelOptions: Codable, Sendable, Hashable {
    /// The folder for the members' files; nil for the default folder.
    package var directory: String?
    /// Options for members that set none; nil for the defaults.
    package var options: TaskOptions?
    /// Bytes a second over all members together, above 0; nil for no limit.
    package var rateLimit: Int64?
    /// The origin of the list that the barrel was made from: `hf:OWNER/REPO`, or the URL of a Metalink; nil for none.
    package var origin: String?
    /// The commit that a repository is pinned to; nil for none.
    package var commit: String?
    /// The signer of the barrel's lists (`SignatureKey.verify`), which later lists need too; nil for any.
    package var signedBy: String?
    /// The signer that a lock names, which nobody has verified; nil for none. A signer that is verified later is compared with
    /// it.
    package var claimedSigner: String?
    /// What was said about the source that `origin` names; nil for nothing.
    package var source: SourceWords?

    /// Creates settings. The default is none at all.
    package init(directory: String? = nil, options: TaskOptions? = nil, rateLimit: Int64? = nil) {
        self.directory = directory
        self.options = options
        self.rateLimit = rateLimit
    }
}
