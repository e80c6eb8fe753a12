import TestSupport
import Testing

/// After a power cut the first engine ends as well, before it has got a byte.
@Suite("An engine that ends early after a power cut")
struct PowerCutTests {
    private static let content = Bytes.pattern(count: 4_000_000)

    /// A part file of the right length without the right bytes, in one piece or four, and counters that tell of all of them.
    private func torn(_ folder: TemporaryFolder, ranges count: Int64, historyBytes: Int) async throws -> TaskID {
        let bench = try await Bench(in: folder, content: Self.content)
        let id = try await bench.completed("a.bin")
        var record = try bench.stored(id)
        await bench.downloader.close()
        let size = Int64(Self.content.count)
        record.state = .action
        record.edit {
            $0.path = nil
            $0.finished = nil
            $0.pieces = nil
        }
        record.bootID = "the boot before"
        record.edit {
            $0.partName = FileNameRules.partName(for: "a.bin", id: id)
            $0.ranges = (0..<count).map { SavedRange(start: size / count * $0, end: size / count * ($0 + 1)) }
        }
        record.task.attributes["k"] = String(repeating: "x", count: historyBytes)
        let path = bench.workPath.infoPath(id)
        #expect(unlink(path) == 0 && unlink(bench.out + "/a.bin") == 0)
        _ = try InfoFile.create(at: path, record: record)
        let counters = LiveCounters(record.ranges)
        try counters.attach(path: path)
        for (index, range) in record.ranges.enumerated() { counters.store(index, range.end ?? 0) }
        try folder.write([UInt8](repeating: 0, count: Self.content.count), to: "out/\(record.partName ?? "")")
        return id
    }

    @Test(
        "counters from before a power cut never count again, also when the next engine ends before its first answer",
        arguments: [1, 4] as [Int64], [0, 1_500])
    func killedAfterReboot(ranges: Int64, historyBytes: Int) async throws {
        let folder = try TemporaryFolder()
        let id = try await torn(folder, ranges: ranges, historyBytes: historyBytes)
        // It asks, and is gone before the answer.
        let gate = TestGate()
        let first = try await Bench(in: folder) { request, _ in
            var answer = Bench.Answer.file(Self.content, to: request)
            answer.steps.insert(.wait(gate), at: 0)
            return answer
        }
        await first.reached("a.bin", .action)
        await first.downloader.close()
        #expect(try first.stored(id).bootID == BootID.current)
        let second = try await Bench(in: folder, content: Self.content)
        try await second.expect("a.bin", Self.content, of: id)
    }
}
