import TestSupport
import Testing

@testable import FKEngine

/// An engine with everything around it in the test's hand: transport, clock, folders.
final class Bench: Sendable {
    typealias Answer = ScriptedTransport.Answer

    let folder: TemporaryFolder
    let clock: ManualClock
    let transport: ScriptedTransport
    let engine: Engine
    let downloader: Downloader
    /// `name:state` for every change of state, in order, as the engine's observers hear of it.
    let log = Observed<[String]>([])
    private let watch: TestWatch

    /// - Parameters:
    ///   - folder: holds `work` (the work path) and `out` (the destination of tasks); a new one by default.
    ///   - ticks: true runs the engine by the system's clock, like one in another process; `clock` then moves nothing.
    ///   - isActive: whether the queue is activated at once.
    ///   - settings: on top of the defaults; retries have no jitter here.
    init(
        in folder: TemporaryFolder? = nil, scope: Engine.Scope = .all, clock: ManualClock = ManualClock(),
        ticks: Bool = false, isActive: Bool = true, crowd: Int? = nil, chains: MiddlewareChains = MiddlewareChains(),
        settings: (inout Configure) -> Void = { _ in },
        answer: @escaping @Sendable (TransportRequest, Int) -> Answer
    ) async throws {
        self.folder = try folder ?? TemporaryFolder()
        self.clock = clock
        transport = ScriptedTransport(clock: clock, answer)
        watch = TestWatch(Test.current?.displayName ?? "a test") { [log, clock, transport] in
            "\(transport.requests.count) requests, clock at \(clock.now), \(log.value.suffix(40))"
        }
        var configure = Configure(workPath: self.folder.file("work"))
        configure.retry.jitter = 0
        settings(&configure)
        engine = try Engine(
            configure: configure, scope: scope, transport: transport, chains: chains,
            clock: ticks ? SystemClock() : clock, crowd: crowd)
        downloader = Downloader(engine: engine)
        _ = await engine.observeStates { [log] info in
            let name = info.url.split(separator: "/").last ?? ""
            log.update { $0.append("\(name):\(info.state)") }
        }
        if isActive { await engine.activate() }
    }

    /// Every URL delivers the same file.
    convenience init(
        in folder: TemporaryFolder? = nil, scope: Engine.Scope = .all, clock: ManualClock = ManualClock(),
        isActive: Bool = true, chains: MiddlewareChains = MiddlewareChains(), content: [UInt8],
        settings: (inout Configure) -> Void = { _ in }
    ) async throws {
        try await self.init(
            in: folder, scope: scope, clock: clock, isActive: isActive, chains: chains, settings: settings
        ) { request, _ in .file(content, to: request) }
    }

    var chains: MiddlewareChains { engine.chains }
    var control: Control { downloader.control }
    var messager: Messager { downloader.messager }
    /// The folder tasks of `add` go to.
    var out: String { folder.path + "/out" }
    var workPath: WorkPath { engine.workPath }

    /// A bench with a running task: the first bytes of its file have arrived, the others come once the gate is open.
    static func held(
        _ content: [UInt8], at count: Int, name: String = "a", barrel: String? = nil, in folder: TemporaryFolder? = nil,
        settings: (inout Configure) -> Void = { _ in }
    ) async throws -> (Bench, TaskID, TestGate) {
        let gate = TestGate()
        let bench = try await Bench(in: folder, settings: settings) { request, _ in
            .file(content, to: request, gate: gate, pauseAt: count)
        }
        let id = try await bench.add(name, barrel: barrel)
        await gate.reached()
        return (bench, id, gate)
    }

    // MARK: Tasks

    /// A description with `out` as its destination; `path` may be a whole URL.
    func task(_ path: String, _ change: (inout TaskDescription) -> Void = { _ in }) -> TaskDescription {
        var task = TaskDescription(url: path.contains("://") ? path : "http://h.example/\(path)")
        task.directory = out
        change(&task)
        return task
    }

    @discardableResult
    func add(
        _ path: String, barrel: String? = nil, _ change: (inout TaskDescription) -> Void = { _ in }
    ) async throws -> TaskID {
        let added = try await engine.add([task(path, change)], barrel: barrel, run: true)
        if let error = added[0].error { throw error }
        return added[0].id
    }

