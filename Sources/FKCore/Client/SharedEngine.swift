import FKEngine
import FKMiddleware
import Foundation

/// The engine of a work path, whichever process runs it: an `Engine` of this process while it owns the work path, and
/// otherwise requests to the owner's mailbox and a `Follower` of its tasks.
///
/// ```text
///                 lock free (role .either)
///   following  ------------------------------->  owning
///   mailbox, journal, info files                 Engine: listeners, waits and requests move there
/// ```
///
/// An owner stays the owner until it closes. Listeners keep their numbers when the engine changes.
actor SharedEngine: EngineAccess {
    /// Reports about the owner, for a program that shows them.
    struct Hooks: Sendable {
        /// Called when the owner has shown no sign of life for `EngineWatch.limit` seconds, and when it shows one again.
        var onNews: @Sendable (EngineWatch.News, EngineLock.Holder?) -> Void = { _, _ in }
        /// Called before the queue of a new engine of this process starts, after it has the listeners.
        var onTakeover: @Sendable (Engine) async -> Void = { _ in }
        /// Called when yet another process owns the work path.
        var onOtherOwner: @Sendable (Int32) -> Void = { _ in }
        /// The seconds without a sign of life from the owner after which a request is withdrawn.
        var patience: Double = 15
    }

    nonisolated let workPath: WorkPath
    nonisolated var chains: MiddlewareChains { maker.chains }
    nonisolated var callbacks: CallbackQueue { maker.callbacks }
    nonisolated let marker = Marker()
    /// The engine of this process, while it owns the work path.
    nonisolated let owned = Locked<Engine?>(nil)
    nonisolated let hasClosed = Locked(false)
    private nonisolated let starting = Locked<Task<Void, Never>?>(nil)
    private let takesOver: Bool
    private let own: OwnLimits?
    private let hooks: Hooks
    private let maker: EngineMaker
    private var configure: Configure
    let follower: Follower
    nonisolated var observers: Observers { maker.observers }
    nonisolated var unownedExecutor: UnownedSerialExecutor { maker.thread.executor.asUnownedSerialExecutor() }
    private var presence: FollowerLock?
    private var isStarted = false
    /// The problems while another process has the tasks.
    private let problems = Problems()
    var lastOwner: EngineOwner?
    /// The last other process that owned the work path.
    private var lastProcess: EngineOwner?
    private var loop: Task<Void, Never>?
    /// Ends when the owner writes its changes for this process, or does not answer.
    private(set) var announcement: Task<Void, Never>?
    /// A takeover under way.
    private(set) var taking: Task<Void, Never>?
    /// When the progress of running tasks is reported next.
    private var nextReport = ContinuousClock.now

    /// Identifies this object to callbacks while no engine runs in this process.
    final class Marker: Sendable {}

    /// Opens a work path. With `takesOver` it owns the work path if that is free.
    ///
    /// - Parameters:
    ///   - takesOver: false never owns the work path for longer than a request.
    ///   - own: limits for the tasks of this process's command.
    ///   - crowd: the number of tasks that stay in memory; nil, the default, for the usual one.
    /// - Throws: `.workPathUnusable` or `.laterVersion`; `.invalidArgument` for a setting outside its range.
    init(
        configure: Configure, scope: Engine.Scope, takesOver: Bool, chains: MiddlewareChains = .init(),
        own: OwnLimits? = nil, crowd: Int? = nil, hooks: Hooks = .init(),
        makeTransport: @escaping @Sendable () throws -> any Transport
    ) throws {
        try configure.validate()
        workPath = WorkPath(configure)
        try workPath.open(create: true)
        self.configure = configure
        self.takesOver = takesOver
        self.own = own
        self.hooks = hooks
        maker = EngineMaker(scope: scope, chains: chains, crowd: crowd, makeTransport: makeTransport)
        follower = Follower(workPath, observers: maker.observers)
        callbacks.connect(ObjectIdentifier(marker))
        guard takesOver else { return }
        let engine = try maker.make(configure, isChecked: true)
        owned.withLock { $0 = engine }
    }

    // MARK: The owner

    nonisolated var identity: ObjectIdentifier { engine?.identity ?? ObjectIdentifier(marker) }
    /// True after `close()`, and after the engine of this process has closed because its lock file was replaced.
    nonisolated var isClosed: Bool { hasClosed.withLock { $0 } || engine?.isClosed == true }
    /// The engine of this process, while it owns the work path.
    nonisolated var engine: Engine? { owned.withLock { $0 } }

    var owner: EngineOwner {
        if isClosed { return .nobody }
        if engine != nil { return .thisDownloader }
        if let holder = EngineLock.holder(workPath) { return .process(pid: holder.pid, host: holder.host) }
        follower.ownerIsGone()
        return .nobody
    }

    nonisolated func start() {
        starting.withLock { starting in
            if starting == nil { starting = Task { await self.startQueue() } }
        }
    }

    /// Returns when the queue has started, if it was asked to, and when no takeover is under way.
    func settled() async {
        await starting.withLock { $0 }?.value
        await taking?.value
    }

    var startsTasks: Bool { engine == nil || isClosed || starting.withLock { $0 != nil } }

    func startQueue() async {
        guard !isStarted, !isClosed else { return }
        isStarted = true
        if let engine {
            await hooks.onTakeover(engine)
            await engine.activate(own)
        } else {
            follow()
        }
    }

    /// Makes this process the owner, if the work path is free.
    ///
    /// - Returns: false if another process owns it.
    private func takeOver() async throws -> Bool {
        await taking?.value
        guard takesOver, engine == nil, !isClosed else { return engine != nil }
        guard let made = try maker.make(configure) else { return false }
        let task = Task { await self.move(to: made) }
        taking = task
        await task.value
        taking = nil
        return true
    }

    /// Moves the listeners to an engine of this process, and starts its queue.
    private func move(to made: Engine) async {
        // Unread changes of the former owner.
        follower.look(withProgress: false)
        owned.withLock { $0 = made }
        presence = nil
        await made.adoptListeners()
        if isStarted, !isClosed {
            await hooks.onTakeover(made)
            await made.activate(own)
        }
        // Those that wait here look at the engine next. It has its tasks by now.
        observers.waits.endAll()
        observers.tellMissed()
        if isClosed { await made.close() }
        tellOwner()
    }

    private func tellOwner() {
        let owner = owner
        guard owner != lastOwner else { return }
        if case .process(let pid, _) = owner {
            if let lastProcess, lastProcess != owner { hooks.onOtherOwner(pid) }
            lastProcess = owner
        }
        lastOwner = owner
        observers.tell(owner)
    }

    func close() async {
        let isFirst = hasClosed.withLock { isClosed in
            defer { isClosed = true }
            return !isClosed
        }
        if let engine {
            await engine.close()
        } else if isFirst {
            loop?.cancel()
            follower.finish()
        }
        guard isFirst else { return }
        maker.thread.joinWhenReleased()
        presence = nil
        observers.removeOwners()
    }

    /// - Throws: `.cancelled` after `close()`.
    func checkOpen() throws(DownloadError) {
        if isClosed { throw DownloadError(.cancelled, "The downloader is closed.") }
    }

    // MARK: Following

    /// The seconds between two looks at the owner's changes.
    private var pause: Double { min(0.25, configure.progressInterval.inSeconds) }

    /// Begins to look at the owner's changes, until this process owns the work path or closes.
    func follow() {
        guard loop == nil, engine == nil, !isClosed else { return }
        // Beside the looks: a stopped owner does not answer, and they notice it.
        announcement = Task { [weak self] in await self?.announce() }
        loop = Task { [weak self] in
            var watch = EngineWatch(interval: 0.25)
            while !Task.isCancelled, let pause = await self?.lookOnce(&watch) {
                try? await Task.sleep(for: .seconds(pause))
            }
            await self?.followingEnded()
        }
    }

    private func followingEnded() {
        loop = nil
        // A listener may have come meanwhile.
        if mustFollow { follow() } else { presence = nil }
    }

    private var mustFollow: Bool {
        guard engine == nil, !isClosed else { return false }
        if takesOver, isStarted { return true }
        return !observers.isEmpty
    }

    /// Tells the owner that there is a follower, and returns when it writes its changes.
    private func announce() async {
        do {
            if presence == nil { presence = try FollowerLock(workPath) }
            guard EngineLock.isHeld(workPath) else { return }
            var client = EngineClient(configure: configure)
            client.opensEngine = false
            client.patience = 5
            _ = try await client.performMessage(EngineMessage(.follow)) { [weak self] _ in
                try await self?.checkOpen()
                return nil
            }
        } catch {
            // The next look compares the info files instead.
        }
    }

    /// - Returns: the seconds until the next look; nil when there is nothing to follow.
    private func lookOnce(_ watch: inout EngineWatch) async -> Double? {
        guard mustFollow else { return nil }
        if !EngineLock.isHeld(workPath) {
            follower.isOwnerSilent = false
            do {
                if isStarted, try await takeOver() { return nil }
            } catch {
                record("The work path \(workPath.root) cannot be taken over: \(error)")
            }
        } else if let news = watch.look(EngineLock.content(workPath), now: EngineWatch.now) {
            follower.isOwnerSilent = news == .silent
            hooks.onNews(news, EngineLock.holder(workPath))
        }
        guard engine == nil, !isClosed else { return nil }
        let now = ContinuousClock.now
        let isDue = now >= nextReport
        if isDue { nextReport = now + configure.progressInterval }
        follower.look(withProgress: isDue)
        tellOwner()
        return pause
    }

    /// Reports the changes of another process's engine that were written before this call.
    func readChanges() {
        if engine == nil, !isClosed { follower.look(withProgress: false) }
    }

    private func record(_ text: String) {
        problems.append(DownloadError(.disk, text))
    }

    // MARK: Settings

    var currentConfigure: Configure {
        get async { if let engine { await engine.currentConfigure } else { configure } }
    }

    /// Changes the settings of this process. Those of another process's engine stay.
    func update(_ configure: Configure) async throws {
        try checkOpen()
        if let engine { return try await engine.update(configure) }
        try configure.validate()
        guard WorkPath(configure.workPath) == workPath else {
            throw DownloadError(
                .configurationLocked,
                "The work path cannot change while a downloader is live: close it and make another one.")
        }
        let isPaused = self.configure.isPaused
        self.configure = configure
        self.configure.isPaused = isPaused
    }

    /// Pauses the tasks that this process runs, now or after a takeover.
    func setPaused(_ isPaused: Bool) async throws {
        try checkOpen()
        configure.isPaused = isPaused
        try await engine?.setPaused(isPaused)
    }

    func takeProblems() async -> [DownloadError] {
        let own = problems.drain()
        return own + (await engine?.takeProblems() ?? [])
    }

    func recordUnknown(_ url: String) async {
        if let engine { await engine.recordUnknown(url) } else { problems.recordUnknown(url) }
    }

    func recordProblem(_ error: DownloadError) async {
        if let engine { await engine.recordProblem(error) } else { problems.append(error) }
    }

    // MARK: Requests

    /// Performs a request at the engine that runs the tasks. Where none does, this process owns the work path for the
    /// request, or with `takesOver` from then on.
    func reply(to request: EngineRequest, own: OwnLimits?) async throws(DownloadError) -> EngineReply {
        do {
            try checkOpen()
            if let engine { return try await engine.reply(to: request, own: own) }
            var client = EngineClient(configure: configure)
            client.patience = hooks.patience
            // The looks report it already.
            if loop == nil { client.onNews = hooks.onNews }
            client.opensEngine = !takesOver
            var replies: [EngineReply] = []
            for message in EngineMessage(request, own: own).messages {
                let (reply, problems) = try await client.performMessage(message) { inquiry in
                    try await self.performHere(message, inquiry)
                }
                for problem in problems { record(problem) }
                if case .failed(let error) = reply { throw error }
                replies.append(reply)
            }
            return try EngineReply(pages: replies)
        } catch {
            throw DownloadError(wrapping: error, code: .disk, message: "The request failed.")
        }
    }

    /// Performs a request at the engine of this process; nil if another process owns the work path.
    ///
    /// Swift 6.3.1 crashes (signal 11, at -O) where it inlines this into `performMessage`.
    ///
    /// - Parameter inquiry: the id of the request, if it is in the mailbox as well.
    @inline(never)
    private func performHere(_ message: EngineMessage, _ inquiry: MessageID?) async throws -> EngineReply? {
        try checkOpen()
        guard takesOver, try await takeOver(), let engine else { return nil }
        return await engine.answer(message, posted: inquiry)
    }

    func snapshot<Value: Sendable, Failure: Error>(
        _ read: @Sendable (any RecordSource) throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        if let engine { return try await engine.snapshot(read) }
        return try read(follower)
    }
}
