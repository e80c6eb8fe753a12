import FKEngine
import FKMiddleware
import Foundation

/// Answers questions about tasks and barrels, and reports on them while they run.
///
/// Callbacks run on one serial queue of the library, or on a queue of the application: every `Configure.progressInterval` while the
/// task runs, once more after it has stopped, and once for each change of state. All members are safe to use from any thread.
public struct Messager: Sendable {
    package let engine: any EngineAccess

    /// Holds a registered callback. It is removed when the registration is released, unless `keep()` was called.
    public final class Registration: Sendable {
        private let calls: CallbackSwitch
        private let stop: @Sendable () -> Void
        private let isKept = Locked(false)

        /// It does not keep the engine in memory.
        init(_ number: UInt64, _ calls: CallbackSwitch, at engine: any EngineAccess) {
            self.calls = calls
            stop = { [weak engine] in
                if let engine { Task { await engine.stopObserving(number) } }
            }
        }

        deinit { if !isKept.withLock(\.self) { cancel() } }

        /// Removes the callback. It does not wait for a call that is running, and no other one begins.
        public func cancel() {
            calls.turnOff()
            stop()
        }

        /// Keeps the callback until `cancel()`, `Messager.removeInfo(_:)` or the end of the downloader, also after the registration
        /// is released.
        public func keep() { isKept.withLock { $0 = true } }
    }

    // MARK: Lookups

    /// The task as it is now; nil if there is none. For several tasks of one URL, the oldest.
    ///
    /// For a URL without a task, `Downloader.takeProblems()` says so once: the task was not created, or its URL is another one.
    public func info(_ selector: some TaskSelecting) async -> DownloadInfo? {
        let info = await all(selector).first
        if info == nil { await recordUnknown(selector) }
        return info
    }

    /// Tells of a URL without a task.
    package func recordUnknown(_ selector: some TaskSelecting) async {
        if case .url(let url) = selector.selector.kind { await engine.recordUnknown(url) }
    }

    /// All matching tasks in the order of their submission; empty if there are none.
    public func all(_ selector: some TaskSelecting = TaskSelector.all) async -> [DownloadInfo] {
        let selector = selector.selector
        return (try? await engine.snapshot { try $0.infos(selector) }) ?? []
    }

    /// Waits until the task is complete, in error, suspended or cancelled, and returns it; nil if there is none.
    ///
    /// It returns the current info when the waiting Swift task is cancelled, when the downloader closes, and inside a
    /// request or response middleware that the task waits for.
    ///
    /// Callbacks run on their own queue, so the last of them may run after this has returned.
    public func finished(_ id: TaskID) async -> DownloadInfo? {
        await engine.waitUntilSettled(id)
        return await info(.id(id))
    }

    // MARK: Polled info

    /// Registers a polled callback, which stays until the registration is released. It is called once immediately if the task
    /// exists.
    ///
    /// - Parameters:
    ///   - selector: a URL or an id; the task need not exist yet. Use `addBarrelInfo` for barrels.
    ///   - queue: where the callback runs; nil, the default, uses the library's serial queue. Calls keep their order on a
    ///     serial queue. A callback that blocks delays later callbacks of its queue, and nothing else.
    ///     `Downloader.close()` waits for calls on the library's queue, and not for those on a queue of the application.
    /// - Throws: `.invalidURL` for an invalid URL, `.invalidArgument` for `.barrel` and `.all`, `.cancelled` for a
    ///   closed downloader.
    public func addInfo(
        _ selector: some TaskSelecting, on queue: DispatchQueue? = nil,
        _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) async throws(DownloadError) -> Registration {
        try await register(on: queue) { try await engine.observe(selector.selector, $0.calling(callback)) }
    }

