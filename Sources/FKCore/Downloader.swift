import FKEngine
import FKMiddleware
import Foundation

/// The main object: one work path, its engine, and the components that use the engine.
///
/// ```swift
/// let downloader = try Downloader(Configure())
/// downloader.activateQueue()
/// let task = try await downloader.add("https://example.com/file.zip")
/// let file = try await task.file
/// ```
///
/// Safe to use from any thread. A work path has one owner at a time, which runs its tasks. A second downloader on it,
/// in this process or another, takes the role `.client` or `.either`; with `.owner` it throws `.workPathBusy`.
/// `close()` releases the work path. Running tasks keep their bytes with and without it.
public final class Downloader: Sendable {
    /// Verbs on tasks: suspend, resume, cancel and others.
    public let control: Control
    /// Questions and callbacks about tasks and barrels.
    public let messager: Messager
    /// The middleware chains. Middlewares can be registered and removed at any time.
    public let middlewares: MiddlewareChains

    /// The files that nobody keeps.
    let streams: StreamHost
    /// Counts who waits for the files of tasks.
    let waiters = DownloadWaiters()
    /// The engine of the work path.
    package let engine: any EngineAccess
    /// The values of libraries above this one, by their types.
    private let values = Locked<[ObjectIdentifier: any Sendable]>([:])

    /// The downloader's value of a type. It is made on first use.
    package func value<Value: Sendable>(of type: Value.Type, _ make: () -> Value) -> Value {
        values.withLock { values in
            if let value = values[ObjectIdentifier(type)] as? Value { return value }
            let made = make()
            values[ObjectIdentifier(type)] = made
            return made
        }
    }

    /// Creates a downloader. No task runs before `activateQueue()`.
    ///
    /// - Parameters:
    ///   - configure: the settings; the default is `Configure()`.
    ///   - role: what the downloader does on the work path; the default owns it.
    ///   - transport: what transfers the bytes; nil, the default, uses `configure.transportKind`.
    /// - Throws: `.workPathBusy` for the role `.owner` if another downloader owns the work path;
    ///   `.workPathUnusable` or `.laterVersion`; `.invalidArgument` for a setting outside its range
    ///   or a transport kind that is not compiled in.
    public convenience init(
        _ configure: Configure = Configure(), role: DownloaderRole = .owner, transport: (any Transport)? = nil
    ) throws(DownloadError) {
        let makeTransport = { @Sendable in try transport ?? configure.makeTransport() }
        let engine: any EngineAccess = try typedNow {
            switch role {
            case .owner: try Engine(configure: configure, scope: .all, transport: makeTransport())
            case .client, .either:
                try SharedEngine(
                    configure: configure, scope: .all, takesOver: role == .either, makeTransport: makeTransport)
            }
        }
        self.init(engine: engine, transport: transport)
    }

    /// Creates a downloader for an engine that exists already.
    ///
    /// - Parameter transport: that of the application; nil, the default, for the one of the settings.
    package init(engine: any EngineAccess, transport: (any Transport)? = nil) {
        self.engine = engine
        streams = StreamHost(engine.workPath, engine.chains, transport)
        control = Control(engine: engine, transport: transport)
        messager = Messager(engine: engine)
        middlewares = engine.chains
    }

    private struct Shared {
        var downloader: Downloader?
        /// Nil until `configureShared` was called.
        var setUp: (@Sendable (inout Configure, MiddlewareChains) throws -> Void)?
    }

    private static let sharedDownloader = Locked(Shared())

    /// The downloader of the whole program. It is created on first use, and again on the first use after it was closed.
    /// Without other settings it owns a work path in the program's own folder (`Configure.workPath`).
    ///
    /// `configureShared` gives it its settings and middlewares, once, and starts its queue. Without, it has default settings, and no
    /// task runs before `activateQueue()` or `download`: the tasks of an earlier run do not start before the application has
    /// registered its middlewares.
    ///
    /// - Throws: the errors of `init` and of `configureShared`'s closure. While a closed one still writes its last records, that is
    ///   `.workPathBusy`; the next use tries again.
    public static var shared: Downloader {
        get throws(DownloadError) {
            try typedNow {
                try sharedDownloader.withLock { shared in
                    if let downloader = shared.downloader, !downloader.engine.isClosed { return downloader }
                    shared.downloader = nil
                    let made = try make(shared.setUp)
                    shared.downloader = made
                    return made
                }
            }
        }
    }

