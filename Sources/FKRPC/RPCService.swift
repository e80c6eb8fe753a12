import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// aria2's RPC and the methods of the page over a downloader. It has no sockets: bytes of a request go in, bytes of the
/// answer come out.
///
/// ```text
/// request -> handle -> method -> Downloader (Control, Messager, Builder)
///                        |            |
///                        v            v reports
///                     TaskTable <- buffer -> notifications to peers
/// ```
package actor RPCService {
    package nonisolated let downloader: Downloader
    let settings: RPCSettings
    let workPath: WorkPath
    var reader: StoreReader { StoreReader(workPath) }

    /// The id that the engine gives to a task.
    func id(of task: TaskDescription) -> TaskID { workPath.places.id(of: task) }
    var table = TaskTable()
    /// The options that clients have set for new tasks.
    var globals: GlobalOptions
    var peers: [RPCPeer: PeerState] = [:]
    var rates = RateHistory()
    /// Refused downloads, which have no task, oldest first (`refuse`).
    var refused: [TaskID] = []
    /// Their maximum number, as aria2's `max-download-result`.
    static let maxRefused = 1_000
    var jobs = ToolJobs()
    /// Detects that the process that runs the downloads is stopped or hung.
    var engineWatch = EngineWatch(interval: 0.25)
    /// What the answer to the present request may still contain. Requests interleave, so each has its own.
    @TaskLocal static var budget = AnswerBudget()
    private let reports = TaskChanges()
    /// How often all tasks are being read at the moment.
    private var readings = 0
    private var ticker: Task<Void, Never>?
    private var listener: Task<Void, Never>?
    var freedMemory = FreedMemory()
    /// The number of calls without the right secret.
    var refusals = 0
    var isEnding = false
    /// One session of this process, as aria2 names it.
    let sessionID = Digester.hex((0..<20).map { _ in UInt8.random(in: 0...255) })

    /// The maximum number of rows in the answer to one request, so that a multicall of long lists has an end.
    package static let maxRows = 100_000
    /// The maximum number of bytes in the answer to one request. They stay in memory until the client has read them.
    package static let maxAnswer = 8 << 20

    struct PeerState {
        /// True once a call had the right secret.
        var isAuthenticated = false
        /// What the page shows; nil without a subscription.
        var view: PageView?
    }

    /// Creates a service. `start` follows.
    package init(_ downloader: Downloader, _ settings: RPCSettings, workPath: String) {
        self.downloader = downloader
        self.settings = settings
        self.workPath = WorkPath(URL(fileURLWithPath: workPath, isDirectory: true))
        globals = GlobalOptions(settings)
    }

    /// Reads all tasks and begins to follow them.
    package func start() async {
        await reports.follow(downloader.engine)
        await refresh()
        ticker = Task { [weak self] in
            while !Task.isCancelled {
                guard let pause = await self?.pause else { return }
                try? await Task.sleep(for: pause)
                guard let self else { return }
                await self.tick()
            }
        }
        // Changes of an idle engine reach clients at once, not with the next tick.
        listener = Task { [weak self, reports] in
            for await _ in reports.arrivals { await self?.refresh() }
        }
    }

    /// Ends notifications. The downloader stays open.
    package func stop() async {
        ticker?.cancel()
        listener?.cancel()
        reports.end()
        for job in jobs.all { job.stop() }
    }

    // MARK: Peers

    /// A peer that receives notifications once it has made a call with the right secret.
    package func connect(_ peer: RPCPeer) { peers[peer] = PeerState(isAuthenticated: settings.secret == nil) }

    package func disconnect(_ peer: RPCPeer) { peers[peer] = nil }

    // MARK: The table

    /// Absorbs everything that the engine has reported, so that an answer shows it.
    ///
    /// - Returns: the tasks of which the table had no row.
    @discardableResult func refresh() async -> Set<TaskID> {
        if reports.drainMiss() {
            // The record of a task that has just begun still says that it waits. Reports after this list stay until then.
            readings += 1
            let running = (try? await downloader.messager.running()) ?? []
            readings -= 1
            readAll(Dictionary(running.map { ($0.id, $0) }) { first, _ in first })
        }
        return readings == 0 ? drainReports() : []
    }

    private func drainReports() -> Set<TaskID> {
        let infos = reports.drain()
        guard !infos.isEmpty else { return [] }
        // The reports of a task follow each other: its first one needs its record.
        let unknown = infos.filter { table.rows[$0.id] == nil && $0.state != .unknown }
        let news = Set(unknown.map(\.id))
        var records: [TaskID: TaskRecord] = [:]
        for record in reader.records(news) { records[record.id] = record }
        for info in infos {
            if table.rows[info.id] == nil, let record = records[info.id], info.state != .unknown {
                announce(table.insert(record, as: info))
            } else {
                announce(table.absorb(info))
            }
        }
        return news
    }

    /// - Parameter running: what runs, whatever the records say.
    private func readAll(_ running: [TaskID: DownloadInfo]) {
        // A list that cannot be read is tried again with the next call: it does not mean that all tasks are gone.
        guard let records = try? reader.records() else {
            reports.miss()
            return
        }
        let present = Set(records.map(\.id) + refused)
        for id in table.rows.keys where !present.contains(id) { announce(table.remove(id)) }
        let isFirst = table.count == 0
        for record in records {
            let change = table.insert(record, as: record.state.isQueued ? running[record.id] : nil)
            if !isFirst { announce(change) }
        }
    }

    /// Reads the records of these tasks again, after a request that has changed more than their state.
    func reread(_ ids: [TaskID]) async {
        await downloader.messager.waitForReports()
        let news = await refresh()
        let known = ids.filter { !news.contains($0) }
        var missing = Set(known)
        for record in reader.records(known) {
            table.update(record)
            missing.remove(record.id)
        }
        for id in known where missing.contains(id) { announce(table.remove(id)) }
    }

    /// Applies the results of a verb at once, because a client asks right after its call.
    func apply(_ results: [VerbResult]) async {
        await downloader.messager.waitForReports()
        await refresh()
        // Reports of another process's engine come later.
        guard await downloader.owner != .thisDownloader else { return }
        for result in results where result.applied { announce(table.set(result.after, of: result.id)) }
    }

    /// The time to the next tick: a second while nothing runs and no page looks.
    private var pause: Duration {
        isIdle && !peers.values.contains { $0.view != nil } ? .seconds(1) : .milliseconds(250)
    }

    private var isIdle: Bool { table.states[.action, default: 0] == 0 }

    private func tick() async {
        if freedMemory.tick(isIdle: isIdle) { settings.onIdle() }
        await refresh()
        if !isIdle {
            // The next tick shows the progress if the records cannot be listed now.
            for info in (try? await downloader.messager.running()) ?? [] { table.progress(info) }
        }
        await watchEngine(now: EngineWatch.now)
        rates.add(table.bytesPerSecond, at: ContinuousClock.now)
        await tellViews()
    }

    /// Looks for a sign of life of the process that runs the downloads.
    ///
    /// - Parameter now: nanoseconds, from `EngineWatch.now`.
    func watchEngine(now: Int64) async {
        guard case .process = await downloader.owner else { return engineWatch = EngineWatch(interval: 0.25) }
        _ = engineWatch.look(EngineLock.content(workPath), now: now)
    }

    func announce(_ change: TaskTable.Change?) {
        guard let change else { return }
        if change.before == nil {
            // A task that was added paused has not been paused, and one that has ended already has run.
            guard change.after == .action || change.after == .complete || change.after == .error else { return }
            if change.after != .action { announce("Start", gid: change.gid) }
        }
        if let name = Self.notifications.first(where: { $0.key == change.after })?.value {
            announce(name, gid: change.gid)
        }
    }

    /// The notifications of states, without `aria2.onDownload`.
    static let notifications: KeyValuePairs<DownloadState, String> = [
        .action: "Start", .suspend: "Pause", .cancel: "Stop", .complete: "Complete", .error: "Error",
    ]

    private func announce(_ name: String, gid: UInt64) {
        guard peers.values.contains(where: \.isAuthenticated) else { return }
        let message = JSON.members([
            "jsonrpc": "2.0", "method": .string("aria2.onDownload\(name)"),
            "params": .array([.members(["gid": .string(GID.text(gid))])]),
        ]).bytes
        for (peer, state) in peers where state.isAuthenticated { peer.send(message) }
    }
}
