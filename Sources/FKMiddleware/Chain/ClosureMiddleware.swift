import Foundation

/// What a download middleware that is a closure receives.
public enum DownloadEvent: Sendable, Hashable {
    /// The task has changed to this state. The error is set only for `.error`.
    case state(DownloadState, error: DownloadError?)
    /// Bytes have arrived.
    case progress(ByteCount)
}

/// Middlewares that are closures, for short ones that need no type of their own.
///
/// ```swift
/// chains.onRequest("sign", secretHeaders: ["X-Signature"], for: .host("files.example.com")) { request, task in
///     request.setValue(try await signature(of: task.originalURL), forHTTPHeaderField: "X-Signature")
/// }
/// chains.onDownload("log") { event, task in
///     if case .state(let state, _) = event { print(task.originalURL, state) }
/// }
/// chains.onResponse("not empty") { response in
///     guard response.error == nil, let file = response.fileURL else { return }
///     if try file.resourceValues(forKeys: [.fileSizeKey]).fileSize == 0 { throw RetryRequest(reason: "empty") }
/// }
/// chains.onHead("no pages") { head, task in
///     if head.mimeType == "text/html" { throw DownloadError(.rejected, "The server sends a page.") }
/// }
/// chains.onFailure("busy") { $0.error.status == 409 ? .retry(after: .seconds(5)) : .useRules }
/// ```
extension MiddlewareChains {
    /// Registers a closure as a request middleware. It may change the request in place.
    ///
    /// - Parameters:
    ///   - name: for logs and `fk why`. It need not be unique.
    ///   - priority: lower values run earlier; the default is 100.
    ///   - secretHeaders: same as `RequestMiddleware.secretHeaders`; the default is none.
    ///   - scope: the tasks it handles; the default is all.
    ///   - body: runs before each attempt. What it throws fails the attempt, as for `RequestMiddleware.process`.
    /// - Returns: the registration, for `remove(_:)`.
    @discardableResult
    public func onRequest(
        _ name: String, priority: Int = 100, secretHeaders: [String] = [], for scope: MiddlewareScope = .all,
        _ body: @escaping @Sendable (_ request: inout URLRequest, _ task: TaskContext) async throws -> Void
    ) -> RequestRegistration {
        let middleware = RequestClosure(name: name, priority: priority, secretHeaders: secretHeaders, body: body)
        return register(request: middleware, for: scope)
    }

    /// Registers a closure as a download middleware. Name, priority and scope are as for `onRequest`.
    ///
    /// - Parameter body: receives every change of state and the progress, in order for one task. It must return soon.
    /// - Returns: the registration, for `remove(_:)`.
    @discardableResult
    public func onDownload(
        _ name: String, priority: Int = 100, for scope: MiddlewareScope = .all,
        _ body: @escaping @Sendable (_ event: DownloadEvent, _ task: TaskContext) -> Void
    ) -> DownloadRegistration {
        register(download: DownloadClosure(name: name, priority: priority, body: body), for: scope)
    }

    /// Registers a closure as a response middleware. It may change the response in place. Name, priority and scope are
    /// as for `onRequest`.
    ///
    /// - Parameter body: runs after completion and after final failure (`response.error`). What it throws fails the
    ///   task, and `RetryRequest` has the file fetched again, as for `ResponseMiddleware.process`.
    /// - Returns: the registration, for `remove(_:)`.
    @discardableResult
    public func onResponse(
        _ name: String, priority: Int = 100, for scope: MiddlewareScope = .all,
        _ body: @escaping @Sendable (_ response: inout DownloadResponse) async throws -> Void
    ) -> ResponseRegistration {
        register(response: ResponseClosure(name: name, priority: priority, body: body), for: scope)
    }

    /// Registers a closure as the head stage of a response middleware. Name, priority and scope are as for `onRequest`.
    ///
    /// - Parameter body: what it throws refuses the file before a byte is written, as for `ResponseMiddleware.accept`.
    /// - Returns: the registration, for `remove(_:)`.
    @discardableResult
    public func onHead(
        _ name: String, priority: Int = 100, for scope: MiddlewareScope = .all,
        _ body: @escaping @Sendable (_ head: HTTPURLResponse, _ task: TaskContext) async throws -> Void
    ) -> ResponseRegistration {
        register(response: HeadClosure(name: name, priority: priority, body: body), for: scope)
    }

    /// Registers a closure as a retry middleware. Name, priority and scope are as for `onRequest`.
    ///
    /// - Parameter body: decides what follows a failed attempt, as `RetryMiddleware.decide` does.
    /// - Returns: the registration, for `remove(_:)`.
    @discardableResult
    public func onFailure(
        _ name: String, priority: Int = 100, for scope: MiddlewareScope = .all,
        _ body: @escaping @Sendable (_ failure: AttemptFailure) async -> RetryDecision
    ) -> FailureRegistration {
        register(failure: FailureClosure(name: name, priority: priority, body: body), for: scope)
    }
}

private struct HeadClosure: ResponseMiddleware {
    let name: String
    let priority: Int
    let body: @Sendable (HTTPURLResponse, TaskContext) async throws -> Void

    func accept(_ head: HTTPURLResponse, for task: TaskContext) async throws { try await body(head, task) }
}

private struct FailureClosure: RetryMiddleware {
    let name: String
    let priority: Int
    let body: @Sendable (AttemptFailure) async -> RetryDecision

    func decide(_ failure: AttemptFailure) async -> RetryDecision { await body(failure) }
}

private struct RequestClosure: RequestMiddleware {
    let name: String
    let priority: Int
    let secretHeaders: [String]
    let body: @Sendable (inout URLRequest, TaskContext) async throws -> Void

    func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        var request = request
        try await body(&request, task)
        return request
    }
}

private struct DownloadClosure: DownloadMiddleware {
    let name: String
    let priority: Int
    let body: @Sendable (DownloadEvent, TaskContext) -> Void

    func download(_ task: TaskContext, didChangeTo state: DownloadState, error: DownloadError?) {
        body(.state(state, error: error), task)
    }

    func download(_ task: TaskContext, didReceive count: ByteCount) { body(.progress(count), task) }
}

private struct ResponseClosure: ResponseMiddleware {
    let name: String
    let priority: Int
    let body: @Sendable (inout DownloadResponse) async throws -> Void

    func process(_ response: DownloadResponse) async throws -> DownloadResponse {
        var response = response
        try await body(&response)
        return response
    }
}
