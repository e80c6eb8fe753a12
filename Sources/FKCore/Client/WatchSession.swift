import FKEngine
import FKMiddleware
import Foundation

/// Follows all tasks of a work path for a program that shows and steers them, whichever process runs its engine. It
/// never runs tasks itself.
///
/// It is a client of `SharedEngine`, which follows the engine's changes. While no process runs the engine, another
/// command may change tasks for a moment: then it looks for info files that were written.
package actor WatchSession {
    /// A report of a session.
    package enum Event: Sendable {
        /// Members of the session's barrel, before the first report of their tasks.
        case members([TaskID])
        /// Tasks that are no members any more.
        case left([TaskID])
        /// The tasks of members that have joined since the session began.
        case joined([DownloadInfo])
        /// Every task, in the order of submission. It comes first, and again where changes may have been missed.
        case all([DownloadInfo])
        /// Tasks with a new state. `.unknown` is a task that was forgotten.
        case changed([DownloadInfo])
        /// At the session's interval: the running tasks, with their speeds.
        case progress([DownloadInfo])
        /// The process that runs the engine; nil if none does.
        case owner(pid: Int32?)
        /// The engine has shown no sign of life for `EngineWatch.limit` seconds, or shows one again.
        case engineNews(EngineWatch.News, pid: Int32)
        /// The rate limit of all tasks has changed, in bytes a second; nil for none.
        case limit(Int64?)
        /// A problem that a log should contain.
        case problem(String)
    }

    private let interval: Double
    /// The barrel whose members are reported as they join; nil for none.
    private let barrel: String?
    private var barrelStamp: FileStamp?
    private var members: Set<TaskID> = []
    private let onEvent: @Sendable (Event) -> Void
    private let access: SharedEngine
    private let workPath: WorkPath
    private var isStopped = false
    private var ownerPid: Int32??
    private var limit: Int64??
    /// The info files at the last look without an engine.
    private var stamps: [TaskID: FileStamp] = [:]
    private var nextScan = ContinuousClock.now

    /// Opens a work path. Nothing is reported before `run()`.
    ///
    /// - Parameters:
    ///   - interval: the seconds between two progress events, at least 0.05.
    ///   - barrel: reports the members of this barrel as well; nil, the default, for none.
    ///   - onEvent: receives one event at a time, in order.
    /// - Throws: `.workPathUnusable` or `.laterVersion`.
    package init(
        configure: Configure, interval: Double, barrel: String? = nil, onEvent: @escaping @Sendable (Event) -> Void
    ) throws {
        self.barrel = barrel
        self.interval = max(0.05, interval)
        self.onEvent = onEvent
        workPath = WorkPath(configure)
        let hooks = SharedEngine.Hooks(onNews: { news, holder in
            onEvent(.engineNews(news, pid: holder?.pid ?? 0))
        })
        access = try SharedEngine(configure: configure, scope: .chosen, takesOver: false, hooks: hooks) {
            try configure.makeTransport()
        }
    }

    /// Reports until `stop()` is called.
    ///
    /// - Throws: `DownloadError` if the work path cannot be read.
    package func run() async throws {
        _ = try workPath.allTaskIDs()
        await access.startQueue()
        var feed = TaskFeed(of: access, every: .seconds(interval)).makeAsyncIterator()
        while !isStopped, let report = await feed.next(isolation: self) {
            if await reportOwner() { feed.miss() }
            let joined = reportMembers()
            switch report {
            case .all(var infos):
                // What a killed engine had in memory is gone: the info files are the last word.
                if ownerPid == .some(nil) { for index in infos.indices { infos[index].order = .unknown } }
                onEvent(.all(infos))
            case .changed(let infos): onEvent(.changed(infos))
            case .progress(let infos):
                if ownerPid == .some(nil) { feed.add(try await scanned()) }
                reportLimit()
                for problem in await access.takeProblems() { onEvent(.problem(problem.message)) }
                onEvent(.progress(infos))
            }
            if !joined.isEmpty { onEvent(.joined(try await access.snapshot { try $0.infos(joined) })) }
        }
        await access.close()
    }

    /// Ends the run soon.
    package func stop() { isStopped = true }

    /// Performs a request at the engine, in whichever process it runs. If none does, this process opens it for the
    /// request.
    package func perform(_ request: EngineMessage) async -> EngineReply {
        let reply = await access.answer(request)
        // What another command has just done is looked at soon.
        nextScan = .now
        return reply
    }

    /// The record of a task as it is now; nil if the task is gone or cannot be read.
    package func record(_ id: TaskID) -> TaskRecord? { try? StoreReader(workPath).record(id) }

    /// The rate limit in force of all tasks, or of a barrel's members, in bytes a second; nil for none. Only the engine knows those of
    /// running commands.
    package func limit(ofBarrel name: String?) async -> Int64? {
        if case .some(.some) = ownerPid, case .limits(let report) = await access.answer(EngineMessage(.limits)) {
            return report.inForce(ofBarrel: name)
        }
        return (try? LimitsReport(stored: workPath))?.inForce(ofBarrel: name)
    }

    /// - Returns: true if all tasks have to be reported again: those that ran when their engine ended are waiting now.
    private func reportOwner() async -> Bool {
        let pid: Int32? = if case .process(let pid, _) = await access.owner { pid } else { nil }
        guard ownerPid != .some(pid) else { return false }
        let isFirst = ownerPid == nil
        ownerPid = pid
        stamps = [:]
        onEvent(.owner(pid: pid))
        return !isFirst
    }

    /// Reports the new members of the barrel. Its file is read only when it has changed.
    ///
    /// - Returns: those that have joined since the first report.
    private func reportMembers() -> [TaskID] {
        guard let barrel else { return [] }
        guard let stamp = FileStamp(workPath.barrelPath(barrel)) else {
            leave(Array(members))
            return []
        }
        guard stamp != barrelStamp else { return [] }
        guard let ids = try? StoreReader(workPath).barrelIDs(barrel).ids else { return [] }
        let isFirst = barrelStamp == nil && members.isEmpty
        // A file that was written a moment ago may change again at the same time.
        let isSettled = Date().timeIntervalSince1970 - stamp.time > FileStamp.granularity
        barrelStamp = isSettled ? stamp : nil
        let present = Set(ids)
        leave(members.filter { !present.contains($0) })
        let new = ids.filter { members.insert($0).inserted }
        if !new.isEmpty { onEvent(.members(new)) }
        return isFirst ? [] : new
    }

    private func leave(_ ids: [TaskID]) {
        guard !ids.isEmpty else { return }
        members.subtract(ids)
        onEvent(.left(ids))
    }

    private func reportLimit() {
        let now = try? StandingLimit.read(in: workPath)
        guard limit != .some(now) else { return }
        limit = now
        onEvent(.limit(now))
    }

    /// The tasks whose info files were written since the last look. A look takes at most a twentieth of the time.
    private func scanned() async throws -> [DownloadInfo] {
        let begin = ContinuousClock.now
        guard begin >= nextScan else { return [] }
        let ids = try workPath.allTaskIDs()
        var now: [TaskID: FileStamp] = [:]
        for id in ids { now[id] = FileStamp(workPath.infoPath(id)) }
        let isFirst = stamps.isEmpty
        let written = isFirst ? [] : ids.filter { stamps[$0] != now[$0] }
        let gone = stamps.keys.filter { now[$0] == nil }
        stamps = now
        let infos = try await access.snapshot { try $0.infos(written) }
        nextScan = ContinuousClock.now + max(.seconds(1), (ContinuousClock.now - begin) * 20)
        return infos + gone.map { DownloadInfo(id: $0, url: "", state: .unknown) }
    }
}
