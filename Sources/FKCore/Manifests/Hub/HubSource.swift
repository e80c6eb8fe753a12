import FKMiddleware
import FKTransport

/// The places that a name stands for: `hf:…`, `doi:…`, `zenodo:…`, or the URL of a record.
package enum NamedSources {
    /// True for a name that is not also the URL of a file.
    package static func isName(_ text: String) -> Bool {
        HubReference.isOne(text) || RecordSource.isOne(text) && !text.contains("://")
    }

    /// The place that a text names; nil for any other text, such as a path.
    ///
    /// - Parameter environment: names the hub and its token, and other servers than the usual ones.
    /// - Throws: `.invalidArgument`, or the error of an endpoint that is no URL.
    package static func find(
        _ text: String, in environment: [String: String]
    ) throws(DownloadError) -> (any NamedSource)? {
        if HubReference.isOne(text) { return try HubSource(text, environment) }
        return RecordSource.isOne(text) ? try RecordSource(text, RecordSource.Servers(environment)) : nil
    }
}

/// A repository of a hub.
package struct HubSource: NamedSource {
    /// The repository and its revision.
    package let reference: HubReference
    private let client: HubClient

    init(_ text: String, _ environment: [String: String]) throws(DownloadError) {
        reference = try HubReference(parsing: text)
        do throws(DownloadError) {
            client = try HubClient(
                endpoint: HubToken.endpoint(in: environment), token: HubToken.find(in: environment))
        } catch {
            throw DownloadError(error.code, "HF_ENDPOINT: \(error.message)")
        }
    }

    package var title: String { reference.description }
    package var secretOrigin: String { client.endpoint }
    package var folderName: String? { reference.repository.split(separator: "/").last.map(String.init) }

    package func files(
        include: [String], exclude: [String], _ options: TaskOptions, over transport: any Transport,
        _ take: ([Manifest.FileFacts], Manifest.Form) throws -> Void
    ) async throws -> ServerList {
        var client = client
        client.options = options
        client.options.checksum = nil
        return try await client.list(of: reference, include: include, exclude: exclude, over: transport, take)
    }

    package func version(
        _ options: TaskOptions, over transport: any Transport
    ) async throws(DownloadError) -> String? { nil }
}
