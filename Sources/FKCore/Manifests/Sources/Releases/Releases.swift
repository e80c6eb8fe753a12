import FKMiddleware
import FKStore
import FKTransport
import Foundation

/// The files of a release, by GitHub's API or one that is alike (`gh:OWNER/REPO@TAG`).
struct Releases: Source {
    var schemes: [String] { ["gh"] }
    var form: String { "gh:OWNER/REPO or gh:OWNER/REPO@TAG" }

    func place(of reference: SourceReference, in environment: [String: String]) throws(DownloadError) -> SourcePlace {
        let release = try ReleaseReference(parsing: reference.description)
        return SourcePlace(
            reference, title: release.description,
            folderName: release.repository.split(separator: "/").last.map(String.init) ?? release.repository,
            address: try ReleaseServer(environment).api, pinsFiles: true)
    }

    func pages(of place: SourcePlace, _ client: SourceClient) -> AsyncThrowingStream<SourcePage, any Error> {
        client.pages { send in
            let reference = try ReleaseReference(parsing: place.reference.description)
            let server = try ReleaseServer(client.environment)
            let release = try await server.release(reference, client)
            let usesAPI = try await server.isPrivate(reference, client)
            var page = SourcePage(version: release.tag)
            for asset in release.assets {
                let url = usesAPI ? asset.apiURL ?? asset.url : asset.url
                guard url.urlFault == nil else {
                    page.faults.append(SourceFault(asset.name, "its address is none", isIncomplete: false))
                    continue
                }
                var file = Manifest.FileFacts(name: asset.name, sources: [.init(url)])
                file.size = asset.size
                file.digests = asset.digest.map { [$0] } ?? []
                file.version = asset.digest?.description ?? "\(release.tag) \(asset.updated ?? "") \(asset.size ?? -1)"
                page.files.append(file)
            }
            for name in release.unfinished {
                page.faults.append(SourceFault(name, "it is not complete at the server yet", isIncomplete: true))
            }
            if release.isPrerelease { page.notes.append("\(release.tag) is a pre-release") }
            if release.isDraft { page.notes.append("\(release.tag) is a draft") }
            if release.assets.isEmpty, release.unfinished.isEmpty {
                throw DownloadError(.notFound, "The release \(release.tag) of \(reference.repository) has no files.")
            }
            try await send(page)
        }
    }

    func version(of place: SourcePlace, _ client: SourceClient) async throws(DownloadError) -> String? {
        let reference = try ReleaseReference(parsing: place.reference.description)
        return try await ReleaseServer(client.environment).release(reference, client).tag
    }
}

/// The API of a server of releases, with its token.
struct ReleaseServer: Sendable {
    /// The variables that may have the token.
    static let variables = ["GH_TOKEN", "GITHUB_TOKEN"]
    /// The URL of the API, without a final slash: `GITHUB_API_URL`, else GitHub's. That of Gitea and Forgejo ends with `/api/v1`.
    let api: String
    /// `GH_TOKEN` or `GITHUB_TOKEN`; nil for none.
    let token: String?

    init(_ environment: [String: String]) throws(DownloadError) {
        api = try SourceEndpoint.url("GITHUB_API_URL", "https://api.github.com", in: environment)
        token = Self.variables.lazy.compactMap { environment[$0].flatMap(SourceSecret.token) }.first
    }

    func release(_ reference: ReleaseReference, _ client: SourceClient) async throws(DownloadError) -> Release {
        let url = reference.url(at: api)
        let answer = try await get(url, client)
        guard answer.head.status == 200 || answer.head.status == 203 else { throw error(answer, reference, client) }
        do throws(AnswerFault) { return try Release(answer.bytes) } catch {
            throw DownloadError(.protocolViolation, "\(reference): \(error.reason).", url: url)
        }
    }

    /// True if the files of a repository have to be asked for at the API, because browsers log in another way. It is asked only if there
    /// is a token.
    func isPrivate(_ reference: ReleaseReference, _ client: SourceClient) async throws(DownloadError) -> Bool {
        guard token != nil else { return false }
        let answer = try await get("\(api)/repos/\(reference.repository)", client)
        guard answer.head.status == 200 || answer.head.status == 203 else { throw error(answer, reference, client) }
        do throws(AnswerFault) {
            return try SourceJSON.object(answer.bytes, "the repository")["private"]?.isTrue ?? false
        } catch {
            throw DownloadError(.protocolViolation, "\(reference): \(error.reason).", url: answer.head.url)
        }
    }

