/// The origin of a URL: scheme, host and port. It decides whether a secret may follow a redirect (RFC 6454 section
/// 4).
package struct URLOrigin: Sendable, Hashable {
    /// The scheme in lower case.
    package var scheme: String
    /// The host in lower case, without the brackets of an IPv6 address and without a final dot.
    package var host: String
    /// The port, 0 to 65535; the scheme's default if the URL has none.
    package var port: Int

    /// The origin of a URL; nil if the text has no scheme or host, or if the port is not in 0...65535.
    package init?(_ url: String) { self.init(URLParts(url)) }

    /// The origin of a URL in parts; nil without a host.
    package init?(_ parts: URLParts) {
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
