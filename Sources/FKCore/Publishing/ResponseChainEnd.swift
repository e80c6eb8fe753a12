import FKMiddleware

/// How a walk along the response chain ended.
struct ResponseChainEnd: Sendable {
    var response: DownloadResponse
    /// The middleware that threw, and what.
    var failure: (name: String, error: any Error)?

    /// Walks the chain; the first error of a completed download ends the walk, after a failure all are told.
    static func run(_ chain: [any ResponseMiddleware], _ response: DownloadResponse) async -> ResponseChainEnd {
        var response = response
        for middleware in chain {
            do {
                response = try await middleware.process(response)
            } catch {
                if response.error == nil { return .init(response: response, failure: (middleware.name, error)) }
            }
        }
        return .init(response: response)
    }

    /// Why the file does not count; nil when it does.
    var downloadError: DownloadError? {
        guard let (name, error) = failure else { return nil }
        if let retry = error as? RetryRequest {
            return DownloadError(
                .middleware, "\(name) asks for the file to be fetched again: \(retry.reason)", isRetryable: true,
                retryAfter: retry.delay)
        }
        return error as? DownloadError ?? DownloadError(.rejected, "\(name) rejected the file: \(error)")
    }
}
