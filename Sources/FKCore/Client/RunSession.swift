import FKMiddleware
import Foundation

/// Brings tasks to their end: as the engine of the work path, or following the engine that another process is.
///
/// ```text
/// lock free?  -> be the engine: perform requests, run, report
/// lock taken? -> post requests to the mailbox, follow the info files
///                  engine gone before the tasks are settled? -> take over: be the engine
/// ```
package actor RunSession {
    package enum Event: Sendable {
        /// This process is the engine now; `tookOver` when another one was it before.
        case engine(tookOver: Bool)
        /// Another process is the engine; its tasks are followed.
        case following(pid: Int32)
        /// The process that is followed has shown no sign of life for `EngineWatch.limit` seconds, or shows one again.
        case engineNews(EngineWatch.News, pid: Int32)
        /// What became of the requests, once.
        case replies([EngineReply])
        case state(DownloadInfo)
        /// At the session's interval: the running tasks, a few of those that wait for their next attempt, and the sums.
        case progress(running: [DownloadInfo], RunTracker)
        case problem(String)
    }

    package enum Goal: Sendable {
        /// Until these tasks are settled.
        case tasks([TaskID])
        /// Until the tasks that the requests added are settled.
        case added
        /// Until nothing of the work path can run any more.
        case everything
    }

    private let configure: Configure
    private let goal: Goal
    /// Forgotten once they are carried out: of a hundred thousand URLs one copy is enough.
    private var requests: [EngineRequest]
    private let own: OwnLimits?
    private let interval: Double
    private let chains: MiddlewareChains
    private let onEvent: @Sendable (Event) -> Void
    private var tracker = RunTracker()
    private var engine: Engine?
    private var isStopped = false
    private var hasReplied = false
    /// A request was refused: whoever is the engine may never run what this session is after.
    private var isRefused = false
    /// Of the followed tasks, for the moment when one is gone.
    private var urls: [TaskID: String] = [:]
    private var requestedURLs: [TaskID: String]?
    private var speeds = FollowedSpeeds()

    /// - Parameters:
    ///   - requests: carried out first, in order.
    ///   - own: limits for the tasks of this session, whoever is the engine.
    ///   - interval: seconds between two progress events, at least 0.05.
    ///   - onEvent: called one at a time, in order.
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
    /// - Throws: when the work path cannot be used.
    package func run() async throws -> RunTracker {
        var tookOver = false
        while !isStopped {
            let scope: Engine.Scope = if case .everything = goal { .all } else { .chosen }
            if let engine = try EngineClient.open(configure, scope: scope, chains: chains) {
                try await runAsEngine(engine, tookOver: tookOver)
                break
            }
            if try await follow() { break }
            tookOver = true
        }
        return tracker
    }

    /// Ends the run soon: an engine keeps every byte and gives the work path free, a follower just stops following.
    package func stop() async {
        isStopped = true
        await engine?.close()
    }

    /// True while this process is the engine.
    package var isEngine: Bool { engine != nil }

    // MARK: As the engine

    private func runAsEngine(_ engine: Engine, tookOver: Bool) async throws {
        self.engine = engine
        onEvent(.engine(tookOver: tookOver))
        let news = Locked<[DownloadInfo]>([])
        let (hasNews, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        _ = await engine.observeStates { info in
            news.withLock { $0.append(info) }
            continuation.yield()
        }
        await engine.activate(own)
        if case .everything = goal {
            // By portions: a hundred thousand infos at once are 30 MB.
            var ids = try await engine.openIDs()[...]
            while !ids.isEmpty {
                for info in try await engine.infos(ids.prefix(1_000)) where !info.state.isSettled { changed(info) }
                ids = ids.dropFirst(1_000)
            }
        }
        if hasReplied {
            // Taking over: the other engine made the tasks, this one may run them.
            for id in tracker.isTargeted ? tracker.ids : [] { _ = await engine.perform(limited(.run(.id(id)))) }
        } else {
            await perform(with: engine, news)
        }
        let reporter = Task { [interval] in
            while !Task.isCancelled {
                try await Task.sleep(for: .seconds(interval))
                await self.report(engine)
            }
        }
        // Only now: before, the tracker did not know which tasks count. The news have all been kept.
        let listener = Task { for await _ in hasNews { self.take(news) } }
        if !isStopped { await waitForGoal(engine) }
        reporter.cancel()
        await report(engine)
        let settled = await settledInfos(engine)
        for problem in await engine.takeProblems() { onEvent(.problem(problem)) }
        await engine.close()
        engine.callbacks.sync()
        continuation.finish()
        await listener.value
        take(news)
        // Only now: told before the changes that are still on their way, each of them would be told again.
        for info in settled { changed(info) }
    }

    /// Has the requests carried out, a long list in portions: what changes meanwhile is kept until it is known which tasks
    /// count, and of 50,000 files that was 70 MB.
    private func perform(with engine: Engine, _ news: Locked<[DownloadInfo]>) async {
        if requests.isEmpty { adopt([]) }
        while !requests.isEmpty {
            var portions = Array(requests.removeFirst().portions(of: 1_000).reversed())
            while let portion = portions.popLast() {
                let reply = await engine.perform(limited(portion))
                adopt([reply])
                take(news)
                // The next portion would be refused for the same reason.
                if case .failed = reply { break }
            }
        }
        hasReplied = true
    }

    private func limited(_ request: EngineRequest) -> EngineRequest {
        own.map { .limited($0, request) } ?? request
    }

    private func waitForGoal(_ engine: Engine) async {
        switch goal {
        case .everything: await engine.waitUntilDrained()
        case .tasks, .added: await engine.waitUntilSettled(tracker.ids)
        }
    }

    /// Tasks that were settled, perhaps before anybody could hear of a change.
    private func settledInfos(_ engine: Engine) async -> [DownloadInfo] {
        var infos: [DownloadInfo] = []
        for id in tracker.openIDs {
            if let info = try? await engine.infos(.id(id)).first, info.state.isSettled { infos.append(info) }
        }
        return infos
    }

    private func report(_ engine: Engine) async {
        for problem in await engine.takeProblems() { onEvent(.problem(problem)) }
        let running = await engine.runningInfos().filter { tracker.counts($0.id) }
        for info in running { _ = tracker.update(info) }
        let retrying = await engine.retryingInfos(20).filter { tracker.counts($0.id) }
        onEvent(.progress(running: running + retrying, tracker))
    }

    private func take(_ news: Locked<[DownloadInfo]>) {
        let infos = news.withLock { news in
            defer { news = [] }
            return news
        }
        for info in infos { changed(info) }
    }

    private func changed(_ info: DownloadInfo) {
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

    // MARK: Following another engine

    /// Returns true when the goal is reached or the engine refused a request, false when the engine is gone before that.
    private func follow() async throws -> Bool {
        let workPath = WorkPath(configure.workPath)
        let reader = StoreReader(workPath)
        onEvent(.following(pid: EngineLock.holder(workPath)?.pid ?? 0))
        if !hasReplied {
            guard let replies = try await post(workPath) else { return false }
            adopt(replies)
            hasReplied = true
        }
        let pause = max(interval, 0.25)
        var watch = EngineWatch(interval: pause)
        while !isStopped {
            let infos = followedRecords(reader).map { speeds.measured(DownloadInfo($0)) }
            for info in infos { changed(info) }
            onEvent(
                .progress(
                    running: infos.filter { $0.state == .action || $0.waitingUntil != nil && $0.error != nil }, tracker)
            )
            if isRefused || hasReachedGoal(infos) { return true }
            if !EngineLock.isHeld(workPath) { return false }
            look(&watch, workPath)
            try await Task.sleep(for: .seconds(pause))
        }
        return true
    }

    private func look(_ watch: inout EngineWatch, _ workPath: WorkPath) {
        guard let news = watch.look(EngineLock.content(workPath), now: EngineWatch.now) else { return }
        onEvent(.engineNews(news, pid: EngineLock.holder(workPath)?.pid ?? 0))
    }

    /// The tasks that were open when they were last looked at and, with the goal `.everything`, all that are open now.
    private func followedRecords(_ reader: StoreReader) -> [TaskRecord] {
        var isReadable = true
        var missing = tracker.openIDs
        var records = reader.records(missing) { _ in isReadable = false }
        missing.subtract(records.map(\.id))
        for record in records { urls[record.id] = record.task.url }
        // Trashed by somebody: nothing more will ever be heard of them.
        if isReadable {
            for id in missing {
                changed(DownloadInfo(id: id, url: urls[id] ?? requestedURL(id) ?? "", state: .unknown))
            }
        }
        if case .everything = goal {
            let known = Set(records.map(\.id))
            records += reader.records { !$0.state.isSettled && !known.contains($0.id) }
        }
        return records
    }

    /// The URL of a requested task that was never seen on disk. The ids are digests: made once, not once for each task.
    private func requestedURL(_ id: TaskID) -> String? {
        if requestedURLs == nil {
            var urls: [TaskID: String] = [:]
            for case .add(let tasks, _, _) in requests { for task in tasks { urls[task.id] = task.url } }
            requestedURLs = urls
        }
        return requestedURLs?[id]
    }

    private func hasReachedGoal(_ infos: [DownloadInfo]) -> Bool {
        guard case .everything = goal else { return tracker.isSettled }
        return infos.allSatisfy(\.state.isSettled)
    }

    /// Posts the requests and waits for the replies; nil when the engine went away without answering all of them.
    private func post(_ workPath: WorkPath) async throws -> [EngineReply]? {
        let mailbox = Mailbox(workPath)
        requests = requests.flatMap(\.messages)
        var inquiries = try requests.map { Inquiry(try mailbox.post(limited($0))) }
        var replies: [EngineReply] = []
        var watch = EngineWatch(interval: 0.04)
        while !inquiries.isEmpty, !isStopped {
            // Asked before the reply is looked for: an engine that has gone leaves no later one.
            let isHeld = EngineLock.isHeld(workPath)
            if let reply = Self.answer(&inquiries[0], mailbox) {
                inquiries.removeFirst()
                replies.append(reply)
            } else if isHeld {
                look(&watch, workPath)
                try await Task.sleep(for: .milliseconds(40))
            } else {
                // Nobody will read them now; asking again is harmless.
                for inquiry in inquiries { try mailbox.withdraw(inquiry.id) }
                return nil
            }
        }
        return replies
    }

    private static func answer(_ inquiry: inout Inquiry, _ mailbox: Mailbox) -> EngineReply? {
        do {
            return try inquiry.answer(mailbox, now: EngineWatch.now)
        } catch {
            return .failed(DownloadError(wrapping: error, code: .disk, message: "The answer cannot be read."))
        }
    }
}

extension DownloadInfo {
    /// A task as its info file shows it to a process that is not the engine.
    package init(_ record: TaskRecord) {
        self.init(
            id: record.id, url: record.task.url, state: record.state,
            count: ByteCount(received: record.received, expected: record.expected))
        error = record.error
        attempts = record.attempts
        path = record.state == .complete ? record.path : nil
        fileName = record.path?.lastPathPart ?? record.task.fileName
        barrels = record.barrels
        if let waiting = record.waiting, record.state == .idle {
            self.waiting = waiting.reason.rawValue
            waitingUntil = waiting.until
            waitingHost = waiting.host
            waitingLimit = waiting.limit
        }
    }
}
