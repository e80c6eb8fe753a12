import FKMiddleware

/// The servers of sources.
enum SourceEndpoint {
    /// The URL that a variable names, without a final slash; `usual` without one.
    ///
    /// - Throws: the error of an endpoint that is no URL, with the name of the variable.
    static func url(
        _ name: String, _ usual: String, in environment: [String: String]
    ) throws(DownloadError) -> String {
        guard let text = environment[name], !text.isEmpty else { return usual }
        do throws(DownloadError) {
            var url = try text.normalizedURL()
            while url.hasSuffix("/") { url.removeLast() }
            return url
        } catch {
            throw DownloadError(error.code, "\(name): \(error.message)")
        }
    }
}
