import TestSupport
import Testing

@testable import FKEngine

/// Files of at most 256 KiB, which are written without the engine being asked first.
@Suite("Small files that take their time")
struct SmallFileTests {
    static let content = Bytes.pattern(count: 119_000)

    /// A task with so many bytes of a small file.
    private func running(
        _ received: Int = 20_000, answer: (@Sendable (TransportRequest, Int, TestGate) -> Bench.Answer)? = nil
    ) async throws -> (Bench, TaskID, TestGate) {
        let gate = TestGate()
        let bench = try await Bench { request, number in
            answer?(request, number, gate) ?? .file(Self.content, to: request, gate: gate, pauseAt: received)
        }
        let id = try await bench.add("a", barrel: "x")
        await gate.reached()
        return (bench, id, gate)
    }

    private func end(_ bench: Bench, _ id: TaskID, _ gate: TestGate) async throws {
        gate.open()
        try await bench.expect("a", Self.content, of: id)
        #expect(bench.names == ["a"])
        let record = try bench.stored(id)
        #expect(record.received == 119_000 && record.expected == 119_000 && record.ranges.count == 1)
        #expect(record.history.isEmpty && record.response != nil && record.validator != nil)
    }

    @Test("whoever asks sees how far it is and how long it will be")
    func asked() async throws {
        let (bench, id, gate) = try await running()
        #expect(await bench.messager.info(.id(id))?.count == ByteCount(received: 20_000, expected: 119_000))
        #expect(try await bench.messager.running().map(\.count.received) == [20_000])
        #expect(try await bench.messager.barrelInfo("x").count == ByteCount(received: 20_000, expected: 119_000))
        #expect(await bench.messager.record(.id(id))?.size == 119_000)
        #expect(try await bench.messager.records().records.map(\.size) == [119_000])
        // Nothing was written for that.
        #expect(try bench.stored(id).ranges.isEmpty)
        try await end(bench, id, gate)
    }

    @Test("callbacks and download middlewares hear of it at the polled interval")
    func told() async throws {
        let counts = Observed<[ByteCount]>([])
        let middlewares = Observed<[ByteCount]>([])
        let (bench, id, gate) = try await running()
        bench.chains.register(download: DownloadStep(onCount: { _, count in middlewares.update { $0.append(count) } }))
        try await bench.messager.addInfo(.id(id)) { info in counts.update { $0.append(info.count) } }.keep()
        await bench.advance(1)
        #expect(await counts.wait { !$0.isEmpty }.first?.expected == 119_000)
        #expect(await middlewares.wait { !$0.isEmpty } == [ByteCount(received: 20_000, expected: 119_000)])
        try await end(bench, id, gate)
    }

    @Test("other processes see it after a tick, and the bytes that come then at once")
    func otherProcesses() async throws {
        let second = TestGate()
        let (bench, id, gate) = try await running { request, _, gate in
            var answer = Bench.Answer.file(Self.content, to: request, gate: gate, pauseAt: 20_000)
            answer.steps.removeLast()
            answer.steps += [
                .bytes(Array(Self.content[20_000..<60_000])), .wait(second), .bytes(Array(Self.content[60_000...])),
            ]
            return answer
        }
        let reader = StoreReader(bench.workPath)
        #expect(try reader.record(id).received == 0)
        await bench.advance(1)
        let record = try reader.record(id)
        #expect(record.state == .action && record.received == 20_000 && record.expected == 119_000)
        gate.open()
        await second.reached()
        #expect(try reader.record(id).received == 60_000)
        try await end(bench, id, second)
    }

    /// A write of another program to the part file of a killed process.
    struct Edit: Sendable {
        /// The length of the part after it.
        var length: Int
        /// So much later than the process.
        var seconds: Double
    }

    @Test(
        "what was recorded of it is kept when the process is killed, unless somebody then writes to the part",
        arguments: [
            (nil, "-"), (nil, "bytes=20000-"), (Edit(length: 20_000, seconds: 0.002), "-"),
            // The last bytes of the process may have no position.
            (Edit(length: 40_000, seconds: 1), "bytes=20000-"), (Edit(length: 40_000, seconds: 10), "-"),
        ] as [(Edit?, String)])
    func killed(_ edit: Edit?, _ range: String) async throws {
        let (bench, id, gate) = try await running()
        _ = await bench.messager.info(.id(id))
        if edit != nil || range != "-" { await bench.advance(1) }
        let copy = try bench.snapshot()
        if let edit {
            let part = bench.folder.file("out/\(try #require(bench.names.first))")
            try Data(Self.content[..<edit.length]).write(to: part, options: [])
            let later = [FileAttributeKey.modificationDate: Date.now + edit.seconds]
            try FileManager.default.setAttributes(later, ofItemAtPath: part.path)
        }
        let next = try await Bench(in: copy, isActive: false, content: Self.content)
        _ = try await next.engine.add([bench.task("a")], barrel: nil, run: true)
        await next.engine.activate()
        #expect(await next.finished(id)?.state == .complete)
        #expect(next.sent("Range") == [range])
        #expect(try bench.out("a") == Self.content)
        await next.downloader.close()
        gate.open()
    }

    @Test("a second attempt of which something was seen ends well")
    func secondAttempt() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, number in
            if number == 1 { return .file(Self.content, to: request, cut: 0) }
            return .file(Self.content, etag: nil, to: request, gate: gate, pauseAt: 20_000)
        }
        let id = try await bench.add("a")
        await bench.retried("a", after: 60)
        await gate.reached()
        await bench.advance(1)
        await bench.advance(1)
        #expect(await bench.messager.info(.id(id))?.count.received == 20_000)
        gate.open()
        try await bench.expect("a", Self.content, of: id)
        #expect(bench.transport.requests.count == 2)
    }
}
