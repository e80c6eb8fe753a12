import FKMiddleware

/// The result of a response chain.
struct ResponseChainEnd: Sendable {
    var response: DownloadResponse
    /// The middleware that threw an error, and the error; nil if none did.
    var failure: (name: String, error: any Error)?

    /// Runs the chain. The first error ends it, except after a failed download, which all middlewares receive.
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

    /// Reports the failure of the last attempt to response middlewares. Their errors are ignored.
    ///
    /// - Parameter head: the last response's; nil without one.
    static func tell(_ error: DownloadError, of entry: TaskEntry, head: ResponseHead?, _ chains: MiddlewareChains) {
        let chain = entry.middlewares(of: chains.response)
        guard !chain.isEmpty, let context = entry.context else { return }
        let response = DownloadResponse(task: context, response: head?.httpURLResponse, error: error)
        Task { _ = await run(chain, response) }
    }

    /// The reason to reject the file; nil if there is none.
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
