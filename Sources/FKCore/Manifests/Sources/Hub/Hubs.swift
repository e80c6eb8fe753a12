import FKMiddleware
import Foundation

/// The repositories of a Hugging Face hub, whose files are pinned to a commit.
struct Hubs: Source {
    /// Finds the token in an environment. It goes to the hub's own origin only.
    var token: @Sendable ([String: String]) -> String? = { HubToken.find(in: $0) }

    var schemes: [String] { ["hf"] }
    var form: String { "hf:OWNER/REPO[@REVISION]" }

    func place(of reference: SourceReference, in environment: [String: String]) throws(DownloadError) -> SourcePlace {
        let hub = try HubReference(parsing: reference.description)
        return place(
            of: hub, reference,
            at: try SourceEndpoint.url("HF_ENDPOINT", HubClient.defaultEndpoint, in: environment))
    }

    func place(of hub: HubReference, _ reference: SourceReference, at endpoint: String) -> SourcePlace {
        let name = hub.repository.split(separator: "/").last.map(String.init) ?? hub.repository
        let title = hub.revision == "main" ? "hf:\(hub.repository)" : hub.description
        return SourcePlace(reference, title: title, folderName: name, address: endpoint, pinsFiles: true)
    }

    func pages(of place: SourcePlace, _ client: SourceClient) -> AsyncThrowingStream<SourcePage, any Error> {
        client.pages { send in
            let hub = HubRequests(
                endpoint: place.address ?? "", reference: try HubReference(parsing: place.reference.description),
                token: token(client.environment), client: client)
            let commit = try await hub.commit()
            var reading = Manifest.Reading()
            reading.hub = Manifest.Hub(
                endpoint: hub.endpoint, repository: hub.reference.repository, commit: commit)
            var next: String? =
                "\(hub.endpoint)/\(hub.reference.apiPath)/tree/\(commit)?recursive=true&expand=false"
            while let url = next {
                let answer = try await hub.get(url)
                do {
                    _ = try await send.list(answer.bytes, ServerList.Reader(.hubTree, reading), version: commit)
                } catch let error as ManifestError {
                    throw DownloadError(
                        .protocolViolation, "The hub's list cannot be read. \(error.description)", url: url)
                }
                next = try hub.nextPage(answer.head, url)
            }
        }
    }
}

private struct HubRequests: Sendable {
    let endpoint: String
    let reference: HubReference
    let token: String?
    let client: SourceClient

    /// The commit that the revision has now.
    func commit() async throws(DownloadError) -> String {
        let revision = BaseURL.encoded(reference.revision).replacing("/", with: "%2F")
        let url = "\(endpoint)/\(reference.apiPath)/revision/\(revision)"
        let bytes = try await get(url).bytes
        let answer = try? SourceJSON.object(bytes, "")
        guard let commit = answer?["sha"]?.string, (40...64).contains(commit.utf8.count),
            commit.utf8.allSatisfy({ $0.hexValue != nil })
        else {
            throw DownloadError(
                .protocolViolation, "The hub did not tell the commit of \(reference): is it a Hugging Face hub?",
                url: url)
        }
        return commit.lowercased()
    }

    func get(_ url: String) async throws(DownloadError) -> SourceAnswer {
        var request = SourceRequest(url)
        if let token {
            request.secrets = [SourceSecret(HeaderField("Authorization", "Bearer \(token)"), for: endpoint)]
        }
        do { return try await client.get(request) } catch {
            guard error.code == .httpStatus, [401, 403, 404].contains(error.status) else { throw error }
            var error = error
            error.remedy = nil
            if error.status == 404 { error.code = .notFound }
            error.message +=
                token == nil
                ? " The repository may not exist, or it may need a token: set HF_TOKEN, or log in with the hub's client."
                : " The repository may not exist, or the token may not have access to it."
            throw error
        }
    }

    /// The URL of the next page; nil on the last one. The token must not leave the hub.
    func nextPage(_ head: ResponseHead, _ url: String) throws(DownloadError) -> String? {
        let links = LinkField.parse(head.values(of: "Link"))
        guard let link = links.first(where: { $0.relations.contains("next") }) else { return nil }
        guard let next = URL(string: link.target, relativeTo: URL(string: url))?.absoluteString,
            URLOrigin(next) == URLOrigin(endpoint)
        else {
            throw DownloadError(
                .protocolViolation, "The hub's list continues at another host: that host was not asked.",
                url: link.target.masked)
        }
        return next
    }
}
