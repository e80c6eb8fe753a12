import Foundation

/// The components of a URL exactly as they appear in its text (RFC 3986 section 3), neither decoded nor normalised. A
/// signed URL must be sent exactly as given, which Foundation's `URL` does not guarantee for unusual input.
package struct URLParts {
    /// The scheme without `://`; nil if the text has no `scheme://`.
    package var scheme: Substring?
    /// The userinfo: the text before the last `@` of the authority, without the `@`.
    package var userinfo: Substring?
    /// The host, with the port if there is one.
    package var hostPort: Substring
    /// The path with its first slash; the whole text before query and fragment if there is no scheme.
    package var path: Substring
    /// The query without the `?`.
    package var query: Substring?
    /// The fragment without the `#`.
    package var fragment: Substring?

    /// Splits any text. It never fails.
    package init(_ text: String) {
        var contiguous = text
        let bounds = contiguous.withUTF8 { Bounds($0) }
        let text = contiguous
        func part(_ range: Range<Int>) -> Substring { Self.part(range, of: text) }
        scheme = bounds.scheme.map(part)
        userinfo = bounds.userinfo.map(part)
        hostPort = part(bounds.hostPort)
        path = part(bounds.path)
        query = bounds.query.map(part)
        fragment = bounds.fragment.map(part)
    }

    private static func part(_ range: Range<Int>, of text: String) -> Substring {
        let start = text.utf8.index(text.utf8.startIndex, offsetBy: range.lowerBound)
        return text[start..<text.utf8.index(start, offsetBy: range.count)]
    }

    /// The place of the path alone, in a third of the time.
    package static func path(of text: UnsafeBufferPointer<UInt8>) -> Range<Int> { Bounds(text).path }

    /// The components as byte offsets. All delimiters are ASCII, and comparing characters takes ten times as long.
    private struct Bounds {
        var scheme: Range<Int>?
        var userinfo: Range<Int>?
        var hostPort = 0..<0
        var path: Range<Int>
        var query: Range<Int>?
        var fragment: Range<Int>?

        init(_ bytes: UnsafeBufferPointer<UInt8>) {
            var end = bytes.count
            if let hash = bytes.firstIndex(of: UInt8(ascii: "#")) {
                fragment = hash + 1..<end
                end = hash
            }
            if let mark = bytes[..<end].firstIndex(of: UInt8(ascii: "?")) {
                query = mark + 1..<end
                end = mark
            }
            path = 0..<end
            guard let colon = bytes[..<end].firstIndex(of: UInt8(ascii: ":")), colon + 3 <= end,
                bytes[colon + 1] == UInt8(ascii: "/"), bytes[colon + 2] == UInt8(ascii: "/")
            else { return }
            scheme = 0..<colon
            let authority = colon + 3
            let slash = bytes[authority..<end].firstIndex(of: UInt8(ascii: "/")) ?? end
            path = slash..<end
            hostPort = authority..<slash
            if let at = bytes[hostPort].lastIndex(of: UInt8(ascii: "@")) {
                userinfo = authority..<at
                hostPort = at + 1..<slash
            }
        }
    }

    /// The scheme, host and port of a URL; the whole text if it has no scheme.
    package static func site(of text: String) -> String {
        var text = text
        let bounds = text.withUTF8 { Bounds($0) }
        guard let scheme = bounds.scheme else { return text }
        let utf8 = text.utf8
        func index(_ offset: Int) -> String.Index { utf8.index(utf8.startIndex, offsetBy: offset) }
        let host = text[index(bounds.hostPort.lowerBound)..<index(bounds.hostPort.upperBound)]
        return bounds.userinfo == nil
            ? String(text[..<host.endIndex]) : "\(text[..<index(scheme.upperBound)])://\(host)"
    }

    /// The URL without userinfo and fragment, as the request line and the Host field need it.
    package var requestURL: String {
        "\(scheme.map { "\($0)://" } ?? "")\(hostPort)\(path)\(query.map { "?\($0)" } ?? "")"
    }

    /// The user and password, percent-decoded; nil without userinfo.
    package var credentials: Credentials? {
        guard let userinfo else { return nil }
        let halves = userinfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let decode: (Substring) -> String = { String($0).removingPercentEncoding ?? String($0) }
        return Credentials(user: decode(halves[0]), password: halves.count > 1 ? decode(halves[1]) : "")
    }

    /// The user and password of a URL.
    package struct Credentials: Sendable, Hashable {
        /// May be empty.
        package var user: String
        /// Empty if the userinfo has no colon.
        package var password: String
    }
}

extension String {
    /// The components of the URL, exactly as they appear in the text.
    package var urlParts: URLParts { URLParts(self) }
}