    /// Adds a task that completes.
    @discardableResult
    func completed(
        _ path: String, barrel: String? = nil, sourceLocation: SourceLocation = #_sourceLocation,
        _ change: (inout TaskDescription) -> Void = { _ in }
    ) async throws -> TaskID {
        let id = try await add(path, barrel: barrel, change)
        let info = await finished(id)
        #expect(info?.state == .complete, "\(String(describing: info?.error))", sourceLocation: sourceLocation)
        return id
    }

    /// The task completes, and its file has the bytes.
    func expect(
        _ name: String, _ content: [UInt8], of id: TaskID, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let info = await finished(id)
        #expect(info?.state == .complete, "\(String(describing: info?.error))", sourceLocation: sourceLocation)
        #expect(try out(name) == content, sourceLocation: sourceLocation)
    }

    func finished(_ id: TaskID) async -> DownloadInfo? { await messager.finished(id) }

    func state(_ id: TaskID) async -> DownloadState { await messager.state(.id(id)) }

    func record(_ id: TaskID) async throws -> TaskRecord { try #require(try await engine.record(id)) }

    /// The record as it stands on the disk.
    func stored(_ id: TaskID) throws -> TaskRecord { try InfoFile.read(workPath.infoPath(id)).record }

    /// Holds every task in its request chain until the gate is open.
    func holdRequests() -> TestGate {
        let gate = TestGate()
        chains.onRequest("request step") { request, _ in
            await gate.passed()
        }
        return gate
    }

    /// Holds every task in its response chain until the gate is open.
    func holdResponses() -> TestGate {
        let gate = TestGate()
        chains.onResponse("response step") { response in
            await gate.passed()
        }
        return gate
    }

    /// Changes settings of the running downloader.
    func update(_ change: (inout Configure) -> Void) async throws {
        var configure = await downloader.configure
        change(&configure)
        try await downloader.update(configure)
    }

    func verify(_ selector: TaskSelector = .all) async throws -> [VerifiedFile] {
        var files: [VerifiedFile] = []
        for try await file in messager.verify(selector) { files.append(file) }
        return files
    }

    // MARK: Waiting

    /// Returns once the task of that name has been in that state so many times.
    func reached(_ name: String, _ state: DownloadState, times: Int = 1) async {
        _ = await log.wait { list in list.count { $0 == "\(name):\(state)" } >= times }
    }

    /// Waits until the first attempt at the task of that name has failed, and then moves the clock on by `seconds`.
    func retried(_ name: String, after seconds: Double) async {
        await reached(name, .idle, times: 2)
        await advance(seconds)
    }

    /// Returns once everything the engine had to do before now is done.
    func sync() async { _ = await engine.taskCounts }

    /// Returns once engine and transport have nothing more to do at this moment of the clock.
    func settle() async {
        while true {
            let events = transport.events
            await transport.idle()
            await sync()
            if transport.events == events { return }
        }
    }

    /// Moves the clock and waits until engine and transport have acted on it.
    func advance(_ seconds: Double) async {
        clock.advance(seconds: seconds)
        await settle()
    }

    /// Moves the clock step by step until the condition holds.
    func advance(by seconds: Double, until isMet: () async throws -> Bool) async throws {
        repeat {
            try Task.checkCancellation()
            await advance(seconds)
        } while try await !isMet()
    }

    /// The reply to a request of another process, once it is there.
    func reply(to id: MessageID, _ mailbox: Mailbox) async throws -> EngineReply {
        var reply: EngineReply?
        try await advance(by: 1) {
            reply = try mailbox.readReply(id)
            return reply != nil
        }
        return try #require(reply)
    }

    /// Returns once the condition holds. Checks it again after each event of the transport.
    func wait(until isMet: () async throws -> Bool) async throws {
        while true {
            let events = transport.events
            await sync()
            if try await isMet() { return }
            await transport.event(after: events)
        }
    }

    /// Returns once the condition holds. Checks it again with each turn of the engine, for state that has no event: a new
    /// listener, a new waiter.
    func turn(until isMet: @Sendable (isolated Engine) throws -> Bool) async throws {
        while try await !isMet(engine) {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    /// Returns once the engine has no listeners. Moves the clock meanwhile: a last report may have become due after it was
    /// moved before.
    func unobserved() async throws {
        while await engine.hasListeners {
            try Task.checkCancellation()
            await advance(1)
        }
    }

    // MARK: Files

    func out(_ name: String) throws -> [UInt8] { try folder.read("out/\(name)") }

    /// Everything in the destination, hidden files included, sorted.
    var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: out))?.sorted() ?? [] }

