import FKMiddleware
import Foundation

/// The engine of a work path, as the public components use it. It runs in this process (`Engine`), or it may run in
/// another one (`SharedEngine`).
package protocol EngineAccess: AnyObject, Sendable {
    /// Identifies the engine to middlewares and callbacks (`MiddlewareCall`).
    nonisolated var identity: ObjectIdentifier { get }
    nonisolated var workPath: WorkPath { get }
    /// The middlewares of this process.
    nonisolated var chains: MiddlewareChains { get }
    /// The queue of this process's callbacks and download middlewares.
    nonisolated var callbacks: CallbackQueue { get }
    /// True once `close()` was called. Safe from any thread.
    nonisolated var isClosed: Bool { get }

    /// Starts the queue soon. It returns at once.
    nonisolated func start()
    /// False if the tasks wait for `start()` of this downloader.
    var startsTasks: Bool { get async }
    /// Releases the work path or stops following its engine.
    func close() async
    /// The process whose engine runs the tasks.
    var owner: EngineOwner { get async }
    /// Calls `callback` with the present owner, and with each later one, until `stopObserving` or `close`.
    func observeOwner(
        end: (@Sendable () -> Void)?, _ callback: @escaping @Sendable (EngineOwner) -> Void
    ) async -> UInt64

    // MARK: Settings

    var currentConfigure: Configure { get async }
    func update(_ configure: Configure) async throws
    /// Pauses the queue of tasks that this process runs, or ends the pause.
    func setPaused(_ isPaused: Bool) async throws
    func takeProblems() async -> [DownloadError]
    /// An application has asked about a URL that has no task: a problem, once for each URL.
    func recordUnknown(_ url: String) async
    /// An application has asked for something that cannot be: a problem.
    func recordProblem(_ error: DownloadError) async

    // MARK: Requests

    /// Performs a request at the engine that runs the tasks.
    ///
    /// - Parameter own: limits for the tasks that the request adds or runs; nil for none.
    /// - Throws: `.cancelled` after `close()`, and the errors of the request.
    func reply(to request: EngineRequest, own: OwnLimits?) async throws(DownloadError) -> EngineReply

    // MARK: Snapshots

    /// Reads a snapshot, at the engine of this process or from the info files.
    func snapshot<Value: Sendable, Failure: Error>(
        _ read: @Sendable (any RecordSource) throws(Failure) -> Value
    ) async throws(Failure) -> Value

    // MARK: Listeners and waits: the closures never block (`Observers`)

    /// Registers listeners at the present source of changes, and returns when they receive every change.
    ///
    /// - Returns: the number that `stopObserving(_:)` takes.
    /// - Throws: `.cancelled` after `close()`, and the errors of `ChangeFeed`.
    func listen(_ register: @Sendable (any ChangeFeed) throws -> UInt64) async throws -> UInt64
    func observeStates(
        missed: @escaping @Sendable () -> Void, _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) async -> UInt64
    func stopObserving(_ number: UInt64) async
    func stopObserving(_ selector: TaskSelector) async
    func waitUntilSettled(_ id: TaskID) async
    func waitUntilDrained() async
}

extension EngineAccess {
    /// Performs a request, and returns the reply of its type.
    package func perform<Reply>(
        _ request: Request<Reply>, own: OwnLimits? = nil
    ) async throws(DownloadError) -> Reply {
        try request.reply(try await reply(to: request.content, own: own))
    }

    /// Performs a message. Errors are `.failed`.
    package func answer(_ message: EngineMessage) async -> EngineReply {
        do throws(DownloadError) {
            return message.form(try await reply(to: message.request, own: message.own))
        } catch {
            return .failed(error)
        }
    }

    package func observe(
        _ selector: TaskSelector, end: (@Sendable () -> Void)? = nil,
        _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) async throws -> UInt64 { try await listen { try $0.observe(selector, end: end, callback) } }

    package func observeBarrel(
        _ name: String, end: (@Sendable () -> Void)? = nil, _ callback: @escaping @Sendable (BarrelInfo) -> Void
    ) async throws -> UInt64 { try await listen { try $0.observeBarrel(name, end: end, callback) } }

    package func observeAttempts(
        _ selector: TaskSelector, end: (@Sendable () -> Void)? = nil,
        _ callback: @escaping @Sendable (AttemptInfo) -> Void
    ) async throws -> UInt64 { try await listen { try $0.observeAttempts(selector, end: end, callback) } }

    /// - Returns: 0 after `close()`.
    package func observeDrained(_ callback: @escaping @Sendable () -> Void) async -> UInt64 {
        (try? await listen { $0.observeDrained(callback) }) ?? 0
    }

    /// - Returns: 0 after `close()`.
    package func observeTrims(_ callback: @escaping @Sendable (TrimmedFiles) -> Void) async -> UInt64 {
        (try? await listen { $0.observeTrims(callback) }) ?? 0
    }
}

/// The part that a downloader takes on its work path.
public enum DownloaderRole: String, Sendable, Hashable, CaseIterable {
    /// It owns the work path and runs the tasks. A second owner is refused with `.workPathBusy`. The default.
    case owner
    /// It never runs tasks. It adds, steers and follows the tasks that another process runs.
    case client
    /// It owns the work path while no other downloader does, and is a client otherwise. When the owner ends, it takes
    /// over within three seconds.
    case either
}
