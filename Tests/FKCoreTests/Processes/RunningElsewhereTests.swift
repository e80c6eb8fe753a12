import TestSupport
import Testing

@Suite("What other processes see of a running task")
struct RunningElsewhereTests {
    private static let content = Bytes.pattern(count: 400_000)

    @Test(
        "running, with its bytes and its rate, within 2 s after each start of the engine; no rate while nothing arrives"
    )
    func seen() async throws {
        let folder = try TemporaryFolder()
        for round in 1...3 {
            let gate = TestGate()
            let bench = try await Bench(in: folder) { request, _ in
                .file(Self.content, to: request, gate: gate, pauseAt: 100_000)
            }
            let reader = StoreReader(bench.workPath)
            let id = try await bench.add("a")
            await gate.reached()
            await bench.advance(1)
            await bench.advance(1)
            let moving = try reader.record(id)
            #expect(moving.state == .action && moving.received == Int64(round) * 100_000)
            #expect(moving.bytesPerSecond ?? 0 > 10_000)
            for _ in 1...20 { await bench.advance(1) }
            let silent = try reader.record(id)
            #expect(silent.state == .action && silent.bytesPerSecond == nil)
            await bench.downloader.close()
            #expect(try reader.record(id).state == .idle)
        }
    }
}
