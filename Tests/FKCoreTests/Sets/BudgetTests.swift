import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine

@Suite("A budget of disk space")
struct BudgetTests {
    private static let large = Bytes.pattern(count: 400_000)

    /// A file system gives a file whole blocks, and keeps attributes in blocks of their own.
    private func bench(
        _ budget: Int64, answer: (@Sendable (TransportRequest) -> Bench.Answer)? = nil
    ) async throws -> Bench {
        try await Bench(settings: { $0.diskBudget = budget }) { request, _ in
            answer?(request) ?? .file(Self.large, to: request)
        }
    }

    @Test(
        "what a file needs: room below the budget and on the disk",
        arguments: [
            (100, nil, 0, false, "trims to 0"), (101, 0, 0, false, "too large"), (40, 60, 0, false, "fits"),
            (40, 61, 0, false, "trims to 60"), (40, 0, 60, false, "fits"), (40, 0, 61, false, "trims to 0"),
            (40, 50, 10, false, "fits"), (40, 60, 10, false, "trims to 50"), (40, 0, 0, true, "trims to 60"),
            (0, 100, 0, false, "fits"), (40, 0, Int64.max, false, "trims to 0"),
        ] as [(Int64, Int64?, Int64, Bool, String)])
    func decision(_ total: Int64, _ used: Int64?, _ promised: Int64, _ lacks: Bool, _ expected: String) {
        let shortage = lacks ? DiskTrim.Shortage(device: 1, bytes: 7) : nil
        let decision = BudgetDecision.decide(total, budget: 100, used: used, promised: promised, shortage: shortage)
        switch decision {
        case .fits: #expect(expected == "fits")
        case .isTooLarge: #expect(expected == "too large")
        case .trims(let room):
            #expect(expected == "trims to \(room.limit)")
            #expect(room.shortage == shortage && room.slack == 3)
        }
    }

    @Test("a download that does not fit deletes the least recently used files first, and says so")
    func trims() async throws {
        let bench = try await bench(1_000_000)
        let told = Observed<[TrimmedFiles]>([])
        await bench.downloader.onTrim { files in told.update { $0.append(files) } }
        for name in ["a", "b"] {
            try await bench.completed(name)
            bench.clock.advance(seconds: 10)
        }
        #expect(bench.names == ["a", "b"] && told.value.isEmpty, "two files of 400,000 bytes fit")
        try await bench.control.markUsed(.url("http://h.example/a"))
        bench.clock.advance(seconds: 10)
        let id = try await bench.completed("c")
        #expect(bench.names == ["a", "c"])
        let files = try #require(await told.wait { !$0.isEmpty }.first)
        #expect(files.files.map(\.lastPathComponent) == ["b"] && files.barrels == [])
        #expect(files.freedBytes >= 400_000 && files.usedBytes < 600_000)
        let line = try await bench.record(id).history.first { $0.by == "disk budget" }
        #expect(line?.what.hasPrefix("1 file (/") == true && line?.what.hasSuffix(" freed") == true)
        // A member goes with its barrel only.
        try await bench.completed("d", barrel: "set")
        #expect(bench.names == ["c", "d"])
        #expect(await told.wait { $0.count >= 2 }.last?.files.map(\.lastPathComponent) == ["a"])
    }

    @Test("a file larger than the budget is refused before its first byte, and so is one for which no room can be made")
    func refused() async throws {
        let bench = try await bench(500_000) { request in
            request.urlRequest.url?.lastPathComponent == "huge"
                ? .file(Bytes.pattern(count: 500_001), to: request) : .file(Self.large, to: request)
        }
        try await bench.completed("a", barrel: "set")
        let huge = try await bench.add("huge")
        let refused = try #require(await bench.finished(huge)?.error)
        #expect(refused.code == .noSpace && refused.remedy == .raiseDiskBudget)
        #expect(bench.names == ["a"])
        let barrel = try await bench.downloader.barrel("set")
        try await barrel.publish(to: bench.folder.file("set"))
        let second = try await barrel.withFiles { files in
            let second = try await bench.add("b")
            let error = try #require(await bench.finished(second)?.error)
            #expect(error.code == .noSpace && error.message.contains("(set)"), "\(error.message)")
            #expect(FileManager.default.fileExists(atPath: files[0].path))
            return second
        }
        #expect(bench.names == ["a"])
        try await bench.control.retry(.id(second))
        #expect(await bench.finished(second)?.state == .complete)
        #expect(bench.names == ["b"])
        #expect(await barrel.state == .absent)
    }

    @Test("a barrel that is being downloaded does not lose its own files; a file of another one waits for room")
    func ownFiles() async throws {
        let gate = TestGate()
        let bench = try await bench(1_000_000) { request in
            request.urlRequest.url?.lastPathComponent == "b"
                ? .file(Self.large, to: request, gate: gate, pauseAt: 10) : .file(Self.large, to: request)
        }
        try await bench.completed("a", barrel: "set")
        let held = try await bench.add("b", barrel: "set")
        await gate.reached()
        let other = try await bench.add("c")
        await bench.reached("c", .idle, times: 2)
        #expect(await bench.messager.info(.id(other))?.error?.code == .noSpace)
        gate.open()
        #expect(await bench.finished(held)?.state == .complete)
        #expect(bench.names.filter { !$0.hasPrefix(".") } == ["a", "b"])
        try await bench.advance(by: 10) { await bench.state(other) == .complete }
        #expect(bench.names == ["c"], "the set goes as a whole")
    }

    @Test("small files do not look for room one by one")
    func small() async throws {
        let bench = try await bench(400_000) { .file(Bytes.pattern(count: 4_000), to: $0) }
        let told = Observed<[TrimmedFiles]>([])
        await bench.downloader.onTrim { files in told.update { $0.append(files) } }
        for number in 0..<150 {
            try await bench.completed(String(number))
            bench.clock.advance(seconds: 1)
        }
        let trimmed = told.value
        #expect(!trimmed.isEmpty && trimmed.allSatisfy { $0.files.count > 1 }, "\(trimmed.map(\.files.count))")
        #expect(bench.names.contains("149") && !bench.names.contains("0"))
        let used = try await bench.downloader.trim(to: .max).usedBytes
        #expect(used <= 400_000 && used > 300_000)
    }

    @Test("a disk that lacks space is trimmed, if that can be enough")
    func disk() async throws {
        let bench = try await Bench(content: Self.large)
        try await bench.completed("a")
        let device = try #require(Folder(path: bench.out).device)
        func room(_ bytes: Int64, _ device: UInt64) -> BudgetDecision.Room {
            .init(limit: .max, shortage: .init(device: device, bytes: bytes), slack: 0)
        }
        let trim = DiskTrim(bench.workPath, by: .lastUsed)
        let here = UInt64(truncatingIfNeeded: device)
        #expect(try trim.trim(room(10_000_000, here)).files.isEmpty, "it would not be enough")
        #expect(try trim.trim(room(1_000, here &+ 1)).files.isEmpty, "it is on another disk")
        #expect(try trim.trim(room(1_000, here)).files.map(\.lastPathComponent) == ["a"])
    }

    @Test("a negative budget is refused")
    func negative() {
        var configure = Configure()
        configure.diskBudget = -1
        #expect(throws: DownloadError.self) { try configure.validate() }
    }
}
