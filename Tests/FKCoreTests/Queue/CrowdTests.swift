import TestSupport
import Testing

@testable import FKEngine

/// Requests about more tasks than an engine keeps in memory.
@Suite("Crowds of tasks")
struct CrowdTests {
    /// The number of tasks that the engine keeps in memory.
    private static let crowd = 200
    private static let most = crowd + 64
    private static let count = crowd + 300

    private func bench(in folder: TemporaryFolder? = nil) async throws -> Bench {
        try await Bench(in: folder, scope: .chosen, isActive: false, crowd: Self.crowd) { request, _ in
            .file([1], to: request)
        }
    }

    /// Tasks that were added and may not run yet.
    private func scene(_ count: Int = count) async throws -> (bench: Bench, ids: [TaskID]) {
        let bench = try await bench()
        let tasks = (0..<count).map { bench.task("http://h.example/f\($0)") }
        let added = try await bench.engine.add(tasks, barrel: "all", run: false)
        #expect(added.allSatisfy { $0.isNew && $0.error == nil && $0.state == .idle })
        return (bench, added.map(\.id))
    }

    private func apply(_ verb: Verb, to selector: TaskSelector, forAll: Bool = false, _ bench: Bench) async throws
        -> [VerbResult]
    {
        let results = Observed<[VerbResult]>([])
        try await bench.engine.apply(verb, to: selector, forAll: forAll) { portion in
            #expect(portion.count <= 1_000)
            results.update { $0 += portion }
        }
        return results.value
    }

    @Test("tasks that are added and do not run leave the memory, and are in their barrel once")
    func added() async throws {
        let (bench, ids) = try await scene()
        #expect(await bench.engine.taskCounts.known <= Self.most)
        #expect(try await bench.messager.barrelInfo("all").states == [.idle: Self.count])
        // Asked again: known, and counted once.
        let again = try await bench.engine.add(
            [bench.task("http://h.example/f\(Self.count - 1)")], barrel: "all", run: false)
        #expect(again.map(\.id) == ids.suffix(1) && again[0].isNew == false)
        #expect(try await bench.messager.barrelInfo("all").states == [.idle: Self.count])
    }

    @Test("a verb for all tasks, a state or a barrel is performed in portions, in the order of submission")
    func verbs() async throws {
        // More than one portion.
        let count = 1_200
        let (first, ids) = try await scene(count)
        await first.downloader.close()
        let bench = try await bench(in: first.folder)
        for (verb, selector, state) in [
            (Verb.suspend, TaskSelector.all, DownloadState.suspend), (.resume, .all, .idle), (.cancel, .all, .cancel),
            (.retry, .state(.cancel), .idle), (.suspend, .state(.idle), .suspend), (.resume, .barrel("all"), .idle),
        ] {
            let results = try await apply(verb, to: selector, forAll: selector == .all && verb == .resume, bench)
            #expect(results.map(\.id) == ids && results.allSatisfy { $0.applied && $0.after == state }, "\(verb)")
            #expect(await bench.engine.taskCounts.known <= Self.most, "\(verb)")
            for id in [ids[0], ids[count - 1]] { #expect(try bench.stored(id).state == state, "\(verb)") }
        }
        let trashed = try await apply(.trash, to: .barrel("all"), bench)
        #expect(trashed.map(\.id) == ids && trashed.allSatisfy { $0.after == .unknown })
        #expect(try bench.workPath.allTaskIDs().isEmpty)
        #expect(try await bench.messager.barrelInfo("all").total == 0)
        await #expect { _ = try await self.apply(.suspend, to: .barrel("none"), bench) } throws: {
            ($0 as? DownloadError)?.code == .notFound
        }
        #expect(try await apply(.suspend, to: .all, bench).isEmpty)
    }

    @Test(
        "waiting tasks of an earlier engine leave the memory, run in their order, and are left again when they are done"
    )
    func restarted() async throws {
        let (first, ids) = try await scene()
        await first.downloader.close()
        let bench = try await bench(in: first.folder)
        let reply = await bench.engine.answer(.run(.barrel("all")))
        #expect(reply == .done(note: "\(Self.count) of \(Self.count) tasks can run"))
        #expect(await bench.engine.taskCounts.known <= Self.most)
        await bench.engine.activate()
        await bench.engine.waitUntilDrained()
        await bench.engine.callbacks.drained()
        let starts = bench.log.value.filter { $0.hasSuffix(":action") }
        let isInOrder = starts == (0..<Self.count).map { "f\($0):action" }
        #expect(isInOrder)
        #expect(await bench.engine.taskCounts.known <= Self.most)
        // Reading tasks for a question leaves none of them in memory.
        let infos = try await bench.engine.infos(ids)
        #expect(infos.map(\.id) == ids && infos.allSatisfy { $0.state == .complete })
        #expect(await bench.engine.taskCounts.known <= Self.most)
    }

