import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sends the token of a server, such as a hub or Zenodo, with requests to it. It is added to each request and never stored, and
/// it does not follow the redirect to the server of the bytes.
package struct TokenMiddleware: RequestMiddleware {
    package let name: String
    private let token: String
    private let origin: URLOrigin
    private let host: String

    /// Creates the middleware; nil if there is no token, or the endpoint is no URL.
    init?(_ name: String, _ token: String?, _ endpoint: String) {
        guard let token, let endpoint = try? endpoint.normalizedURL(), let origin = URLOrigin(endpoint) else {
            return nil
        }
        self.name = name
        self.token = token
        self.origin = origin
        host = String(URLParts(endpoint).hostPort)
    }

    package var scope: MiddlewareScope { .host(host) }

    package var secretHeaders: [String] { ["Authorization"] }

    /// Adds the token to a request to the server that has none.
    package func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        guard let url = request.url?.absoluteString, URLOrigin(url) == origin,
            request.value(forHTTPHeaderField: "Authorization") == nil
        else { return request }
        var request = request
        request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        return request
    }
}
