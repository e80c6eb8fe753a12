import FKMiddleware

/// Decides which requests are served, by their `Host`, `Origin` and `Sec-Fetch-Site`. A page of another site must not reach the
/// RPC, not even under a name that the site's owner has pointed to this machine (DNS rebinding).
package struct AccessRules: Sendable, Hashable {
    /// The address that is listened on, without brackets.
    package var address: String
    package var port: Int
    package var isSecure: Bool
    /// Further origins, such as `https://ariang.example`. `*` allows all.
    package var origins: [String]

    package init(address: String, port: Int, isSecure: Bool, origins: [String]) {
        self.address = address.lowercased()
        self.port = port
        self.isSecure = isSecure
        self.origins = origins.map { Self.trimmed($0.lowercased()) }
    }

    /// Why a request is refused; nil if it is served.
    ///
    /// - Parameter site: the value of `Sec-Fetch-Site`, which a browser sends. Requests for a page's images, scripts and links
    ///   have no origin, so only this value distinguishes them from requests of the user.
    package func fault(host: String?, origin: String?, site: String? = nil) -> String? {
        guard let host, isServed(host.lowercased()) else {
            return "This host name is not served. Use the address that fk rpc has shown."
        }
        guard let origin else {
            let isOwn = site.map { ["same-origin", "none"].contains($0.lowercased()) } ?? true
            return isOwn
                ? nil : "A page of another site has sent this request. Type the address into the browser instead."
        }
        if isAllowed(origin.lowercased()) { return nil }
        return "This origin is not allowed. Start fk rpc with --allow-origin \(Self.shown(origin).shellWord)."
    }

    /// True if the request may change something without a secret. False for the GET of a browser and for a browser's form
    /// without an origin, because old browsers send both for pages of any site without naming the site.
    package static func mayChange(_ request: WebRequest) -> Bool {
        let isBrowser = request["sec-fetch-site"] != nil || request["user-agent"]?.hasPrefix("Mozilla/") == true
        return !isBrowser || request.method != "GET" && request["origin"] != nil
    }

    /// True if the value of `Host` names this server. The port is free: a proxy or a tunnel may have another one.
    private func isServed(_ host: String) -> Bool {
        guard let name = Self.split(host)?.name else { return false }
        return serves(name: name)
    }

    private func serves(name: String) -> Bool {
        if ["localhost", "127.0.0.1", "::1", address].contains(name) { return true }
        // A rebound name is no address.
        return (address == "0.0.0.0" || address == "::") && Self.isAddress(name)
    }

    private func isAllowed(_ origin: String) -> Bool {
        if origins.contains("*") || origins.contains(Self.trimmed(origin)) { return true }
        let scheme = isSecure ? "https://" : "http://"
        guard origin.hasPrefix(scheme), let (name, port) = Self.split(String(origin.dropFirst(scheme.count))) else {
            return false
        }
        return serves(name: name) && (port ?? (isSecure ? 443 : 80)) == self.port
    }

    /// Host and port of `name:port` or `[address]:port`; nil for another text.
    static func split(_ text: String) -> (name: String, port: Int?)? {
        var name = text[...]
        var port: Int?
        if name.hasPrefix("[") {
            guard let end = name.firstIndex(of: "]") else { return nil }
            let rest = name[name.index(after: end)...]
            name = name[name.index(after: name.startIndex)..<end]
            guard rest.isEmpty || rest.hasPrefix(":") else { return nil }
            if !rest.isEmpty {
                guard let number = Self.port(rest.dropFirst()) else { return nil }
                port = number
            }
        } else if let colon = name.firstIndex(of: ":") {
            guard let number = Self.port(name[name.index(after: colon)...]) else { return nil }
            name = name[..<colon]
            port = number
        }
        return name.isEmpty ? nil : (String(name), port)
    }

    /// A port number, 0 to 65,535.
    static func port(_ text: Substring) -> Int? {
        guard (1...5).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = Int(text), number <= 65_535
        else { return nil }
        return number
    }

    static func isAddress(_ name: String) -> Bool {
        if name.utf8.contains(UInt8(ascii: ":")) {
            return name.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x61...0x66).contains($0) || $0 == UInt8(ascii: ":")
                    || $0 == UInt8(ascii: ".")
            }
        }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { part in port(part).map { $0 <= 255 } ?? false }
    }

    /// The origin without a slash at its end.
    static func trimmed(_ origin: String) -> String {
        origin.hasSuffix("/") ? String(origin.dropLast()) : origin
    }

    /// The printable part of a text of a client.
    static func shown(_ text: String) -> String {
        String(
            text.unicodeScalars.filter { $0.isASCII && $0.value > 0x20 && $0.value < 0x7f }.prefix(200).map(
                Character.init))
    }
}
