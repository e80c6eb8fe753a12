import FKMiddleware

extension DownloadError {
    /// The message with its remedy, in words for a person at another client.
    var text: String { sentence(\.words) }

    /// The text at the page, which has fields for a login.
    var pageText: String { remedy == .giveLogin ? message : text }
}

extension Remedy {
    fileprivate var words: String {
        switch self {
        case .chooseExisting, .chooseName: ": move that file away, or add the download again with another name"
        case .chooseFittingName: ": add the download again with another name"
        case .raiseMaxSize: ": fetch it with 'fk get --max-size' to accept it"
        case .lowerMinFree: ", or start fk rpc with a lower --min-free"
        case .raiseDiskBudget: ": start fk rpc with a larger --disk-budget to accept it"
        case .chooseWorkPath: ": end it, or start fk rpc with another --work-path"
        case .useCurl: ". Start fk rpc with --transport curl"
        case .giveLogin: " (options http-user and http-passwd)"
        case .giveProxyLogin: " (option all-proxy)"
        case .nameAuthority: " ('fk get --cacert')"
        case .checkPinnedKey: " ('fk get --pinnedpubkey')"
        case .giveCertificate: " ('fk get --cert')"
        case .allowIPv4: " ('fk get -6')"
        case .allowIPv6: " ('fk get -4')"
        case .extendDeadline: ": add it again without a deadline"
        case .waitLonger: ": a longer timeout waits longer"
        case .nameBase: ": run 'fk config set base.NAME FOLDER', and start fk rpc again"
        case .readListAgain: ": read the list again (fk barrel sync)"
        case .dropDigest: ", or take the first digest away with 'fk get --checksum none'"
        }
    }
}
