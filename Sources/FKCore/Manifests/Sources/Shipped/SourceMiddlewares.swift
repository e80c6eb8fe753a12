import FKMiddleware

/// The middlewares that give the requests of tasks the tokens of their sources. Each process that runs tasks finds the tokens in its own
/// environment and files: none is stored.
package enum SourceMiddlewares {
    /// Registers those that the environment has something for.
    package static func register(in chains: MiddlewareChains, _ environment: [String: String]) {
        for token in TokenMiddleware.all(environment) { chains.register(source: token, for: token.scope) }
        if let release = ReleaseMiddleware(environment) { chains.register(source: release, for: release.scope) }
        let registry = RegistryMiddleware(environment)
        chains.register(source: registry, for: registry.scope)
        if AWSCredentials.variables(environment) == nil {
            chains.register(source: AWSCredentialMiddleware(environment), for: .matching(\.isSigned))
        }
        let server = BucketServerMiddleware(environment)
        chains.register(source: server, for: server.scope)
        for bucket in BucketMiddleware.all(environment) { chains.register(source: bucket, for: bucket.scope) }
    }
}

extension TokenMiddleware {
    /// The middlewares for the tokens of an environment.
    package static func all(_ environment: [String: String]) -> [TokenMiddleware] {
        let servers = Records.Servers(environment)
        return [
            Self("hub-token", HubToken.find(in: environment), HubToken.endpoint(in: environment)),
            Self("zenodo-token", servers.zenodoToken, servers.zenodo),
        ].compactMap(\.self)
    }
}