    /// The names of the files that were asked for, in order.
    var asked: [String] { transport.requests.compactMap { $0.urlRequest.url?.lastPathComponent } }

    /// The hosts that were asked, in order.
    var hosts: [String] { transport.requests.compactMap { $0.urlRequest.url?.host } }

    /// The values of a request header over all requests so far; `-` where there was none.
    func sent(_ header: String) -> [String] {
        transport.requests.map { $0.urlRequest.value(forHTTPHeaderField: header) ?? "-" }
    }

    /// Releases the locks of open part files, as the kernel does when a process dies. The engine of this bench lives on.
    private func releaseParts() {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? [] {
            guard let file = Int32(name),
                let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)"),
                path.hasPrefix(folder.path), path.hasSuffix(".fkpart")
            else { continue }
            PartLock.release(file)
        }
    }

    /// Work path and destination as they are at this moment, as a crash would leave them, in a new folder.
    func snapshot() throws -> TemporaryFolder {
        defer { releaseParts() }
        let copy = try TemporaryFolder()
        for name in ["work", "out"] where FileManager.default.fileExists(atPath: folder.file(name).path) {
            try FileManager.default.copyItem(at: folder.file(name), to: copy.file(name))
        }
        for name in try FileManager.default.subpathsOfDirectory(atPath: copy.path) {
            let written = try? FileManager.default.attributesOfItem(atPath: folder.file(name).path)[.modificationDate]
            guard let written else { continue }
            try FileManager.default.setAttributes([.modificationDate: written], ofItemAtPath: copy.file(name).path)
        }
        return copy
    }
}

struct RequestStep: RequestMiddleware {
    var name = "request step"
    var priority = 100
    var secretHeaders: [String] = []
    let body: @Sendable (URLRequest, TaskContext) async throws -> URLRequest
    func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        try await body(request, task)
    }
}

struct ResponseStep: ResponseMiddleware {
    var name = "response step"
    var priority = 100
    let body: @Sendable (DownloadResponse) async throws -> DownloadResponse
    func process(_ response: DownloadResponse) async throws -> DownloadResponse { try await body(response) }
}

struct DownloadStep: DownloadMiddleware {
    var name = "download step"
    var priority = 100
    var onState: @Sendable (TaskContext, DownloadState, DownloadError?) -> Void = { _, _, _ in }
    var onCount: @Sendable (TaskContext, ByteCount) -> Void = { _, _ in }
    func download(_ task: TaskContext, didChangeTo state: DownloadState, error: DownloadError?) {
        onState(task, state, error)
    }
    func download(_ task: TaskContext, didReceive count: ByteCount) { onCount(task, count) }
}

/// What tests look at in the engine's rooms.
extension Engine {
    var hosts: HostBudget { schedule.hosts }
    var groups: CommandGroups { schedule.groups }
    /// How often a barrel file was written, and how many bytes that were.
    var barrelSaves: (count: Int, bytes: Int) { (barrels.book.saveCount, barrels.book.savedBytes) }
    var recordBytes: Int { book.savedBytes }
    func saveBarrels() { barrels.saveAll() }
    func isParked(_ id: TaskID) -> Bool { book.isParked(id) }
    var hasListeners: Bool { !reporter.observers.tasks.isEmpty || !reporter.observers.barrels.isEmpty }
}

/// For the `else` of a guard that takes a case apart.
func unexpected(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) {
    Issue.record("\(text)", sourceLocation: sourceLocation)
}

extension PartFile {
    /// Opens the file with that name, and creates it if it is missing.
    convenience init(in folder: Folder, name: String) throws {
        Foundation.close(try folder.open(name, flags: O_RDWR | O_CREAT))
        try self.init(writing: name, in: folder)
    }
}
