import TestSupport
import Testing

@testable import FKEngine

/// Attempts without an engine: a random course of answers, results of verifying, verbs, ticks and limits plays against each
/// phase.
@Suite("Phases of an attempt", .timeLimit(.minutes(30)))
struct PhaseTests {
    @Test(
        "whatever happens in whatever phase, an attempt ends once, returns its permits once, and then nothing changes",
        arguments: FuzzRun.shards)
    func courses(shard: Int) async throws {
        try await FuzzRun("phases of an attempt", usual: 300).waiting(shard: shard, of: FuzzRun.shards.count) {
            try await Stage($0).play()
        }
    }
}

/// A transfer that goes on when the test says so. Used on the stage's thread only, as an engine uses one.
private final class HeldOperation: TransportOperation, @unchecked Sendable {
    private let handler: any TransportHandler
    private var steps: [ScriptedTransport.Answer.Step]
    private var isCancelled = false
    private var isPaused = false
    private(set) var isOver = false

    init(_ answer: ScriptedTransport.Answer, _ handler: any TransportHandler) {
        self.handler = handler
        steps = answer.steps
    }

    func cancel() { isCancelled = true }
    func resume() { isPaused = false }

    /// The next event of the transfer, with at most so many bytes.
    func advance(bytes count: Int) {
        if isOver { return }
        if isCancelled { return end(.failure(DownloadError(.cancelled, "cancelled"))) }
        if isPaused { return }
        guard let step = steps.first else { return end(.success(.init(bodyBytes: 0, lengthVerified: true))) }
        steps.removeFirst()
        switch step {
        case .head(let head):
            if let error = handler.refusal(of: head) { end(.failure(error)) }
        case .bytes(let bytes) where bytes.isEmpty: break
        case .bytes(let bytes):
            switch bytes.prefix(count).withUnsafeBytes({ handler.transport(didReceive: $0) }) {
            case .consumed: steps.insert(.bytes(Array(bytes.dropFirst(count))), at: 0)
            case .pause:
                steps.insert(step, at: 0)
                isPaused = true
            case .enough: end(.success(.init(bodyBytes: 0, lengthVerified: false)))
            case .fail(let error): end(.failure(error))
            }
        case .fail(let error): end(.failure(error))
        case .finish(let isVerified): end(.success(.init(bodyBytes: 0, lengthVerified: isVerified)))
        case .wait: break
        }
    }

    private func end(_ result: Result<TransportSummary, DownloadError>) {
        isOver = true
        handler.transportDidFinish(result)
    }
}

/// A transport whose transfers the test moves.
private final class HeldTransport: Transport {
    let operations = Locked<[HeldOperation]>([])
    private let answer: @Sendable (TransportRequest) -> ScriptedTransport.Answer

    init(_ answer: @escaping @Sendable (TransportRequest) -> ScriptedTransport.Answer) { self.answer = answer }

    func start(_ request: TransportRequest, handler: any TransportHandler) -> any TransportOperation {
        let operation = HeldOperation(answer(request), handler)
        operations.withLock { $0.append(operation) }
        return operation
    }

    func shutdown() {}
}

private struct RandomStage: RetryMiddleware {
    var name = "random"
    var priority = 100
    let random: Locked<SeededRandom>

    func decide(_ failure: AttemptFailure) async -> RetryDecision {
        await Task.yield()
        let decisions: [RetryDecision] = [
            .useRules, .retry(after: .zero), .renewed, .fail(DownloadError(.rejected, "enough")),
        ]
        return random.withLock { $0.pick(decisions) }
    }
}

