import TestSupport
import Testing

@testable import FKEngine

@Suite("Barrels")
struct BarrelTests {
    static let content = Bytes.pattern(count: 1_000)

    private func sum(_ bench: Bench, _ name: String) async throws -> BarrelInfo {
        try await bench.messager.barrelInfo(name)
    }

    @Test("members, finished ones included, in the order in which they joined; they survive a restart")
    func membership() async throws {
        let first = try await Bench(content: Self.content)
        for name in ["b", "a", "c"] { try await first.add(name, barrel: "books") }
        await first.engine.waitUntilDrained()
        let urls = ["b", "a", "c"].map { "http://h.example/\($0)" }
        #expect(try await first.messager.urls(inBarrel: "books") == urls)
        #expect(try await first.messager.barrels() == ["books"])
        await first.downloader.close()
        let second = try await Bench(in: first.folder, content: Self.content)
        #expect(try await second.messager.urls(inBarrel: "books") == urls)
        let info = try await sum(second, "books")
        #expect(info.isComplete && info.total == 3 && info.states == [.complete: 3])
        #expect(info.count == ByteCount(received: 3_000, expected: 3_000))
        #expect(await second.messager.info(.url(urls[0]))?.barrels == ["books"])
    }

    @Test("a barrel that cannot be saved is an error of the request that changes its members")
    func unsaved() async throws {
        let bench = try await Bench(content: Self.content)
        let id = try await bench.completed("a", barrel: "b")
        // The file of the barrel cannot take the place of a folder.
        let path = bench.workPath.barrelPath("b")
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        let left = await #expect(throws: DownloadError.self) { try await bench.messager.leave(.id(id), barrel: "b") }
        #expect(left?.message.hasPrefix("The barrel b could not be saved: ") == true, "\(left as Any)")
        let joined = await #expect(throws: DownloadError.self) {
            try await bench.engine.add([bench.task("c")], barrel: "b", run: false)
        }
        #expect(joined?.message.hasPrefix("The barrel b could not be saved: ") == true, "\(joined as Any)")
    }

    @Test("the sum is its members' sum at every moment, and never goes back as they finish")
    func sums() async throws {
        let gates = (0..<4).map { _ in TestGate() }
        let content = Bytes.pattern(count: 300_000)
        let bench = try await Bench(settings: { $0.maxAction = 2 }) { request, number in
            .file(content, to: request, gate: gates[number - 1], pauseAt: 1_000 * number)
        }
        let seen = Observed<[BarrelInfo]>([])
        for index in 0..<4 { try await bench.add("f\(index)", barrel: "b") }
        try await bench.messager.addBarrelInfo("b") { info in seen.update { $0.append(info) } }.keep()
        for (index, gate) in gates.enumerated() {
            await gate.reached()
            await bench.advance(1)
            let info = try await sum(bench, "b")
            let members = await bench.messager.all(.barrel("b"))
            #expect(info.count.received == members.map(\.count.received).reduce(0, +))
            #expect(info.count.expected == members.compactMap(\.count.expected).reduce(0, +))
            #expect(info.states == Dictionary(grouping: members, by: \.state).mapValues(\.count))
            gate.open()
            await bench.reached("f\(index)", .complete)
        }
        await bench.advance(1)
        let all = await seen.wait { $0.last?.isComplete == true }
        #expect(all.last?.count.received == 1_200_000)
        for (before, after) in zip(all, all.dropFirst()) {
            #expect(after.count.received >= before.count.received)
            #expect((after.count.expected ?? 0) >= (before.count.expected ?? 0))
            #expect(after.count.previousReceived == before.count.received)
        }
    }

    @Test("a callback of a barrel hears once more when no bytes come: received is then as before")
    func stopped() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in .file(Self.content, to: request, gate: gate, pauseAt: 1_000) }
        let seen = Observed<[BarrelInfo]>([])
        let id = try await bench.add("a", barrel: "b")
        try await bench.messager.addBarrelInfo("b") { info in seen.update { $0.append(info) } }.keep()
        await gate.reached()
        try await bench.control.suspend(.id(id))
        for _ in 0..<30 { await bench.advance(1) }
        await bench.engine.callbacks.drained()
        let moves = seen.value.map { $0.count.received - $0.count.previousReceived }
        #expect(moves.reduce(0, +) == 1_000 && moves.last == 0)
        let count = seen.value.count
        for _ in 0..<5 { await bench.advance(1) }
        await bench.engine.callbacks.drained()
        #expect(seen.value.count == count)
    }

    @Test("tasks added to a barrel that is being watched count once")
    func addWhileWatched() async throws {
        let bench = try await Bench(isActive: false, content: Self.content)
        try await bench.add("a", barrel: "b")
        #expect(try await sum(bench, "b").states == [.idle: 1])
        try await bench.add("c", barrel: "b")
        let info = try await sum(bench, "b")
        #expect(info.states == [.idle: 2] && info.total == 2)
        try await bench.add("c", barrel: "b")
        #expect(try await sum(bench, "b").states == [.idle: 2])
        await bench.engine.activate()
        await bench.engine.waitUntilDrained()
        #expect(try await sum(bench, "b").count == ByteCount(received: 2_000, expected: 2_000))
    }

    @Test("a URL that is put into a barrel before it has a task joins when the task is made, also after a restart")
    func awaited() async throws {
        let bench = try await Bench(content: Self.content)
        let messager = bench.messager
        let names = ["x %\u{e9}", "y"]
        let urls = ["a", "b", "c"].map { bench.task($0).url }
        for name in names { #expect(try await messager.addBarrel(name, urls: urls) == 0) }
        #expect(try await messager.addBarrel("gone", urls: [bench.task("a").url]) == 0)
        try await messager.removeBarrel("gone")
        try await messager.remove(bench.task("b").url, fromBarrel: "y")
        #expect(try await sum(bench, "y").total == 0)
        let a = try await bench.add("a")
        #expect(await messager.info(.id(a))?.barrels == names)
        await bench.downloader.close()
        let next = try await Bench(in: bench.folder, content: Self.content)
        _ = await next.finished(try await next.add("b"))
        _ = await next.finished(try await next.add("c", barrel: "z"))
        #expect(try await next.messager.urls(inBarrel: names[0]) == urls)
        #expect(try await next.messager.urls(inBarrel: "y") == ["a", "c"].map { bench.task($0).url })
        #expect(try await next.messager.urls(inBarrel: "z") == [bench.task("c").url])
        #expect(try await sum(next, "y").isComplete)
        #expect(!FileManager.default.fileExists(atPath: bench.workPath.awaitedPath))
    }

    @Test("a task may be in many barrels; leaving or deleting one touches no other, and no task")
    func many() async throws {
        let bench = try await Bench(content: Self.content)
        let a = try await bench.add("a", barrel: "x")
        let b = try await bench.add("b")
        await bench.engine.waitUntilDrained()
        for name in ["y", "z"] { #expect(try await bench.messager.add(.id(a), toBarrel: name) == 1) }
        #expect(try await bench.messager.add(.id(a), toBarrel: "z") == 0)
        #expect(try await bench.messager.addBarrel("z", urls: ["http://h.example/b"]) == 1)
        #expect(await bench.messager.info(.id(a))?.barrels == ["x", "y", "z"])
        try await bench.messager.remove("http://h.example/a", fromBarrel: "y")
        try await bench.messager.removeBarrel("z")
        #expect(await bench.messager.info(.id(a))?.barrels == ["x"])
        #expect(await bench.messager.info(.id(b))?.barrels == [])
        #expect(try await bench.messager.barrels() == ["x", "y"])
        #expect(try await sum(bench, "y").total == 0)
        #expect(try await sum(bench, "x").isComplete)
        #expect(await bench.messager.all().map(\.state) == [.complete, .complete])
        await #expect { try await self.sum(bench, "z") } throws: { ($0 as? DownloadError)?.code == .notFound }
        await #expect { try await bench.messager.remove("http://h.example/b", fromBarrel: "x") } throws: {
            ($0 as? DownloadError)?.code == .notFound
        }
    }

    @Test("a trashed task leaves its barrels")
    func trashed() async throws {
        let bench = try await Bench(content: Self.content)
        let a = try await bench.add("a", barrel: "x")
        try await bench.add("b", barrel: "x")
        await bench.engine.waitUntilDrained()
        #expect(try await sum(bench, "x").total == 2)
        try await bench.control.trash(.id(a))
        let info = try await sum(bench, "x")
        #expect(info.total == 1 && info.states == [.complete: 1])
        #expect(info.count == ByteCount(received: 1_000, expected: 1_000))
    }

    @Test("verbs for a barrel mean its members")
    func verbs() async throws {
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.maxAction = 1 }) { request, _ in
            .file(Self.content, to: request, gate: gate)
        }
        for name in ["a", "b", "c"] { try await bench.add(name, barrel: "x") }
        let other = try await bench.add("other")
        #expect(try await bench.control.suspend(.barrel("x")).count == 3)
        #expect(try await sum(bench, "x").states == [.suspend: 3])
        gate.open()
        #expect(await bench.finished(other)?.state == .complete)
        #expect(try await bench.control.resume(.barrel("x")).allSatisfy(\.applied))
        await bench.engine.waitUntilDrained()
        #expect(try await sum(bench, "x").isComplete)
    }

    @Test("a barrel's settings go to members that have none of their own, and a second creating replaces them")
    func options() async throws {
        let bench = try await Bench(isActive: false, content: Self.content)
        var options = TaskOptions()
        options.maxSize = 5
        var reply = await bench.engine.answer(
            .createBarrel(name: "x", options: .init(directory: bench.out + "/x", options: options)))
        #expect(reply.doneNote != nil)
        var task = TaskDescription(url: "http://h.example/a")
        let a = try await bench.engine.add([task], barrel: "x", run: true)[0].id
        task.url = "http://h.example/b"
        task.directory = bench.out
        task.options.maxSize = 7
        let b = try await bench.engine.add([task], barrel: "x", run: true)[0].id
        #expect(try await bench.record(a).task.directory == bench.out + "/x")
        #expect(try await bench.record(a).task.options.maxSize == 5)
        #expect(try await bench.record(b).task.directory == bench.out)
        #expect(try await bench.record(b).task.options.maxSize == 7)
        reply = await bench.engine.answer(.createBarrel(name: "x", options: .init()))
        #expect(try await bench.messager.urls(inBarrel: "x").count == 2)
        reply = await bench.engine.answer(.createBarrel(name: "", options: .init()))
        let error = try #require(reply.failure)
        #expect(error.code == .invalidArgument)
    }

    @Test("a failed member counts as failed, and retrying it makes the barrel whole")
    func failed() async throws {
        let bench = try await Bench { request, number in
            number == 1 ? .status(404) : .file(Self.content, to: request)
        }
        for name in ["a", "b"] { try await bench.add(name, barrel: "x") }
        await bench.engine.waitUntilDrained()
        #expect(try await sum(bench, "x").states == [.error: 1, .complete: 1])
        #expect(try await !sum(bench, "x").isComplete)
        _ = try await bench.control.retry(.barrel("x"))
        await bench.engine.waitUntilDrained()
        #expect(try await sum(bench, "x").isComplete)
        await bench.advance(1)
        #expect(try BarrelFile.read("x", in: bench.workPath).members.count == 2)
    }

    @Test("a sequence of sums ends when no member can run any more", arguments: [true, false])
    func sequence(_ completes: Bool) async throws {
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.maxAction = 1 }) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 10)
        }
        try await bench.add("blocks")
        await gate.reached()
        try await bench.add("a", barrel: "x")
        let stream = bench.messager.barrelInfos("x")
        let first = Observed(false)
        let reader = Task {
            var last: BarrelInfo?
            for await info in stream {
                last = info
                first.update { $0 = true }
            }
            return last
        }
        _ = await first.wait { $0 }
        if completes {
            gate.open()
            await bench.engine.waitUntilDrained()
        } else {
            try await bench.control.cancel(.barrel("x"))
            // Nothing at all runs now.
            try await bench.control.suspendAll()
        }
        await bench.advance(1)
        #expect(await reader.value?.states == [completes ? .complete : .cancel: 1])
    }
}