    /// Sets `shared` up before its first use, and starts its queue.
    ///
    /// ```swift
    /// try Downloader.configureShared { configure, middlewares in
    ///     configure.maxAction = 5
    ///     middlewares.register(authenticator: session)
    /// }
    /// ```
    ///
    /// - Parameter setUp: changes the default settings, and registers middlewares. It runs again when `shared` is made anew after it was
    ///   closed.
    /// - Returns: the downloader.
    /// - Throws: `.configurationLocked` if `shared` was configured or used already: call this at the start of the program, and change
    ///   settings later with `update(_:)`. Otherwise the errors of `shared`; then nothing is configured.
    @discardableResult
    public static func configureShared(
        _ setUp: @escaping @Sendable (inout Configure, MiddlewareChains) throws -> Void
    ) throws(DownloadError) -> Downloader {
        try typedNow {
            try sharedDownloader.withLock { shared in
                guard shared.setUp == nil, shared.downloader?.engine.isClosed ?? true else {
                    throw DownloadError(
                        .configurationLocked,
                        "Downloader.shared is in use already: call configureShared once, before anything uses it, and change "
                            + "settings later with update.")
                }
                let made = try make(setUp)
                (shared.downloader, shared.setUp) = (made, setUp)
                return made
            }
        }
    }

    private static func make(
        _ setUp: (@Sendable (inout Configure, MiddlewareChains) throws -> Void)?
    ) throws -> Downloader {
        guard let setUp else { return try Downloader() }
        var configure = Configure()
        let chains = MiddlewareChains()
        try setUp(&configure, chains)
        let made = Downloader(
            engine: try Engine(configure: configure, scope: .all, transport: configure.makeTransport(), chains: chains))
        made.activateQueue()
        return made
    }

    /// A downloader for one command: it runs only tasks that are chosen.
    ///
    /// - Parameter takesOver: true runs them here while no other process owns the work path. The default is false.
    package static func forCommand(_ configure: Configure, takesOver: Bool = false) throws(DownloadError) -> Downloader
    {
        try typedNow {
            Downloader(
                engine: try SharedEngine(
                    configure: configure, scope: .chosen, takesOver: takesOver,
                    makeTransport: { try configure.makeTransport() }))
        }
    }

    /// Starts the 1-second timer and the queue. Background tasks of an earlier engine continue, foreground tasks
    /// become suspended. Further calls do nothing.
    public func activateQueue() {
        engine.start()
    }

    /// Changes settings while tasks run. A lower `maxAction` does not stop running tasks, and a pause of the queue stays.
    ///
    /// - Throws: `.configurationLocked` if `workPath` differs from the current one; `.invalidArgument` for a setting
    ///   outside its range. No setting changes then.
    public func update(_ configure: Configure) async throws(DownloadError) {
        try await typed { try await engine.update(configure) }
    }

    /// Pauses the queue: running tasks stop with their bytes and wait, like tasks that are added later. No task changes to
    /// `suspend`. It applies to tasks that this downloader runs, until `resume()` or its end.
    ///
    /// - Throws: `.cancelled` for a closed downloader.
    public func pause() async throws(DownloadError) { try await setPaused(true) }

    /// Ends a pause of the queue.
    ///
    /// - Throws: same as `pause()`.
    public func resume() async throws(DownloadError) { try await setPaused(false) }

    private func setPaused(_ isPaused: Bool) async throws(DownloadError) {
        try await typed { try await engine.setPaused(isPaused) }
    }

    /// The downloader that runs the tasks now: this one, or that of another process.
    package var owner: EngineOwner { get async { await engine.owner } }

    /// The present owner and each later one. The sequence ends when this downloader closes.
    public var owners: AsyncStream<EngineOwner> {
        messager.sequence(.firstAndNewest) { engine, yield, end in await engine.observeOwner(end: end, yield) }
    }

    /// The current settings.
    public var configure: Configure { get async { await engine.currentConfigure } }

    /// The sums over all tasks of the work path as an asynchronous sequence, finished ones included. Every reader receives the
    /// first and the last sum; a slow one misses some in between. It continues while tasks are suspended and after all have
    /// ended, because others may follow. It ends when the downloader closes. The name in the sum is empty.
    public var progress: some AsyncSequence<BarrelInfo, Never> & Sendable {
        messager.sequence(.firstAndNewest) { engine, yield, end in try await engine.observeTotal(end: end, yield) }
    }

