/// The three chains of a downloader.
///
/// ```text
/// Builder -> [request chain] -> Transport -> part file -> [download chain hears of it] -> verify -> final name
///         -> [response chain] -> complete | error
/// ```
///
/// Registering and removing is safe from any thread, while downloads run.
public final class MiddlewareChains: Sendable {
    /// Each request on its way out.
    public let request = MiddlewareChain<any RequestMiddleware>()
    /// State changes and progress.
    public let download = MiddlewareChain<any DownloadMiddleware>()
    /// Finished files and final failures.
    public let response = MiddlewareChain<any ResponseMiddleware>()

    /// Three empty chains.
    public init() {}

    /// Registers a request middleware under its own priority, or under `priority` when given.
    @discardableResult
    public func register(
        request middleware: any RequestMiddleware, priority: Int? = nil
    ) -> MiddlewareChain<any RequestMiddleware>.Registration {
        request.register(middleware, priority: priority ?? middleware.priority)
    }

    /// Registers a download middleware under its own priority, or under `priority` when given.
    @discardableResult
    public func register(
        download middleware: any DownloadMiddleware, priority: Int? = nil
    ) -> MiddlewareChain<any DownloadMiddleware>.Registration {
        download.register(middleware, priority: priority ?? middleware.priority)
    }

    /// Registers a response middleware under its own priority, or under `priority` when given.
    @discardableResult
    public func register(
        response middleware: any ResponseMiddleware, priority: Int? = nil
    ) -> MiddlewareChain<any ResponseMiddleware>.Registration {
        response.register(middleware, priority: priority ?? middleware.priority)
    }
}
