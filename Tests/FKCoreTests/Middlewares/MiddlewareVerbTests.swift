import TestSupport
import Testing

/// Middlewares that act upon their own task, or upon each other's.
@Suite("Middlewares that give verbs")
struct MiddlewareVerbTests {
    static let content = Bytes.pattern(count: 3_000)

    enum Stage: CaseIterable { case request, response }

    /// Has the closure run once, in that stage of the first attempt.
    private func once(
        _ stage: Stage, _ bench: Bench, _ body: @escaping @Sendable (TaskContext) async throws -> Void
    ) -> Observed<Bool> {
        let isOver = Observed(false)
        let hasBegun = Locked(false)
        let run: @Sendable (TaskContext) async throws -> Void = { task in
            let isFirst = hasBegun.withLock { value in
                defer { value = true }
                return !value
            }
            guard isFirst else { return }
            try await body(task)
            isOver.update { $0 = true }
        }
        switch stage {
        case .request:
            bench.chains.onRequest("request step") { request, task in
                try await run(task)
            }
        case .response:
            bench.chains.onResponse("response step") { response in
                try await run(response.task)
            }
        }
        return isOver
    }

    /// Closes and checks that it can be done.
    private func close(_ bench: Bench) async {
        await bench.downloader.close()
        #expect(!EngineLock.isHeld(bench.workPath))
    }

    @Test("a middleware suspends its own task", arguments: Stage.allCases)
    func suspend(_ stage: Stage) async throws {
        let bench = try await Bench(content: Self.content)
        let notes = Observed<[String]>([])
        let isOver = once(stage, bench) { [control = bench.control] task in
            let results = try await control.suspend(.id(task.id))
            notes.update { $0 = results.filter(\.applied).map(\.note) }
        }
        let id = try await bench.add("a")
        _ = await isOver.wait { $0 }
        #expect(notes.value == ["suspended, its bytes are kept: takes effect when its middleware has returned"])
        #expect(await bench.finished(id)?.state == .suspend)
        try await bench.turn { $0.taskCounts.running == 0 }
        try await bench.control.resume(.id(id))
        try await bench.expect("a", Self.content, of: id)
        #expect(bench.names == ["a"])
        await close(bench)
    }

    @Test("a middleware cancels or trashes its own task", arguments: Stage.allCases, [Verb.cancel, .trash])
    func drop(_ stage: Stage, _ verb: Verb) async throws {
        let bench = try await Bench(content: Self.content)
        let isOver = once(stage, bench) { [control = bench.control] task in
            let id = TaskSelector.id(task.id)
            _ = try await verb == .cancel ? control.cancel(id) : control.trash(id)
        }
        let id = try await bench.add("a")
        _ = await isOver.wait { $0 }
        try await bench.turn { $0.taskCounts.running == 0 }
        #expect(bench.names == [])
        #expect(FileManager.default.fileExists(atPath: bench.workPath.infoPath(id)) == (verb == .cancel))
        #expect(await bench.state(id) == (verb == .cancel ? .cancel : .unknown))
        #expect(await bench.messager.exists(.id(id)) == (verb == .cancel))
        #expect(await bench.downloader.takeProblems() == [])
        try await bench.add("a")
        if verb == .cancel { try await bench.control.retry(.id(id)) }
        #expect(await bench.finished(id)?.state == .complete)
        await close(bench)
    }

    @Test("several verbs one after the other, the last one counts", arguments: Stage.allCases)
    func several(_ stage: Stage) async throws {
        let bench = try await Bench(content: Self.content)
        let out = bench.out
        let isOver = once(stage, bench) { [downloader = bench.downloader] task in
            let id = TaskSelector.id(task.id)
            try await downloader.control.suspend(id)
            try await downloader.control.resume(id)
            try await downloader.control.cancel(id)
            try await downloader.control.retry(id)
            try await downloader.control.toggle(id)
            var builder = try Builder("http://h.example/a")
            builder.directory = out
            try await builder.prepare(in: downloader, queued: true)
        }
        let id = try await bench.add("a")
        _ = await isOver.wait { $0 }
        try await bench.expect("a", Self.content, of: id)
        #expect(bench.names == ["a"])
        await close(bench)
    }

