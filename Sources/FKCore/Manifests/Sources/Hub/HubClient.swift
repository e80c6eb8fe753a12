import FKMiddleware
import FKTransport

/// Asks a Hugging Face hub for the files of a repository.
public struct HubClient: Sendable {
    /// The URL of the hub, such as `https://huggingface.co`.
    public var endpoint: String
    /// The token, which is sent to the hub's own origin only; nil for none.
    public var token: String?
    /// The options of the requests: proxy, TLS and time-outs.
    public var options = TaskOptions()

    /// The usual hub.
    public static let defaultEndpoint = "https://huggingface.co"

    /// Creates a client.
    ///
    /// - Throws: `.invalidURL` or `.unsupportedScheme` for an endpoint that is no URL.
    public init(endpoint: String = defaultEndpoint, token: String? = nil) throws(DownloadError) {
        var text = try endpoint.normalizedURL()
        while text.hasSuffix("/") { text.removeLast() }
        self.endpoint = text
        self.token = token
    }

    /// The files of a repository at the commit that its revision has now.
    ///
    /// - Parameters:
    ///   - include: patterns of the paths to take, such as `*.safetensors`; empty, the default, takes all. `*` also
    ///     stands for slashes.
    ///   - exclude: patterns of the paths to leave out; the default is none.
    /// - Returns: a list with URL, size and digest of each file. Its facts have the repository and the commit. A file
    ///   with a bad name or digest is in `faults`.
    /// - Throws: `DownloadError` if the hub refuses, or answers something else; `.protocolViolation` if its list does not
    ///   end.
    public func files(
        of reference: HubReference, include: [String] = [], exclude: [String] = []
    ) async throws(DownloadError) -> Manifest {
        let transport = try TransportKind.automatic.makeTransport()
        defer { transport.shutdown() }
        let source = Hubs { [token] _ in token }
        let place = source.place(of: reference, SourceReference(scheme: "hf", rest: reference.rest), at: endpoint)
        var entries: [Manifest.Entry] = []
        let list: ServerList
        do {
            list = try await ListedPlace(source, place, [:]).files(
                include: include, exclude: exclude, options, over: transport
            ) { files, _ in entries += files.map(Manifest.Entry.init) }
        } catch {
            throw DownloadError(wrapping: error, code: .protocolViolation, message: "The hub's list cannot be read.")
        }
        var manifest = list.manifest
        // Which revision was asked for says nothing about the files.
        manifest.facts.origin = "hf:\(reference.repository)"
        manifest.entries = entries
        return manifest
    }
}
