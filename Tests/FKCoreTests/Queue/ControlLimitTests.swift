import TestSupport
import Testing

@testable import FKCore
@testable import FKStore

@Suite("Rate limits and tasks in a state", .timeLimit(.minutes(10)))
struct ControlLimitTests {
    private static let content = Bytes.pattern(count: 200_000)

    @Test("A limit holds for what runs and for later downloaders, until it is removed")
    func all() async throws {
        let bench = try await Bench(content: Self.content)
        try await bench.control.setRateLimit(1)
        #expect(try await bench.control.rateLimit() == 1)
        let id = try await bench.add("a")
        _ = await bench.transport.paused(1)
        await bench.downloader.close()
        #expect(try StandingLimit.read(in: bench.workPath) == 1)
        let next = try await Bench(in: bench.folder, content: Self.content)
        #expect(try await next.control.rateLimit() == 1)
        try await next.control.setRateLimit(nil)
        #expect(try await next.control.rateLimit() == nil)
        #expect(await next.finished(id)?.state == .complete)
    }

    @Test("A barrel's limit is its own; a barrel that is not there and a negative rate are refused")
    func barrel() async throws {
        let bench = try await Bench(content: Self.content)
        _ = try await bench.downloader.barrel("b")
        try await bench.control.setRateLimit(5, ofBarrel: "b")
        #expect(try await bench.control.rateLimit(ofBarrel: "b") == 5)
        #expect(try await bench.control.rateLimit() == nil)
        try await bench.control.setRateLimit(0, ofBarrel: "b")
        #expect(try await bench.control.rateLimit(ofBarrel: "b") == nil)
        await #expect(throws: DownloadError.self) { try await bench.control.rateLimit(ofBarrel: "none") }
        do {
            try await bench.control.setRateLimit(1, ofBarrel: "none")
            Issue.record("no error")
        } catch {
            #expect(error.code == .notFound)
        }
        do {
            try await bench.control.setRateLimit(-1)
            Issue.record("no error")
        } catch {
            #expect(error.code == .invalidArgument)
        }
    }
}
