import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Masks the secrets of a request in a server's response. Error pages often quote the token, the login or the
/// signature that the server refused.
struct EchoMasking: Sendable {
    let request: URLRequest
    /// The lower-case names of the secret header fields.
    let secretHeaders: Set<String>

    /// Masks a text.
    ///
    /// - Parameters:
    ///   - text: the beginning of a page; it may end in the middle of a secret.
    ///   - url: the last URL of the transfer, because a redirect may contain a signature of its own.
    func mask(_ text: String, url: String?) -> String {
        var masked = text
        // The longest first, because one secret may be a part of another.
        for secret in secrets(url).sorted(by: { $0.utf8.count > $1.utf8.count }) {
            masked = masked.replacing(secret, with: "***")
            let cut = (Self.minLength..<secret.count).last { masked.hasSuffix(secret.prefix($0)) }
            if let cut { masked = masked.dropLast(cut) + "***" }
        }
        return masked
    }

    private func secrets(_ url: String?) -> Set<String> {
        var found: Set<String> = []
        for url in [request.url?.absoluteString, url].compactMap({ $0 }) { found.formUnion(Self.secrets(of: url)) }
        for (name, value) in request.allHTTPHeaderFields ?? [:] {
            let name = name.lowercased()
            guard Self.alwaysSecret.contains(name) || secretHeaders.contains(name) else { continue }
            found.insert(value)
            // The token without its scheme, and the value of a cookie without its name.
            found.formUnion(value.split { " ;,=".contains($0) }.map(String.init))
        }
        return found.filter { $0.count >= Self.minLength && !Self.schemes.contains($0.lowercased()) }
    }

    private static func secrets(of url: String) -> [String] {
        let parts = URLParts(url)
        var values = (parts.query ?? "").split(separator: "&").compactMap { parameter in
            parameter.firstIndex(of: "=").map { String(parameter[parameter.index(after: $0)...]) }
        }
        if let credentials = parts.credentials {
            let login = "\(credentials.user):\(credentials.password)"
            values += [credentials.user, credentials.password, Data(login.utf8).base64EncodedString()]
        }
        return values + values.compactMap(\.removingPercentEncoding)
    }

    /// Shorter secrets occur by chance in other words.
    private static let minLength = 4
    /// Fields that are secret whoever sets them.
    static let alwaysSecret: Set<String> = ["authorization", "cookie", "proxy-authorization"]
    private static let schemes: Set<String> = ["basic", "bearer", "digest", "token"]
}
