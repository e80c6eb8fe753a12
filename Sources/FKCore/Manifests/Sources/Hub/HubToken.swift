import FKMiddleware
import Foundation

/// Finds the hub and its token where the hub's own client looks for them.
package enum HubToken {
    /// The variables that may have the token.
    static let variables = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]

    /// The URL of the hub: `HF_ENDPOINT`, else the usual one.
    package static func endpoint(in environment: [String: String]) -> String {
        environment["HF_ENDPOINT"].flatMap { $0.isEmpty ? nil : $0 } ?? HubClient.defaultEndpoint
    }

    /// The token: `HF_TOKEN`, else the content of the file that the hub's client saves it in; nil for none, or if
    /// `HF_HUB_DISABLE_IMPLICIT_TOKEN` forbids its use.
    package static func find(in environment: [String: String]) -> String? {
        let forbidden = environment["HF_HUB_DISABLE_IMPLICIT_TOKEN"]?.uppercased() ?? ""
        if ["1", "ON", "YES", "TRUE"].contains(forbidden) { return nil }
        for name in variables {
            if let token = environment[name].flatMap(SourceSecret.token) { return token }
        }
        guard let path = path(in: environment), let data = FileManager.default.contents(atPath: path),
            data.count <= 4_096
        else { return nil }
        return SourceSecret.token(String(decoding: data, as: UTF8.self))
    }

    /// True if the token is in the environment of this process alone, so that no other process finds it.
    static func isPrivate(in environment: [String: String]) -> Bool {
        guard let token = find(in: environment) else { return false }
        var rest = environment
        for name in variables { rest[name] = nil }
        return find(in: rest) != token
    }

    private static func path(in environment: [String: String]) -> String? {
        func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        if let path = value("HF_TOKEN_PATH") { return path }
        let cache = value("XDG_CACHE_HOME") ?? value("HOME").map { "\($0)/.cache" }
        guard let folder = value("HF_HOME") ?? cache.map({ "\($0)/huggingface" }) else { return nil }
        return "\(folder)/token"
    }
}
