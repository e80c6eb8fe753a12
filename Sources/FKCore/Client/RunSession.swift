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
        /// The replies to requests.
        case replies([EngineReply])
        /// A task has changed its state.
        case state(DownloadInfo)
        /// At the session's interval: the running tasks, some of those that wait for their next attempt, and the
        /// sums.
        case progress(running: [DownloadInfo], RunTracker)
        /// About once a second: why a sample of the waiting tasks waits.
        case waiting([Waiting])
        /// All that is left of the goal is suspended, and the session waits for it: so many tasks.
        case paused(Int)
        /// Members of a barrel are suspended and do not count. The sums have all members, as far as they were heard of.
        case members(of: String, RunTracker)
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
    private let goal: Goal
    var requests: [EngineMessage]
    /// The tasks that are added after the requests.
    private let addition: TaskAddition?
    private let own: OwnLimits?
    private let interval: Double
    private let chains: MiddlewareChains
    private let waitsForSuspended: Bool
    let onEvent: @Sendable (Event) -> Void
    var tracker = RunTracker()
    private var access: SharedEngine?
    private(set) var isStopped = false
    /// The finished members of each long barrel that this session has heard of, for its index.
    var finished: [FinishedMembers] = []
    private var takeover = TakeoverDuty()
    /// A request was refused, so the tasks of this session may never run.
    private var isRefused = false
    /// The URLs of the open tasks while another process runs them, for reports after their info files are gone.
    private var urls: [TaskID: String] = [:]
    /// True until this process is the engine.
    private var isFollowing = true
    /// The targets up to this place of the tracker were asked for.
    private var heardPlaces = 0
    /// Resumed once few targets are open, or no task can run.
    private var whenFew: CheckedContinuation<Void, Never>?
    private var hasDrained = false
    /// Resumed once a task that was suspended counts again, or the session is stopped.
    private var whenContinued: CheckedContinuation<Void, Never>?
    /// The most tasks that the engine is asked to wait for, because it holds a set of them.
    private static let few = 10_000
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
        isFollowing = access.engine == nil
        onEvent(isFollowing ? .following(pid: owner()) : .engine(tookOver: false))
        let (hasNews, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        _ = await access.observeStates(missed: { [hasMissed] in
            hasMissed.withLock { $0 = true }
            continuation.yield()
        }) { [news] info in
            let isFirst = news.withLock { news in
                defer { news.append(info) }
                return news.isEmpty
            }
            // A burst of small files costs one wake-up instead of one for each change of state.
            if isFirst {
                DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(5)) { continuation.yield() }
            }
        }
        await access.startQueue()
        if case .everything = goal { try await takeOpen(access) }
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
        let listener = Task { for await _ in hasNews { await self.takeNews(access) } }
        if !isStopped { await waitForGoal(access) }
        reporter.cancel()
        await report(access)
        let settled = await settledInfos(access)
        for problem in await access.takeProblems() { onEvent(.problem(problem)) }
        await access.close()
        // Download middlewares hear of the last changes before the command ends.
        await access.callbacks.drained()
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
            configure: configure, scope: scope, takesOver: true, chains: chains, own: own,
            crowd: TaskBook.tasksInMemory, hooks: hooks
        ) { [kind = configure.transportKind] in try kind.makeTransport() }
    }

    private func owner() -> Int32 { EngineLock.holder(WorkPath(configure.workPath))?.pid ?? 0 }

    /// Ends the run soon. An engine keeps all bytes and releases the work path; a follower only stops following.
    ///
    /// - Parameter soon: true kills programs of the download stage that take longer than a second. The default is false.
    package func stop(soon: Bool = false) async {
        isStopped = true
        resumeContinued()
        if soon { access?.engine?.hurry() }
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
        for id in tracker.isTargeted ? tracker.ids : [] {
            _ = await engine.answer(EngineMessage(.run(.id(id)), own: own))
        }
    }

    /// Reports the tasks that are open at the start, in portions, because a hundred thousand infos at once take 30 MB.
    private func takeOpen(_ access: SharedEngine) async throws {
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
        if requests.isEmpty, addition == nil { adopt([]) }
        while !requests.isEmpty, !isStopped {
            let request = requests.removeFirst()
            note(request)
            var portions = Array((isEngine ? request.portions(of: 1_000) : [request]).reversed())
            while let portion = portions.popLast(), !isStopped {
                // The next portion would fail for the same reason.
                if await !perform(portion, with: access) { break }
            }
        }
        while let addition, !isStopped, let request = try addition.next(isMessage: !isEngine) {
            let message = EngineMessage(request)
            note(message)
            if await !perform(message, with: access) { break }
        }
        await hearSettled(access)
        if takeover.replied(), let engine = access.engine { await runTargets(engine) }
    }

    /// Notes the URLs of tasks that another process will run.
    private func note(_ message: EngineMessage) {
        guard isFollowing, let add = message.request as? AddTasks else { return }
        for task in add.tasks { urls[task.id] = task.url }
    }

    /// - Returns: false if the request failed.
    private func perform(_ message: EngineMessage, with access: SharedEngine) async -> Bool {
        let reply = await access.answer(message.limited(by: own))
        adopt([reply])
        takeBuffered()
        // A list that is added again is heard of a portion at a time. Other targets may be queued again by a later request.
        if case .added = goal { await hearSettled(access) }
        if case .failed = reply { return false }
        return true
    }

    private func waitForGoal(_ access: SharedEngine) async {
        // A refused request leaves tasks that nobody may ever run.
        if isRefused, access.engine == nil { return }
        var told = 0
        while !isStopped {
            await waitForEnd(access)
            guard waitsForSuspended, !isStopped else { return }
            await hearEnds(access)
            let count = tracker.count(.suspend)
            guard count > 0, !isStopped else { return }
            if count != told { onEvent(.paused(count)) }
            told = count
            if tracker.isSettled {
                await withCheckedContinuation { whenContinued = $0 }
                told = 0
            } else {
                try? await Task.sleep(for: .milliseconds(200))
            }
        }
    }

    /// Takes the last changes, which arrive a moment after the wait for them has ended.
    private func hearEnds(_ access: SharedEngine) async {
        for _ in 0..<100 where !tracker.isSettled && !isStopped {
            takeBuffered()
            if await settledInfos(access).isEmpty { return }
            try? await Task.sleep(for: .milliseconds(10))
        }
        for info in await settledInfos(access) { changed(info) }
    }

    private func resumeContinued() {
        whenContinued?.resume()
        whenContinued = nil
    }

    /// Resumes the tasks that were suspended during the run.
    package func resumeSuspended() async {
        guard let access else { return }
        let ids = tracker.suspendedIDs
        guard !ids.isEmpty else { return }
        _ = await access.answer(EngineMessage(.chosen(ids.map { VerbChoice(id: $0, verb: .resume) })))
    }

    private func waitForEnd(_ access: SharedEngine) async {
        switch goal {
        case .everything: await access.waitUntilDrained()
        case .tasks, .barrels, .added:
            await waitForFew(access)
            await access.waitUntilSettled(access.engine == nil ? tracker.ids : Array(tracker.openIDs))
        }
    }

    /// Waits by the changes that this session hears of, while its own engine runs many targets.
    private func waitForFew(_ access: SharedEngine) async {
        guard access.engine != nil, tracker.openCount > Self.few else { return }
        let drained = Task {
            await access.waitUntilDrained()
            self.resumeFew(hasDrained: true)
        }
        if !hasDrained, tracker.openCount > Self.few { await withCheckedContinuation { whenFew = $0 } }
        drained.cancel()
    }

    private func resumeFew(hasDrained: Bool = false) {
        if hasDrained { self.hasDrained = true }
        whenFew?.resume()
        whenFew = nil
    }

    /// Reports the targets that settled before this session could observe a change: finished files of a list that is added
    /// again.
    private func hearSettled(_ access: SharedEngine) async {
        guard access.engine != nil else { return }
        // New tasks were reported already, so that they are not read again.
        takeBuffered()
        while !isStopped {
            let ids = tracker.next(&heardPlaces, atMost: 1_000, isUnheard: true)
            guard !ids.isEmpty else { return }
            let infos = ((try? await access.snapshot { try $0.infos(ids) }) ?? []).filter(\.state.isSettled)
            guard !infos.isEmpty else { continue }
            // What the engine reported before it answered counts first; what follows is newer than the answer.
            takeBuffered()
            for info in infos where tracker.isUnheard(info.id) { changed(info) }
        }
    }

    /// The settled tasks. Some may have settled before the session could observe a change.
    private func settledInfos(_ access: SharedEngine) async -> [DownloadInfo] {
        var infos: [DownloadInfo] = []
        var place = 0
        while true {
            let ids = tracker.next(&place, atMost: 1_000, isUnheard: false)
            if ids.isEmpty { return infos }
            infos += ((try? await access.snapshot { try $0.infos(ids) }) ?? []).filter(\.state.isSettled)
        }
    }

    private func report(_ access: SharedEngine) async {
        for problem in await access.takeProblems() { onEvent(.problem(problem)) }
        // A task may have ended since the engine answered. Its end was reported, and must not be reported again.
        let running = await access.snapshot { $0.runningInfos() }.filter {
            tracker.counts($0.id) && !tracker.hasSettled($0.id)
        }
        for info in running { _ = tracker.update(info) }
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
            let portion = Array(ids.prefix(1_000))
            for info in (try? await access.snapshot { try $0.infos(portion) }) ?? [] {
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

    func takeBuffered() {
        let infos = news.withLock { news in
            defer { news = [] }
            return news
        }
        for info in infos { changed(info) }
    }

    /// - Parameter isIndexed: true for an info of the index.
    func changed(_ info: DownloadInfo, isIndexed: Bool = false) {
        if isFollowing { urls[info.id] = info.state.isSettled ? nil : info.url }
        if !finished.isEmpty, info.state != .complete, tracker.isComplete(info.id) { finished = [] }
        guard tracker.update(info) else { return }
        if !isIndexed, info.state == .complete { noteFinished(info) }
        onEvent(.state(info))
        if whenContinued != nil, !tracker.isSettled || tracker.count(.suspend) == 0 { resumeContinued() }
        if whenFew != nil, tracker.openCount <= Self.few { resumeFew() }
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
