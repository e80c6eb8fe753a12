import TestSupport
import Testing

@testable import fk

@Suite("Descriptors")
struct FewDescriptorsTests {
    @Test(
        "with few descriptors fewer run at once, and every file arrives at the first attempt",
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
        #expect(result.status == 0 && !result.errors.contains("warning"), "\(result.errors)")
        for (index, name) in names.enumerated() {
            #expect(try sandbox.bytes(name) == Bytes.pattern(count: 20_000, seed: UInt64(index)))
        }
        #expect(try sandbox.reader.records().map(\.attempts) == names.map { _ in 1 })
    }

    @Test(
        "with fewer descriptors than a download needs, a line says how many, and nothing begins",
        arguments: [["get", "http://127.0.0.1:9/a", "-d", "."], ["list"], ["verify", "--all"]])
    func tooFew(_ words: [String]) async throws {
        let sandbox = try Sandbox()
        for limit in 6..<3 + DescriptorLimit.needed {
            let result = try await sandbox.fk(under: "-n \(limit)", words)
            #expect(result.status == 1 && result.output.isEmpty)
            let isTold = result.errors.contains("raise the limit to") && result.errors.split(separator: "\n").count == 1
            #expect(isTold, "\(limit): \(result.errors)")
        }
        #expect(!FileManager.default.fileExists(atPath: sandbox.workPath))
    }

    #if os(Linux)
        @Test(
            "with less memory than threads need, a line says how much, and nothing begins",
            .enabled(if: !Sanitizer.isActive, "\(Sanitizer.reason)"))
        func tooLittleMemory() async throws {
            let sandbox = try Sandbox()
            for words in [["list"], ["get", "http://127.0.0.1:9/a", "-d", "."]] {
                let result = try await sandbox.fk(under: "-v 180000", words)
                #expect(result.status == 1 && result.output.isEmpty)
                let needed = "fk needs \(MemoryLimit.needed >> 10) KiB: raise it"
                #expect(result.errors.contains(needed), "\(result.errors)")
            }
            #expect(!FileManager.default.fileExists(atPath: sandbox.workPath))
        }
    #endif

    @Test(
        "when the whole system is out of files, a line says so, and nothing begins",
        .enabled(if: Program.find("strace") != nil))
    func systemLimit() async throws {
        let sandbox = try Sandbox()
        let result = try await FKProgram.run(
            try #require(Program.find("strace")),
            [
                "-f", "-o", "/dev/null", "-P", "/", "-e", "trace=openat", "-e", "inject=openat:error=ENFILE:when=5+",
                FKProgram.path, "list",
            ],
            environment: ["FK_WORK_PATH": sandbox.workPath], folder: sandbox.files)
        #expect(result.status == 1 && result.output.isEmpty)
        #expect(
            result.errors == "fk: fk needs 19 open files, and the system allows 4: Too many open files in system.\n")
    }

    @Test("a connection without a descriptor waits, and is no attempt", .enabled(if: Program.find("strace") != nil))
    func noSocket() async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        let body = Bytes.pattern(count: 20_000)
        server.serve("/a", body)
        let result = try await FKProgram.run(
            try #require(Program.find("strace")),
            [
                "-f", "-o", "/dev/null", "-e", "trace=socket", "-e", "inject=socket:error=EMFILE:when=1",
                FKProgram.path,
                "get", server.url("/a"), "-d", sandbox.files, "--retry", "0",
            ],
            environment: ["FK_WORK_PATH": sandbox.workPath], folder: sandbox.files)
        #expect(result.status == 0, "\(result.errors)")
        #expect(try sandbox.bytes("a") == body)
        #expect(try sandbox.reader.records().map(\.attempts) == [1])
    }
}
