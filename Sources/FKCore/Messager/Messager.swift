import FKMiddleware
import Foundation

/// Answers questions about tasks and barrels, and reports on them while they run.
///
/// Callbacks run on one serial queue, never on the main thread, every `Configure.distributeSpeed` x 0.2 s while the
/// task runs, and once at each change of state.
public struct Messager: Sendable {
    let engine: Engine

    /// Names a registered callback.
    public struct Registration: Sendable, Hashable {
        let number: UInt64
    }

    // MARK: Lookups

    /// True when the task is known, in memory or on disk.
    public func exists(_ selector: TaskSelector) async -> Bool { await !all(selector).isEmpty }

    /// The task as it is now, once (FKDownloader's `acquireMessagerInfo`); nil when there is none. With several tasks of
    /// one URL: the oldest.
    public func info(_ selector: TaskSelector) async -> DownloadInfo? { await all(selector).first }

    /// All matching tasks, in the order of their submission.
    public func all(_ selector: TaskSelector = .all) async -> [DownloadInfo] {
        (try? await engine.infos(selector)) ?? []
    }

    /// `.unknown` when there is no such task.
    public func state(_ selector: TaskSelector) async -> DownloadState { await info(selector)?.state ?? .unknown }

    /// Why the task failed, or why its last attempt did while a retry is due; nil when neither holds.
    public func error(_ selector: TaskSelector) async -> DownloadError? { await info(selector)?.error }

    /// The finished file; nil until the task is complete.
    public func filePath(_ selector: TaskSelector) async -> String? { await info(selector)?.path }

    /// Waits until the task is complete, in error, suspended or cancelled, and returns it; nil when there is none.
    ///
    /// Returns the task as it is when the waiting Swift task is cancelled, or when the downloader closes.
    ///
    /// Callbacks run on a queue of their own: the last of them may come after this has returned.
    public func finished(_ id: TaskID) async -> DownloadInfo? {
        await engine.waitUntilSettled(id)
        return await info(.id(id))
    }

    // MARK: Polled info

    /// Registers a polled callback; it is called once at once when the task is known.
    ///
    /// - Parameter selector: a URL or an id; the task need not exist yet. For barrels there is `addBarrelInfo`.
    /// - Throws: `.invalidURL` for a URL that is none, `.invalidArgument` for `.barrel` and `.all`, `.cancelled` for a closed
    ///   downloader.
    @discardableResult
    public func addInfo(
        _ selector: TaskSelector, _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) async throws -> Registration {
        Registration(number: try await engine.observe(selector, callback))
    }

    /// Ends a callback of a task or barrel. One that is running meanwhile is not waited for.
    public func removeInfo(_ registration: Registration) async { await engine.stopObserving(registration.number) }

    /// Removes all callbacks of a task (by URL or by id, as they were added).
    public func removeInfo(_ selector: TaskSelector) async { await engine.stopObserving(selector) }

    /// The same as an asynchronous sequence of a known task. Every reader gets the first and the last info; a slow one gets
    /// the newest and misses some in between.
    ///
    /// The sequence ends after the task is complete, in error, cancelled or gone; for a URL with several tasks, when all of
    /// them are. It ends at once where there is no such task, and where `addInfo` would throw.
    public func infos(_ selector: TaskSelector) -> AsyncStream<DownloadInfo> {
        sequence(.firstAndNewest) { engine, yield, end in try await engine.observe(selector, end: end, yield) }
    }

    // MARK: Barrels

    /// Makes a barrel of these tasks, or adds them to the one there is. What no task is known of is passed
    /// over: prepare it first, or use `Builder.prepare(_:barrel:in:)`.
    ///
    /// - Returns: how many joined.
    /// - Throws: `.invalidArgument` for a name that cannot be one.
    @discardableResult
    public func addBarrel(_ name: String, urls: [String]) async throws -> Int {
        try await engine.join(urls.map { .url($0) }, barrelNamed: name)
    }

    /// Forgets the group; its tasks stay. Its callbacks end.
    ///
    /// - Throws: `.notFound` when there is no such barrel.
    public func removeBarrel(_ name: String) async throws {
        _ = try await engine.deleteBarrel(name)
    }

    /// Adds tasks to a barrel, which is made when it is not there. What is a member already stays one.
    ///
    /// - Returns: how many joined.
    /// - Throws: `.invalidArgument` for a name that cannot be one, `.invalidURL` for a URL that is none.
    @discardableResult
    public func add(_ selector: TaskSelector, toBarrel name: String) async throws -> Int {
        try await engine.join([selector], barrelNamed: name)
    }

    /// Takes the tasks of that URL out of a barrel; the tasks stay.
    ///
    /// - Throws: `.notFound` when there is no such barrel or the URL is not in it, `.invalidURL` for a URL that is none.
    public func remove(_ url: String, fromBarrel name: String) async throws {
        _ = try await engine.remove([url], fromBarrel: name)
    }

    /// The URLs of a barrel's members, finished ones included, in the order in which they joined.
    ///
    /// - Throws: `.notFound` when there is no such barrel.
    public func urls(inBarrel name: String) async throws -> [String] { try await engine.barrelURLs(name) }

    /// The names of all barrels of the work path, sorted.
    public func barrels() async -> [String] { await engine.barrelNames() }

    /// The sum over the members now.
    ///
    /// - Throws: `.notFound` when there is no such barrel.
    public func barrelInfo(_ name: String) async throws -> BarrelInfo { try await engine.barrelInfo(name) }

    /// Registers a polled callback for the sum; it is called once at once.
    ///
    /// - Throws: `.notFound` when there is no such barrel.
    @discardableResult
    public func addBarrelInfo(
        _ name: String, _ callback: @escaping @Sendable (BarrelInfo) -> Void
    ) async throws -> Registration {
        Registration(number: try await engine.observeBarrel(name, callback))
    }

    /// The same as an asynchronous sequence. Every reader gets the first and the last sum. It ends once no member can run
    /// any more: complete, in error, suspended, cancelled or gone. For an empty barrel it ends behind its one sum, and at once
    /// where there is no such barrel.
    public func barrelInfos(_ name: String) -> AsyncStream<BarrelInfo> {
        sequence(.firstAndNewest) { engine, yield, end in try await engine.observeBarrel(name, end: end, yield) }
    }
}
