import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine
@testable import FKModel
@testable import FKTransport

/// Many tasks against a server that fails one request in five. Tests/Torture/load.py does the same with ten thousand.
@Suite("Faults: many tasks, a bad server", .timeLimit(.minutes(10)))
struct FaultLoadTests {
    private static let count = 300
    private static let slots = 16

    private static func content(_ name: String) -> [UInt8] {
        let number = Int(name.dropFirst(2)) ?? 0
        return Bytes.pattern(count: 500 + number * 37 % 20_000, seed: UInt64(number))
    }

    /// Which request of a file fails, and how, is always the same.
    private static func answer(_ request: FaultRequest, _ number: Int, _ never: Gate) -> FaultResponse {
        let body = content(request.path)
        let good = FaultResponse.ranged(body, for: request, etag: "\"1\"")
        var chance = (UInt64(Int(request.path.dropFirst(2)) ?? 0) * 31 + UInt64(number)) &* 0x9e37_79b9_7f4a_7c15
        chance ^= chance >> 32
        guard chance % 5 == 0 else { return good }
        let offset = Int(chance >> 8) % max(1, good.body.count)
        return switch (chance / 5) % 10 {
        case 0, 1, 2: good.cut(at: offset, .reset)
        case 3, 4, 5: good.cut(at: offset)
        case 6, 7: .retryAfter("0")
        case 8: number == 0 ? .retryAfter("1") : good
        default: number == 0 ? good.stalling(at: offset, until: never) : good
        }
    }

    private static func configure(_ folder: TemporaryFolder) -> Configure {
        var configure = Configure(workPath: folder.file("work"))
        configure.maxAction = slots
        configure.retry = RetryPolicy(maxAttempts: 20, baseDelay: .seconds(0.05), maxDelay: .seconds(0.5), jitter: 0)
        configure.transport.stallTimeout = .seconds(1)
        configure.transport.proxy = ""
        return configure
    }

    @Test("all complete with the right bytes, no slot stays free while a task is ready, and nothing is left open")
    func load() async throws {
        let server = try FaultServer()
        let never = Gate()
        let asked = Observed<[String: Int]>([:])
        server.routeOthers { request in
            let number = asked.update { counts in
                defer { counts[request.path, default: 0] += 1 }
                return counts[request.path, default: 0]
            }
            return Self.answer(request, number, never)
        }
        let folder = try TemporaryFolder()
        let out = folder.path + "/out"
        let clock = ManualClock()
        let engine = try Engine(
            configure: Self.configure(folder), scope: .all, transport: TransportKind.automatic.makeTransport(),
            clock: clock)
        let changes = Observed(0)
        _ = await engine.observeStates { _ in changes.update { $0 += 1 } }
        let tasks = (0..<Self.count).map { number in
            var task = TaskDescription(url: server.url("/f\(number)"))
            task.directory = out
            return task
        }
        _ = try await engine.add(tasks, barrel: nil, run: true)
        await engine.activate()
        // Time passes only while everything waits for it: no tick hides a slot that nobody fills.
        loop: while true {
            let seen = changes.value
            switch try await engine.standing(slots: Self.slots) {
            case .over: break loop
            case .waits: clock.advance(seconds: 0.5)
            case .works: _ = await changes.wait { $0 > seen }
            case .stalls:
                Issue.record("a slot is free and a task is ready")
                break loop
            }
        }
        for (number, task) in tasks.enumerated() {
            let info = try #require(try await engine.infos(.id(task.id)).first)
            #expect(info.state == .complete, "\(number): \(String(describing: info.error))")
            #expect(try folder.read("out/f\(number)") == Self.content("/f\(number)"))
        }
        #expect(server.requests.count > Self.count * 11 / 10, "it did fail")
        #expect(try FileManager.default.contentsOfDirectory(atPath: out).count == Self.count, "no part file is left")
        // A finished file is opened once more for a moment, on this queue, to be synced.
        try await offPool { engine.diskWork.sync(flags: .barrier) {} }
        #expect(openFiles(below: out) == [])
        await engine.close()
        #expect(openFiles(below: folder.path) == [])
    }

    /// Regular files there that this process has open; where the system does not tell, none.
    private func openFiles(below folder: String) -> [String] {
        let manager = FileManager.default
        let numbers = (try? manager.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return numbers.compactMap { try? manager.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)") }
            .filter { path in
                var isFolder: ObjCBool = false
                return path.hasPrefix(folder) && manager.fileExists(atPath: path, isDirectory: &isFolder)
                    && !isFolder.boolValue
            }
    }
}

private enum Standing { case over, works, waits, stalls }

extension Engine {
    /// Between two of its turns: whether a slot is free that a task should have, the server having asked for no pause.
    fileprivate func standing(slots: Int) throws -> Standing {
        if taskCounts.open == 0 { return .over }
        if taskCounts.running == slots { return .works }
        let isReady = try infos(.all).contains { $0.state == .idle && $0.waitingUntil == nil }
        if isReady, hosts.pauses.isEmpty { return .stalls }
        return taskCounts.running == 0 ? .waits : .works
    }
}
