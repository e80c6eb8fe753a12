/// What to change so that a failed task passes. An application shows it in its own words.
public enum Remedy: String, Codable, Sendable, Hashable, CaseIterable {
    /// Say what happens to a file of that name (`existing`), or ask for another name.
    case chooseExisting = "choose-existing"
    /// Replace the file of that name (`existing`), or choose another name. The existing file is not the expected one.
    case chooseName = "choose-name"
    /// Ask for another name: the file system of the folder refuses this one for its characters.
    case chooseFittingName = "choose-fitting-name"
    /// Allow a larger file (`maxSize`).
    case raiseMaxSize = "raise-max-size"
    /// Keep less space free (`minFree`).
    case lowerMinFree = "lower-min-free"
    /// Allow the files more of the disk (`diskBudget`).
    case raiseDiskBudget = "raise-disk-budget"
    /// Use another work path: this one cannot be used, or another downloader has it.
    case chooseWorkPath = "choose-work-path"
    /// Use the transport over libcurl.
    case useCurl = "use-curl"
    /// Give a name and a password, or a token.
    case giveLogin = "give-login"
    /// Give a name and a password for the proxy.
    case giveProxyLogin = "give-proxy-login"
    /// Name the file of the certificate authority (`caFile`).
    case nameAuthority = "name-authority"
    /// Compare the pinned keys (`pinnedPublicKey`) with the server's.
    case checkPinnedKey = "check-pinned-key"
    /// Give a certificate of the client (`clientCertificate`).
    case giveCertificate = "give-certificate"
    /// Allow IPv4 addresses (`addressFamily`).
    case allowIPv4 = "allow-ipv4"
    /// Allow IPv6 addresses (`addressFamily`).
    case allowIPv6 = "allow-ipv6"
    /// Allow more time (`deadline`).
    case extendDeadline = "extend-deadline"
    /// Wait longer for an answer (`timeout`).
    case waitLonger = "wait-longer"
    /// Give the base a folder (`bases`).
    case nameBase = "name-base"
    /// Read the list again that has named the file: the server has another version now.
    case readListAgain = "read-list-again"
    /// Take the digest of the task away, if it is wrong.
    case dropDigest = "drop-digest"

    /// The end of a sentence with the library's settings.
    var setting: String {
        switch self {
        case .chooseExisting: ": set `existing` to `.overwrite`, `.rename` or `.skip`, or ask for another name"
        case .chooseName: ": set `existing` to `.overwrite` or `.rename`, or ask for another name"
        case .chooseFittingName: ": ask for another name"
        case .raiseMaxSize: ": raise `maxSize` to accept it"
        case .lowerMinFree: "; a `minFree` of 0 drops the reserve"
        case .raiseDiskBudget: ": raise `Configure.diskBudget` to accept it"
        case .chooseWorkPath: ": use another work path, or end what uses this one"
        case .useCurl: ". Use the transport over libcurl"
        case .giveLogin, .giveProxyLogin: ""
        case .nameAuthority: " (`caFile`)"
        case .checkPinnedKey: " (`pinnedPublicKey`)"
        case .giveCertificate: " (`clientCertificate`)"
        case .allowIPv4, .allowIPv6: " (`addressFamily`)"
        case .extendDeadline: ": prepare the task again with a later `deadline`, or without one"
        case .waitLonger: ": a longer `timeout` waits longer"
        case .nameBase: ": name it in `Configure.bases`"
        case .readListAgain: ": read the list again"
        case .dropDigest: ", or take the first digest away with `Control.change`"
        }
    }
}

extension DownloadError {
    /// The message with its remedy.
    ///
    /// - Parameter words: the end of the sentence that names the remedy, without a full stop.
    package func sentence(_ words: (Remedy) -> String) -> String {
        guard let remedy else { return message }
        return (message.utf8.last == UInt8(ascii: ".") ? String(message.dropLast()) : message) + words(remedy) + "."
    }
}
