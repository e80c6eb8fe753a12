/// The three chains of a downloader.
///
/// ```text
/// Builder -> [request chain] -> Transport -> part file -> [download chain observes] -> verify -> final name
///         -> [response chain] -> complete | error
/// ```
///
/// Registering and removing is safe from any thread, also while downloads run. Names need not be unique: a second
/// registration never replaces the first, whatever their names and scopes. Use the returned registration to remove one.
public final class MiddlewareChains: Sendable {
    /// Receives each request before it is sent.
    public let request = MiddlewareChain<any RequestMiddleware>()
    /// Receives state changes and progress.
    public let download = MiddlewareChain<any DownloadMiddleware>()
    /// Receives finished files and final failures.
    public let response = MiddlewareChain<any ResponseMiddleware>()

    /// Identifies one registration of a request middleware.
    public typealias RequestRegistration = MiddlewareChain<any RequestMiddleware>.Registration
    /// Identifies one registration of a download middleware.
    public typealias DownloadRegistration = MiddlewareChain<any DownloadMiddleware>.Registration
    /// Identifies one registration of a response middleware.
    public typealias ResponseRegistration = MiddlewareChain<any ResponseMiddleware>.Registration

    /// Creates three empty chains.
    public init() {}

    /// Registers a request middleware.
    ///
    /// - Parameters:
    ///   - priority: lower values run earlier; nil, the default, uses the middleware's own.
    ///   - scope: the tasks it handles; the default is all.
    /// - Returns: the registration, for `remove(_:)`.
    @discardableResult
    public func register(
        request middleware: any RequestMiddleware, priority: Int? = nil, for scope: MiddlewareScope = .all
    ) -> RequestRegistration {
        request.register(middleware, priority: priority ?? middleware.priority, for: scope)
    }

    /// Registers a download middleware. Parameters and result are as for a request middleware.
    @discardableResult
    public func register(
        download middleware: any DownloadMiddleware, priority: Int? = nil, for scope: MiddlewareScope = .all
    ) -> DownloadRegistration {
        download.register(middleware, priority: priority ?? middleware.priority, for: scope)
    }

    /// Registers a response middleware. Parameters and result are as for a request middleware.
    @discardableResult
    public func register(
        response middleware: any ResponseMiddleware, priority: Int? = nil, for scope: MiddlewareScope = .all
    ) -> ResponseRegistration {
        response.register(middleware, priority: priority ?? middleware.priority, for: scope)
    }

    /// Removes a request middleware. Returns false if it was removed before.
    @discardableResult
    public func remove(_ registration: RequestRegistration) -> Bool { request.remove(registration) }

    /// Removes a download middleware. Returns false if it was removed before.
    @discardableResult
    public func remove(_ registration: DownloadRegistration) -> Bool { download.remove(registration) }

    /// Removes a response middleware. Returns false if it was removed before.
    @discardableResult
    public func remove(_ registration: ResponseRegistration) -> Bool { response.remove(registration) }
}
