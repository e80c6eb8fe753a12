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
    /// The downloader that it stands on.
    package nonisolated let downloader: Downloader
    let settings: RPCSettings
    let workPath: WorkPath
    var reader: StoreReader { StoreReader(workPath) }
    /// Every task.
    var table = TaskTable()
    /// The options that clients have set for new tasks.
    var globals: GlobalOptions
    var peers: [RPCPeer: PeerState] = [:]
    var rates = RateHistory()
    /// Refused downloads, which have no task, oldest first (`refuse`).
    var refused: [TaskID] = []
    /// Their maximum number, as aria2's `max-download-result`.
    static let maxRefused = 1_000
    /// Detects that the process that runs the downloads is stopped or hung.
    var engineWatch = EngineWatch(interval: 0.25)
    /// What the answer to the present request may still contain. Requests interleave, so each has its own.
    @TaskLocal static var budget = AnswerBudget()
    private let reports = TaskNews(hasMissed: true)
    /// How often all tasks are being read at the moment.
    private var readings = 0
    private var registration: Messager.Registration?
    private var ticker: Task<Void, Never>?
    private var refusals = 0
    var isEnding = false
    /// One session of this process, as aria2 names it.
    let sessionID = Digester.hex((0..<20).map { _ in UInt8.random(in: 0...255) })

    /// The maximum number of rows in the answer to one request, so that a multicall of long lists has an end.
    package static let maxRows = 100_000
    /// The maximum number of bytes in the answer to one request. They stay in memory until the client has read them.
    package static let maxAnswer = 8 << 20

    /// What is known of a peer.
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
        registration = await downloader.messager.addChanges(missed: { [reports] in reports.miss() }) {
            [reports] in reports.add($0)
        }
        await refresh()
        ticker = Task { [weak self] in
            while !Task.isCancelled {
                try? await Task.sleep(for: .milliseconds(250))
                guard let self else { return }
                await self.tick()
            }
        }
    }

    /// Ends notifications. The downloader stays open.
    package func stop() async {
        ticker?.cancel()
        if let registration { await downloader.messager.removeInfo(registration) }
    }

    // MARK: Peers

    /// A peer that receives notifications once it has made a call with the right secret.
    package func connect(_ peer: RPCPeer) { peers[peer] = PeerState(isAuthenticated: settings.secret == nil) }

    /// The peer has gone.
    package func disconnect(_ peer: RPCPeer) { peers[peer] = nil }

    // MARK: The table

    /// Takes everything that the engine has reported, so that an answer shows it.
    func refresh() async {
        if reports.takeMiss() {
            // The record of a task that has just begun still says that it waits. Reports after this list stay until then.
            readings += 1
            let running = (try? await downloader.messager.running()) ?? []
            readings -= 1
            readAll()
            for info in running where table.rows[info.id]?.state.isQueued == true { note(table.take(info)) }
        }
        if readings == 0 { for info in reports.take() { take(info) } }
    }

    private func readAll() {
        // A list that cannot be read is tried again with the next call: it does not mean that all tasks are gone.
        guard let records = try? reader.records() else {
            reports.miss()
            return
        }
        let present = Set(records.map(\.id) + refused)
        for id in table.rows.keys where !present.contains(id) { note(table.remove(id)) }
        let isFirst = table.count == 0
        for record in records {
            let change = table.insert(record)
            if !isFirst { note(change) }
        }
    }

    private func take(_ info: DownloadInfo) {
        if table.rows[info.id] == nil, info.state != .unknown {
            guard let record = try? reader.record(info.id) else { return }
            return note(table.insert(record, as: info))
        }
        note(table.take(info))
    }

    /// Reads the records of these tasks again, after a request that has changed more than their state.
    func reread(_ ids: some Sequence<TaskID>) async {
        await downloader.messager.waitForReports()
        await refresh()
        for id in ids {
            if let record = try? reader.record(id) { table.update(record) } else { note(table.remove(id)) }
        }
    }

    /// Applies the results of a verb at once, because a client asks right after its call.
    func apply(_ results: [VerbResult]) async {
        await downloader.messager.waitForReports()
        await refresh()
        // Reports of another process's engine come later.
        guard await downloader.owner != .thisDownloader else { return }
        for result in results where result.applied { note(table.set(result.after, of: result.id)) }
    }

    private func tick() async {
        await refresh()
        // The next tick shows the progress if the records cannot be listed now.
        for info in (try? await downloader.messager.running()) ?? [] { table.progress(info) }
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

    /// Tells clients of a change of state.
    func note(_ change: TaskTable.Change?) {
        guard let change else { return }
        if change.before == nil {
            // A task that was added paused has not been paused, and one that has ended already has run.
            guard change.after == .action || change.after == .complete || change.after == .error else { return }
            if change.after != .action { announce("aria2.onDownloadStart", gid: change.gid) }
        }
        switch change.after {
        case .action: announce("aria2.onDownloadStart", gid: change.gid)
        case .suspend: announce("aria2.onDownloadPause", gid: change.gid)
        case .cancel: announce("aria2.onDownloadStop", gid: change.gid)
        case .complete: announce("aria2.onDownloadComplete", gid: change.gid)
        case .error: announce("aria2.onDownloadError", gid: change.gid)
        case .prepare, .idle, .unknown: break
        }
    }

    private func announce(_ method: String, gid: UInt64) {
        guard peers.values.contains(where: \.isAuthenticated) else { return }
        let message = JSON.members([
            "jsonrpc": "2.0", "method": .string(method),
            "params": .array([.members(["gid": .string(GID.text(gid))])]),
        ]).bytes
        for (peer, state) in peers where state.isAuthenticated { peer.send(message) }
    }

    // MARK: Requests

    /// Answers the body of a POST or the message of a WebSocket: a call, or an array of calls.
    ///
    package func handle(_ body: [UInt8], from caller: RPCCaller = RPCCaller()) async -> RPCAnswer {
        guard let json = JSON(parsing: body), json.object != nil || json.array != nil else {
            return await answer(Reply(id: .null, .failure(.parse)))
        }
        return await handle(json, from: caller)
    }

    /// Answers a GET: `method`, `id` and `params` (base64 of a JSON array) in the query.
    ///
    /// - Parameter query: the items of the query, percent-decoded.
    package func handle(
        query: [(name: String, value: String)], from caller: RPCCaller = RPCCaller()
    ) async -> RPCAnswer {
        func item(_ name: String) -> String? { query.last { $0.name == name }?.value }
        var members: [JSON.Member] = [.init("id", .string(item("id") ?? ""))]
        if let method = item("method") { members.append(.init("method", .string(method))) }
        if let text = item("params") {
            // A plus sign in a query may have become a space.
            guard let data = Data(base64Encoded: text.replacingOccurrences(of: " ", with: "+")),
                let params = JSON(parsing: Array(data))
            else { return await answer(Reply(id: .null, .failure(.parse))) }
            if item("method") == nil { return await handle(params, from: caller) }
            members.append(.init("params", params))
        }
        return await handle(.object(members), from: caller)
    }

    private func handle(_ json: JSON, from caller: RPCCaller) async -> RPCAnswer {
        await refresh()
        return await Self.$budget.withValue(AnswerBudget()) { await answer(to: json, from: caller) }
    }

    private func answer(to json: JSON, from caller: RPCCaller) async -> RPCAnswer {
        guard let calls = json.array else { return await answer(await reply(to: json, from: caller)) }
        var replies: [Reply] = []
        for call in calls where call.object != nil { replies.append(await reply(to: call, from: caller)) }
        if replies.contains(where: \.isRefused) { await refuse() }
        return RPCAnswer(status: 200, body: JSON.array(replies.map(\.json)).bytes)
    }

    /// The result of one call.
    struct Reply {
        let id: JSON
        let result: Result<JSON, RPCError>
        /// True if this call, or one inside it, had no right secret.
        var isRefused: Bool

        init(id: JSON, _ result: Result<JSON, RPCError>, isRefused: Bool = false) {
            self.id = id
            self.result = result
            self.isRefused = isRefused
        }

        var json: JSON {
            switch result {
            case .success(let value): .members(["id": id, "jsonrpc": "2.0", "result": value])
            case .failure(let error): .members(["id": id, "jsonrpc": "2.0", "error": error.json])
            }
        }
    }

    private func answer(_ reply: Reply) async -> RPCAnswer {
        if reply.isRefused { await refuse() }
        var status = 200
        if case .failure(let error) = reply.result { status = error.status }
        return RPCAnswer(status: status, body: reply.json.bytes)
    }

    /// A wrong secret costs time. The first one is logged, so that guesses do not fill the log.
    private func refuse() async {
        refusals += 1
        if refusals == 1 { settings.log("a call was refused: its secret is missing or wrong") }
        await settings.refusalDelay()
    }

    private func reply(to call: JSON, from caller: RPCCaller) async -> Reply {
        guard let id = call["id"] else { return Reply(id: .null, .failure(.invalidRequest)) }
        guard let method = call["method"]?.string else { return Reply(id: id, .failure(.invalidRequest)) }
        var params: [JSON] = []
        if let given = call["params"] {
            guard let values = given.array else { return Reply(id: id, .failure(.invalidParams)) }
            params = values
        }
        let (result, isRefused) = await execute(method, params, from: caller)
        return Reply(id: id, result, isRefused: isRefused)
    }

    private func execute(
        _ method: String, _ params: [JSON], from caller: RPCCaller
    ) async -> (Result<JSON, RPCError>, isRefused: Bool) {
        do throws(RPCError) {
            guard Self.budget.hasBytes else { throw Self.tooLong }
            if method == "system.multicall" { return try await multicall(params, from: caller) }
            if let value = Self.lists[method] { return (.success(try spend(value)), false) }
            var params = params
            let isAsking = method.hasPrefix("fk.") && params.first?.string == nil
            // The page asks once without a secret, to learn whether one is needed.
            guard isAuthorized(&params) else { return (.failure(.unauthorized), !isAsking) }
            guard caller.mayChange || settings.secret != nil || Self.isAsking(method) else {
                throw RPCError(
                    "Without a secret a browser changes nothing with \(method) this way: use POST with an Origin.")
            }
            if let peer = caller.peer { peers[peer]?.isAuthenticated = true }
            if method.hasPrefix("fk.") {
                return (.success(try spend(await page(method, params, from: caller.peer))), false)
            }
            return (.success(try spend(await aria2(method, Parameters(params)))), false)
        } catch {
            return (.failure(error), false)
        }
    }

    static let tooLong = RPCError(
        "The answer would be longer than \(maxAnswer >> 20) MiB: ask for fewer tasks at once.")

    /// Bounds the answer to one request.
    ///
    /// - Returns: the result, written.
    private func spend(_ result: JSON) throws(RPCError) -> JSON {
        let bytes = result.bytes
        guard Self.budget.take(bytes: bytes.count) else { throw Self.tooLong }
        return .text(bytes)
    }

    /// Takes the secret off, whether one is needed or not.
    private func isAuthorized(_ params: inout [JSON]) -> Bool {
        var given = ""
        if let first = params.first?.string, first.hasPrefix("token:") {
            given = String(first.dropFirst(6))
            params.removeFirst()
        }
        return settings.secret.map { SecretCheck.isEqual(given, $0) } ?? true
    }

    private func multicall(
        _ params: [JSON], from caller: RPCCaller
    ) async throws(RPCError) -> (Result<JSON, RPCError>, isRefused: Bool) {
        var params = params
        // aria2 takes no secret here, but clients send one.
        if let first = params.first?.string, first.hasPrefix("token:") { params.removeFirst() }
        var results: [JSON] = []
        var isRefused = false
        for call in try Parameters(params).array(0) {
            guard call.object != nil else {
                results.append(RPCError("system.multicall expected struct.").json)
                continue
            }
            guard let method = call["methodName"]?.string else {
                results.append(RPCError("Missing methodName.").json)
                continue
            }
            guard method != "system.multicall" else {
                results.append(RPCError("Recursive system.multicall forbidden.").json)
                continue
            }
            let (result, wasRefused) = await execute(method, call["params"]?.array ?? [], from: caller)
            isRefused = isRefused || wasRefused
            switch result {
            case .success(let value): results.append(.array([value]))
            case .failure(let error): results.append(error.json)
            }
        }
        return (.success(.array(results)), isRefused)
    }
}