    @Test("verbs for a barrel and for all, with the own task among them", arguments: Stage.allCases, [false, true])
    func many(_ stage: Stage, _ all: Bool) async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in
            .file(Self.content, to: request, gate: request.urlRequest.url?.lastPathComponent == "b" ? gate : nil)
        }
        let count = Observed(0)
        let other = try await bench.add("b", barrel: "x")
        await gate.reached()
        let isOver = once(stage, bench) { [control = bench.control] _ in
            let results = try await all ? control.suspendAll() : control.suspend(.barrel("x"))
            count.update { $0 = results.count { $0.applied } }
        }
        let id = try await bench.add("a", barrel: "x")
        _ = await isOver.wait { $0 }
        #expect(count.value == 2)
        for id in [id, other] { #expect(await bench.finished(id)?.state == .suspend) }
        await close(bench)
        gate.open()
    }

    enum Child: CaseIterable { case task, group, asyncLet }

    @Test("from a task the middleware has started and waits for", arguments: Child.allCases)
    func child(_ child: Child) async throws {
        let bench = try await Bench(content: Self.content)
        let isOver = once(.request, bench) { [control = bench.control] _ in
            switch child {
            case .task: _ = try await Task { try await control.suspendAll() }.value
            case .group:
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { _ = try await control.suspendAll() }
                    try await group.waitForAll()
                }
            case .asyncLet:
                async let results = control.suspendAll()
                _ = try await results
            }
        }
        let id = try await bench.add("a")
        _ = await isOver.wait { $0 }
        #expect(await bench.finished(id)?.state == .suspend)
        await close(bench)
    }

    @Test("from a detached task a verb waits for some seconds, and not for ever")
    func detached() async throws {
        let bench = try await Bench(content: Self.content)
        let isOver = once(.request, bench) { [control = bench.control] _ in
            _ = try await Task.detached { try await control.suspendAll() }.value
        }
        let id = try await bench.add("a")
        await bench.reached("a", .suspend)
        while !isOver.value { await bench.advance(1) }
        #expect(await bench.finished(id)?.state == .suspend)
        await close(bench)
    }

    @Test("a detached verb does not keep a downloader from closing")
    func detachedAndClosed() async throws {
        let bench = try await Bench(content: Self.content)
        let isOver = once(.request, bench) { [control = bench.control] _ in
            _ = try await Task.detached { try await control.suspendAll() }.value
        }
        let id = try await bench.add("a")
        await bench.reached("a", .suspend)
        await close(bench)
        #expect(isOver.value)
        #expect(try bench.stored(id).state == .suspend)
    }

    @Test("a detached close() that a middleware waits for ends after a minute", arguments: Stage.allCases)
    func detachedClose(_ stage: Stage) async throws {
        let bench = try await Bench(content: Self.content)
        let isOver = once(stage, bench) { [downloader = bench.downloader] _ in
            await Task.detached { await downloader.close() }.value
        }
        let id = try await bench.add("a")
        try await bench.turn { $0.hasClosed.withLock { $0 } }
        await bench.advance(59)
        #expect(!isOver.value && EngineLock.isHeld(bench.workPath))
        while !isOver.value { await bench.advance(1) }
        await close(bench)
        #expect(try bench.stored(id).state == .idle)
    }

    @Test("two middlewares that stop each other's task", arguments: Stage.allCases)
    func each(_ stage: Stage) async throws {
        let bench = try await Bench(content: Self.content)
        let ids = ["a", "b"].map { bench.task($0).id }
        let inside = Observed(0)
        let over = Observed(0)
        let run: @Sendable (TaskContext) async throws -> Void = { [control = bench.control] task in
            guard task.attempt == 1 else { return }
            inside.update { $0 += 1 }
            _ = await inside.wait { $0 >= 2 }
            try await control.cancel(.id(ids[task.id == ids[0] ? 1 : 0]))
            over.update { $0 += 1 }
        }
        if stage == .request {
            bench.chains.onRequest("request step") { request, task in
                try await run(task)
            }
        } else {
            bench.chains.onResponse("response step") { response in
                try await run(response.task)
            }
        }
        for name in ["a", "b"] { try await bench.add(name) }
        _ = await over.wait { $0 >= 2 }
        try await bench.turn { $0.taskCounts.running == 0 }
        for id in ids { #expect(await bench.state(id) == .cancel) }
        #expect(bench.names == [])
        await close(bench)
    }

    @Test("a middleware closes its downloader", arguments: Stage.allCases, [false, true])
    func closes(_ stage: Stage, _ inChild: Bool) async throws {
        let bench = try await Bench(content: Self.content)
        let isRefused = Observed(false)
        let isOver = once(stage, bench) { [downloader = bench.downloader] _ in
            if inChild { await Task { await downloader.close() }.value } else { await downloader.close() }
            do { try await downloader.control.suspendAll() } catch { isRefused.update { $0 = true } }
        }
        let id = try await bench.add("a")
        _ = await isOver.wait { $0 }
        #expect(isRefused.value)
        await close(bench)
        #expect(try bench.stored(id).state == .idle)
        let next = try await Bench(in: bench.folder, content: Self.content)
        try await next.expect("a", Self.content, of: id)
        await close(next)
    }

    @Test("a download middleware that waits for a verb and for the closing")
    func download() async throws {
        let bench = try await Bench(content: Self.content)
        let isOver = Observed(false)
        let step = DownloadStep(onState: { [downloader = bench.downloader] _, state, _ in
            guard state == .action else { return }
            let (first, second) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            Task {
                _ = try await downloader.control.suspendAll()
                first.signal()
            }
            first.wait()
            Task {
                await downloader.close()
                second.signal()
            }
            second.wait()
            isOver.update { $0 = true }
        })
        bench.chains.register(download: step)
        try await bench.add("a")
        _ = await isOver.wait { $0 }
        await close(bench)
    }

    private static func code(_ body: () async throws -> Void) async -> DownloadError.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? DownloadError)?.code
        }
    }

    @Test("a middleware does not wait for its own task", arguments: Stage.allCases)
    func ownFile(_ stage: Stage) async throws {
        let bench = try await Bench(content: Self.content)
        let codes = Observed<[DownloadError.Code?]>([])
        let isOver = once(stage, bench) {
            [downloader = bench.downloader, folder = URL(fileURLWithPath: bench.out)] task in
            let own = await downloader.task(.id(task.id))
            let found = [
                await Self.code { _ = try await downloader.download(task.originalURL, to: folder) },
                await Self.code { _ = try await own?.file },
                await Self.code { _ = await downloader.messager.finished(task.id) },
                await Self.code { await downloader.waitUntilDrained() },
            ]
            codes.update { $0 = found }
        }
        let id = try await bench.add("a")
        _ = await isOver.wait { $0 }
        #expect(codes.value == [.invalidArgument, .invalidArgument, nil, nil])
        #expect(await bench.finished(id)?.state == .complete)
        await close(bench)
    }

    @Test("outside of a middleware a verb waits for it")
    func outside() async throws {
        let bench = try await Bench(content: Self.content)
        let gate = bench.holdRequests()
        let id = try await bench.add("a")
        await bench.reached("a", .action)
        async let results = bench.control.trash(.id(id))
        await bench.reached("a", .unknown)
        gate.open()
        #expect(try await results.map(\.note) == ["forgotten"])
        #expect(!FileManager.default.fileExists(atPath: bench.workPath.infoPath(id)))
        await close(bench)
    }
}
