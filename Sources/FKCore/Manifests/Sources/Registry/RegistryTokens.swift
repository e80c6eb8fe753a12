import FKEngine
import FKMiddleware
import FKTransport
import Foundation

/// The values of `Authorization` for the repositories of registries. They are in memory only, and are asked for again before they end.
final class RegistryTokens: Sendable {
    static let shared = RegistryTokens()

    private struct Key: Hashable {
        var base: String
        var repository: String
        /// The login that the owner has given for it (`--user`); nil for that of `DockerLogins`.
        var login: String?
    }

    private struct State {
        /// The value of the field; nil for a registry that answers anybody.
        var known: [Key: (field: String?, ends: ContinuousClock.Instant)] = [:]
        /// The requests for a token in progress.
        var flights: [Key: Task<String?, any Error>] = [:]
        /// The challenges of requests of tasks that the registry has refused. Their keys have no login.
        var challenges: [Key: [String]] = [:]
    }

    private let state = Locked(State())

    /// The time before its end at which a token counts as ended.
    private static let margin: Duration = .seconds(10)
    /// The time for which an answer without an end is kept.
    private static let usual: Duration = .seconds(3_600)

    init() {}

    /// True for an owner's login that a registry of tokens takes at the server of its tokens; also without one.
    static func mayExchange(_ login: String?) -> Bool { login?.lowercased().hasPrefix("basic ") ?? true }

    /// The value of the field for a repository; nil if none is known, or none is needed.
    func known(_ base: String, _ repository: String, _ login: String?) -> String? {
        state.withLock {
            $0.known[Key(base: base, repository: repository, login: login)].flatMap { $0.ends > .now ? $0.field : nil }
        }
    }

    /// Asks for a new token, as the challenges of an answer of the registry want it.
    ///
    /// - Parameter login: the owner's value of the field; nil for the saved login.
    /// - Returns: the value of the field; nil if the registry wants none.
    func renew(
        _ base: String, _ reference: RegistryReference, challenges: [String], _ login: String?, _ client: SourceClient
    ) async throws(DownloadError) -> String? {
        let key = Key(base: base, repository: reference.repository, login: login)
        return try await single(key) {
            try await Self.field(key, reference.registry, challenges, isRefused: true, client)
        }
    }

    /// The value of the field for a request of a task: the known one, or what the registry wants.
    ///
    /// - Parameter login: the value that the request has; nil for none.
    func field(
        _ base: String, _ repository: String, _ login: String? = nil, in environment: [String: String]
    ) async throws(DownloadError) -> String? {
        let key = Key(base: base, repository: repository, login: login)
        let (known, refused) = state.withLock { state -> (String??, [String]?) in
            let known: String?? = state.known[key].flatMap { $0.ends > .now ? Optional($0.field) : nil }
            return (known, state.challenges[Key(base: base, repository: repository)])
        }
        if let known { return known }
        return try await single(key) {
            let transport = try TransportKind.automatic.makeTransport()
            defer { transport.shutdown() }
            let host = String(base[(base.range(of: "://")?.upperBound ?? base.startIndex)...])
            let client = Self.client(base, host, repository, environment, transport)
            let registry = host == "registry-1.docker.io" ? "docker.io" : host
            if let refused { return try await Self.field(key, registry, refused, isRefused: true, client) }
            var request = SourceRequest("\(base)/v2/")
            request.statuses = [200, 203, 401, 403, 404]
            let answer = try await client.get(request)
            // A registry without a login may want one for this repository. The login is not for a server behind a redirect.
            guard answer.head.status == 401, URLOrigin(answer.head.url) == URLOrigin(base) else { return (nil, nil) }
            return try await Self.field(
                key, registry, answer.head.values(of: "WWW-Authenticate"), isRefused: false, client)
        }
    }

    /// Forgets the values for a repository, because the registry has refused one.
    ///
    /// - Parameter challenges: those of the refusal, which the next value has to meet; nil without any.
    func forget(_ base: String, _ repository: String, challenges: [String]?) {
        state.withLock { state in
            state.known = state.known.filter { $0.key.base != base || $0.key.repository != repository }
            if let challenges { state.challenges[Key(base: base, repository: repository)] = challenges }
        }
    }

