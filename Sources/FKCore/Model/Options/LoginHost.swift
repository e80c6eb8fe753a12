import FKMiddleware

/// A host at which redirects may authenticate (`TaskOptions.loginHost`).
///
/// A server that wants a login redirects to this host, which knows the user, and is led back from there. The login of `~/.netrc` is
/// sent to this host alone. It must have https, or be this machine itself, because a redirect chooses the scheme.
package struct LoginHost: Sendable, Hashable {
    fileprivate let host: String
    /// nil is any port.
    private let port: Int?

    /// Reads `HOST` or `HOST:PORT`; nil for another text.
    package init?(_ text: String) {
        guard !text.isEmpty, !text.utf8.contains(where: { "/@?#*\\".utf8.contains($0) || $0 <= 0x20 }),
            let url = try? "https://\(text)/".normalizedURL(), let origin = URLOrigin(url),
            !origin.host.isEmpty
        else { return nil }
        host = origin.host
        let name = text.hasSuffix("]") ? "" : text
        port = name.contains(":") ? origin.port : nil
    }

    /// True if a request to the URL may have the login.
    package func isAt(_ url: String) -> Bool {
        guard let origin = URLOrigin(url), origin.host == host, port == nil || origin.port == port else { return false }
        return origin.scheme == "https" || Self.isLocal(host)
    }

    private static func isLocal(_ host: String) -> Bool {
        ["localhost", "127.0.0.1", "::1", "[::1]"].contains(host)
    }

    /// The reason why a text is no such host; nil if it is one.
    package static func fault(in text: String) -> String? {
        LoginHost(text) == nil ? "\"\(text.prefix(80).visible)\" is no host: give HOST or HOST:PORT" : nil
    }
}

extension String {
    /// The name of a `LoginHost` without the port, as `~/.netrc` has it; nil for another text.
    package var loginHostName: String? { LoginHost(self)?.host }
}
