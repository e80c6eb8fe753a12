import Foundation

/// The requirements that all three kinds of middleware share.
///
/// The engine calls middlewares from its own executor and from concurrent tasks, never from the main thread. They
/// must therefore be `Sendable`. One instance serves all tasks.
public protocol Middleware: Sendable {
    /// The name in logs and in `fk why`. The default is the type's name.
    var name: String { get }
    /// The position in the chain: any integer. Lower values run earlier; equal values run in the order of registration.
    /// The default is 100.
    var priority: Int { get }
}

extension Middleware {
    /// The type's name.
    public var name: String { String(describing: type(of: self)) }
    /// 100.
    public var priority: Int { 100 }
}

/// Changes requests just before they are sent.
///
/// It runs again on every attempt, so tokens and signatures are always fresh. What it adds is never stored.
public protocol RequestMiddleware: Middleware {
    /// Returns the request to send, changed or not.
    ///
    /// - Throws: any error fails the attempt. A `DownloadError` with `isRetryable` is retried like a network failure;
    ///   every other error ends the task in `error` with this reason.
    func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest

    /// Names of the header fields it adds that must not follow a redirect to another origin, compared without case.
    /// The default is none. `Authorization`, `Cookie` and `Proxy-Authorization` never follow such a redirect.
    var secretHeaders: [String] { get }
}

extension RequestMiddleware {
    /// None.
    public var secretHeaders: [String] { [] }
}

/// Receives every state change and the progress of a task. It cannot change or delay the download.
public protocol DownloadMiddleware: Middleware {
    /// Called once per state change, in order for one task. `error` is set only when `state` is `.error`.
    func download(_ task: TaskContext, didChangeTo state: DownloadState, error: DownloadError?)
    /// Called every `Configure.progressInterval` while bytes arrive, and once at the end.
    func download(_ task: TaskContext, didReceive count: ByteCount)
}

extension DownloadMiddleware {
    /// Does nothing.
    public func download(_ task: TaskContext, didChangeTo state: DownloadState, error: DownloadError?) {}
    /// Does nothing.
    public func download(_ task: TaskContext, didReceive count: ByteCount) {}
}

/// The end of a task, as a response middleware receives it: the result and the place of the file.
public struct DownloadResponse: Sendable {
    /// The task that ended.
    public var task: TaskContext
    /// The head of the last response, also of one that failed; `nil` when no server answered.
    public var response: HTTPURLResponse?
    /// The finished file; `nil` after a failure. A middleware that moves the file sets the new place here. One that sets `nil` for a
    /// complete task fails it.
    public var fileURL: URL?
    /// Where the finished file would be, after a failure; `nil` after completion. Nothing need be there.
    public var destination: URL?
    /// Other names and copies of the finished file, for the engine to remove. It removes them once the task's record
    /// contains `fileURL`, or together with a rejected file. A file that has neither the length of the received nor of the
    /// finished file is no copy: it stays, and a problem names it. The default is empty.
    ///
    /// A middleware that moves a file links or copies it to the new place and adds the old place here instead of
    /// removing it. A process that is killed at any moment then leaves exactly one file after the next run.
    public var leftBehind: [URL] = []
    /// Why the task failed; `nil` after completion. Setting it for a complete task is the same as throwing the error. After a failure,
    /// changes are ignored.
    public var error: DownloadError?

    /// Creates a response for tests of a middleware. The engine creates its own.
    public init(
        task: TaskContext, response: HTTPURLResponse? = nil, fileURL: URL? = nil, error: DownloadError? = nil,
        destination: URL? = nil
    ) {
        self.task = task
        self.response = response
        self.fileURL = fileURL
        self.error = error
        self.destination = destination
    }

    /// The path of the finished file, or after a failure the one that it would have.
    public var filePath: String? { (fileURL ?? destination)?.path }
}

/// Runs once when a task has completed and once when it is about to fail: to verify, move, unpack or record. When a
/// middleware fails a completed task, all response middlewares, including that one, run again for the failure.
public protocol ResponseMiddleware: Middleware {
    /// Refuses a file by the head of its response, before a byte is written. The default accepts every head.
    ///
    /// It is called for the first answer of each attempt whose body would be stored, in the order of the chain. The transfer
    /// waits for it. Further connections for the same file are not asked about.
    ///
    /// - Parameter head: a resumed file's answer has the status 206, and its `Content-Range` the length of the whole file.
    /// - Throws: any error fails the attempt: a `DownloadError` as it is, `RetryRequest` as a failure that is tried again,
    ///   every other error as `.rejected`.
    func accept(_ head: HTTPURLResponse, for task: TaskContext) async throws
    /// Returns the response handed to the next middleware, changed or not.
    ///
    /// - Throws: any error fails the task with this reason. The engine then sets the file aside, so that it never
    ///   stays under its final name. `RetryRequest` makes the engine fetch the file again, also after a failure
    ///   (`response.error` is set); other errors change nothing then.
    func process(_ response: DownloadResponse) async throws -> DownloadResponse
}

extension ResponseMiddleware {
    /// Accepts the head.
    public func accept(_ head: HTTPURLResponse, for task: TaskContext) async throws {}
    /// Changes nothing.
    public func process(_ response: DownloadResponse) async throws -> DownloadResponse { response }
}

/// Thrown by a response middleware for another attempt, after a success or a failure. The task's limit of attempts applies.
public struct RetryRequest: Error, Sendable, Hashable {
    /// The reason, for logs and `fk why`.
    public var reason: String
    /// The time to wait before the next attempt, at most `RetryPolicy.maxRetryAfter`. `nil`, the default, and zero use
    /// the back-off. As with a server's Retry-After, no other task sends requests to the same host meanwhile.
    public var delay: Duration?

    /// Creates a request to fetch the file again.
    ///
    /// - Parameters:
    ///   - reason: the reason, for a person.
    ///   - delay: `nil`, the default, uses the back-off.
    public init(reason: String, delay: Duration? = nil) {
        self.reason = reason
        self.delay = delay
    }
}