    /// All tasks of the work path as they change, for a list of them.
    ///
    /// - Parameter interval: the time between two reports of progress, from 0.05 s to a day; nil, the default, for
    ///   `Configure.progressInterval`.
    public func feed(every interval: Duration? = nil) -> TaskFeed {
        TaskFeed(of: engine, every: interval.map { min(max($0, .milliseconds(50)), .seconds(86_400)) })
    }

    /// Numbers about all tasks of the work path, whichever process runs them. It reads every record from disk.
    ///
    /// - Throws: `.disk` with the folder's name if the records cannot be listed; `.laterVersion` or `.corruptInfo` for a rate limit
    ///   that cannot be read. A single record that cannot be read is left out.
    public func metrics() async throws(DownloadError) -> DownloadMetrics {
        let workPath = engine.workPath
        let configured = await engine.currentConfigure.rateLimit
        return try await typed {
            var metrics = try DownloadMetrics(StoreReader(workPath), now: Date())
            metrics.rateLimit = [metrics.rateLimit, configured].compactMap(\.self).filter { $0 > 0 }.min()
            return metrics
        }
    }

    /// Calls `handler` with what was deleted each time that a download under `Configure.diskBudget` made room for itself. It runs on the
    /// callback queue. Downloads of another process are not reported here.
    public func onTrim(_ handler: @escaping @Sendable (TrimmedFiles) -> Void) async {
        _ = await engine.observeTrims { [callbacks = engine.callbacks] files in callbacks.async { handler(files) } }
    }

    /// Waits until no queued task is left that can run. It also returns when the waiting Swift task is cancelled, when
    /// the downloader closes, and inside a request or response middleware, because its own task waits for it.
    public func waitUntilDrained() async { await engine.waitUntilDrained() }

    /// Problems since the last call that a log should contain: files that could not be read, repaired or saved, for
    /// example quarantined info files. Each message occurs once; at most 1,000 are kept.
    public func takeProblems() async -> [DownloadError] { await engine.takeProblems() }

    // MARK: Background

    /// Passes the completion handler of the system on, in `application(_:handleEventsForBackgroundURLSession:completionHandler:)`. It is
    /// called once, on the main actor: when all delivered pieces were handled and the records are on disk, after 20 seconds at
    /// the latest. For a session other than `Configure.background` it is called at once. Call it after `activateQueue()`.
    public func handleBackgroundEvents(
        identifier: String, completionHandler: @escaping @MainActor @Sendable () -> Void
    ) {
        Task {
            if let owned { return await owned.handleEvents(identifier, completionHandler) }
            await completionHandler()
        }
    }

    /// Prepares for the suspension of the application, when its scene enters the background: running transfers are handed over to
    /// `Configure.background` from their last byte, or stopped without it; all records are written; the lock of the work path is
    /// released. It takes at most about three seconds. Until `leaveBackground()`, verbs throw `.cancelled`.
    public func enterBackground() async { await owned?.enterBackground() }

    /// Continues after `enterBackground()`, when the scene becomes active. Requests that the system has in flight are awaited, and the rest
    /// of the file is fetched as usual.
    ///
    /// - Throws: `.workPathBusy` if another process has used the work path meanwhile. The downloader has then closed: create another one.
    public func leaveBackground() async throws(DownloadError) { try await owned?.leaveBackground() }

    /// The engine, if this process has it.
    var owned: Engine? { engine as? Engine ?? (engine as? SharedEngine)?.engine }

    /// Shortens `close()` where this process runs the tasks (`Engine.hurry`).
    package func hurry() { owned?.hurry() }

    /// Stops running tasks, keeps their bytes, and releases the work path. The downloader cannot be used afterwards.
    ///
    /// It returns after every callback and download middleware has received all events, even if the calling Swift
    /// task is cancelled. Called from a request or response middleware, or from a Swift task started there, it
    /// returns at once: no new request is accepted, and the rest follows when the running middlewares have returned.
    ///
    /// It waits for running middlewares, but no longer than a minute. After that it returns with the work path still
    /// in use, and the rest follows when they have returned.
    public func close() async {
        await streams.close()
        await engine.closeAndDrain()
    }
}
