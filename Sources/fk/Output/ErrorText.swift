import FKCore
import FKMiddleware

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

    /// The message, with the options of the command line instead of the library's settings.
    var text: String { OptionNames.inCommandLine(message) }

    /// The underlying reason in words. Of an error page only the text; records of earlier versions contain the whole
    /// page.
    var reason: String? {
        guard let underlying else { return nil }
        guard status != nil else { return OptionNames.inCommandLine(underlying) }
        return ErrorPage.text(underlying)
    }
}
