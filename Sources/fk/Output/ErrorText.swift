import FKMiddleware
import Foundation

extension DownloadError {
    /// What failed and why, without the URL, which stands beside it.
    var shortText: String {
        guard let reason, !message.contains(reason) else { return message }
        return "\(message) (\(reason))"
    }

    /// The same with the URL.
    var fullText: String {
        guard let url else { return shortText }
        return "\(message) [\(url)]" + (shortText == message ? "" : " (\(reason ?? ""))")
    }

    /// The underlying reason in words: of a page that a server sent with an error only the text, for nobody wants to read tags.
    var reason: String? {
        guard let underlying else { return nil }
        guard status != nil, underlying.contains("<") else { return underlying }
        let text = Self.withoutTags(underlying).split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return text.isEmpty ? nil : text
    }

    private static func withoutTags(_ html: String) -> String {
        var text = ""
        var rest = html[...]
        while let open = rest.firstIndex(of: "<") {
            text += rest[..<open] + " "
            let tag = rest[open...]
            // What these enclose is not text; the title repeats the heading.
            let name = tag.dropFirst().prefix { $0.isLetter }.lowercased()
            var end = tag.firstIndex(of: ">")
            if ["style", "script", "title"].contains(name) {
                end = tag.range(of: "</\(name)", options: .caseInsensitive).flatMap {
                    tag[$0.upperBound...].firstIndex(of: ">")
                }
            }
            // Only the beginning of the page is kept: the last tag may be cut.
            rest = end.map { rest[rest.index(after: $0)...] } ?? ""
        }
        return text + rest
    }
}
