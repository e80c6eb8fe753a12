import FKCore
import Foundation
import TestSupport
import Testing

@testable import fk

@Suite("Faults: descriptors", .timeLimit(.minutes(10)))
struct FaultDescriptorTests {
    @Test(
        "fault 71: with few descriptors fewer run at once, and every file arrives at the first attempt",
        arguments: [22, 30, 40])
    func few(_ limit: Int) async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        let names = (0..<24).map { "f\($0)" }
        for (index, name) in names.enumerated() {
            server.serve("/\(name)", Bytes.pattern(count: 20_000, seed: UInt64(index)))
        }
        let result = try await sandbox.fk(
            under: "-n \(limit)", ["get", "-d", ".", "-j", "24", "--retry", "0"] + names.map { server.url("/\($0)") })
        #expect(result.status == 0, "\(result.errors)")
        #expect(!result.errors.contains("warning"), "\(result.errors)")
        for (index, name) in names.enumerated() {
            #expect(try sandbox.bytes(name) == Bytes.pattern(count: 20_000, seed: UInt64(index)))
        }
        #expect(try sandbox.reader.records().map(\.attempts) == names.map { _ in 1 })
    }
}
