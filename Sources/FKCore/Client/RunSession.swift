import FKMiddleware
import Foundation

/// Runs tasks to their end, for a command: over the engine of the work path, whichever process runs it. If that process
/// ends first, this one takes over.
package actor RunSession {
    /// A report of a session.
    package enum Event: Sendable {
        /// This process became the engine. `tookOver` is true if it follows another process's engine.
        case engine(tookOver: Bool)
        /// Another process is the engine, and the session follows its tasks.
        case following(pid: Int32)
        /// The followed engine has shown no sign of life for `EngineWatch.limit` seconds, or shows one again.
        case engineNews(EngineWatch.News, pid: Int32)
        /// The replies to all requests, once.
        case replies([EngineReply])
        /// A task has changed its state.
        case state(DownloadInfo)
        /// At the session's interval: the running tasks, some of those that wait for their next attempt, and the
        /// sums.
        case progress(running: [DownloadInfo], RunTracker)
        /// About once a second: why a sample of the waiting tasks waits.
        case waiting([Waiting])
        /// A problem that a log should contain.
        case problem(String)
    }

    /// The condition that ends a session.
    package enum Goal: Sendable {
        /// These tasks are settled.
        case tasks([TaskID])
        /// The tasks that the requests added are settled.
        case added
        /// No task of the work path can run any more.
        case everything
    }

    private let configure: Configure
    private let goal: Goal
    /// Released once they are performed, because a hundred thousand URLs should be stored only once.
    private var requests: [EngineRequest]
    private let own: OwnLimits?
    private let interval: Double
    private let chains: MiddlewareChains
    private let onEvent: @Sendable (Event) -> Void
    private var tracker = RunTracker()
    private var access: SharedEngine?
    private var isStopped = false
    private var takeover = TakeoverDuty()
    /// A request was refused, so the tasks of this session may never run.
    private var isRefused = false
    /// The URLs of the open tasks while another process runs them, for reports after their info files are gone.
    private var urls: [TaskID: String] = [:]
    /// True until this process is the engine.
    private var isFollowing = true
    /// When the waiting tasks are reported next.
    private var nextWaits = ContinuousClock.now
    /// Changes that arrived while it was not known which tasks count.
    private let news = Locked<[DownloadInfo]>([])
    /// Changes may have been missed, so the open tasks are read again.
    private let hasMissed = Locked(false)

    /// Creates a session. Nothing happens before `run()`.
    ///
    /// - Parameters:
    ///   - requests: are performed first, in order.
    ///   - own: limits for the tasks of this session, whichever process is the engine; nil, the default, for none.
    ///   - interval: the seconds between two progress events, at least 0.05.
    ///   - onEvent: receives one event at a time, in order.
    package init(
        configure: Configure, goal: Goal, requests: [EngineRequest], own: OwnLimits? = nil, interval: Double,
        chains: MiddlewareChains = .init(), onEvent: @escaping @Sendable (Event) -> Void
    ) {
        self.configure = configure
        self.goal = goal
        self.requests = requests
        self.own = own
        self.interval = max(0.05, interval)
        self.chains = chains
        self.onEvent = onEvent
    }

    /// Runs until the goal is reached or `stop()` is called.
    ///
    /// - Returns: the sums at the end.
    /// - Throws: `DownloadError` if the work path cannot be used.
    package func run() async throws -> RunTracker {
        let access = try open()
        self.access = access
        guard !isStopped else { return tracker }
        isFollowing = access.engine == nil
        onEvent(isFollowing ? .following(pid: owner()) : .engine(tookOver: false))
        let (hasNews, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        _ = await access.observeStates(missed: { [hasMissed] in
            hasMissed.withLock { $0 = true }
            continuation.yield()
        }) { [news] info in
            news.withLock { $0.append(info) }
            continuation.yield()
        }
        await access.startQueue()
        if case .everything = goal { try await takeOpen(access) }
        await perform(with: access)
        let reporter = Task { [interval] in
            while !Task.isCancelled {
                try await Task.sleep(for: .seconds(interval))
                await self.report(access)
            }
        }
        // Not earlier, because the tracker did not know which tasks count. All changes were buffered.
        let listener = Task { for await _ in hasNews { await self.takeNews(access) } }
        if !isStopped { await waitForGoal(access) }
        reporter.cancel()
        await report(access)
        let settled = await settledInfos(access)
        for problem in await access.takeProblems() { onEvent(.problem(problem)) }
        await access.close()
        access.callbacks.sync()
        continuation.finish()
        await listener.value
        takeBuffered()
        // Not earlier, because changes that were still buffered would report the tasks again.
        for info in settled { changed(info) }
        return tracker
    }

    private func open() throws -> SharedEngine {
        let scope: Engine.Scope = if case .everything = goal { .all } else { .chosen }
        let hooks = SharedEngine.Hooks(
            onNews: { [onEvent] news, holder in onEvent(.engineNews(news, pid: holder?.pid ?? 0)) },
            onTakeover: { [weak self] engine in await self?.tookOver(engine) }, patience: .infinity)
        return try SharedEngine(
            configure: configure, scope: scope, takesOver: true, chains: chains, own: own, hooks: hooks
        ) { [kind = configure.transportKind] in try kind.makeTransport() }
    }

    private func owner() -> Int32 { EngineLock.holder(WorkPath(configure.workPath))?.pid ?? 0 }

    /// Ends the run soon. An engine keeps all bytes and releases the work path; a follower only stops following.
    package func stop() async {
        isStopped = true
        await access?.close()
    }

    /// True while this process is the engine.
    package var isEngine: Bool { access?.engine != nil }

    /// After a takeover, the tasks belong to the former engine's requests, so this engine has to be asked to run them.
    private func tookOver(_ engine: Engine) async {
        guard isFollowing else { return }
        isFollowing = false
        urls = [:]
        onEvent(.engine(tookOver: true))
        if takeover.tookOver() { await runTargets(engine) }
    }

    /// Asks for the tasks of this session. `.run` of a task that runs already changes nothing.
    private func runTargets(_ engine: Engine) async {
        for id in tracker.isTargeted ? tracker.ids : [] { _ = await engine.perform(limited(.run(.id(id)))) }
    }

    /// Reports the tasks that are open at the start, in portions, because a hundred thousand infos at once take 30 MB.
    private func takeOpen(_ access: SharedEngine) async throws {
        var ids = try await access.openIDs()[...]
        while !ids.isEmpty {
            for info in try await access.infos(Array(ids.prefix(1_000))) where !info.state.isSettled { changed(info) }
            ids = ids.dropFirst(1_000)
        }
    }

    /// Performs the requests, a long list in portions. Changes are buffered until it is known which tasks count; for
    /// 50,000 files in one portion the buffer took 70 MB.
    private func perform(with access: SharedEngine) async {
        if requests.isEmpty { adopt([]) }
        while !requests.isEmpty, !isStopped {
            let request = requests.removeFirst()
            if isFollowing, case .add(let tasks, _, _) = request { for task in tasks { urls[task.id] = task.url } }
            var portions = Array((isEngine ? request.portions(of: 1_000) : [request]).reversed())
            while let portion = portions.popLast(), !isStopped {
                let reply = await access.perform(limited(portion))
                adopt([reply])
                takeBuffered()
                // The next portion would fail for the same reason.
                if case .failed = reply { break }
            }
        }
        if takeover.replied(), let engine = access.engine { await runTargets(engine) }
    }

    private func limited(_ request: EngineRequest) -> EngineRequest {
        own.map { .limited($0, request) } ?? request
    }

    private func waitForGoal(_ access: SharedEngine) async {
        // A refused request leaves tasks that nobody may ever run.
        if isRefused, access.engine == nil { return }
        switch goal {
        case .everything: await access.waitUntilDrained()
        case .tasks, .added: await access.waitUntilSettled(tracker.ids)
        }
    }

    /// The settled tasks. Some may have settled before the session could observe a change.
    private func settledInfos(_ access: SharedEngine) async -> [DownloadInfo] {
        var infos: [DownloadInfo] = []
        var ids = Array(tracker.openIDs)[...]
        while !ids.isEmpty {
            infos += ((try? await access.infos(Array(ids.prefix(1_000)))) ?? []).filter(\.state.isSettled)
            ids = ids.dropFirst(1_000)
        }
        return infos
    }

    private func report(_ access: SharedEngine) async {
        for problem in await access.takeProblems() { onEvent(.problem(problem)) }
        let running = await access.runningInfos().filter { tracker.counts($0.id) }
        for info in running { _ = tracker.update(info) }
        let retrying = await access.retryingInfos(20).filter { tracker.counts($0.id) }
        await reportWaiting(access)
        onEvent(.progress(running: running + retrying, tracker))
    }

    /// A sample, because a hundred thousand tasks may wait, mostly for the same reason.
    private func reportWaiting(_ access: SharedEngine) async {
        let now = ContinuousClock.now
        guard now >= nextWaits else { return }
        nextWaits = now + .seconds(1)
        let infos = (try? await access.infos(tracker.waitingIDs(atMost: 64))) ?? []
        onEvent(.waiting(infos.filter { $0.state == .idle }.compactMap(\.wait)))
    }

    private func takeNews(_ access: SharedEngine) async {
        takeBuffered()
        let hasMissed = hasMissed.withLock { hasMissed in
            defer { hasMissed = false }
            return hasMissed
        }
        guard hasMissed else { return }
        var missing = tracker.openIDs
        var ids = Array(missing)[...]
        while !ids.isEmpty {
            for info in (try? await access.infos(Array(ids.prefix(1_000)))) ?? [] {
                missing.remove(info.id)
                changed(info)
            }
            ids = ids.dropFirst(1_000)
        }
        // The tasks were trashed, so there will be no further report on them.
        for id in missing where tracker.openIDs.contains(id) {
            changed(DownloadInfo(id: id, url: urls[id] ?? "", state: .unknown))
        }
        if case .everything = goal { try? await takeOpen(access) }
    }

    private func takeBuffered() {
        let infos = news.withLock { news in
            defer { news = [] }
            return news
        }
        for info in infos { changed(info) }
    }

    private func changed(_ info: DownloadInfo) {
        if isFollowing { urls[info.id] = info.state.isSettled ? nil : info.url }
        if tracker.update(info) { onEvent(.state(info)) }
    }

    private func adopt(_ replies: [EngineReply]) {
        isRefused = isRefused || replies.contains { if case .failed = $0 { true } else { false } }
        switch goal {
        case .everything: break
        case .tasks(let ids): if !tracker.isTargeted { tracker.target(ids) }
        case .added:
            let added = replies.flatMap { reply -> [TaskID] in
                if case .added(let list) = reply { list.filter { $0.error == nil }.map(\.id) } else { [] }
            }
            tracker.target(added)
        }
        onEvent(.replies(replies))
    }
}

/// Decides when a session that took over asks its engine for its tasks: once, as soon as it has taken over and all its
/// requests are answered.
///
/// The former engine may have answered a request and ended before the session read the answer. This engine then does
/// not perform the request again, and would not run the tasks.
struct TakeoverDuty: Equatable {
    private var hasReplied = false
    private var hasTakenOver = false

    /// - Returns: true if the tasks are to be asked for now.
    mutating func tookOver() -> Bool {
        hasTakenOver = true
        return hasReplied
    }

    /// - Returns: true if the tasks are to be asked for now.
    mutating func replied() -> Bool {
        hasReplied = true
        return hasTakenOver
    }
}

extension DownloadInfo {
    /// The info of a task as its info file shows it to another process.
    package init(_ record: TaskRecord) {
        self.init(
            id: record.id, url: record.task.url, state: record.state,
            count: ByteCount(received: record.received, expected: record.expected))
        error = record.error
        attempts = record.attempts
        path = record.state == .complete ? record.path : nil
        fileName = record.path?.lastPathPart ?? record.task.fileName
        barrels = record.barrels
        if record.state == .idle { wait = record.waiting }
        lastByteAt = record.lastByteAt
        if record.task.hasOptions, let most = record.task.options.maxAttempts {
            maxAttempts = max(most, record.task.mirrors.count + 1)
        }
        if state == .action { connections = max(1, record.ranges.count { $0.position < $0.end ?? .max }) }
    }
}
