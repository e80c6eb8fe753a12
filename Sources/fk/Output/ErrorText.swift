import FKCore
import FKMiddleware

extension Remedy {
    /// The end of a sentence with the options of the command line.
    var option: String {
        switch self {
        case .chooseExisting: ": move it away, or use --overwrite, --rename or --skip"
        case .chooseName: ": move it away, or use --overwrite or --rename"
        case .chooseFittingName: ": choose another name with -o"
        case .raiseMaxSize: ": raise --max-size to accept it"
        case .lowerMinFree: "; --min-free 0 drops the reserve"
        case .raiseDiskBudget: ": raise --disk-budget to accept it"
        case .chooseWorkPath: ": choose another one with --work-path DIR or FK_WORK_PATH"
        case .useCurl: ". Use --transport curl"
        case .giveLogin: " (--user or --netrc)"
        case .giveProxyLogin: " (--proxy http://NAME:PASSWORD@HOST:PORT)"
        case .nameAuthority: " (--cacert)"
        case .checkPinnedKey: " (--pinnedpubkey)"
        case .giveCertificate: " (--cert)"
        case .allowIPv4: ": leave out -6"
        case .allowIPv6: ": leave out -4"
        case .extendDeadline: ": give the command again with a longer --max-time, or without it"
        case .waitLonger: ": --timeout S waits longer"
        case .nameBase: ": run 'fk config set base.NAME FOLDER'"
        case .readListAgain: ": read the list again (fk barrel sync; for a single object the same fk get)"
        case .dropDigest: ", or take the first digest away with 'fk get --checksum none'"
        }
    }
}

extension DownloadError {
    /// The problem and its reason, without the URL.
    var shortText: String { text + reasonText }

    /// `shortText` for a task, with the host that failed if it is another one: the server redirects to it, or it is a mirror.
    func shortText(of task: String) -> String {
        guard let host = url.flatMap({ URLOrigin($0)?.host }), host != URLOrigin(task)?.host else { return shortText }
        return "\(text) [\(host)]" + reasonText
    }

    /// The reason behind the problem: the system's or the library's in parentheses, and what a server has written as a quotation.
    private var reasonText: String {
        guard let reason, !reason.isEmpty, !message.contains(reason) else { return "" }
        return status == nil ? " (\(reason))" : " The server says: \"\(reason)\""
    }

    /// The problem, its reason and the URL.
    var fullText: String {
        guard let url else { return shortText }
        return "\(text) [\(url)]" + reasonText
    }

    /// The message with its remedy in options of the command line.
    var text: String { sentence(\.option) }

    /// The underlying reason in words. Of an error page only the text; records of earlier versions contain the whole
    /// page.
    var reason: String? {
        guard let underlying else { return nil }
        guard status != nil else { return underlying }
        return underlying.pageLine
    }
}
