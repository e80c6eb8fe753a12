import Foundation

/// The components of a URL as they stand in its text (RFC 3986 section 3), with nothing decoded or normalised:
/// a signed URL must go out exactly as it came in, which Foundation's `URL` does not promise for odd input.
struct URLParts {
    /// Without `://`; nil when the text has no `scheme://`.
    var scheme: Substring?
    /// User and password before the last `@` of the authority, without the `@`.
    var userinfo: Substring?
    var hostPort: Substring
    var path: Substring
    /// Without the `?`.
    var query: Substring?
    /// Without the `#`.
    var fragment: Substring?

    init(_ text: String) {
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
    var requestURL: String {
        "\(scheme.map { "\($0)://" } ?? "")\(hostPort)\(path)\(query.map { "?\($0)" } ?? "")"
    }

    /// User and password, percent-decoded; nil when there is no userinfo.
    var credentials: Credentials? {
        guard let userinfo else { return nil }
        let halves = userinfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let decode: (Substring) -> String = { String($0).removingPercentEncoding ?? String($0) }
        return Credentials(user: decode(halves[0]), password: halves.count > 1 ? decode(halves[1]) : "")
    }

    struct Credentials: Sendable, Hashable {
        var user: String
        var password: String
    }
}

/// Scheme, host and port: what decides whether a secret may follow a redirect (RFC 6454 section 4).
package struct URLOrigin: Sendable, Hashable {
    /// In lower case.
    package var scheme: String
    /// In lower case, without the brackets of an IPv6 address and without a final dot.
    package var host: String
    package var port: Int

    /// Nil when the text has no scheme or no host, or when the port is not 0...65535.
    package init?(_ url: String) { self.init(URLParts(url)) }

    init?(_ parts: URLParts) {
        guard let scheme = parts.scheme?.lowercased(), !parts.hostPort.isEmpty else { return nil }
        var host = parts.hostPort
        var portText: Substring?
        if host.utf8.first == UInt8(ascii: "[") {
            guard let end = host.utf8.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            let after = host[host.index(after: end)...]
            guard after.isEmpty || after.first == ":" else { return nil }
            portText = after.dropFirst()
            host = host[host.index(after: host.startIndex)..<end]
        } else if let colon = host.utf8.lastIndex(of: UInt8(ascii: ":")) {
            portText = host[host.index(after: colon)...]
            host = host[..<colon]
        }
        if host.utf8.last == UInt8(ascii: ".") { host.removeLast() }
        guard !host.isEmpty else { return nil }
        var port = scheme == "https" ? 443 : 80
        if let portText, !portText.isEmpty {
            guard portText.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(portText), number <= 65_535
            else { return nil }
            port = number
        }
        self.scheme = scheme
        self.host = host.lowercased()
        self.port = port
    }
}
