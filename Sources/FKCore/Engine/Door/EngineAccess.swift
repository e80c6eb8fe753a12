import FKMiddleware
import Foundation

/// The engine of a work path, as the public components use it. It runs in this process (`Engine`), or it may run in
/// another one (`SharedEngine`).
package protocol EngineAccess: AnyObject, Sendable {
    /// Identifies the engine to middlewares and callbacks (`MiddlewareCall`).
    nonisolated var identity: ObjectIdentifier { get }
    /// The work path.
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
    func takeProblems() async -> [String]

    // MARK: Requests

    func perform(_ request: EngineRequest, own: OwnLimits?) async -> EngineReply
    func add(
        _ descriptions: [TaskDescription], barrel: String?, run: Bool, group: Int32?
    ) async throws -> [EngineReply.Added]
    func apply(_ verb: Verb, to selector: TaskSelector, forAll: Bool) async throws -> [VerbResult]
    func toggle(_ selector: TaskSelector) async throws -> [VerbResult]
    func join(_ selectors: [TaskSelector], barrelNamed name: String) async throws -> Int
    func remove(_ urls: [String], fromBarrel name: String) async throws -> String
    func deleteBarrel(_ name: String) async throws -> String
    func setAttributes(_ selector: TaskSelector, _ attributes: [String: String?]) async throws -> Int
    func markUsed(_ selector: TaskSelector) async throws -> Int

    // MARK: Snapshots

    func infos(_ selector: TaskSelector) async throws -> [DownloadInfo]
    func receipts(_ selector: TaskSelector) async throws -> [Receipt]
    func records(_ query: RecordQuery) async throws -> RecordPage
    func waitingInfos() async throws -> [DownloadInfo]
    func runningInOrder() async throws -> [DownloadInfo]
    func barrelInfo(_ name: String) async throws -> BarrelInfo
    func barrelNames() async throws -> [String]
    func barrelURLs(_ name: String) async throws -> [String]

    // MARK: Listeners and waits: the closures never block (`Observers`)

    func observe(
        _ selector: TaskSelector, end: (@Sendable () -> Void)?, _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) async throws -> UInt64
    func observeBarrel(
        _ name: String, end: (@Sendable () -> Void)?, _ callback: @escaping @Sendable (BarrelInfo) -> Void
    ) async throws -> UInt64
    func observeAttempts(
        _ selector: TaskSelector, end: (@Sendable () -> Void)?, _ callback: @escaping @Sendable (AttemptInfo) -> Void
    ) async throws -> UInt64
    func observeStates(
        missed: @escaping @Sendable () -> Void, _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) async -> UInt64
    func observeDrained(_ callback: @escaping @Sendable () -> Void) async -> UInt64
    func stopObserving(_ number: UInt64) async
    func stopObserving(_ selector: TaskSelector) async
    func waitUntilSettled(_ id: TaskID) async
    func waitUntilDrained() async
}

extension EngineAccess {
    package func apply(_ verb: Verb, to selector: TaskSelector) async throws -> [VerbResult] {
        try await apply(verb, to: selector, forAll: false)
    }

    package func add(_ descriptions: [TaskDescription], barrel: String?, run: Bool) async throws -> [EngineReply.Added]
    {
        try await add(descriptions, barrel: barrel, run: run, group: nil)
    }

    package func observe(
        _ selector: TaskSelector, _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) async throws -> UInt64 { try await observe(selector, end: nil, callback) }

    package func observeBarrel(
        _ name: String, _ callback: @escaping @Sendable (BarrelInfo) -> Void
    ) async throws -> UInt64 { try await observeBarrel(name, end: nil, callback) }

    package func observeAttempts(
        _ selector: TaskSelector, _ callback: @escaping @Sendable (AttemptInfo) -> Void
    ) async throws -> UInt64 { try await observeAttempts(selector, end: nil, callback) }
}

/// The process whose engine runs the tasks of a work path.
public enum EngineOwner: Sendable, Hashable {
    /// This downloader runs the tasks. Its middlewares and its settings apply.
    case thisDownloader
    /// Another downloader, usually in another process, runs the tasks. Its middlewares and settings apply.
    ///
    /// - Parameters:
    ///   - pid: the process id, for display; 0 if unknown.
    ///   - host: the host name, for display.
    case process(pid: Int32, host: String)
    /// No downloader runs the tasks. Requests are stored, and the next owner runs them.
    case nobody
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