    private func single(
        _ key: Key, _ make: @escaping @Sendable () async throws -> (field: String?, seconds: Int?)
    ) async throws(DownloadError) -> String? {
        let flight = state.withLock { state -> Task<String?, any Error> in
            if let flight = state.flights[key] { return flight }
            let flight = Task { [self] in
                defer { self.state.withLock { $0.flights[key] = nil } }
                let found = try await make()
                let time = found.seconds.map { max(.seconds($0) - Self.margin, .seconds(1)) } ?? Self.usual
                self.state.withLock { $0.known[key] = (found.field, .now + time) }
                return found.field
            }
            state.flights[key] = flight
            return flight
        }
        do { return try await flight.value } catch {
            throw DownloadError(wrapping: error, code: .protocolViolation, message: "The registry gave no token.")
        }
    }

    // MARK: Requests

    private static func client(
        _ base: String, _ registry: String, _ repository: String, _ environment: [String: String],
        _ transport: any Transport
    ) -> SourceClient {
        let reference = SourceReference(scheme: "oci", rest: "\(registry)/\(repository)")
        let place = SourcePlace(reference, folderName: repository, address: base)
        return SourceClient(
            place, SourceChoice(), ConnectionOptions.ofChain ?? TaskOptions(), environment, over: transport)
    }

    /// Meets the challenges of a registry.
    ///
    /// - Parameter isRefused: true if a request for the repository was refused, so that there has to be a login.
    private static func field(
        _ key: Key, _ registry: String, _ challenges: [String], isRefused: Bool, _ client: SourceClient
    ) async throws(DownloadError) -> (field: String?, seconds: Int?) {
        let repository = key.repository
        let wanted: RegistryLogin
        do throws(AnswerFault) { wanted = try RegistryLogin(challenges, of: key.base) } catch {
            throw DownloadError(.protocolViolation, "\(registry): \(error.reason).", url: key.base)
        }
        var (login, fault) = (key.login, String?.none)
        if login == nil { (login, fault) = try await basic(registry, repository, client.environment) }
        guard let url = wanted.tokenURL(for: repository) else {
            if login == nil, isRefused, let fault {
                throw DownloadError(
                    .httpStatus,
                    "The registry \(registry) wants a login for \(repository): \(fault), so there may be a login that is not known.",
                    url: key.base, status: 401)
            }
            return (login, nil)
        }
        var request = SourceRequest(url)
        request.usesLogin = false
        request.headers = [HeaderField("Accept", "application/json")]
        if let login { request.secrets = [SourceSecret(HeaderField("Authorization", login), for: url)] }
        let answer: SourceAnswer
        do throws(DownloadError) { answer = try await client.get(request) } catch {
            var error = error
            if error.code == .httpStatus, [400, 401, 403, 404].contains(error.status) {
                error.message =
                    login == nil
                    ? "The registry \(registry) gives no token to everybody for \(repository): "
                        + (fault.map { "\($0), so there may be a login that is not known." }
                            ?? "log in with docker login, podman login or skopeo login, or look at the name.")
                    : "The registry \(registry) refuses the \(key.login == nil ? "saved " : "")login for \(repository)."
                error.remedy = nil
            }
            throw error
        }
        do throws(AnswerFault) {
            let token = try RegistryToken(answer.bytes)
            return ("Bearer \(token.text)", token.seconds)
        } catch {
            throw DownloadError(.protocolViolation, "\(registry): \(error.reason).", url: url.masked)
        }
    }

