import TestSupport
import Testing

@Suite("Records, attributes and last use")
struct RecordsTests {
    private static let content = Bytes.pattern(count: 1_000)

    @Test("a query sees the tasks as they are now, running ones with their bytes")
    func query() async throws {
        let gate = TestGate()
        // Large enough to be recorded before its end.
        let large = Bytes.pattern(count: 400_000)
        let bench = try await Bench { request, _ in
            request.urlRequest.url?.path == "/slow"
                ? .file(large, to: request, gate: gate, pauseAt: 160_000) : .file(Self.content, to: request)
        }
        let done = try await bench.completed("done", barrel: "set")
        let slow = try await bench.add("slow", barrel: "set")
        await gate.reached()
        let record = try await bench.messager.records().records.last { $0.received == 160_000 }
        #expect(record?.id == slow && record?.state == .action && record?.fraction == 0.4)
        var query = RecordQuery()
        query.states = [.complete]
        query.barrel = "set"
        #expect(try await bench.messager.records(query).records.map(\.id) == [done])
        query.barrel = nil
        query.ids = [slow, done]
        #expect(try await bench.messager.records(query).records.map(\.id) == [done])
        gate.open()
        #expect(await bench.finished(slow)?.state == .complete)
        query.limit = 1
        let page = try await bench.messager.records(query)
        #expect(page.records.map(\.id) == [done] && page.total == 2)
        #expect(try await bench.messager.records(try #require(page.next)).records.map(\.id) == [slow])
        query.offset = -1
        await #expect(throws: DownloadError.self) { try await bench.messager.records(query) }
    }

    @Test("attributes are set, replaced and removed in the info file; they outlive the engine")
    func attributes() async throws {
        let bench = try await Bench(content: Self.content)
        let id = try await bench.add("a") { $0.attributes = ["model": "7", "old": "x"] }
        _ = await bench.finished(id)
        #expect(try await bench.control.setAttributes(.id(id), ["old": nil, "owner": "me"]) == 1)
        #expect(try bench.stored(id).task.attributes == ["model": "7", "owner": "me"])
        // The same task again, with another pair.
        _ = try await bench.add("a") { $0.attributes = ["more": "1"] }
        await bench.downloader.close()
        let second = try await Bench(in: bench.folder, content: Self.content)
        var query = RecordQuery()
        query.attributes = ["owner": "me", "more": "1"]
        #expect(try await second.messager.records(query).records.map(\.id) == [id])
    }

    @Test("a pair that is too long is refused and nothing changes, for a new task as for an old one")
    func tooLong() async throws {
        let bench = try await Bench(content: Self.content)
        let a = try await bench.add("a")
        let long = String(repeating: "x", count: 5_000)
        await #expect(throws: DownloadError.self) {
            try await bench.control.setAttributes(.all, ["good": "1", "long": long])
        }
        #expect(try bench.stored(a).task.attributes.isEmpty)
        await #expect(throws: DownloadError.self) { try await bench.add("b") { $0.attributes = ["long": long] } }
        #expect(await bench.messager.exists("http://h.example/b") == false)
        await #expect(throws: DownloadError.self) {
            try await bench.control.setAttributes("http://h.example/none", ["a": "b"])
        }
    }

    @Test("the last use is recorded and can be sorted by")
    func lastUsed() async throws {
        let bench = try await Bench(content: Self.content)
        var ids: [TaskID] = []
        for name in ["a", "b", "c"] {
            ids.append(try await bench.add(name))
            _ = await bench.finished(ids[ids.count - 1])
        }
        for index in [2, 0] {
            await bench.advance(1)
            #expect(try await bench.control.markUsed(.id(ids[index])) == 1)
        }
        var query = RecordQuery()
        query.sort = .lastUsed
        query.ascending = false
        #expect(try await bench.messager.records(query).records.map(\.id) == [ids[0], ids[2], ids[1]])
        #expect(try bench.stored(ids[0]).lastUsed != nil)
    }

    @Test("other processes ask for both through the mailbox")
    func mailbox() async throws {
        let bench = try await Bench(content: Self.content)
        let id = try await bench.add("a") { $0.attributes = ["gone": "1"] }
        _ = await bench.finished(id)
        for request in [
            EngineMessage(.setAttributes(.id(id), ["k": "v", "gone": nil])), EngineMessage(.markUsed(.id(id))),
        ] {
            let data = try StoreJSON.encode(request)
            #expect(try StoreJSON.decode(EngineMessage.self, from: data) == request)
            #expect(await bench.engine.answer(request) == .count(1))
        }
        let record = try bench.stored(id)
        #expect(record.task.attributes == ["k": "v"] && record.lastUsed != nil)
    }
}
