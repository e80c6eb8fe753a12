import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine

/// Processes without the engine, played in this process: a work path has one engine here as well.
@Suite("Mailbox, following, taking over")
struct ClientTests {
    static let content = Bytes.pattern(count: 400_000)

    private func configure(_ folder: TemporaryFolder) -> Configure {
        var configure = Configure(workPath: folder.file("work"))
        configure.retry.jitter = 0
        return configure
    }

    private func impatient(_ folder: TemporaryFolder) -> EngineClient {
        var client = EngineClient(configure: configure(folder))
        client.patience = 0.05
        return client
    }

    private func served(_ content: [UInt8] = content) throws -> FaultServer {
        let server = try FaultServer()
        server.routeOthers { .ranged(content, for: $0, etag: "\"1\"") }
        return server
    }

    @Test("without an engine, a client is it for a moment: tasks are noted down and nothing runs")
    func alone() async throws {
        let folder = try TemporaryFolder()
        let client = EngineClient(configure: configure(folder))
        var task = TaskDescription(url: "http://127.0.0.1:1/a")
        task.directory = folder.path + "/out"
        let (reply, problems) = try await client.perform(.add(tasks: [task], barrel: "b", run: true))
        let added = try #require(reply.addedTasks)
        #expect(added == [.init(id: task.id, state: .idle, isNew: true)])
        #expect(problems.isEmpty)
        #expect(!EngineLock.isHeld(client.workPath))
        #expect(try InfoFile.read(client.workPath.infoPath(task.id)).record.attempts == 0)
        let (verbs, _) = try await client.perform(.verb(.suspend, .barrel("b")))
        let results = try #require(verbs.verbResults)
        #expect(results.map(\.after) == [.suspend])
        #expect(try InfoFile.read(client.workPath.infoPath(task.id)).record.state == .suspend)
        let (failed, _) = try await client.perform(.verb(.suspend, .url("http://127.0.0.1/none")))
        let error = try #require(failed.failure)
        #expect(error.code == .notFound)
    }

