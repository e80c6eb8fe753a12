import Foundation

/// The components of a URL as they stand in its text (RFC 3986 section 3), with nothing decoded or normalised:
/// a signed URL must go out exactly as it came in, which Foundation's `URL` does not promise for odd input.
package struct URLParts {
    /// Without `://`; nil when the text has no `scheme://`.
    package var scheme: Substring?
    /// User and password before the last `@` of the authority, without the `@`.
    package var userinfo: Substring?
    package var hostPort: Substring
    package var path: Substring
    /// Without the `?`.
    package var query: Substring?
    /// Without the `#`.
    package var fragment: Substring?

    package init(_ text: String) {
        // Looked at as bytes: all of the delimiters are ASCII, and comparing characters takes ten times as long.
        var rest = text[...].utf8
        if let hash = rest.firstIndex(of: UInt8(ascii: "#")) {
            fragment = Substring(rest[rest.index(after: hash)...])
            rest = rest[..<hash]
        }
        if let mark = rest.firstIndex(of: UInt8(ascii: "?")) {
            query = Substring(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        guard let colon = rest.firstIndex(of: UInt8(ascii: ":")), rest[colon...].starts(with: "://".utf8) else {
            hostPort = ""
            path = Substring(rest)
            return
        }
        scheme = Substring(rest[..<colon])
        rest = rest[rest.index(colon, offsetBy: 3)...]
        var authority = rest
        if let slash = rest.firstIndex(of: UInt8(ascii: "/")) {
            authority = rest[..<slash]
            path = Substring(rest[slash...])
        } else {
            path = ""
        }
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            userinfo = Substring(authority[..<at])
            authority = authority[authority.index(after: at)...]
        }
        hostPort = Substring(authority)
    }

    /// The URL without userinfo and fragment: what the request line and the Host field are made of.
    package var requestURL: String {
        "\(scheme.map { "\($0)://" } ?? "")\(hostPort)\(path)\(query.map { "?\($0)" } ?? "")"
    }

    /// User and password, percent-decoded; nil when there is no userinfo.
    package var credentials: Credentials? {
        guard let userinfo else { return nil }
        let halves = userinfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let decode: (Substring) -> String = { String($0).removingPercentEncoding ?? String($0) }
        return Credentials(user: decode(halves[0]), password: halves.count > 1 ? decode(halves[1]) : "")
    }

    package struct Credentials: Sendable, Hashable {
        package var user: String
        package var password: String
    }
}
