import TestSupport
import Testing

@testable import FKCore
@testable import FKModel
@testable import fk

@Suite("fk metrics") struct MetricsTests {
    private static let now = Date(timeIntervalSince1970: 1_700_000_000)

    private static func record(_ number: UInt64, _ change: (inout TaskRecord) -> Void = { _ in }) -> TaskRecord {
        var record = TaskRecord(task: TaskDescription(url: "http://h/\(number)"), number: number, created: now)
        change(&record)
        return record
    }

    /// The samples of a text, by name and labels.
    private static func samples(_ text: String) throws -> [String: Int64] {
        var samples: [String: Int64] = [:]
        var described: Set<Substring> = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
            if line.hasPrefix("#") {
                let words = line.split(separator: " ", maxSplits: 3)
                #expect(["HELP", "TYPE"].contains(words[1]) && words.count == 4)
                if words[1] == "TYPE" { #expect(described.insert(words[2]).inserted, "\(words[2]) twice") }
                continue
            }
            let end = try #require(line.lastIndex(of: " "))
            let name = String(line[..<end])
            #expect(described.contains(name[...].prefix { $0 != "{" }), "\(name) has no type")
            #expect(samples.updateValue(try #require(Int64(line[end...].dropFirst())), forKey: name) == nil, "\(name)")
        }
        return samples
    }

    @Test("Sums: states, errors by code, paused hosts once each, codes of middlewares together") func sums() throws {
        var metrics = DownloadMetrics()
        metrics.add(Self.record(1), now: Self.now)
        for (number, code) in [(2, "http-status"), (3, "http-status"), (4, "my-own\"\n"), (5, "another")] {
            let failed = Self.record(UInt64(number)) {
                $0.fail(DownloadError(.init(code), "No."))
                $0.state = .error
            }
            metrics.add(failed, now: Self.now)
        }
        for (number, host, delay) in [(6, "a", 5.0), (7, "a", 6), (8, "b", 5), (9, "c", -5)] {
            let waits = Self.record(UInt64(number)) {
                $0.setWaiting(Waiting(.host, until: Self.now + delay, host: host))
            }
            metrics.add(waits, now: Self.now)
        }
        let samples = try Self.samples(metrics.prometheus)
        #expect(samples["fk_tasks{state=\"error\"}"] == 4 && samples["fk_tasks{state=\"idle\"}"] == 5)
        #expect(samples["fk_tasks{state=\"complete\"}"] == 0)
        #expect(samples["fk_task_errors{code=\"http-status\"}"] == 2 && samples["fk_task_errors{code=\"other\"}"] == 2)
        #expect(samples["fk_hosts_paused"] == 2 && samples["fk_unknown_length_tasks"] == 9)
    }

    @Test("Every code of the library is a label of its own") func codes() throws {
        let rows = try Repository.text("Docs/Errors.md").split(separator: "\n").compactMap { line -> String? in
            guard line.hasPrefix("| `") else { return nil }
            return String(line.dropFirst(3).prefix { $0 != "`" })
        }
        #expect(Set(rows).isSuperset(of: DownloadError.Code.known.map(\.rawValue)))
        let missing = rows.filter { row in
            row.allSatisfy { $0.isLowercase || $0 == "-" } && !DownloadError.Code.known.contains(.init(row))
        }
        #expect(missing.isEmpty, "\(missing)")
    }

    @Test("During a download, another process shows the true rate, and none once nothing moves") func rate()
        async throws
    {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        let gate = Gate()
        let body = Bytes.pattern(count: 30_000_000)
        server.serve("/a", body, stallingAt: 29_000_000, gate)
        let running = try sandbox.start("get", "-x", "1", "--limit-rate", "2M", server.url("/a"))
        let url = server.url("/a")
        #expect(try await sandbox.record(url) { $0.bytesPerSecond ?? 0 > 1 << 20 } != nil)
        let rate = try await sandbox.json("metrics").number("bytesPerSecond") ?? 0
        #expect((1 << 20...3 << 20).contains(rate), "\(rate)")
        let listed = try await sandbox.json("list").array.first?.number("bytesPerSecond") ?? 0
        #expect((1 << 20...3 << 20).contains(listed), "\(listed)")
        running.signal(SIGKILL)
        _ = await running.end()
        #expect(try await sandbox.json("metrics").number("bytesPerSecond") == 0, "no process fetches")
        gate.open()
    }
}
