import FKMiddleware

enum SourceEndpoint {
    /// The URL that a variable names, without a final slash; `usual` without one.
    ///
    /// - Throws: the error of an endpoint that is no URL, with the name of the variable.
    static func url(
        _ name: String, _ usual: String, in environment: [String: String]
    ) throws(DownloadError) -> String {
        guard let text = environment[name], !text.isEmpty else { return usual }
        return try url(text, of: name)
    }

    /// The URL in a variable, without a final slash. Errors have the name of the variable.
    static func url(_ text: String, of name: String) throws(DownloadError) -> String {
        do throws(DownloadError) {
            var url = try text.normalizedURL()
            while url.hasSuffix("/") { url.removeLast() }
            return url
        } catch {
            throw DownloadError(error.code, "\(name): \(error.message)")
        }
    }
}
