import FKEngine
import FKMiddleware
import Foundation

/// Runs tasks to their end, for a command: over the engine of the work path, whichever process runs it. If that process
/// ends first, this one takes over.
package actor RunSession {
    /// A report of a session.
    package enum Event: Sendable {
        /// This process became the engine. `tookOver` is true if it follows another process's engine; `open` is the number of its own
        /// tasks that are not settled.
        case engine(tookOver: Bool, open: Int)
        /// Another process is the engine, and the session follows its tasks.
        case following(pid: Int32)
        /// The followed engine has shown no sign of life for `EngineWatch.limit` seconds, or shows one again.
        case engineNews(EngineWatch.News, pid: Int32)
        case replies([EngineReply])
        /// A task has changed its state.
        case state(DownloadInfo)
        /// At the session's interval: the running tasks, some of those that wait for their next attempt, and the
        /// sums.
        case progress(running: [DownloadInfo], RunTracker)
        /// About once a second: why a sample of the waiting tasks waits.
        case waiting([Waiting])
        /// Everything left of the goal is suspended, and the session waits. The value is the number of these tasks.
        case paused(Int)
        /// Members of a barrel are suspended and do not count. The sums are over all members that were reported.
        case members(of: String, RunTracker)
        /// Members of a barrel that were suspended before the run, which leaves them out.
        case leftOut(of: String, count: Int)
        /// Files were deleted to make room for downloads.
        case trimmed(TrimmedFiles)
        /// A problem that a log should contain.
        case problem(String)
    }

    /// The condition that ends a session.
    package enum Goal: Sendable {
        /// These tasks are settled.
        case tasks([TaskID])
        /// The members of these barrels are settled. Suspended members do not count.
        case barrels([String])
        /// The tasks that the requests added are settled.
        case added
        /// No task of the work path can run any more.
        case everything
    }

    private let configure: Configure
    let goal: Goal
    var requests: [EngineMessage]
    /// The tasks that are added after the requests.
    private let addition: TaskAddition?
    private let own: OwnLimits?
    private let interval: Double
    private let chains: MiddlewareChains
    let waitsForSuspended: Bool
    let onEvent: @Sendable (Event) -> Void
    var tracker = RunTracker()
    private var access: SharedEngine?
    private(set) var isStopped = false
    /// The finished members of each long barrel that were reported to this session, for the barrel's index.
    var finished: [FinishedMembers] = []
    /// A request was refused, so the tasks of this session may never run.
    private(set) var isRefused = false
    /// True once an engine has all requests and tasks of this session.
    package private(set) var hasHandedOver = false
    private var following = FollowedTasks()
    /// The number of other owners that this session has handed its tasks to.
    private var owners = 0
    /// The number of targets in the tracker that the engine was asked to run.
    private var heardPlaces = 0
    var waits = SessionWaits()
    /// When the waiting tasks are reported next.
    private var nextWaits = ContinuousClock.now
    /// Changes that arrived while it was not known which tasks count.
    private let news = TaskChanges(hasMissed: false)
    /// What was deleted and not reported yet.
    private let trims = Locked<[TrimmedFiles]>([])

    /// Creates a session. Nothing happens before `run()`.
    ///
    /// - Parameters:
    ///   - requests: are performed first, in order.
    ///   - addition: tasks to add after the requests, in portions; nil, the default, for none.
    ///   - own: limits for the tasks of this session, whichever process is the engine; nil, the default, for none.
    ///   - interval: the seconds between two progress events, at least 0.05.
    ///   - waitsForSuspended: true waits for tasks that are suspended during the run, until they end in another way. The
    ///     default is false.
    ///   - onEvent: receives one event at a time, in order.
    package init(
        configure: Configure, goal: Goal, requests: [EngineMessage], addition: TaskAddition? = nil,
        own: OwnLimits? = nil, interval: Double, waitsForSuspended: Bool = false,
        chains: MiddlewareChains = .init(), onEvent: @escaping @Sendable (Event) -> Void
    ) {
        self.configure = configure
        self.goal = goal
        self.requests = requests
        self.addition = addition
        self.own = own
        self.interval = max(0.05, interval)
        self.chains = chains
        self.waitsForSuspended = waitsForSuspended
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
        if access.engine != nil { following.begin() }
        onEvent(following.isOver ? .engine(tookOver: false, open: 0) : .following(pid: owner()))
        await news.follow(access)
        _ = await access.observeTrims { [trims] files in trims.withLock { $0.append(files) } }
        await access.startQueue()
        if case .everything = goal { try await reportOpen(access) }
        do {
            if case .barrels(let names) = goal { try await target(names, access) }
            try await perform(with: access)
        } catch {
            await access.close()
            throw error
        }
        let reporter = Task { [interval] in
            while !Task.isCancelled {
                try await Task.sleep(for: .seconds(interval))
                await self.report(access)
            }
        }
        // Not earlier, because the tracker did not know which tasks count. All changes were buffered.
        let listener = Task { for await _ in news.arrivals { await self.handleNews(access) } }
        if !isStopped { await waitForGoal(access) }
        reporter.cancel()
        // The order of the ends is in the changes. The info files, which have the ends as well, have none.
        await access.readChanges()
        drainBuffered()
        await report(access)
        let settled = await settledInfos(access)
        for problem in await access.takeProblems() { onEvent(.problem(problem.message)) }
        await access.close()
        // Download middlewares receive the last changes before the command ends.
        await access.callbacks.drained()
        news.finish()
        await listener.value
        drainBuffered()
        // Not earlier, because changes that were still buffered would report the tasks again.
        for info in settled { changed(info) }
        return tracker
    }

    private func open() throws -> SharedEngine {
        let scope: Engine.Scope = if case .everything = goal { .all } else { .chosen }
        let hooks = SharedEngine.Hooks(
            onNews: { [onEvent] news, holder in onEvent(.engineNews(news, pid: holder?.pid ?? 0)) },
            onTakeover: { [weak self] engine in await self?.tookOver(engine) },
            onOtherOwner: { [weak self] pid in Task { await self?.handOver(to: pid) } }, patience: .infinity)
        return try SharedEngine(
            configure: configure, scope: scope, takesOver: true, chains: chains, own: own,
            crowd: TaskBook.tasksInMemory, hooks: hooks
        ) { [configure] in try configure.makeTransport() }
    }

    private func owner() -> Int32 { EngineLock.holder(WorkPath(configure))?.pid ?? 0 }

    /// Ends the run soon. An engine keeps all bytes and releases the work path; a follower only stops following.
    ///
    /// - Parameter soon: true kills programs of the download stage that take longer than a second. The default is false.
    package func stop(soon: Bool = false) async {
        isStopped = true
        waits.continued.end()
        if soon { access?.engine?.hurry() }
        await access?.close()
    }

    package var isEngine: Bool { access?.engine != nil }

    /// After a takeover, the tasks belong to the former engine's requests, so this engine has to be asked to run them.
    private func tookOver(_ engine: Engine) async {
        guard !following.isOver else { return }
        let isDue = following.tookOver()
        onEvent(.engine(tookOver: true, open: tracker.openCount))
        if isDue { await runTargets(engine) }
    }

    /// Another process runs the downloads now. It runs only what it was asked for, so it is asked for the open tasks of this session.
    private func handOver(to pid: Int32) async {
        guard let access, !following.isOver, following.hasReplied, !isStopped, !tracker.isSettled else { return }
        onEvent(.following(pid: pid))
        let selectors: [TaskSelector] =
            switch goal {
            case .everything: [.all]
            case .barrels(let names): names.map { .barrel($0) }
            case .tasks, .added: tracker.openIDs.map { .id($0) }
            }
        owners += 1
        let number = owners
        for selector in selectors where !isStopped && access.engine == nil && owners == number {
            _ = await access.answer(EngineMessage(.run(selector), own: own))
        }
    }

    /// Asks for the tasks of this session. `.run` of a task that runs already changes nothing.
    private func runTargets(_ engine: Engine) async {
        for id in tracker.isTargeted ? tracker.ids : [] {
            _ = await engine.answer(EngineMessage(.run(.id(id)), own: own))
        }
    }

    /// Reports the tasks that are open at the start, in portions, because a hundred thousand infos at once take 30 MB.
    private func reportOpen(_ access: SharedEngine) async throws {
        let open = try await access.snapshot { try $0.openIDs() }
        let count = Int32(open.count)
        for start in stride(from: 0, to: count, by: 1_000) {
            let ids = (start..<min(start + 1_000, count)).map(open.id(of:))
            for info in try await access.snapshot({ try $0.infos(ids) }) where !info.state.isSettled { changed(info) }
        }
    }

    /// Performs the requests, a long list in portions. Changes are buffered until it is known which tasks count; for
    /// 50,000 files in one portion the buffer took 70 MB.
    private func perform(with access: SharedEngine) async throws {
        // The other process may run tasks that it was asked for alone.
        if !isEngine, case .everything = goal { requests.insert(EngineMessage(.run(.all)), at: 0) }
        if requests.isEmpty, addition == nil { adopt([]) }
        // A stop that comes while the last answer is on its way takes nothing away from it.
        var isCut = false
        while !requests.isEmpty, !isStopped {
            let request = requests.removeFirst()
            following.record(request, in: access.workPath.places)
            var portions = Array((isEngine ? request.portions(of: 1_000) : [request]).reversed())
            while !isStopped, let portion = portions.popLast() {
                // The next portion would fail for the same reason.
                if await !perform(portion, with: access) { break }
            }
            isCut = isCut || !portions.isEmpty
        }
        while let addition, !isStopped, let request = try addition.next(isMessage: !isEngine) {
            let message = EngineMessage(request)
            following.record(message, in: access.workPath.places)
            if await !perform(message, with: access) { break }
        }
        hasHandedOver = !isRefused && !isCut && requests.isEmpty && addition?.tasks.isEmpty != false
        await hearSettled(access)
        if following.replied(), let engine = access.engine { await runTargets(engine) }
    }

    /// - Returns: false if the request failed.
    private func perform(_ message: EngineMessage, with access: SharedEngine) async -> Bool {
        let reply = await access.answer(message.limited(by: own))
        adopt([reply])
        drainBuffered()
        // The portions of a list that is added again are reported as they are added. Other targets may be queued again by a
        // later request.
        if case .added = goal { await hearSettled(access) }
        if case .failed = reply { return false }
        return true
    }

    /// Resumes the tasks that were suspended during the run.
    package func resumeSuspended() async {
        guard let access else { return }
        let ids = tracker.suspendedIDs
        guard !ids.isEmpty else { return }
        _ = await access.answer(EngineMessage(.chosen(ids, .resume)))
    }

    /// Reports the targets that settled before this session could observe a change: finished files of a list that is added
    /// again.
    private func hearSettled(_ access: SharedEngine) async {
        guard access.engine != nil else { return }
        // New tasks were reported already, so that they are not read again.
        drainBuffered()
        while !isStopped {
            let ids = tracker.next(&heardPlaces, atMost: 1_000, isUnheard: true)
            guard !ids.isEmpty else { return }
            let infos = ((try? await access.snapshot { try $0.infos(ids) }) ?? []).filter(\.state.isSettled)
            guard !infos.isEmpty else { continue }
            // Reports from before the engine's answer are handled first; later reports are newer than the answer.
            drainBuffered()
            for info in infos where tracker.isUnheard(info.id) { changed(info) }
        }
    }

    /// The settled tasks. Some may have settled before the session could observe a change.
    func settledInfos(_ access: SharedEngine) async -> [DownloadInfo] {
        var infos: [DownloadInfo] = []
        var place = 0
        while true {
            let ids = tracker.next(&place, atMost: 1_000, isUnheard: false)
            if ids.isEmpty { return infos }
            infos += ((try? await access.snapshot { try $0.infos(ids) }) ?? []).filter(\.state.isSettled)
        }
    }

    private func report(_ access: SharedEngine) async {
        for problem in await access.takeProblems() { onEvent(.problem(problem.message)) }
        // A task may have ended since the engine answered. Its end was reported, and must not be reported again.
        let running = await access.snapshot { $0.runningInfos() }.filter {
            tracker.counts($0.id) && !tracker.hasSettled($0.id)
        }
        // It may be ahead of the change that begins it.
        for info in running { changed(info) }
        let retrying = await access.snapshot { $0.retryingInfos(20) }.filter { tracker.counts($0.id) }
        await reportWaiting(access)
        onEvent(.progress(running: running + retrying, tracker))
    }

    /// A sample, because a hundred thousand tasks may wait, mostly for the same reason.
    private func reportWaiting(_ access: SharedEngine) async {
        let now = ContinuousClock.now
        guard now >= nextWaits else { return }
        nextWaits = now + .seconds(1)
        let infos = (try? await access.snapshot { [ids = tracker.waitingIDs(atMost: 64)] in try $0.infos(ids) }) ?? []
        onEvent(.waiting(infos.filter { $0.state == .idle }.compactMap(\.wait)))
    }

    private func handleNews(_ access: SharedEngine) async {
        drainBuffered()
        guard news.drainMiss() else { return }
        var missing = tracker.openIDs
        var ids = Array(missing)[...]
        while !ids.isEmpty {
            let portion = Array(ids.prefix(1_000))
            for info in (try? await access.snapshot { try $0.infos(portion) }) ?? [] {
                missing.remove(info.id)
                changed(info)
            }
            ids = ids.dropFirst(1_000)
        }
        // The tasks were trashed, so there will be no further report on them.
        for id in missing where tracker.openIDs.contains(id) {
            changed(DownloadInfo(id: id, url: following.url(of: id), state: .unknown))
        }
        if case .everything = goal { try? await reportOpen(access) }
    }

    func drainBuffered() {
        // Before the file that got the room.
        let trimmed = trims.withLock { trims in
            defer { trims = [] }
            return trims
        }
        for files in trimmed { onEvent(.trimmed(files)) }
        for info in news.drain() { changed(info) }
    }

    /// - Parameter isIndexed: true for an info of the index.
    func changed(_ info: DownloadInfo, isIndexed: Bool = false) {
        following.record(info)
        if !finished.isEmpty, info.state != .complete, tracker.isComplete(info.id) { finished = [] }
        guard tracker.update(info) else { return }
        if !isIndexed, info.state == .complete { recordFinished(info) }
        onEvent(.state(info))
        waits.heard(
            isOver: !tracker.isSettled || tracker.count(.suspend) == 0, openCount: tracker.openCount)
    }

    private func adopt(_ replies: [EngineReply]) {
        isRefused = isRefused || replies.contains { if case .failed = $0 { true } else { false } }
        switch goal {
        case .everything, .barrels: break
        case .tasks(let ids): if !tracker.isTargeted { tracker.target(ids) }
        case .added:
            let added = replies.flatMap { reply -> [TaskID] in
                if case .added(let list) = reply { list.filter { $0.error == nil }.map(\.id) } else { [] }
            }
            tracker.target(added)
        }
        // What the end of this session has cut off has not failed.
        onEvent(
            .replies(
                replies.filter { reply in
                    if isStopped, case .failed(let error) = reply { error.code != .cancelled } else { true }
                }))
    }
}
