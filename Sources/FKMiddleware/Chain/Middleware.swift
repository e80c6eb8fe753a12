import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What the three kinds of middleware have in common.
///
/// Middlewares are called from the engine's own executor and from concurrent tasks, never from the main thread,
/// so they must be `Sendable`. One instance serves all tasks.
public protocol Middleware: Sendable {
    /// How logs and `fk why` name it; the type's name by default.
    var name: String { get }
    /// Position in the chain: a positive integer, nearer 0 runs earlier; ties run in the order of registration.
    /// Values below 1 count as 1. Default 100.
    var priority: Int { get }
}

extension Middleware {
    /// The type's name.
    public var name: String { String(describing: type(of: self)) }
    /// 100.
    public var priority: Int { 100 }
}

/// Gets the request just before it is sent and returns the one to send.
///
/// Runs again on every attempt, so tokens and signatures are always fresh; what it adds is never stored.
public protocol RequestMiddleware: Middleware {
    /// - Throws: any error fails the attempt. A `DownloadError` with `isRetryable` is retried like a network failure;
    ///   everything else ends the task in `error` with this reason.
    func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest

    /// Names of the headers it adds that must not follow a redirect to another origin, compared without case.
    /// `Authorization`, `Cookie` and `Proxy-Authorization` never do. Default: none.
    var secretHeaders: [String] { get }
}

extension RequestMiddleware {
    /// None.
    public var secretHeaders: [String] { [] }
}

/// Is told of every state change and of progress. It cannot change or delay the download.
public protocol DownloadMiddleware: Middleware {
    /// Called once per state change, in order for one task. `error` is set only with `.error`.
    func download(_ task: TaskContext, didChangeTo state: DownloadState, error: DownloadError?)
    /// Called at the polled interval while bytes arrive (`Configure.distributeSpeed` x 0.2 s), and once at the end.
    func download(_ task: TaskContext, didReceive count: ByteCount)
}

extension DownloadMiddleware {
    /// Does nothing.
    public func download(_ task: TaskContext, didChangeTo state: DownloadState, error: DownloadError?) {}
    /// Does nothing.
    public func download(_ task: TaskContext, didReceive count: ByteCount) {}
}

/// What a response middleware gets: how the task ended and where its file is.
public struct DownloadResponse: Sendable {
    /// The task that has ended.
    public var task: TaskContext
    /// The head of the response that completed or failed, where there was one.
    public var response: HTTPURLResponse?
    /// The finished file; `nil` after a failure. A middleware that moves the file returns the new place here.
    public var fileURL: URL?
    /// Other names and copies of the finished file, which the engine removes: once the task's record tells of `fileURL`, or
    /// with a file that is rejected. Empty by default.
    ///
    /// A middleware that links or copies the file to its new place, and adds the old one here instead of removing it,
    /// leaves neither no file nor two, wherever the process is killed.
    public var leftBehind: [URL] = []
    /// Why the task failed; `nil` after completion.
    public var error: DownloadError?

    /// For tests of a middleware; the engine makes its own.
    public init(
        task: TaskContext, response: HTTPURLResponse? = nil, fileURL: URL? = nil, error: DownloadError? = nil
    ) {
        self.task = task
        self.response = response
        self.fileURL = fileURL
        self.error = error
    }
}

/// Runs once a task has completed, and once it has finally failed: verify, move, unpack, record. A middleware that fails
/// a completed task is among those that hear of the failure.
public protocol ResponseMiddleware: Middleware {
    /// Returns the response handed to the next middleware, changed or not.
    ///
    /// - Throws: any error fails the task with this reason; the file is then set aside and never stays under its
    ///   final name. `RetryRequest` asks for the file to be fetched again. After a failure (`response.error` is set)
    ///   what is thrown is recorded and changes nothing else.
    func process(_ response: DownloadResponse) async throws -> DownloadResponse
}

/// Thrown by a response middleware to have the file fetched again, within the task's number of attempts.
public struct RetryRequest: Error, Sendable, Hashable {
    /// Why, for logs and `fk why`.
    public var reason: String
    /// Seconds to wait before the next attempt, at most `RetryPolicy.maxRetryAfter`; `nil` and 0 leave it to the back-off.
    /// As with a server's Retry-After, no other task asks the same host meanwhile.
    public var delay: Double?

    /// - Parameters:
    ///   - reason: why, for a person.
    ///   - delay: seconds; by default the back-off decides.
    public init(reason: String, delay: Double? = nil) {
        self.reason = reason
        self.delay = delay
    }
}