    private func get(_ url: String, _ client: SourceClient) async throws(DownloadError) -> SourceAnswer {
        var request = SourceRequest(url)
        request.headers = [HeaderField("Accept", "application/vnd.github+json")]
        if let token { request.secrets = [SourceSecret(HeaderField("Authorization", "Bearer \(token)"), for: api)] }
        request.statuses = [200, 203, 401, 403, 404, 429]
        request.readsErrors = true
        do throws(DownloadError) { return try await client.get(request) } catch {
            // GitHub's second limit: 403 or 429 with Retry-After, which was waited for.
            guard error.status == 403 || error.status == 429, let seconds = error.retryAfterSeconds else { throw error }
            var error = error
            error.message = usedUp(nil, until: Date() + min(seconds, 1e9))
            throw error
        }
    }

    /// The message for a limit of requests that is used up.
    private func usedUp(_ limit: Int?, until end: Date?) -> String {
        "The server's limit of \(limit.map { "\($0) " } ?? "")requests is used up"
            + (end.map { " until \($0.timestampInSeconds)" } ?? "")
            + (token == nil ? "; with a token (GH_TOKEN) it is higher." : ".")
    }

    private func error(
        _ answer: SourceAnswer, _ reference: ReleaseReference, _ client: SourceClient
    ) -> DownloadError {
        var error = RetryRules.error(for: answer.head, now: Date())
        error.remedy = nil
        error.url = answer.head.url.masked
        if answer.head.status == 429 || answer.head.first("X-RateLimit-Remaining") == "0" {
            let limit = answer.head.first("X-RateLimit-Limit").flatMap { Int($0) }
            let reset = answer.head.first("X-RateLimit-Reset").flatMap { Double($0) }
            error.message = usedUp(limit, until: reset.map { Date(timeIntervalSince1970: $0) })
            return error
        }
        if answer.head.status == 404 { error.code = .notFound }
        switch answer.head.status {
        case 404 where reference.tag == nil:
            error.message =
                "There is no latest release of \(reference.repository): it may have only pre-releases, which are named with @TAG, or be "
                + (token == nil ? "private (GH_TOKEN)." : "closed to the token.")
        case 404:
            error.message =
                "There is no release \(reference), or it is "
                + (token == nil ? "private (GH_TOKEN)." : "closed to the token.")
        case 401 where token == nil:
            error.message =
                "The server \(client.login(for: api) == nil ? "wants a login" : "refuses the login"): set GH_TOKEN to a token."
        case 401: error.message = "The server refuses the token (GH_TOKEN)."
        default: error.message = "The server does not allow reading \(reference)."
        }
        error.underlying = (try? SourceJSON.object(answer.bytes, ""))?["message"]?.string.map {
            $0.prefix(300).visible
        }
        return error
    }
}

/// Sends the token of a server of releases with requests to its API, and asks for the bytes of a file and not for its description.
package struct ReleaseMiddleware: RequestMiddleware {
    package let name = "release-token"
    private let server: ReleaseServer

    /// Creates the middleware; nil if there is no token.
    package init?(_ environment: [String: String]) {
        guard let server = try? ReleaseServer(environment), server.token != nil else { return nil }
        self.server = server
    }

    package var scope: MiddlewareScope { .host(String(URLParts(server.api).hostPort)) }

    package var secretHeaders: [String] { ["Authorization"] }

    /// Adds the token to a request of a file to the server that has none.
    package func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        guard let token = server.token, let url = request.url?.absoluteString, URLOrigin(url) == URLOrigin(server.api),
            URLParts(url).path.contains("/releases/"), request.value(forHTTPHeaderField: "Authorization") == nil
        else { return request }
        var request = request
        request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        if request.value(forHTTPHeaderField: "Accept") == nil {
            request.setValue("application/octet-stream", forHTTPHeaderField: "Accept")
        }
        return request
    }
}
