import FKMiddleware
import Foundation

/// Runs tasks to their end, as the engine of the work path or as a follower of another process's engine.
///
/// ```text
/// lock free?  -> become the engine: perform requests, run, report
/// lock taken? -> post requests to the mailbox, follow the info files
///                  engine gone before the tasks are settled? -> take over: become the engine
/// ```
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
    private var engine: Engine?
    private var isStopped = false
    private var hasReplied = false
    /// A request was refused, so the tasks of this session may never run.
    private var isRefused = false
    /// The URLs of the followed tasks, for reports after their info files are gone.
    private var urls: [TaskID: String] = [:]
    private var requestedURLs: [TaskID: String]?
    private var speeds = FollowedSpeeds()

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

    /// Ends the run soon. An engine keeps all bytes and releases the work path; a follower only stops following.
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
            // In portions, because a hundred thousand infos at once take 30 MB.
            var ids = try await engine.openIDs()[...]
            while !ids.isEmpty {
                for info in try await engine.infos(ids.prefix(1_000)) where !info.state.isSettled { changed(info) }
                ids = ids.dropFirst(1_000)
            }
        }
        if hasReplied {
            // After a takeover, the tasks belong to the former engine's requests, so this engine has to be asked to
            // run them.
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
        // Not earlier, because the tracker did not know which tasks count. All changes were buffered.
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
        // Not earlier, because changes that were still buffered would report the tasks again.
        for info in settled { changed(info) }
    }

    /// Performs the requests, a long list in portions. Changes are buffered until it is known which tasks count; for
    /// 50,000 files in one portion the buffer took 70 MB.
    private func perform(with engine: Engine, _ news: Locked<[DownloadInfo]>) async {
        if requests.isEmpty { adopt([]) }
        while !requests.isEmpty {
            var portions = Array(requests.removeFirst().portions(of: 1_000).reversed())
            while let portion = portions.popLast() {
                let reply = await engine.perform(limited(portion))
                adopt([reply])
                take(news)
                // The next portion would fail for the same reason.
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

    /// The settled tasks. Some may have settled before the session could observe a change.
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

    /// Returns true when the goal is reached or the engine refused a request, and false when the engine is gone
    /// before that.
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

    /// The tasks that were open at the last look and, with the goal `.everything`, all tasks that are open now.
    private func followedRecords(_ reader: StoreReader) -> [TaskRecord] {
        var isReadable = true
        var missing = tracker.openIDs
        var records = reader.records(missing) { _ in isReadable = false }
        missing.subtract(records.map(\.id))
        for record in records { urls[record.id] = record.task.url }
        // The tasks were trashed, so there will be no further report on them.
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

    /// The URL of a requested task that never had an info file. The ids are digests, so the table is built once.
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

    /// Posts the requests and waits for the replies; nil if the engine ended without answering all of them.
    private func post(_ workPath: WorkPath) async throws -> [EngineReply]? {
        let mailbox = Mailbox(workPath)
        requests = requests.flatMap(\.messages)
        var inquiries = try requests.map { Inquiry(try mailbox.post(limited($0))) }
        var replies: [EngineReply] = []
        var watch = EngineWatch(interval: 0.04)
        while !inquiries.isEmpty, !isStopped {
            // The lock is checked before the reply: an engine that has ended leaves no later reply.
            let isHeld = EngineLock.isHeld(workPath)
            if let reply = Self.answer(&inquiries[0], mailbox) {
                inquiries.removeFirst()
                replies.append(reply)
            } else if isHeld {
                look(&watch, workPath)
                try await Task.sleep(for: .milliseconds(40))
            } else {
                // No engine is left to read them. Asking again is harmless.
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
        if let waiting = record.waiting, record.state == .idle {
            self.waiting = waiting.reason.rawValue
            waitingUntil = waiting.until
            waitingHost = waiting.host
            waitingLimit = waiting.limit
        }
    }
}
