import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine

@Suite("Signs of life of an engine")
struct EngineWatchTests {
    private static let second: Int64 = 1_000_000_000

    @Test("an engine without a sign of life for five seconds is silent, once, until it shows one")
    func watch() {
        var watch = EngineWatch(interval: 1)
        var news: [EngineWatch.News?] = []
        for second in 0..<20 {
            // Alive for three seconds, then not until the twelfth.
            let content: [UInt8] = [UInt8(second < 3 ? second : second < 12 ? 2 : second)]
            news.append(watch.look(content, now: Int64(second) * Self.second))
        }
        #expect(news.map { $0 != nil } == (0..<20).map { $0 == 7 || $0 == 12 })
        #expect(news[7] == .silent && news[12] == .back)
    }

    @Test("a watcher that was itself stopped, or a machine that slept, does not take the engine for silent")
    func gap() {
        var watch = EngineWatch(interval: 1)
        #expect(watch.look([1], now: 0) == nil)
        #expect(watch.look([1], now: 1 * Self.second) == nil)
        // An hour later, the first look comes before the engine's first tick.
        #expect(watch.look([1], now: 3_600 * Self.second) == nil)
        #expect(watch.silence(3_600 * Self.second) == 0)
        #expect(watch.look([2], now: 3_601 * Self.second) == nil)
        // A lock file that is gone for a moment is no silence either.
        #expect(watch.look(nil, now: 3_602 * Self.second) == nil)
        #expect(!watch.isSilent)
    }

    @Test("each tick changes the lock file, whatever the wall clock says")
    func beat() async throws {
        let bench = try await Bench(content: [1])
        let date = bench.clock.date
        var seen: Set<[UInt8]> = []
        for _ in 0..<5 {
            await bench.advance(1)
            bench.clock.setDate(date)
            await bench.sync()
            seen.insert(try #require(EngineLock.content(bench.workPath)))
        }
        #expect(seen.count == 5)
    }
}
