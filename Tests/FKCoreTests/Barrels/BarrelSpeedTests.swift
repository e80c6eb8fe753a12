import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine

@Suite("The speed of a barrel")
struct BarrelSpeedTests {
    private typealias Share = TaskTotals.Share

    /// A barrel of waiting members without bytes.
    private func barrel(of count: Int) -> BarrelEntry {
        var barrel = BarrelEntry(record: BarrelRecord(name: "b", created: Date(timeIntervalSince1970: 0)))
        for number in 0..<count {
            let url = "http://h.example/\(number)"
            _ = barrel.insert(BarrelMember(id: TaskID(url: url), url: url))
        }
        barrel.count((0..<count).map { _ in Share(state: .idle) })
        return barrel
    }

    @Test("small files that begin and end between two reports count from the second report on")
    func smallFiles() {
        var barrel = barrel(of: 100)
        #expect(barrel.info(now: 0).bytesPerSecond == 0)
        // One member runs at every report. 20 files of 200 KB end in each second.
        barrel.replace(Share(state: .idle), by: Share(state: .action))
        for second in 1...4 {
            for _ in 0..<20 {
                barrel.replace(Share(state: .idle), by: Share(state: .action))
                barrel.replace(
                    Share(state: .action), by: Share(received: 200_000, expected: 200_000, state: .complete))
            }
            let rate = barrel.info(now: Int64(second) * 1_000_000_000).bytesPerSecond
            #expect(abs(rate - 4_000_000) < 1)
        }
    }

    @Test("100 files of 200 KB, 4 at once, 4 MB a second: each report after the first second has this rate")
    func manySmallFiles() async throws {
        let content = Bytes.pattern(count: 200_000)
        let bench = try await Bench(content: content) {
            $0.maxAction = 4
            $0.rateLimit = 4_000_000
        }
        let rates = Observed<[(state: Int?, rate: Double)]>([])
        try await bench.messager.addBarrel("b", urls: [])
        try await bench.messager.addBarrelInfo("b") { info in
            rates.update { $0.append((info.states[.complete], info.bytesPerSecond)) }
        }.keep()
        for number in 0..<100 { try await bench.add("\(number)", barrel: "b") }
        try await bench.advance(by: 0.05) { bench.names.count { !$0.hasPrefix(".") } == 100 }
        await bench.engine.callbacks.drained()
        let reports = rates.value.filter { ($0.state ?? 0) > 10 && $0.state != 100 }
        #expect(reports.count >= 4)
        for report in reports { #expect(abs(report.rate - 4_000_000) < 400_000, "\(report)") }
    }

    @Test("bytes that a member brings along, loses or leaves behind are no speed; nor is anything while none runs")
    func noSpeed() {
        var barrel = barrel(of: 2)
        _ = barrel.info(now: 0)
        let brought = Share(received: 500, expected: 1_000, state: .action)
        barrel.replace(Share(), by: brought)
        #expect(barrel.info(now: 1_000_000_000).bytesPerSecond == 0)
        // The file starts again.
        barrel.replace(brought, by: Share(received: 0, expected: 1_000, state: .action))
        #expect(barrel.info(now: 2_000_000_000).bytesPerSecond == 0)
        barrel.replace(Share(received: 0, expected: 1_000, state: .action), by: brought)
        #expect(barrel.info(now: 3_000_000_000).bytesPerSecond > 0)
        barrel.replace(brought, by: Share(received: 500, expected: 1_000, state: .suspend))
        #expect(barrel.info(now: 3_100_000_000).bytesPerSecond == 0)
    }

    @Test("small files of another process count in the same way, also while the barrel is read again")
    func followed() async throws {
        let bench = try await Bench(isActive: false) { _, _ in .status(404) }
        let tasks = (0..<80).map { bench.task("\($0)") }
        let ids = try await bench.engine.add(tasks, barrel: "b", run: false).map(\.id)
        await bench.downloader.close()
        let reader = StoreReader(bench.workPath)
        var barrel = try FollowedBarrel("b", reader)
        #expect(barrel.info(now: 0).bytesPerSecond == 0)
        var slow = DownloadInfo(
            id: ids[0], url: tasks[0].url, state: .action, count: ByteCount(received: 0, expected: nil))
        barrel.absorb(slow)
        for second in 1...3 {
            for number in (20 * second)..<(20 * second + 20) {
                var info = DownloadInfo(
                    id: ids[number], url: tasks[number].url, state: .action,
                    count: ByteCount(received: 0, expected: nil))
                barrel.absorb(info)
                info.state = .complete
                info.count = ByteCount(received: 200_000, expected: 200_000)
                barrel.absorb(info)
            }
            try barrel.refresh(reader)
            let rate = barrel.info(now: Int64(second) * 1_000_000_000).bytesPerSecond
            #expect(abs(rate - 4_000_000) < 1)
        }
        slow.state = .idle
        barrel.absorb(slow)
        #expect(barrel.info(now: 3_100_000_000).bytesPerSecond == 0)
    }
}