    /// The saved login of a registry as Basic authentication sends it; nil without one. And why a place of logins has none, as a clause.
    private static func basic(
        _ registry: String, _ repository: String, _ environment: [String: String]
    ) async throws(DownloadError) -> (login: String?, fault: String?) {
        let logins = DockerLogins(in: environment)
        var (entry, fault) = (logins.entry(for: registry, repository), logins.fault)
        if case .helper(let name) = entry {
            var run = ProgramRun(["docker-credential-\(name)", "get"], in: "/")
            run.input = Array((DockerLogins.helperKey(of: registry) + "\n").utf8)
            run.timeLimit = .seconds(60)
            // It may ask the owner's key ring.
            run.variables = environment.map { (name: $0.key, value: $0.value) }
            // A helper ends with an error for a registry that it has no login for.
            do throws(DownloadError) { entry = DockerLogins.login(ofHelper: try await run()) } catch {
                if error.code == .cancelled { throw error }
                (entry, fault) = (nil, fault ?? "docker-credential-\(name) gave no login")
            }
        }
        guard case .login(let user, let password) = entry else { return (nil, fault) }
        return (HeaderField.login(user, password).value, nil)
    }
}

/// Sends the token of a registry with requests for its blobs and manifests. It is asked for by each process, is never stored, and does
/// not follow the redirect to the server of the bytes.
package struct RegistryMiddleware: RequestMiddleware, RetryMiddleware {
    package let name = "registry-token"
    private let environment: [String: String]

    package init(_ environment: [String: String]) { self.environment = environment }

    /// Only tasks of an artifact that the owner has named come to it: a list that names a blob gets no login.
    package var scope: MiddlewareScope {
        .matching { ["oci", "ollama"].contains($0.attributes[SourcePage.Orders.tokenAttribute]) }
    }

    package var secretHeaders: [String] { ["Authorization"] }

    /// Adds the token to a request that has none or a login, and asks for a manifest as it is.
    package func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        guard let url = request.url?.absoluteString, let path = RegistryPath(url),
            URLOrigin(url) == URLOrigin(task.originalURL.absoluteString)
        else { return request }
        var request = request
        if path.isManifest, request.value(forHTTPHeaderField: "Accept") == nil {
            request.setValue(RegistryManifest.accepted, forHTTPHeaderField: "Accept")
        }
        // A registry that wants tokens takes the owner's login at the server of its tokens alone.
        let login = request.value(forHTTPHeaderField: "Authorization")
        guard RegistryTokens.mayExchange(login),
            let field = try await RegistryTokens.shared.field(path.base, path.repository, login, in: environment)
        else { return request }
        request.setValue(field, forHTTPHeaderField: "Authorization")
        return request
    }

    /// Forgets a token that the registry refuses, and tries once more with a new one.
    package func decide(_ failure: AttemptFailure) async -> RetryDecision {
        guard failure.error.status == 401, let path = RegistryPath(failure.task.originalURL.absoluteString),
            failure.previousError?.status != 401 || failure.progress > 0
        else { return .useRules }
        // Behind a redirect, another server has answered: its challenge is not the registry's.
        let isOwn = failure.response?.url.map { URLOrigin($0.absoluteString) == URLOrigin(path.base) } ?? false
        let challenge = isOwn ? failure.response?.value(forHTTPHeaderField: "WWW-Authenticate") : nil
        RegistryTokens.shared.forget(path.base, path.repository, challenges: challenge.map { [$0] })
        return .renewed
    }
}

/// The URL of a blob or a manifest of a registry: `/v2/REPO/blobs/DIGEST`.
struct RegistryPath: Sendable, Hashable {
    /// The URL of the registry, without a final slash.
    let base: String
    let repository: String
    let isManifest: Bool

    /// Reads a URL; nil for any other one.
    init?(_ url: String) {
        let parts = URLParts(url)
        guard let scheme = parts.scheme, parts.query == nil, parts.path.hasPrefix("/v2/") else { return nil }
        let path = parts.path.split(separator: "/").map(String.init)
        guard path.count >= 4, let last = path.last,
            path[path.count - 2] == "manifests"
                || path[path.count - 2] == "blobs" && RegistryReference.checksum(last) != nil
        else { return nil }
        base = "\(scheme)://\(parts.hostPort)"
        repository = path[1..<(path.count - 2)].joined(separator: "/")
        isManifest = path[path.count - 2] == "manifests"
    }
}