    /// Registers a callback of the application. `observe` returns the listener's number.
    func register(
        on queue: DispatchQueue?, _ observe: (CallbackTarget) async throws -> UInt64
    ) async throws(DownloadError) -> Registration {
        let target = CallbackTarget(queue: queue, callbacks: engine.callbacks)
        return try await typed { Registration(try await observe(target), target.calls, at: engine) }
    }

    /// Removes all callbacks of a task that were added with the same URL or id. Calls that wait on a queue still run.
    public func removeInfo(_ selector: some TaskSelecting) async { await engine.stopObserving(selector.selector) }

    /// The infos of an existing task as an asynchronous sequence. Every reader receives the first and the last info.
    /// A slow reader receives the newest and misses some in between.
    ///
    /// The sequence ends after the task is complete, in error, cancelled or gone; for a URL with several tasks, after
    /// all of them are. It ends at once if there is no such task, and if `addInfo` would throw: `Downloader.takeProblems()` then has the
    /// error of a wrong selector.
    public func infos(_ selector: some TaskSelecting) -> AsyncStream<DownloadInfo> {
        sequence(.firstAndNewest) { engine, yield, end in try await engine.observe(selector.selector, end: end, yield) }
    }

    // MARK: Barrels

    /// Adds tasks to a barrel, which is created if missing (`Barrel.join(_:)`).
    package func join(_ selectors: [TaskSelector], barrel name: String) async throws(DownloadError) -> Int {
        try await engine.perform(.join(selectors, barrel: name))
    }

    /// Removes the selected tasks from a barrel. `.all` means all members, another barrel the members that both have.
    ///
    /// - Throws: `.notFound` if there is no such barrel or none of the tasks is in it, `.invalidURL` for an invalid URL.
    package func leave(_ selector: TaskSelector, barrel name: String) async throws(DownloadError) {
        _ = try await typed {
            let texts: [String] =
                switch selector.kind {
                case .url(let url): [url]
                case .id(let id): [id.hex]
                case .barrel, .state, .all:
                    try await engine.snapshot { source in
                        try source.infos(selector == .all ? .barrel(name) : selector)
                    }.map(\.id.hex)
                }
            return try await engine.perform(.line(.removeFromBarrel(name: name, urls: texts)))
        }
    }

    /// Deletes a barrel and removes its callbacks. Its tasks are kept.
    ///
    /// - Throws: `.notFound` if there is no such barrel.
    package func deleteBarrel(_ name: String) async throws(DownloadError) {
        _ = try await engine.perform(.line(.deleteBarrel(name: name)))
    }

    /// The names of all barrels of the work path, sorted.
    public func barrels() async throws(DownloadError) -> [String] {
        try await typed { try await engine.snapshot { try $0.barrelNames() } }
    }

    /// The sum over the members as it is now.
    ///
    /// - Throws: `.notFound` if there is no such barrel.
    package func barrelInfo(_ name: String) async throws(DownloadError) -> BarrelInfo {
        try await typed { try await engine.snapshot { try $0.barrelInfo(name) } }
    }

    /// Registers a polled callback for the sum, as `addInfo`. It is called once immediately.
    ///
    /// - Parameter queue: same as for `addInfo`.
    /// - Throws: `.notFound` if there is no such barrel.
    public func addBarrelInfo(
        _ name: String, on queue: DispatchQueue? = nil, _ callback: @escaping @Sendable (BarrelInfo) -> Void
    ) async throws(DownloadError) -> Registration {
        try await register(on: queue) { try await engine.observeBarrel(name, $0.calling(callback)) }
    }

    /// The sums of a barrel as an asynchronous sequence. Every reader receives the first and the last sum. It ends when all
    /// members are complete, in error, cancelled or gone, and continues while one is suspended. For an empty barrel it ends
    /// after one sum. It ends at once if there is no such barrel.
    package func barrelInfos(_ name: String) -> AsyncStream<BarrelInfo> {
        sequence(.firstAndNewest) { engine, yield, end in try await engine.observeBarrel(name, end: end, yield) }
    }
}
