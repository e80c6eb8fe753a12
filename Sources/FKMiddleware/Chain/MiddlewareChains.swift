import Foundation

/// The chains of a downloader.
///
/// ```text
/// Builder -> [request chain] -> Transport -> head: [response chain accepts] -> part file -> [download chain observes]
///         -> verify -> final name -> [response chain] -> complete
/// a failed attempt -> [failure stage decides] -> rules for retries -> another attempt | [response chain] -> error
/// ```
///
/// Registering and removing is safe from any thread, also while downloads run. Names need not be unique: a second
/// registration never replaces the first, whatever their names and scopes. Use the returned registration to remove one.
public final class MiddlewareChains: Sendable {
    /// Receives each request before it is sent.
    public let request = MiddlewareChain<any RequestMiddleware>()
    /// Receives state changes and progress.
    public let download = MiddlewareChain<any DownloadMiddleware>()
    /// Receives heads, finished files and final failures.
    public let response = MiddlewareChain<any ResponseMiddleware>()
    /// Decides on failed attempts, together with the request and response middlewares that are retry middlewares.
    public let failure = MiddlewareChain<any RetryMiddleware>()

    /// Identifies one registration of a request middleware.
    public typealias RequestRegistration = MiddlewareChain<any RequestMiddleware>.Registration
    /// Identifies one registration of a download middleware.
    public typealias DownloadRegistration = MiddlewareChain<any DownloadMiddleware>.Registration
    /// Identifies one registration of a response middleware.
    public typealias ResponseRegistration = MiddlewareChain<any ResponseMiddleware>.Registration
    /// Identifies one registration of a retry middleware.
    public typealias FailureRegistration = MiddlewareChain<any RetryMiddleware>.Registration

    /// Creates empty chains.
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
        var middleware = middleware
        if let credential = middleware as? any CredentialMiddleware { middleware = credential.bound(to: scope) }
        return request.register(middleware, priority: priority ?? middleware.priority, for: scope)
    }

    /// Registers the request middleware of a source. It compares the URL of each request itself, so that it is not bound to its scope.
    package func register(source middleware: any RequestMiddleware, for scope: MiddlewareScope) {
        request.register(middleware, priority: middleware.priority, for: scope)
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

    /// Registers a retry middleware. Parameters and result are as for a request middleware. A request or response middleware
    /// that is a retry middleware as well needs its own registration only.
    @discardableResult
    public func register(
        failure middleware: any RetryMiddleware, priority: Int? = nil, for scope: MiddlewareScope = .all
    ) -> FailureRegistration {
        failure.register(middleware, priority: priority ?? middleware.priority, for: scope)
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

    /// Removes a retry middleware. Returns false if it was removed before.
    @discardableResult
    public func remove(_ registration: FailureRegistration) -> Bool { failure.remove(registration) }

    /// The retry middlewares that are asked about a failure of a task, in order. Of equal priorities, request middlewares come
    /// first and those of the failure chain last.
    ///
    /// - Parameter url: the URL of the failed attempt.
    package func failureStage(for task: @autoclosure () -> TaskContext, url: String) -> [any RetryMiddleware] {
        if request.isEmpty, response.isEmpty, failure.isEmpty { return [] }
        let task = task()
        let own = failure.prioritised(for: task, url: nil)
        let others: [(priority: Int, middleware: any Middleware)] =
            request.prioritised(for: task, url: url).map { ($0.priority, $0.middleware) }
            + response.prioritised(for: task, url: nil).map { ($0.priority, $0.middleware) }
        let both = others.compactMap { entry in (entry.middleware as? any RetryMiddleware).map { (entry.priority, $0) }
        }
        // The sort is stable.
        return (both + own.map { ($0.priority, $0.middleware) }).sorted { $0.0 < $1.0 }.map(\.1)
    }
}