/// What an attempt needs of an engine, and a task.
private actor Stage {
    private var random: SeededRandom
    private let folder: TemporaryFolder
    private let clock = ManualClock()
    private let executor: EngineExecutor
    private let transport: HeldTransport
    private let inbox = EngineInbox()
    private let schedule: Schedule
    private let book: TaskBook
    private let reporter: Reporter
    private let phases: Phases
    private let entry: TaskEntry
    private let log = Locked<[AttemptInfo.Phase]>([])
    private var past: [EngineInbox.Event] = []
    /// Steps that a run performs.
    private var steps = 0

    /// Files with their digests: written at once, with the gate, over several connections.
    private static let contents = [0, 7_000, 300_000, 3 << 20].map { count in
        let content = Bytes.pattern(count: count)
        let digest = Digester(.sha256, length: Int64(count))
        content.withUnsafeBytes { digest.update($0) }
        return (content, digest.hex())
    }

    init(_ seeded: SeededRandom) throws {
        var random = seeded
        let folder = try TemporaryFolder()
        let workPath = WorkPath(folder.file("work"))
        try workPath.open(create: true)
        var configure = Configure(workPath: folder.file("work"))
        configure.retry.jitter = 0
        configure.durability = random.oneIn(4) ? .power : .process
        let (content, digest) = random.pick(Self.contents)
        let dice = Locked(SeededRandom(seed: random.next()))
        transport = HeldTransport { request in
            switch dice.withLock({ $0.below(12) }) {
            case 0: .status(503, [.init("Retry-After", "1")])
            case 1: .status(404)
            case 2: .file(content, to: request, cut: content.count / 2)
            case 3: .file(content, etag: nil, to: request)
            case 4: .file(content, etag: "\"2\"", to: request)
            default: .file(content, to: request)
            }
        }
        let chains = MiddlewareChains()
        if random.oneIn(3) { Self.register(in: chains, dice) }
        if random.oneIn(3) { chains.register(failure: RandomStage(random: dice)) }
        let problems = Problems()
        executor = EngineExecutor(clock: clock)
        schedule = Schedule(configure, clock: clock, executor: executor)
        let lock = try #require(try EngineLock.tryAcquire(workPath))
        let ownership = Ownership(lock, clock: clock)
        let barrels = Barrels(workPath, ownership: ownership, problems: problems, clock: clock)
        book = try TaskBook(
            workPath, ownership: ownership, problems: problems, barrels: barrels, schedule: schedule, chains: chains,
            crowd: 1_000)
        reporter = Reporter(book, schedule, callbacks: CallbackQueue(), observers: Observers())
        phases = Phases(
            reporter, limits: RateLimits(workPath, schedule: schedule, barrels: barrels, problems: problems),
            sync: SyncService(book, schedule, DispatchQueue(label: "disk")), fetchers: Fetchers(transport),
            inbox: inbox,
            destinations: Destinations(schedule, chains), diskWork: DispatchQueue(label: "fk.test.disk"))

        var task = TaskDescription(url: "http://h.example/file.bin")
        task.directory = folder.path + "/out"
        task.options.connections = random.pick([nil, .fixed(1), .fixed(3)])
        switch random.below(4) {
        case 0: task.options.checksum = try Checksum(.sha256, hex: digest)
        case 1: task.options.checksum = try Checksum(.sha256, hex: String(repeating: "0", count: 64))
        default: break
        }
        if random.oneIn(5) {
            task.options.existing = .skip
            try FileManager.default.createDirectory(atPath: folder.path + "/out", withIntermediateDirectories: true)
            try Data(content).write(to: URL(fileURLWithPath: folder.path + "/out/file.bin"))
        }
        let record = try book.newRecord(task, task.id, barrel: nil)
        let info = try InfoFile.create(at: workPath.infoPath(task.id), record: record)
        entry = book.entry(record, info, isNew: true)
        book.insert(entry)
        entry.admit()
        if random.oneIn(8) { entry.demandProof() }
        reporter.observers.add(
            Observers.AttemptListener(number: 1, target: .id(task.id), isAwaiting: false) { [log] info in
                log.withLock { $0.append(info.phase) }
            }, end: nil)
        self.folder = folder
        self.random = random
    }

    private static func register(in chains: MiddlewareChains, _ dice: Locked<SeededRandom>) {
        chains.register(
            request: RequestStep { request, _ in
                await Task.yield()
                if dice.withLock({ $0.oneIn(10) }) { throw DownloadError(.middleware, "refused") }
                return request
            })
        chains.register(
            response: ResponseStep { response in
                await Task.yield()
                switch dice.withLock({ $0.below(6) }) {
                case 0: throw DownloadError(.rejected, "not this one")
                case 1: throw RetryRequest(reason: "once more")
                default: return response
                }
            })
    }

    // MARK: Courses

    /// - Returns: what is wrong; nil if nothing is.
    func play() async throws -> String? {
        defer { executor.stop() }
        for number in 1...4 where entry.record.state == .idle {
            schedule.withdraw(entry.id)
            clock.advance(seconds: 100)
            schedule.hosts.endPauses(now: clock.now)
            let run = phases.run(entry)
            run.start()
            perform(run)
            for _ in 0..<random.below(90) where entry.run === run {
                event(run)
                await Task.yield()
            }
            if entry.run === run { stop(run) }
            while entry.run === run || steps > 0 {
                deliver(run, all: true)
                await Task.yield()
            }
            if let fault = await fault(after: run, number) { return "attempt \(number): \(fault)" }
        }
        return nil
    }

    /// Something that must not be so after the end of the run, whatever still comes for it.
    private func fault(after run: TaskRun, _ number: Int) async -> String? {
        guard await run.ended() else { return "it has not ended" }
        let ends = log.withLock { log in
            log.count { phase in
                switch phase {
                case .began, .progressed: false
                case .succeeded, .failed, .stopped: true
                }
            }
        }
        if ends != number { return "\(ends) ends were reported" }
        if let fault = held { return fault }
        let (record, isDirty) = (entry.record, entry.unsaved.isDirty)
        past.forEach(run.handle)
        run.tick()
        run.measureGrowth()
        run.setConnections(.fixed(4))
        run.restart()
        run.signalStop(.droppingBytes)
        await run.perform(.prove)
        run.fail(DownloadError(.connectionLost, "late"))
        run.stopped()
        run.end(as: .error)
        if run.nextWork() != nil { return "it asks for work" }
        if entry.record != record || entry.unsaved.isDirty != isDirty { return "a late event has changed the record" }
        return held
    }

    private var held: String? {
        if entry.run != nil { return "the task has its run" }
        if !schedule.hosts.connections.isEmpty { return "permits are held: \(schedule.hosts.connections)" }
        return schedule.running.isEmpty && schedule.taken == 0 ? nil : "the slot is held"
    }

    // MARK: Events

    private func event(_ run: TaskRun) {
        switch random.below(40) {
        case 0: stop(run)
        case 1: run.restart()
        case 2: run.setConnections(.fixed(random.pick([1, 2, 5])))
        case 3...5: run.measureGrowth()
        case 6...8:
            clock.advance(seconds: 1)
            run.tick()
        case 9: entry.refresh()
        case 10: schedule.yieldLanes(of: entry.host)
        case 11: run.transfer?.use([])
        default: deliver(run, all: false)
        }
        perform(run)
    }

    /// A verb, a deadline, or the engine closes.
    private func stop(_ run: TaskRun) {
        switch random.below(5) {
        case 0: run.signalStop(.keepingBytes)
        case 1:
            reporter.change(entry, to: .suspend)
            run.signalStop(.keepingBytes)
        case 2:
            reporter.change(entry, to: .cancel)
            entry.record.drop()
            run.signalStop(.droppingBytes)
        case 3:
            reporter.change(entry, to: .unknown)
            run.signalStop(.droppingBytes)
        default:
            let error = DownloadError(.deadlineExceeded, "too late")
            entry.record.expire(error, at: clock.date)
            reporter.change(entry, to: .error)
            run.expire(error)
        }
    }

    /// Moves a transfer, or all of them, and hands their events over.
    private func deliver(_ run: TaskRun, all: Bool) {
        let open = transport.operations.withLock { operations in
            operations.removeAll(where: \.isOver)
            return operations
        }
        for operation in all || open.isEmpty ? open : [random.pick(open)] {
            operation.advance(bytes: random.pick([1, 5_000, 200_000, 1 << 20]))
        }
        if !all, random.oneIn(3) { return }
        for event in inbox.drain() {
            if random.oneIn(4) { past.append(event) }
            guard entry.run === run else { continue }
            run.handle(event)
            perform(run)
        }
    }

    private func perform(_ run: TaskRun) {
        guard let step = run.nextWork() else { return }
        steps += 1
        run.performs(
            Task {
                await run.perform(step)
                steps -= 1
                perform(run)
            })
    }
}
