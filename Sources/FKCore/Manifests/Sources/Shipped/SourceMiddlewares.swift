import FKCore
import FKMiddleware

extension MiddlewareChains {
    /// Registers the middlewares that give the requests of tasks the tokens of their sources, if the environment has something for them.
    /// Each process that runs tasks finds the tokens in its own environment and files: none is stored.
    package func registerSources(_ environment: [String: String]) {
        for token in TokenMiddleware.all(environment) { register(source: token, for: token.scope) }
        if let release = ReleaseMiddleware(environment) { register(source: release, for: release.scope) }
        let registry = RegistryMiddleware(environment)
        register(source: registry, for: registry.scope)
        if AWSCredentials.variables(environment) == nil {
            register(source: AWSCredentialMiddleware(environment), for: .matching(\.isSigned))
        }
        let server = BucketServerMiddleware(environment)
        register(source: server, for: server.scope)
        for bucket in BucketMiddleware.all(environment) { register(source: bucket, for: bucket.scope) }
    }
}

extension TaskDescription {
    /// The variables of an environment with credentials for the task that have another value, or none, in another environment.
    package func credentials(in environment: [String: String], unlike other: [String: String]) -> [String] {
        credentials(environment).filter { name in
            environment[name].map { !$0.isEmpty && $0 != other[name] } ?? false
        }
    }

    /// The variables of credentials that requests of the task may use.
    private func credentials(_ environment: [String: String]) -> [String] {
        if options.awsSignature != nil {
            return [
                "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CONFIG_FILE",
                "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL",
            ]
        }
        switch attributes[SourcePage.Orders.tokenAttribute] {
        case "gs": return ["GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"]
        case "az": return ["AZURE_STORAGE_SAS_TOKEN"]
        case "oci", "ollama": return ["REGISTRY_AUTH_FILE", "DOCKER_CONFIG"]
        default: break
        }
        let origin = URLOrigin(url)
        if origin == URLOrigin(HubToken.endpoint(in: environment)) {
            return HubToken.isPrivate(in: environment) ? HubToken.variables : []
        }
        if origin == URLOrigin(Records.Servers(environment).zenodo) { return ["ZENODO_TOKEN"] }
        let releases = try? ReleaseServer(environment).api
        return origin == releases.flatMap { URLOrigin($0) } ? ReleaseServer.variables : []
    }
}

extension Downloader {
    /// Registers the middlewares for the tokens of an environment.
    package func registerTokens(_ environment: [String: String]) {
        for token in TokenMiddleware.all(environment) { middlewares.register(request: token, for: token.scope) }
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
