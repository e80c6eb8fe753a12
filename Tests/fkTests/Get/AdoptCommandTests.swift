import Foundation
import TestSupport
import Testing

@testable import fk

@Suite("--adopt")
final class AdoptCommandTests: ServedSuite {
    private static let body = Bytes.pattern(count: 300_000)

    override init() throws {
        try super.init()
        server.route("/big.bin") { .ranged(Self.body, for: $0) }
    }

    private func put(_ bytes: [UInt8], _ name: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: "\(sandbox.files)/\(name)"))
    }

    private func read(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: "\(sandbox.files)/\(name)")))
    }

    @Test("the partial file becomes the whole one, under its name and in its folder") func inPlace() async throws {
        try FileManager.default.createDirectory(
            atPath: "\(sandbox.files)/old", withIntermediateDirectories: false)
        try put(Array(Self.body.prefix(200_000)), "old/other.bin")
        let result = try await sandbox.done("get", server.url("/big.bin"), "--adopt", "old/other.bin")
        #expect(try read("old/other.bin") == Self.body, "\(result.errors)")
        #expect(server.requests.map { $0["Range"] } == ["bytes=195903-"])
    }

    @Test("a file that is refuted stays, and the whole file has the next name") func refuted() async throws {
        try put([UInt8](repeating: 7, count: 1_000) + Bytes.pattern(count: 9_000).reversed(), "big.bin")
        let mine = try read("big.bin")
        try await sandbox.done("get", server.url("/big.bin"), "--adopt", "big.bin", "-o", "big.bin")
        #expect(try read("big.bin") == mine)
        #expect(try read("big.1.bin") == Self.body)
    }

    @Test("a folder gives each file of a list the partial one of its name") func folder() async throws {
        for name in ["a.bin", "b.bin", "c.bin"] { server.route("/\(name)") { .ranged(Self.body, for: $0) } }
        try FileManager.default.createDirectory(atPath: "\(sandbox.files)/old", withIntermediateDirectories: false)
        try put(Array(Self.body.prefix(100_000)), "old/a.bin")
        try put(Array(Self.body.prefix(200_000)), "old/b.bin.crdownload")
        let list = ["a", "b", "c"].map { server.url("/\($0).bin") }.joined(separator: "\n")
        try await sandbox.done("get", "-i", "-", "-d", "new", "--adopt", "old", input: list)
        for name in ["a", "b", "c"] { #expect(try read("new/\(name).bin") == Self.body) }
        #expect(server.requests.map { $0["Range"] ?? "all" }.sorted() == ["all", "bytes=195903-", "bytes=95903-"])
        #expect(try read("old/a.bin").count == 100_000, "the partial file is only read")
        #expect(try await sandbox.fk("get", server.url("/a.bin"), "--adopt", "old", "--skip").status == 2)
    }

    @Test("a list of one's own may name the partial file, a server's list may not") func list() async throws {
        try put(Array(Self.body.prefix(200_000)), "old.bin")
        let list = "\(server.url("/big.bin"))\n  out=new.bin\n  adopt=old.bin\n"
        server.serve("/list", Array(list.utf8))
        let remote = try await sandbox.done("get", "-i", server.url("/list"), "-d", "other")
        #expect(remote.errors.contains("Left out: adopt"), "\(remote.errors)")
        #expect(server.requests("/big.bin").map { $0["Range"] } == [nil])
        try await sandbox.done("get", "-i", "-", input: list)
        #expect(try read("new.bin") == Self.body)
        #expect(server.requests("/big.bin").map { $0["Range"] }.last == "bytes=195903-")
        #expect(try await sandbox.fk("get", "-i", "-", input: "\(server.url("/x"))\n  adopt=\n").status == 2)
    }

    @Test("wrong words are refused before a request") func refused() async throws {
        try put([1], "p")
        for words in [["--adopt", "none"], ["--adopt", "/dev/null"], ["--adopt", "p", "--skip"]] {
            let result = try await sandbox.fk(["get", server.url("/big.bin")] + words)
            #expect(result.status == 2 && result.errors.contains("--adopt"), "\(result.errors)")
        }
        #expect(try await sandbox.fk("get", server.url("/big.bin"), server.url("/b"), "--adopt", "p").status == 2)
        #expect(server.requests.isEmpty)
        let hint = try await sandbox.fk("get", server.url("/big.bin"), "-c")
        #expect(hint.status == 2 && hint.errors.contains("--adopt FILE continues another program's partial file"))
    }
}
