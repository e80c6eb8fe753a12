/// The three chains of a downloader.
///
/// ```text
/// Builder -> [request chain] -> Transport -> part file -> [download chain observes] -> verify -> final name
///         -> [response chain] -> complete | error
/// ```
///
/// Registering and removing is safe from any thread, also while downloads run.
public final class MiddlewareChains: Sendable {
    /// Receives each request before it is sent.
    public let request = MiddlewareChain<any RequestMiddleware>()
    /// Receives state changes and progress.
    public let download = MiddlewareChain<any DownloadMiddleware>()
    /// Receives finished files and final failures.
    public let response = MiddlewareChain<any ResponseMiddleware>()

    /// Creates three empty chains.
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