    @Test("tasks of a command that have ended leave the memory early, those of an application stay")
    func ended() async throws {
        for (scope, crowd, known) in [(Engine.Scope.chosen, Self.crowd, Self.crowd / 4), (.all, nil, 160)] {
            let bench = try await Bench(scope: scope, crowd: crowd) { request, _ in .file([1], to: request) }
            let tasks = (0..<160).map { bench.task("http://h.example/f\($0)") }
            _ = try await bench.engine.add(tasks, barrel: nil, run: true)
            await bench.engine.waitUntilDrained()
            // Those whose files wait for their sync stay until then.
            #expect(await bench.engine.taskCounts.known == 160)
            try await bench.advance(by: 1) { await bench.engine.taskCounts.known == known }
        }
    }

    @Test("a queued task that an attempt has left bytes of is continued after it has rested")
    func bytesStay() async throws {
        let folder = try TemporaryFolder()
        let content = Bytes.pattern(count: 300_000)
        let gate = TestGate()
        let first = try await Bench(in: folder, scope: .chosen) { request, _ in
            .file(content, to: request, gate: gate, pauseAt: 200_000)
        }
        let id = try await first.add("big")
        await gate.reached()
        try await first.control.suspend(.id(id))
        let received = try first.stored(id).received
        #expect(received > 0)
        await first.downloader.close()
        gate.open()
        let second = try await Bench(
            in: folder, scope: .chosen, isActive: false, crowd: Self.crowd, settings: { $0.maxAction = 1 }
        ) {
            request, _ in .file(content, to: request)
        }
        let tasks = (0..<Self.count).map { second.task("http://h.example/f\($0)") { $0.priority = 1 } }
        _ = try await second.engine.add(tasks, barrel: nil, run: true)
        try await second.control.resume(.id(id))
        _ = await second.engine.answer(.run(.id(id)))
        #expect(await second.engine.isParked(id))
        await second.engine.activate()
        await second.engine.waitUntilSettled(id)
        let last = try #require(second.transport.requests.last { $0.urlRequest.url?.lastPathComponent == "big" })
        #expect(last.urlRequest.value(forHTTPHeaderField: "Range") == "bytes=\(received)-")
        #expect(try second.out("big") == content)
    }

    @Test("the engine of an application keeps a waiting task in 400 bytes: beyond a limit it is only in the queue")
    func application() async throws {
        let (first, ids) = try await scene()
        await first.downloader.close()
        let folder = first.folder
        var configure = Configure(workPath: folder.file("work"))
        configure.maxAction = 1
        let clock = ManualClock()
        let gate = TestGate()
        let transport = ScriptedTransport(clock: clock) { request, number in
            number == 1 ? .file([1, 2], to: request, gate: gate, pauseAt: 1) : .file([1], to: request)
        }
        let engine = try Engine(
            configure: configure, scope: .all, transport: transport, clock: clock, crowd: Self.crowd)
        let starts = Observed<[TaskID]>([])
        _ = await engine.observeStates { info in if info.state == .action { starts.update { $0.append(info.id) } } }
        await engine.activate()
        await gate.reached()
        let waiting = await engine.taskCounts
        #expect(waiting.known <= Self.most && waiting.open == Self.count)
        #expect(try await engine.openIDs().all.map(\.id) == ids)
        #expect(try await engine.infos(ids.suffix(3)).map(\.state) == [.idle, .idle, .idle])
        #expect(try await engine.infos([TaskID(url: "http://h.example/none")]).isEmpty)
        gate.open()
        await engine.waitUntilDrained()
        await engine.callbacks.drained()
        #expect(starts.value == ids)
        #expect(await engine.taskCounts.known <= Self.most)
        #expect(try await engine.infos(.all).count == Self.count)
        await engine.close()
    }
}
