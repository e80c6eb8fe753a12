import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Finds the hub and its token where the hub's own client looks for them.
package enum HubToken {
    /// The URL of the hub: `HF_ENDPOINT`, else the usual one.
    package static func endpoint(in environment: [String: String]) -> String {
        environment["HF_ENDPOINT"].flatMap { $0.isEmpty ? nil : $0 } ?? HubClient.defaultEndpoint
    }

    /// The token: `HF_TOKEN`, else the content of the file that the hub's client saves it in; nil for none, or if
    /// `HF_HUB_DISABLE_IMPLICIT_TOKEN` forbids its use.
    package static func find(in environment: [String: String]) -> String? {
        let forbidden = environment["HF_HUB_DISABLE_IMPLICIT_TOKEN"]?.uppercased() ?? ""
        if ["1", "ON", "YES", "TRUE"].contains(forbidden) { return nil }
        for name in ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"] {
            if let token = environment[name].flatMap(clean) { return token }
        }
        guard let path = path(in: environment), let data = FileManager.default.contents(atPath: path),
            data.count <= 4_096
        else { return nil }
        return clean(String(decoding: data, as: UTF8.self))
    }

    /// True if the token is in the environment of this process alone, so that no other process finds it.
    package static func isPrivate(in environment: [String: String]) -> Bool {
        guard let token = find(in: environment) else { return false }
        var rest = environment
        rest["HF_TOKEN"] = nil
        rest["HUGGING_FACE_HUB_TOKEN"] = nil
        return find(in: rest) != token
    }

    private static func path(in environment: [String: String]) -> String? {
        func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        if let path = value("HF_TOKEN_PATH") { return path }
        let cache = value("XDG_CACHE_HOME") ?? value("HOME").map { "\($0)/.cache" }
        guard let folder = value("HF_HOME") ?? cache.map({ "\($0)/huggingface" }) else { return nil }
        return "\(folder)/token"
    }

    /// The token without line ends; nil if a header field cannot hold it.
    static func clean(_ text: String) -> String? {
        let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
        return token.isEmpty || !token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) ? nil : token
    }
}

/// Sends the token of a hub, or of Zenodo, with requests to that server. It is added to each request and never stored, and
/// it does not follow the redirect to the server of the bytes.
package struct HubTokenMiddleware: RequestMiddleware {
    /// The name in `fk why`.
    package let name: String
    private let token: String
    private let origin: URLOrigin
    private let host: String

    /// The middlewares for the tokens of an environment.
    package static func all(_ environment: [String: String]) -> [HubTokenMiddleware] {
        let servers = RecordSource.Servers(environment)
        return [
            Self("hub-token", HubToken.find(in: environment), HubToken.endpoint(in: environment)),
            Self("zenodo-token", servers.zenodoToken, servers.zenodo),
        ].compactMap(\.self)
    }

    /// Creates the middleware; nil if there is no token, or the endpoint is no URL.
    private init?(_ name: String, _ token: String?, _ endpoint: String) {
        guard let token, let endpoint = try? URLNormalizer.normalize(endpoint), let origin = URLOrigin(endpoint) else {
            return nil
        }
        self.name = name
        self.token = token
        self.origin = origin
        host = String(URLParts(endpoint).hostPort)
    }

    /// Only requests to the hub come to it.
    package var scope: MiddlewareScope { .host(host) }

    /// `Authorization`.
    package var secretHeaders: [String] { ["Authorization"] }

    /// Adds the token to a request to the hub that has none.
    package func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        guard let url = request.url?.absoluteString, URLOrigin(url) == origin,
            request.value(forHTTPHeaderField: "Authorization") == nil
        else { return request }
        var request = request
        request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        return request
    }
}
