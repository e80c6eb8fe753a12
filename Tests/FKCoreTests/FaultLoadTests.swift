import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore

/// Many tasks against a server that fails one request in five. Tests/Torture/load.py does the same with ten thousand.
@Suite("Faults: many tasks, a bad server", .timeLimit(.minutes(2)))
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

    @Test("all complete with the right bytes, the queue never stalls, and nothing is left open")
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
        let live = try LiveBench {
            $0.maxAction = Self.slots
            $0.retry = RetryPolicy(maxAttempts: 20, baseDelay: 0.05, maxDelay: 0.5, jitter: 0)
            $0.transport.stallTimeout = 1
        }
        var ids: [TaskID] = []
        for number in 0..<Self.count { ids.append(try await live.add(server.url("/f\(number)"))) }
        let watchdog = Task { try await longestStall(live.downloader) }
        for (number, id) in ids.enumerated() {
            let info = try #require(await live.downloader.messager.finished(id))
            #expect(info.state == .complete, "\(number): \(String(describing: info.error))")
            #expect(try live.out("f\(number)") == Self.content("/f\(number)"))
        }
        watchdog.cancel()
        #expect(try await watchdog.value < .seconds(2))
        #expect(server.requests.count > Self.count * 11 / 10, "it did fail")
        #expect(live.names.count == Self.count, "no part file is left")
        // A finished file is opened once more for a moment, to be synced.
        let isNothingOpen = try await eventually { openFiles(below: live.out).isEmpty ? true : nil }
        #expect(isNothingOpen == true)
        await live.downloader.close()
        #expect(openFiles(below: live.folder.path) == [])
    }

    /// The longest time in which a task was ready, a slot was free, and the server had not asked to be left alone.
    private func longestStall(_ downloader: Downloader) async throws -> Duration {
        var longest = Duration.zero
        var since = ContinuousClock.now
        while !Task.isCancelled {
            let running = await downloader.messager.running().count
            let ready = await downloader.messager.all().contains { $0.state == .idle && $0.waitingUntil == nil }
            let isPaused = await !downloader.engine.hosts.pauses.isEmpty
            let now = ContinuousClock.now
            if !ready || isPaused || running >= Self.slots { since = now }
            longest = max(longest, now - since)
            try? await Task.sleep(for: .milliseconds(20))
        }
        return longest
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
