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

    /// The variables of an environment with credentials for a task that have another value, or none, in another environment.
    package static func credentials(
        for task: TaskDescription, in environment: [String: String], unlike other: [String: String]
    ) -> [String] {
        credentials(for: task, environment).filter { name in
            environment[name].map { !$0.isEmpty && $0 != other[name] } ?? false
        }
    }

    /// The variables of credentials that requests of a task may use.
    private static func credentials(for task: TaskDescription, _ environment: [String: String]) -> [String] {
        if task.options.awsSignature != nil {
            return [
                "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CONFIG_FILE",
                "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL",
            ]
        }
        switch task.attributes[SourceOrders.tokenAttribute] {
        case "gs": return ["GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"]
        case "az": return ["AZURE_STORAGE_SAS_TOKEN"]
        case "oci", "ollama": return ["REGISTRY_AUTH_FILE", "DOCKER_CONFIG"]
        default: break
        }
        let origin = URLOrigin(task.url)
        if origin == URLOrigin(HubToken.endpoint(in: environment)) {
            return HubToken.isPrivate(in: environment) ? HubToken.variables : []
        }
        if origin == URLOrigin(Records.Servers(environment).zenodo) { return ["ZENODO_TOKEN"] }
        let releases = try? ReleaseServer(environment).api
        return origin == releases.flatMap { URLOrigin($0) } ? ReleaseServer.variables : []
    }
}

extension TokenMiddleware {
    package static func all(_ environment: [String: String]) -> [TokenMiddleware] {
        let servers = Records.Servers(environment)
        return [
            Self("hub-token", HubToken.find(in: environment), HubToken.endpoint(in: environment)),
            Self("zenodo-token", servers.zenodoToken, servers.zenodo),
        ].compactMap(\.self)
    }
}
