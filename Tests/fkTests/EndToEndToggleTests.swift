import FKCore
import Foundation
import TestSupport
import Testing

@testable import fk

@Suite("fk toggle", .timeLimit(.minutes(10))) struct EndToEndToggleTests {
    private let sandbox: Sandbox
    private let server: FaultServer
    private let body = Bytes.pattern(count: 2_000_000)
    private let gate = Gate()

    init() throws {
        sandbox = try Sandbox()
        server = try FaultServer()
        for name in ["a", "b"] { server.serve("/\(name)", body, stallingAt: 500_000, gate) }
    }

    private func url(_ name: String) -> String { server.url("/\(name)") }

    @Test("Another process suspends a running task and lets it go on; a complete one stays as it is")
    func toggle() async throws {
        let running = try sandbox.start("get", url("a"), url("b"))
        for name in ["a", "b"] { #expect(try await sandbox.record(url(name)) { $0.received == 500_000 } != nil) }
        #expect(try await sandbox.fk("toggle", url("a")).output.contains("suspended"))
        let record = try #require(await sandbox.record(url("a")))
        #expect(record.state == .suspend)
        let results = try await sandbox.json("toggle", String(record.id.hex.prefix(8)))
        #expect(results.array.map { $0.text("verb") } == ["resume"])
        gate.open()
        #expect(try await sandbox.record(url("a")) { $0.state == .complete } != nil)
        #expect(await running.end().status == 0)
        #expect(try sandbox.bytes("a") == body)
        let done = try await sandbox.fk("toggle", url("a"))
        #expect(done.status == 0 && done.output.contains("is complete already"))
        #expect(try await sandbox.fk("info", url("a")).output.contains("/s, average"))
        #expect(try await sandbox.json("info", url("a")).number("bytesPerSecond") ?? 0 > 0)
        #expect(try await sandbox.fk("toggle").status == 2)
        #expect(try await sandbox.fk("toggle", "abcdef").status == 4)
    }
}
