import TestSupport
import Testing

@testable import FKEngine

/// Downloaders that do not own their work path, beside one that does. Both are in this process: the lock of a work path
/// excludes a second owner here as well.
@Suite("Roles")
struct ClientRoleTests {
    static let content = Bytes.pattern(count: 400_000)

    private func join(_ bench: Bench, _ role: DownloaderRole = .client) throws -> Downloader {
        try Downloader(configure(bench.folder), role: role, transport: bench.transport)
    }

    private func configure(_ folder: TemporaryFolder) -> Configure {
        var configure = Configure(workPath: folder.file("work"))
        configure.retry.jitter = 0
        configure.distributeSpeed = 1
        return configure
    }

    private func owner(_ gate: TestGate? = nil, pauseAt: Int = 100_000) async throws -> Bench {
        try await Bench(ticks: true, settings: { $0.distributeSpeed = 1 }) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: pauseAt)
        }
    }

    /// The states of a task as a callback hears them, without repetitions.
    private func states(_ downloader: Downloader, _ id: TaskID) async throws -> Observed<[DownloadState]> {
        let heard = Observed<[DownloadState]>([])
        try await downloader.messager.addInfo(.id(id)) { info in
            heard.update { if $0.last != info.state { $0.append(info.state) } }
        }.keep()
        return heard
    }

    /// Returns once the owner writes its changes.
    private func connected(_ bench: Bench, _ isConnected: Bool = true) async throws {
        let isThere = try await eventually { await bench.engine.writesChanges == isConnected ? true : nil }
        try #require(isThere != nil)
    }

    @Test("a second owner is refused; a client and a follower of either kind are not")
    func roles() async throws {
        let bench = try await owner()
        #expect { try join(bench, .owner) } throws: { ($0 as? DownloadError)?.code == .workPathBusy }
        for role in [DownloaderRole.client, .either] {
            let second = try join(bench, role)
            #expect(await second.owner == .process(pid: getpid(), host: ProcessInfo.processInfo.hostName))
            await second.close()
            #expect(await second.owner == .nobody)
        }
        #expect(await bench.downloader.owner == .thisDownloader)
    }

    @Test("an owner whose lock file was replaced is a closed downloader: it has no owner, and refuses")
    func lockReplaced() async throws {
        let folder = try TemporaryFolder()
        let downloader = try Downloader(configure(folder), role: .either)
        downloader.activateQueue()
        #expect(await downloader.owner == .thisDownloader)
        let workPath = WorkPath(folder.file("work"))
        try FileManager.default.removeItem(atPath: workPath.lockPath)
        let other = try #require(try EngineLock.tryAcquire(workPath))
        let isOver = try await eventually { await downloader.owner == .nobody ? true : nil }
        #expect(isOver == true)
        await #expect { try await downloader.add("http://h/a") } throws: { ($0 as? DownloadError)?.code == .cancelled }
        #expect(await downloader.takeProblems().contains { $0.message.contains("lock of the work path") })
        other.release()
        await downloader.close()
    }

    @Test("a folder of records that a client cannot list is an error with its name, no empty list")
    func unlisted() async throws {
        let bench = try await owner()
        let client = try join(bench)
        #expect(try await client.messager.waiting().isEmpty)
        #expect(try await client.messager.running().isEmpty)
        let folder = bench.workPath.tasksFolder + "/zz"
        // A link to itself cannot be listed, by root neither.
        try FileManager.default.createSymbolicLink(atPath: folder, withDestinationPath: folder)
        for list in [client.messager.waiting, client.messager.running] {
            let error = await #expect(throws: DownloadError.self) { try await list() }
            #expect(error?.code == .disk && error?.message.contains(folder) == true, "\(error?.message ?? "")")
        }
        await client.close()
    }

    @Test("a client hears every change of state, however quick")
    func everyChange() async throws {
        let gate = TestGate()
        let bench = try await owner(gate, pauseAt: 1_000)
        let id = try await bench.add("a")
        await gate.reached()
        let client = try join(bench)
        let there = try await states(bench.downloader, id)
        let here = try await states(client, id)
        try await connected(bench)
        for _ in 0..<20 {
            try await bench.control.suspend(.id(id))
            try await bench.control.resume(.id(id))
        }
        gate.open()
        _ = await there.wait { $0.last == .complete }
        _ = await here.wait { $0.last == .complete }
        #expect(here.value == there.value)
        #expect(there.value.filter { $0 == .suspend }.count == 20)
        await client.close()
    }

    @Test("a client adds, suspends, resumes, retries and trashes; the results are the owner's")
    func steering() async throws {
        let gate = TestGate()
        let bench = try await owner(gate)
        let client = try join(bench)
        var builder = try Builder("http://h.example/a")
        builder.directory = bench.out
        let id = try await builder.prepare(in: client)
        await gate.reached()
        #expect(try await client.control.suspend(.id(id)).map(\.after) == [.suspend])
        #expect(await client.messager.state(.id(id)) == .suspend)
        #expect(await bench.state(id) == .suspend)
        #expect(try await client.control.resume(.all).map(\.before) == [.suspend])
        gate.open()
        #expect(await client.messager.finished(id)?.state == .complete)
        #expect(try bench.out("a") == Self.content)
        #expect(try await client.control.toggle(.id(id)).map(\.applied) == [false])
        #expect(try await client.messager.add(.id(id), toBarrel: "b") == 1)
        #expect(try await client.messager.barrels() == ["b"])
        #expect(try await client.messager.urls(inBarrel: "b") == ["http://h.example/a"])
        #expect(try await client.control.setAttributes(.id(id), ["k": "v"]) == 1)
        #expect(try await client.messager.records().records.map(\.attributes) == [["k": "v"]])
        #expect(try await client.messager.records().total == 1)
        #expect(try await client.control.trash(.id(id)).map(\.after) == [.unknown])
        #expect(await client.messager.exists(.id(id)) == false)
        await #expect { try await client.control.suspend(.id(id)) } throws: {
            ($0 as? DownloadError)?.code == .notFound
        }
        await client.close()
        await #expect { try await client.control.suspend(.all) } throws: { ($0 as? DownloadError)?.code == .cancelled }
    }

    @Test("sequences of a client: infos, sums and attempts, with their first and last value")
    func sequences() async throws {
        let gate = TestGate()
        let bench = try await owner(gate)
        let id = try await bench.add("a", barrel: "b")
        await gate.reached()
        let client = try join(bench)
        async let infos = client.messager.infos(.id(id)).reduce(into: []) { $0.append($1) }
        async let sums = client.messager.barrelInfos("b").reduce(into: []) { $0.append($1) }
        async let attempts = client.messager.attempts(.id(id)).reduce(into: []) { $0.append($1) }
        try await connected(bench)
        gate.open()
        #expect(await infos.last?.state == .complete)
        #expect(await infos.last?.count.received == 400_000)
        let last = try #require(await sums.last)
        #expect(last.isComplete && last.fraction == 1 && last.count.received == 400_000)
        // A sequence that begins when the task is complete already has no attempt.
        let phases = await attempts.map(\.phase)
        #expect(phases.isEmpty || phases.last == .succeeded)
        await client.close()
    }

    @Test("a client hears progress between two changes of state")
    func progress() async throws {
        let gate = TestGate()
        let bench = try await owner(gate, pauseAt: 250_000)
        let id = try await bench.add("a", barrel: "b")
        let client = try join(bench)
        let counts = Observed<Set<Int64>>([])
        try await client.messager.addBarrelInfo("b") { info in counts.update { _ = $0.insert(info.count.received) } }
            .keep()
        await gate.reached()
        _ = await counts.wait { $0.contains(250_000) }
        gate.open()
        _ = await counts.wait { $0.contains(400_000) }
        #expect(await client.messager.finished(id)?.state == .complete)
        await client.close()
    }

    @Test("without an owner a client stores tasks, and hears of them when one has come")
    func nobody() async throws {
        let folder = try TemporaryFolder()
        let client = try Downloader(configure(folder), role: .client)
        client.activateQueue()
        #expect(await client.owner == .nobody)
        var builder = try Builder("http://h.example/a")
        builder.directory = folder.path + "/out"
        let id = try await builder.prepare(in: client)
        #expect(await client.messager.state(.id(id)) == .idle)
        let here = try await states(client, id)
        async let end = client.messager.finished(id)
        let bench = try await Bench(in: folder, content: Self.content)
        #expect(await end?.state == .complete)
        _ = await here.wait { $0.last == .complete }
        #expect(try bench.out("a") == Self.content)
        await client.close()
    }

    @Test("either: takes over when the owner closes, with its listeners, and finishes the task")
    func takeover() async throws {
        let gate = TestGate()
        let bench = try await owner(gate)
        let id = try await bench.add("a", barrel: "b")
        await gate.reached()
        let second = try Downloader(
            configure(bench.folder), role: .either,
            transport: ScriptedTransport { request, _ in .file(Self.content, to: request) })
        let owners = Observed<[EngineOwner]>([])
        let listening = Task { for await owner in second.owners { owners.update { $0.append(owner) } } }
        let here = try await states(second, id)
        async let sums = second.messager.barrelInfos("b").reduce(into: []) { $0.append($1) }
        async let end = second.messager.finished(id)
        second.activateQueue()
        _ = await owners.wait { $0.count >= 1 }
        await bench.downloader.close()
        #expect(await end?.state == .complete)
        _ = await here.wait { $0.last == .complete }
        #expect(await sums.last?.isComplete == true)
        _ = await owners.wait { $0.last == .thisDownloader }
        #expect(try bench.out("a") == Self.content)
        #expect(try await second.control.suspend(.id(id)).map(\.applied) == [false])
        await second.close()
        await listening.value
        #expect(!EngineLock.isHeld(bench.workPath))
    }

    @Test("either: a request while nobody owns the work path makes it the owner")
    func ownsForRequest() async throws {
        let bench = try await owner()
        let second = try Downloader(
            configure(bench.folder), role: .either,
            transport: ScriptedTransport { request, _ in .file(Self.content, to: request) })
        await bench.downloader.close()
        var builder = try Builder("http://h.example/a")
        builder.directory = bench.out
        let id = try await builder.prepare(in: second)
        #expect(await second.owner == .thisDownloader)
        #expect(await second.messager.state(.id(id)) == .idle)
        second.activateQueue()
        #expect(await second.messager.finished(id)?.state == .complete)
        await second.close()
    }

    @Test("the owner's middlewares run, a client's do not")
    func middlewares() async throws {
        let bench = try await owner()
        let client = try join(bench)
        let ran = Observed<[String]>([])
        for (name, chains) in [("owner", bench.chains), ("client", client.middlewares)] {
            chains.onRequest("request step") { request, _ in
                ran.update { $0.append(name) }
            }
        }
        var builder = try Builder("http://h.example/a")
        builder.directory = bench.out
        let id = try await builder.prepare(in: client)
        #expect(await client.messager.finished(id)?.state == .complete)
        #expect(ran.value == ["owner"])
        await client.close()
    }

    @Test("closing a client ends its waits and sequences, and leaves the tasks alone")
    func closing() async throws {
        let gate = TestGate()
        let bench = try await owner(gate)
        let id = try await bench.add("a")
        await gate.reached()
        let client = try join(bench)
        async let wait = client.messager.finished(id)
        async let drained: Void = client.waitUntilDrained()
        async let infos = client.messager.infos(.id(id)).reduce(into: 0) { count, _ in count += 1 }
        try await connected(bench)
        await client.close()
        #expect(await wait?.state == .action)
        _ = await (drained, infos)
        #expect(await bench.state(id) == .action)
        try await connected(bench, false)
        gate.open()
    }

    @Test("a cancelled wait of a client ends at once")
    func cancelled() async throws {
        let gate = TestGate()
        let bench = try await owner(gate)
        let id = try await bench.add("a")
        await gate.reached()
        let client = try join(bench)
        let waits = [
            Task { _ = await client.messager.finished(id) }, Task { await client.waitUntilDrained() },
            Task { for await _ in client.messager.infos(.id(id)) {} },
        ]
        try await connected(bench)
        for wait in waits { wait.cancel() }
        for wait in waits { await wait.value }
        #expect(await bench.state(id) == .action)
        await client.close()
        gate.open()
    }

    @Test("drained: a client is told each time the owner has nothing left to run")
    func drained() async throws {
        let bench = try await owner()
        let client = try join(bench)
        let count = Observed(0)
        await client.onQueueDrained { count.update { $0 += 1 } }
        try await connected(bench)
        try await bench.add("a")
        _ = await count.wait { $0 >= 1 }
        try await bench.add("b")
        _ = await count.wait { $0 >= 2 }
        await client.waitUntilDrained()
        await client.close()
    }
}

extension Engine {
    fileprivate var writesChanges: Bool { reporter.changes.isOpen }
}
