import FKCore
import FKMiddleware

extension DownloadError {
    /// What failed and why, without the URL, which stands beside it.
    var shortText: String {
        guard let reason, !message.contains(reason) else { return text }
        return "\(text) (\(reason))"
    }

    /// The same with the URL.
    var fullText: String {
        guard let url else { return shortText }
        return "\(text) [\(url)]" + (shortText == text ? "" : " (\(reason ?? ""))")
    }

    /// The message, with the options of the command line in the place of the library's settings.
    var text: String { OptionNames.inCommandLine(message) }

    /// The underlying reason in words. Of a page that came with an error only the text: records of earlier versions have the
    /// page as it was sent.
    var reason: String? {
        guard let underlying else { return nil }
        guard status != nil else { return OptionNames.inCommandLine(underlying) }
        return ErrorPage.text(underlying)
    }
}
