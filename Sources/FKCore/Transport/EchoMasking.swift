import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Takes the secrets of a request out of what a server says about it: pages that explain a refusal like to quote the
/// token, the login or the signature that was refused.
struct EchoMasking: Sendable {
    let request: URLRequest
    /// Names of the header fields that are secret, in lower case.
    let secretHeaders: Set<String>

    /// - Parameters:
    ///   - text: may end in the middle of a secret: only the beginning of a page is kept.
    ///   - url: the last URL of the transfer: a redirect may have had a signature of its own.
    func mask(_ text: String, url: String?) -> String {
        var masked = text
        // The longest first: one may be a part of another.
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
            // The token without its scheme, a cookie's value without its name.
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

    /// Shorter ones are in every second word.
    private static let minLength = 4
    private static let alwaysSecret: Set<String> = ["authorization", "cookie", "proxy-authorization"]
    private static let schemes: Set<String> = ["basic", "bearer", "digest", "token"]
}
