import TestSupport
import Testing

@testable import FKEngine

@Suite("Verbs in every state")
struct VerbTests {
    static let content = Bytes.pattern(count: 400_000)

    /// A task brought into a state, and what holds it there.
    struct Scene {
        let bench: Bench
        let id: TaskID
        let gate: TestGate
    }

    static func scene(_ state: DownloadState) async throws -> Scene {
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.maxAction = 1 }) { request, number in
            if request.urlRequest.url?.lastPathComponent == "fails" { return .status(404) }
            // The first answer waits in its body; later ones do not, unless the first is still open.
            return .file(Self.content, to: request, gate: gate, pauseAt: min(300_000, 1_000 * number))
        }
        let id: TaskID
        switch state {
        case .error:
            id = try await bench.add("fails")
            _ = await bench.finished(id)
        case .idle:
            try await bench.add("blocks")
            await gate.reached()
            id = try await bench.add("waits")
        case .complete:
            gate.open()
            id = try await bench.add("a")
            _ = await bench.finished(id)
        default:
            id = try await bench.add("a")
            await gate.reached()
            if state == .suspend { try await bench.control.suspend(.id(id)) }
            if state == .cancel { try await bench.control.cancel(.id(id)) }
        }
        #expect(await bench.state(id) == state)
        return Scene(bench: bench, id: id, gate: gate)
    }

    static func give(_ verb: Verb, _ scene: Scene) async throws -> VerbResult {
        let control = scene.bench.control
        let selector = TaskSelector.id(scene.id)
        let results =
            switch verb {
            case .action: try await control.action(selector)
            case .suspend: try await control.suspend(selector)
            case .resume: try await control.resume(selector)
            case .cancel: try await control.cancel(selector)
            case .retry: try await control.retry(selector)
            case .trash: try await control.trash(selector)
            case .forget: try await control.forget(selector)
            }
        #expect(results.count == 1)
        return try #require(results.first)
    }

    static let states: [DownloadState] = [.idle, .action, .suspend, .cancel, .error, .complete]

    @Test("the engine does what the table says", arguments: Verb.allCases, states)
    func table(_ verb: Verb, _ state: DownloadState) async throws {
        let scene = try await Self.scene(state)
        let before = try await scene.bench.record(scene.id)
        let names = scene.bench.names
        let result = try await Self.give(verb, scene)
        #expect(result.id == scene.id && result.verb == verb && result.before == state)
        #expect(!result.note.isEmpty)
        switch StateMachine.decide(verb, in: state) {
        case .noOp(let reason):
            #expect(!result.applied && result.after == state && result.note == reason)
            #expect(try await scene.bench.record(scene.id) == before)
            #expect(scene.bench.names == names)
        case .to(let after, let effect):
            #expect(result.applied && result.after == after)
            if effect == .forget || effect == .forgetKeepingFile {
                #expect(await !scene.bench.messager.exists(.id(scene.id)))
                #expect(!FileManager.default.fileExists(atPath: scene.bench.workPath.infoPath(scene.id)))
                #expect(!scene.bench.names.contains { $0.contains("waits") || $0.contains(scene.id.hex.prefix(16)) })
            } else if effect == .queue {
                scene.gate.open()
                _ = await scene.bench.finished(scene.id)
            } else {
                #expect(await scene.bench.state(scene.id) == after)
                #expect(try scene.bench.stored(scene.id).state == after)
            }
        }
        scene.gate.open()
        await scene.bench.engine.waitUntilDrained()
        #expect(await scene.bench.engine.taskCounts.running == 0)
    }

    @Test("suspend keeps the bytes; resume asks for the rest under If-Range")
    func suspendResume() async throws {
        let scene = try await Self.scene(.action)
        let bench = scene.bench
        let result = try await Self.give(.suspend, scene)
        #expect(result.note.contains("kept"))
        let record = try bench.stored(scene.id)
        #expect(record.received == 1_000 && record.state == .suspend)
        #expect(bench.names == [try #require(record.partName)])
        #expect(await bench.engine.taskCounts.running == 0)
        scene.gate.open()
        try await bench.control.resume(.id(scene.id))
        #expect(await bench.finished(scene.id)?.state == .complete)
        #expect(bench.sent("Range") == ["-", "bytes=1000-"])
        #expect(bench.sent("If-Range") == ["-", "\"1\""])
        #expect(try bench.out("a") == Self.content)
        #expect(bench.names == ["a"])
    }

    @Test("cancel drops the bytes; retry starts from 0 with a fresh count of attempts")
    func cancelRetry() async throws {
        let scene = try await Self.scene(.action)
        _ = try await Self.give(.cancel, scene)
        #expect(scene.bench.names == [])
        let record = try scene.bench.stored(scene.id)
        #expect(record.ranges.isEmpty && record.expected == nil && record.validator == nil)
        scene.gate.open()
        _ = try await Self.give(.retry, scene)
        let info = try #require(await scene.bench.finished(scene.id))
        #expect(info.state == .complete && info.attempts == 1)
        #expect(scene.bench.sent("Range") == ["-", "-"])
        #expect(try scene.bench.out("a") == Self.content)
    }

    @Test("retry of a complete task: its file is fetched again if it is gone, and not touched if it is there")
    func retryOfGoneFile() async throws {
        let scene = try await Self.scene(.complete)
        let control = scene.bench.control
        let there = try await control.retry(.id(scene.id))
        #expect(there.map(\.applied) == [false] && there[0].note.hasPrefix("is complete already"))
        let before = scene.bench.transport.requests.count
        try FileManager.default.removeItem(at: scene.bench.folder.file("out/a"))
        let gone = try await control.retry(.id(scene.id))
        #expect(
            gone.map(\.applied) == [true] && gone[0].after == .idle
                && gone[0].note == "its file is gone or has another length: queued")
        #expect(await scene.bench.finished(scene.id)?.state == .complete)
        #expect(scene.bench.transport.requests.count == before + 1)
        #expect(try scene.bench.out("a") == Self.content)
    }

    @Test("trash of a running task ends it for good: it is not started again and its slot is free")
    func trashRunning() async throws {
        let scene = try await Self.scene(.action)
        _ = try await Self.give(.trash, scene)
        await scene.bench.sync()
        #expect(scene.bench.transport.requests.count == 1)
        #expect(scene.bench.names == [])
        scene.gate.open()
        let next = try await scene.bench.add("b")
        #expect(await scene.bench.finished(next)?.state == .complete)
        #expect(await scene.bench.engine.taskCounts.running == 0)
    }

    @Test("trash of a complete task deletes its file, unless somebody changed it or it was there before")
    func trashComplete() async throws {
        let ours = try await Self.scene(.complete)
        _ = try await Self.give(.trash, ours)
        #expect(ours.bench.names == [])

        let changed = try await Self.scene(.complete)
        try changed.bench.folder.write([1, 2, 3], to: "out/a")
        _ = try await Self.give(.trash, changed)
        #expect(try changed.bench.out("a") == [1, 2, 3])

        let bench = try await Bench(content: Self.content)
        try bench.folder.write([7], to: "out/a")
        let id = try await bench.completed("a") { $0.options.existing = .skip }
        try await bench.control.trash(.id(id))
        #expect(try bench.out("a") == [7])
    }

    @Test("a cancel and a retry at once: the second attempt's bytes are not taken for the first one's")
    func cancelThenRetryAtOnce() async throws {
        for _ in 0..<20 {
            let scene = try await Self.scene(.action)
            async let cancelled = scene.bench.control.cancel(.id(scene.id))
            await scene.bench.reached("a", .cancel)
            let retried = try await scene.bench.control.retry(.id(scene.id))
            #expect(try await cancelled[0].applied && retried[0].applied)
            scene.gate.open()
            #expect(await scene.bench.finished(scene.id)?.state == .complete)
            #expect(try scene.bench.out("a") == Self.content)
        }
    }

    @Test("resumeAll resumes what is suspended and queues again what was cancelled or failed")
    func resumeAll() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, number in
            if request.urlRequest.url?.lastPathComponent == "fails", number < 5 { return .status(404) }
            return .file(Self.content, to: request, gate: gate, pauseAt: 1_000)
        }
        let suspended = try await bench.add("suspended")
        let cancelled = try await bench.add("cancelled")
        let failed = try await bench.add("fails")
        _ = await bench.finished(failed)
        try await bench.control.suspend(.id(suspended))
        try await bench.control.cancel(.id(cancelled))
        let results = try await bench.control.resumeAll()
        #expect(results.map(\.id) == [suspended, cancelled, failed])
        #expect(results.allSatisfy { $0.applied && $0.after == .idle })
        await bench.transport.started(6)
        gate.open()
        await bench.engine.waitUntilDrained()
        #expect(await bench.messager.all().allSatisfy { $0.state == .complete })
        #expect(try await bench.control.resumeAll().isEmpty)
    }

    @Test(
        "suspendAll and cancelAll start nothing while they stop what runs", arguments: [Verb.suspend, .cancel, .trash])
    func allAtOnce(_ verb: Verb) async throws {
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.maxAction = 2 }) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 10)
        }
        for index in 0..<20 { try await bench.add("f\(index)") }
        await gate.reached()
        await bench.transport.started(2)
        let results =
            switch verb {
            case .suspend: try await bench.control.suspendAll()
            case .cancel: try await bench.control.cancelAll()
            default: try await bench.control.trash(.all)
            }
        let after: DownloadState = verb == .suspend ? .suspend : verb == .cancel ? .cancel : .unknown
        #expect(results.count == 20 && results.allSatisfy { $0.applied && $0.after == after })
        #expect(bench.transport.requests.count == 2)
        #expect(await bench.engine.taskCounts.running == 0)
        // A suspended task keeps its bytes, and no other does.
        let infos = await bench.messager.all()
        #expect(infos.count == (verb == .trash ? 0 : 20) && infos.allSatisfy { $0.state == after })
        #expect(infos.map(\.count.received).reduce(0, +) == (verb == .suspend ? 20 : 0))
        #expect(bench.names.count == (verb == .suspend ? 2 : 0))
    }

    @Test("a verb for a task nobody knows is .notFound; a URL that is none is .invalidURL")
    func unknown() async throws {
        let bench = try await Bench(content: Self.content)
        await #expect { try await bench.control.suspend("http://h.example/none") } throws: {
            ($0 as? DownloadError)?.code == .notFound
        }
        await #expect { try await bench.control.suspend(.barrel("none")) } throws: {
            ($0 as? DownloadError)?.code == .notFound
        }
        await #expect(throws: DownloadError.self) { try await bench.control.suspend("nonsense") }
        #expect(try await bench.control.suspendAll().isEmpty)
    }
}