    @Test("with an engine, the request goes through the mailbox, and is carried out at the next tick")
    func mailbox() async throws {
        let gate = TestGate()
        let bench = try await Bench(ticks: true) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 1_000)
        }
        let id = try await bench.add("a")
        await gate.reached()
        let client = EngineClient(configure: configure(bench.folder))
        let (reply, _) = try await client.perform(.verb(.suspend, .id(id)))
        let results = try #require(reply.verbResults)
        #expect(results.map(\.before) == [.action] && results.map(\.after) == [.suspend])
        #expect(await bench.state(id) == .suspend)
        #expect(try FileIO.names(in: bench.workPath.mailboxFolder).isEmpty)
        #expect(try FileIO.names(in: bench.workPath.repliesFolder).isEmpty)
        #expect(EngineLock.isHeld(bench.workPath))
    }

    @Test("an engine that does not answer: the request is withdrawn and the client says so")
    func silent() async throws {
        let bench = try await Bench(content: Self.content)
        let client = impatient(bench.folder)
        await #expect { _ = try await client.perform(.verb(.suspend, .all)) } throws: {
            ($0 as? DownloadError)?.code == .workPathBusy
        }
        #expect(try FileIO.names(in: bench.workPath.mailboxFolder).isEmpty)
    }

    @Test("garbage in the mailbox is quarantined and answered; what came with it is carried out")
    func garbage() async throws {
        let bench = try await Bench(content: Self.content)
        try write([1, 2, 3], bench.workPath.mailboxFolder + "/00000000000000000001-1-a.msg")
        let mailbox = Mailbox(bench.workPath)
        let posted = try mailbox.post(.add(tasks: [bench.task("a")], barrel: nil, run: true))
        await bench.advance(1)
        let id = bench.task("a").id
        await bench.reached("a", .complete)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(try await bench.reply(to: posted, mailbox).addedTasks != nil)
        #expect(try FileIO.names(in: bench.workPath.quarantineFolder).count == 1)
        #expect(await bench.downloader.takeProblems().count == 1)
    }

    @Test("requests of an engine that closed before reading them are carried out by the next one")
    func leftBehind() async throws {
        let first = try await Bench(content: Self.content)
        await first.downloader.close()
        let mailbox = Mailbox(first.workPath)
        try mailbox.post(.add(tasks: [first.task("a")], barrel: nil, run: true))
        let second = try await Bench(in: first.folder, content: Self.content)
        await second.reached("a", .complete)
    }

    // MARK: Sessions

    private struct Heard: Sendable {
        var lines: [String] = []
        mutating func add(_ event: RunSession.Event) {
            switch event {
            case .engine(let tookOver, _): lines.append(tookOver ? "engine, took over" : "engine")
            case .following: lines.append("following")
            case .engineNews(let news, _): lines.append("engine is \(news)")
            case .replies(let replies): lines.append("replies \(replies.count)")
            case .state(let info): lines.append("\(info.url.split(separator: "/").last ?? "") \(info.state)")
            case .progress, .waiting, .members, .leftOut: break
            case .paused(let count): lines.append("paused \(count)")
            case .trimmed: break
            case .problem(let text): lines.append("problem \(text)")
            }
        }
    }

    private func session(
        _ folder: TemporaryFolder, _ goal: RunSession.Goal, _ tasks: [TaskDescription], _ heard: Observed<Heard>
    ) -> RunSession {
        RunSession(
            configure: configure(folder), goal: goal,
            requests: tasks.isEmpty ? [] : [.init(.add(tasks: tasks, barrel: nil, run: true))], interval: 0.05
        ) { event in heard.update { $0.add(event) } }
    }

    private func task(_ url: String, _ folder: TemporaryFolder) -> TaskDescription {
        var task = TaskDescription(url: url)
        task.directory = folder.path + "/out"
        return task
    }

    @Test("alone: the session is the engine and ends with its tasks")
    func sessionAlone() async throws {
        let folder = try TemporaryFolder()
        let server = try served()
        let heard = Observed(Heard())
        let tasks = ["/a", "/b"].map { task(server.url($0), folder) }
        let tracker = try await session(folder, .added, tasks, heard).run()
        #expect(tracker.isSettled && tracker.count(.complete) == 2 && tracker.total == 2)
        #expect(tracker.received == 800_000)
        #expect(heard.value.lines.prefix(2) == ["engine", "replies 1"])
        #expect(heard.value.lines.filter { $0.hasSuffix(" complete") }.sorted() == ["a complete", "b complete"])
        #expect(try folder.read("out/a") == Self.content)
        #expect(!EngineLock.isHeld(WorkPath(folder.file("work"))))
    }

    @Test("a failed task ends a session too, and is counted")
    func sessionFailed() async throws {
        let folder = try TemporaryFolder()
        let server = try FaultServer()
        let heard = Observed(Heard())
        let tracker = try await session(folder, .added, [task(server.url("/a"), folder)], heard).run()
        #expect(tracker.count(.error) == 1 && tracker.isSettled)
        #expect(heard.value.lines.last == "a error")
    }

    @Test("nothing to do: a session for everything ends at once")
    func sessionIdle() async throws {
        let folder = try TemporaryFolder()
        let heard = Observed(Heard())
        let tracker = try await session(folder, .everything, [], heard).run()
        #expect(tracker.total == 0 && tracker.isSettled)
    }

    @Test("with another engine: the session hands its tasks over and follows them", arguments: [true, false])
    func sessionFollows(_ hasOwnTasks: Bool) async throws {
        let bench = try await Bench(ticks: true) { request, _ in .file(Self.content, to: request) }
        let heard = Observed(Heard())
        let gate = TestGate()
        if !hasOwnTasks {
            bench.chains.onRequest("request step") { request, _ in
                await gate.passed()
            }
            try await bench.add("a")
        }
        let session = session(
            bench.folder, hasOwnTasks ? .added : .everything,
            hasOwnTasks ? [task("http://h.example/a", bench.folder)] : [], heard)
        async let end = session.run()
        if !hasOwnTasks {
            _ = await heard.wait { $0.lines.contains("a action") || $0.lines.contains("a idle") }
            gate.open()
        }
        #expect(try await end.count(.complete) == 1)
        #expect(heard.value.lines.first == "following")
        #expect(heard.value.lines.last == "a complete")
        #expect(EngineLock.isHeld(bench.workPath))
    }

    @Test("a followed task that is trashed: the session ends")
    func sessionTrashed() async throws {
        let gate = TestGate()
        let bench = try await Bench(ticks: true) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 10)
        }
        let heard = Observed(Heard())
        let session = session(bench.folder, .added, [task("http://h.example/a", bench.folder)], heard)
        async let end = session.run()
        await gate.reached()
        _ = await heard.wait { $0.lines.contains("a action") || $0.lines.contains("a idle") }
        try await bench.control.trash(.all)
        let tracker = try await end
        #expect(tracker.isSettled && tracker.count(.unknown) == 1)
        #expect(heard.value.lines.last == "a unknown")
    }

    @Test("a run that is refused ends: nobody waits for tasks that nobody runs", arguments: [false, true])
    func refused(_ isFollowing: Bool) async throws {
        let gate = TestGate()
        let bench = try await Bench(ticks: true, isActive: isFollowing) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 10)
        }
        let id = try await bench.add("a")
        if isFollowing { await gate.reached() } else { await bench.downloader.close() }
        let heard = Observed(Heard())
        let session = RunSession(
            configure: configure(bench.folder), goal: .tasks([id]),
            requests: [.init(.run(.barrel("none")))], interval: 0.05
        ) { event in heard.update { $0.add(event) } }
        let tracker = try await session.run()
        #expect(tracker.count(.complete) == 0)
        #expect(heard.value.lines.contains("replies 1"))
    }

    @Test("a session that took over asks for its tasks once, when its requests are answered too")
    func duty() {
        var first = FollowedTasks()
        let asked = [first.replied(), first.tookOver()]
        #expect(asked == [false, true])
        // The former engine answered and ended: nobody else would run the tasks.
        var second = FollowedTasks()
        let askedLater = [second.tookOver(), second.replied()]
        #expect(askedLater == [false, true])
    }

    @Test("the engine closes in the middle: the session takes over and goes on after its bytes")
    func takeover() async throws {
        let server = try served()
        let gate = TestGate()
        let bench = try await Bench(ticks: true) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 100_000)
        }
        let heard = Observed(Heard())
        let session = session(bench.folder, .added, [task(server.url("/a"), bench.folder)], heard)
        async let end = session.run()
        await gate.reached()
        _ = await heard.wait { $0.lines.contains("a action") || $0.lines.contains("a idle") }
        await bench.downloader.close()
        #expect(try await end.count(.complete) == 1)
        #expect(heard.value.lines.contains("engine, took over"))
        #expect(server.requests.map { $0["Range"] } == ["bytes=100000-"])
        #expect(try bench.out("a") == Self.content)
    }

    @Test("two sessions on one work path: one is the engine, both end with their tasks, the second may take over")
    func twoSessions() async throws {
        let folder = try TemporaryFolder()
        let stop = Gate()
        let server = try FaultServer()
        // Neither file is whole before the first session has ended: the second one may have asked for the rest by then.
        server.routeOthers { request in
            let response = FaultResponse.ranged(Self.content, for: request, etag: "\"1\"")
            return response.stalling(at: request["Range"] == nil ? 200_000 : 1, until: stop)
        }
        let one = Observed(Heard())
        let two = Observed(Heard())
        let first = session(folder, .added, [task(server.url("/a"), folder)], one)
        async let firstEnd = first.run()
        _ = await one.wait { $0.lines.contains("a action") }
        let second = session(folder, .added, [task(server.url("/a"), folder), task(server.url("/b"), folder)], two)
        async let secondEnd = second.run()
        _ = await two.wait { $0.lines.contains("following") && $0.lines.contains("replies 1") }
        await first.stop()
        #expect(try await firstEnd.count(.complete) == 0)
        stop.open()
        let tracker = try await secondEnd
        #expect(tracker.count(.complete) == 2)
        #expect(two.value.lines.contains("engine, took over"))
        #expect(try folder.read("out/a") == Self.content)
        #expect(try folder.read("out/b") == Self.content)
    }

    @Test("stopped at any moment a session ends, and the work path is free", arguments: 0..<12)
    func stopped(_ round: Int) async throws {
        let folder = try TemporaryFolder()
        let server = try served()
        let heard = Observed(Heard())
        let tasks = (0..<20).map { task(server.url("/\($0)"), folder) }
        let session = session(folder, .added, tasks, heard)
        async let end = session.run()
        _ = await heard.wait { $0.lines.count >= round * 3 + 1 }
        await session.stop()
        _ = try await end
        #expect(!EngineLock.isHeld(WorkPath(folder.file("work"))))
        let again = Observed(Heard())
        let tracker = try await self.session(folder, .everything, tasks, again).run()
        #expect(tracker.isSettled)
        for index in 0..<20 { #expect(try folder.read("out/\(index)") == Self.content) }
    }
}
