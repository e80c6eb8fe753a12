import FKCore
import FKMiddleware

extension Remedy {
    /// The end of a sentence with the options of the command line.
    var option: String {
        switch self {
        case .chooseExisting: ": use --overwrite, --rename or --skip, or another name"
        case .chooseName: ": use --overwrite or --rename, or another name"
        case .raiseMaxSize: ": raise --max-size to accept it"
        case .lowerMinFree: ", or lower --min-free"
        case .chooseWorkPath: ": use another one with --work-path"
        case .useCurl: ". Use --transport curl"
        case .giveLogin: " (--user or --netrc)"
        case .giveProxyLogin: " (--proxy http://NAME:PASSWORD@HOST:PORT)"
        case .nameAuthority: " (--cacert)"
        case .checkPinnedKey: " (--pinnedpubkey)"
        case .nameBase: ": run 'fk config set base.NAME FOLDER'"
        }
    }
}

extension DownloadError {
    /// The problem and its reason, without the URL.
    var shortText: String {
        guard let reason, !message.contains(reason) else { return text }
        return "\(text) (\(reason))"
    }

    /// The problem, its reason and the URL.
    var fullText: String {
        guard let url else { return shortText }
        return "\(text) [\(url)]" + (shortText == text ? "" : " (\(reason ?? ""))")
    }

    /// The message with its remedy in options of the command line.
    var text: String { sentence(\.option) }

    /// The underlying reason in words. Of an error page only the text; records of earlier versions contain the whole
    /// page.
    var reason: String? {
        guard let underlying else { return nil }
        guard status != nil else { return underlying }
        return ErrorPage.text(underlying)
    }
}
