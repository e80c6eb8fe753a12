import TestSupport
import Testing

@testable import FKEngine
@testable import FKStore

@Suite("Forget")
struct ForgetTests {
    static let content = Bytes.pattern(count: 400_000)

    @Test("forget of a complete task keeps its file and removes everything else of it")
    func complete() async throws {
        let scene = try await VerbTests.scene(.complete)
        let bench = scene.bench
        let result = try #require(try await bench.control.forget(.id(scene.id)).first)
        #expect(result.applied && result.verb == .forget && result.after == .unknown)
        #expect(result.note == "forgotten, kept \(bench.out)/a")
        #expect(try bench.out("a") == Self.content && bench.names == ["a"])
        #expect(await !bench.messager.exists(.id(scene.id)))
        #expect(!FileManager.default.fileExists(atPath: bench.workPath.infoPath(scene.id)))
    }

    @Test("the kept file is no task's any more: neither trash nor a new task of the same URL touches it")
    func released() async throws {
        let scene = try await VerbTests.scene(.complete)
        let bench = scene.bench
        try await bench.control.forget(.id(scene.id))
        #expect([.none, .unknown].contains(FileOwner.mark(of: "\(bench.out)/a")))
        let again = try await bench.add("a")
        #expect(again == scene.id)
        let info = try #require(await bench.finished(again))
        #expect(info.state == .complete && info.path?.hasSuffix("/out/a.1") == true)
        try await bench.control.trash(.id(again))
        #expect(try bench.out("a") == Self.content && bench.names == ["a"])
    }

    @Test("a file whose response chain has not ended is unfinished: forget deletes it")
    func responding() async throws {
        let bench = try await Bench(content: Self.content)
        let gate = bench.holdResponses()
        let id = try await bench.add("a")
        await gate.reached()
        async let given = bench.control.forget(.id(id))
        await bench.reached("a", .unknown)
        gate.open()
        #expect(try await given.first?.applied == true)
        #expect(bench.names == [])
    }

    @Test("forget while a finished file is compared keeps the file")
    func comparing() async throws {
        let scene = try await ComparisonTests.Scene()
        async let given = scene.bench.control.forget(.id(scene.id))
        await scene.bench.reached("a", .unknown)
        scene.release()
        #expect(try await given[0].applied)
        #expect(scene.bench.names == ["a"])
        #expect(await !scene.bench.messager.exists(.id(scene.id)))
    }

    @Test("a file that the task did not write, or that was changed since, stays as well")
    func foreign() async throws {
        let bench = try await Bench(content: Self.content)
        try bench.folder.write([7], to: "out/a")
        let kept = try await bench.add("a") { $0.options.existing = .skip }
        let changed = try await bench.add("b")
        _ = await bench.finished(kept)
        _ = await bench.finished(changed)
        try bench.folder.write([8], to: "out/b")
        try await bench.control.forget(.all)
        #expect(try bench.out("a") == [7] && bench.out("b") == [8])
        #expect(await bench.messager.all().isEmpty)
    }

    @Test("a forget posted by another process is carried out once, though the same task was added since")
    func posted() async throws {
        let first = try await Bench(content: Self.content)
        try await first.completed("a")
        await first.downloader.close()
        let mailbox = Mailbox(first.workPath)
        let message = try mailbox.post(.verb(.forget, .all))
        let next = try await Bench(in: first.folder, content: Self.content)
        await next.engine.afterLeftovers()
        #expect(try mailbox.readReply(message)?.verbResults?.map(\.verb) == [.forget])
        #expect(next.names == ["a"])
        let again = try await next.add("a")
        await next.advance(5)
        #expect(await next.finished(again)?.state == .complete)
    }

    @Test(
        "a forget or trash whose engine closes before the run has ended has one answer, with its URL",
        arguments: [Verb.forget, .trash])
    func changedHands(_ verb: Verb) async throws {
        let first = try await Bench(content: Self.content)
        let gate = first.holdRequests()
        let id = try await first.add("a")
        await gate.reached()
        let message = try Mailbox(first.workPath).post(.verb(verb, .all))
        await first.advance(2)
        await first.reached("a", .unknown)
        async let closed: Void = first.downloader.close()
        while case .limits = await first.engine.answer(.limits) { await Task.yield() }
        gate.open()
        await closed
        let next = try await Bench(in: first.folder, content: Self.content)
        await next.engine.afterLeftovers()
        let results = try #require(try Mailbox(first.workPath).readReply(message)?.verbResults)
        #expect(results.map(\.id) == [id] && results.map(\.url) == [first.task("a").url])
        #expect(results.map(\.applied) == [true] && results.map(\.before) == [.action])
        #expect(results.map(\.note) == ["forgotten"] && next.names == [])
    }
}
