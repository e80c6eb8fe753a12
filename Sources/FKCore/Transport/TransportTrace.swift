import FKMiddleware
import Foundation

#if canImport(CLibcurl)
    import CLibcurl
#endif

/// What this process sends and receives besides bodies, line by line, as curl's `-v` shows it: `* ` for the connection, `> ` for the
/// heads of requests, `< ` for those of responses. Secrets are masked.
enum TransportTrace {
    private static let reader = Locked<(@Sendable (String) -> Void)?>(nil)

    /// Begins to call `read` with each line, on the transport's thread. It must not block.
    static func begin(_ read: @escaping @Sendable (String) -> Void) { reader.withLock { $0 = read } }

    static var isOn: Bool { reader.withLock { $0 != nil } }

    enum Kind: String {
        case connection = "*"
        case sent = ">"
        case received = "<"
    }

    /// Shows a text of the library, which may be several lines.
    ///
    /// - Parameter secrets: the lower-case names of secret header fields beside those that are always secret.
    static func show(_ kind: Kind, _ text: String, secrets: Set<String>) {
        guard let read = reader.withLock({ $0 }) else { return }
        for line in text.split(whereSeparator: \.isNewline) {
            let shown = kind == .connection ? withoutCookie(String(line)).masked : masked(String(line), secrets)
            read("\(kind.rawValue) \(shown.visible)")
        }
    }

    /// A sentence of libcurl without the value of a cookie: `Added cookie a="***" for domain …`.
    static func withoutCookie(_ text: String) -> String {
        guard text.contains("cookie "), let start = text.range(of: "=\""),
            let end = text.range(of: "\" for domain", options: .backwards), start.upperBound <= end.lowerBound
        else { return text }
        return text[..<start.upperBound] + "***" + text[end.lowerBound...]
    }

    /// A line of a head: the values of secret fields, and the secrets in the request line and in addresses, are masked.
    static func masked(_ line: String, _ secrets: Set<String>) -> String {
        guard let colon = line.firstIndex(of: ":"), String(line[..<colon]).isFieldName else {
            // `GET /path?token=abc HTTP/1.1`, or a status line.
            return line.split(separator: " ", omittingEmptySubsequences: false)
                .map { $0.contains("?") ? String($0).masked : String($0) }.joined(separator: " ")
        }
        let name = String(line[..<colon])
        if HeaderField.isSecret(name) || secrets.contains(name.lowercased()) || name.caseInsensitiveEquals("Set-Cookie")
        {
            return "\(name): ***"
        }
        return "\(name):"
            + line[line.index(after: colon)...].split(separator: " ", omittingEmptySubsequences: false)
            .map { String($0).masked }.joined(separator: " ")
    }

    #if canImport(CLibcurl)
        /// Shows a text of libcurl's log. Bodies and TLS records are left out.
        static func show(_ type: curl_infotype, _ text: @autoclosure () -> String, secrets: Set<String>) {
            switch type {
            case CURLINFO_TEXT: show(.connection, text(), secrets: secrets)
            case CURLINFO_HEADER_OUT: show(.sent, text(), secrets: secrets)
            case CURLINFO_HEADER_IN: show(.received, text(), secrets: secrets)
            default: break
            }
        }
    #endif
}
