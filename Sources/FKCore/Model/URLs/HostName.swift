import FKMiddleware
import Foundation

extension String {
    /// Scheme, host and port of a normalized URL (`normalizedURL()`): `http://a.example:8080`. Limits and pauses are stored by this name
    /// of a server. A final dot of the host is removed, and an IPv6 address gets its shortest form, since both name the same server.
    package var site: String {
        let site = URLParts.site(of: self)
        guard Self.hasOtherSpelling(site) else { return site }
        let parts = URLParts(site)
        guard let scheme = parts.scheme else { return site }
        let (host, port) = Self.split(parts.hostPort)
        return "\(scheme)://\(host)\(port)"
    }

    /// The same for a URL that is not normalized, from a server or a transport.
    package var normalizedSite: String { ((try? normalizedURL()) ?? self).site }

    /// The host and port of a site for display: `a.example:8080`.
    package var shownSite: String { String(URLParts(self).hostPort) }

    /// True if the host has another spelling. It runs once for each queued task, so it only scans the bytes.
    private static func hasOtherSpelling(_ site: String) -> Bool {
        var last: UInt8 = 0
        for byte in site.utf8 {
            if byte == UInt8(ascii: "[") || byte == UInt8(ascii: ":") && last == UInt8(ascii: ".") { return true }
            last = byte
        }
        return last == UInt8(ascii: ".")
    }

    private static func split(_ hostPort: Substring) -> (host: String, port: Substring) {
        if hostPort.first == "[", let close = hostPort.firstIndex(of: "]") {
            return ("[\(shortest(hostPort[..<close].dropFirst()))]", hostPort[close...].dropFirst())
        }
        let colon = hostPort.firstIndex(of: ":") ?? hostPort.endIndex
        let name = hostPort[..<colon]
        return (String(name.last == "." ? name.dropLast() : name), hostPort[colon...])
    }

    /// The shortest form of an IPv6 address (RFC 5952 section 4).
    private static func shortest(_ literal: Substring) -> String {
        let parts = literal.split(separator: "%", maxSplits: 1)
        var address = in6_addr()
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard let first = parts.first, inet_pton(AF_INET6, String(first), &address) == 1,
            inet_ntop(AF_INET6, &address, &text, socklen_t(text.count)) != nil
        else { return String(literal) }
        let end = text.firstIndex(of: 0) ?? text.count
        let short = String(decoding: text[..<end].map(UInt8.init(bitPattern:)), as: UTF8.self)
        return parts.count == 2 ? "\(short)%\(parts[1])" : short
    }
}
