import Foundation
import TestSupport
import Testing

@testable import fk

@Suite("fk provenance")
final class ProvenanceTests: ServedSuite {
    private static let content = Bytes.pattern(count: 40_000)
    private static let sum = Digester.hex(Digester.bytes(of: "a", .sha256))

    override init() throws {
        try super.init()
        let other = server.url("/second?token=secret1")
        let last = server.url("/a?X-Amz-Signature=secret2")
        server.route("/first") { _ in .redirect(to: other) }
        server.route("/second") { _ in .redirect(to: last) }
        server.route("/a") { .ranged(Array("a".utf8), for: $0, etag: "\"1\"") }
        server.route("/b") { _ in .ok(Self.content, headers: ["Last-Modified": "Fri, 20 Nov 2026 22:29:34 GMT"]) }
        server.route("/gone") { _ in .status(404) }
    }

    private func statement(_ words: String..., status: Int32 = 0) async throws -> JSONValue {
        let result = try await sandbox.fk(["provenance"] + words)
        #expect(result.status == status, "\(result.errors)")
        let value = try JSONDecoder().decode(JSONValue.self, from: Data(result.output.utf8))
        let schema = try JSONSchema(Data(contentsOf: Repository.url("Docs/provenance.schema.json")))
        #expect(schema.faults(in: value, as: "statement").isEmpty, "\(schema.faults(in: value, as: "statement"))")
        return value
    }

    private func file(_ name: String, _ statement: JSONValue) throws -> JSONValue {
        try #require(statement["predicate"]?["files"]?.list.first { $0["name"]?.text == name })
    }

    @Test("each complete file is a subject below the barrel's folder; redirects are told, and secrets are masked")
    func barrel() async throws {
        try await sandbox.done("barrel", "create", "b", "-d", "out")
        try await sandbox.done("barrel", "add", "b", server.url("/first"), server.url("/b"), server.url("/gone"))
        _ = try await sandbox.fk("barrel", "run", "b")
        let value = try await statement("-b", "b")
        #expect(value["_type"]?.text == "https://in-toto.io/Statement/v1")
        #expect(value["subject"]?.list.compactMap { $0["name"]?.text } == ["first", "b"])
        #expect(value["subject"]?.list.first?["digest"]?["sha256"]?.text == Self.sum)
        let first = try file("first", value)
        #expect(first["redirects"]?.list.map(\.text) == [server.url("/second?token=***")])
        #expect(first["response"]?["url"]?.text == server.url("/a?X-Amz-Signature=***"))
        #expect(first["response"]?["etag"]?.text == "\"1\"")
        #expect(first["completedBy"]?.text == "fk \(Version.text)")
        let second = try file("b", value)
        #expect(second["response"]?["lastModified"]?.text == "Fri, 20 Nov 2026 22:29:34 GMT")
        #expect(second["digests"]?.list.map { $0["by"]?.text } == ["fk"])
        #expect(second["sources"]?.list.map { $0["url"]?.text } == [server.url("/b")])
        #expect(second["sources"]?.list.first?["ranges"]?.list.first?["end"] == .number(40_000))
    }

    @Test("the mirror that sent the bytes is told, and who gave the digest with its list and signer")
    func sources() async throws {
        try Program.run(
            "minisign", ["-G", "-W", "-p", "k.pub", "-s", "k.sec"], in: URL(fileURLWithPath: sandbox.files))
        try sandbox.put("\(Self.sum)  a\n", "SHA256SUMS")
        try Program.run("minisign", ["-S", "-s", "k.sec", "-m", "SHA256SUMS"], in: URL(fileURLWithPath: sandbox.files))
        try await sandbox.done(
            "get", server.url("/gone"), "--mirror", server.url("/a"), "-o", "a", "--checksum", "@SHA256SUMS",
            "--signed-by",
            "k.pub")
        try await sandbox.done("get", server.url("/b"), "--checksum", "md5=\(Digester.hex(md5()))")
        let signed = try file("a", try await statement("a"))
        #expect(signed["sources"]?.list.map { $0["url"]?.text } == [server.url("/a")])
        #expect(signed["digests"]?.list.map { $0["by"]?.text } == ["list"])
        #expect(signed["list"]?["name"]?.text == "SHA256SUMS")
        let key = try String(contentsOfFile: "\(sandbox.files)/k.pub", encoding: .utf8).split(separator: "\n")[1]
        #expect(signed["list"]?["signer"]?.text == String(key))
        let typed = try file("b", try await statement(server.url("/b")))
        #expect(typed["digests"]?.list.map { $0["by"]?.text } == ["request", "fk"])
    }

    private func md5() -> [UInt8] { Bytes.digest(.md5, Self.content) }

    @Test("a file that is not as fk has left it has no subject unless its digest is known")
    func changed() async throws {
        try await sandbox.done("get", server.url("/b"), "-d", "out")
        try await sandbox.done("get", server.url("/a"), "-d", "out", "--checksum", Self.sum)
        for name in ["a", "b"] { try sandbox.put("changed", "out/\(name)") }
        let value = try await statement("[ab]", status: 1)
        #expect(value["subject"]?.list.compactMap { $0["name"]?.text } == ["a"])
        #expect(try await sandbox.fk("provenance", server.url("/b")).errors.contains("out/b is left out"))
        #expect(try await sandbox.fk("provenance").status == 2)
        #expect(try await sandbox.fk("provenance", "a", "-b", "b").status == 2)
        #expect(try await sandbox.fk("provenance", "-b", "none").status == 4)
    }

    @Test("a file that was there before is told as such, without sources")
    func existing() async throws {
        try sandbox.put("own", "a")
        try await sandbox.done("get", server.url("/a"), "-o", "a", "--skip")
        let file = try file("a", try await statement("a"))
        #expect(file["existed"] == .bool(true) && file["sources"] == nil && file["response"] == nil)
    }

    @Test("a signed statement is proven by ssh-keygen and by fk; another one is not")
    func signed() async throws {
        let folder = URL(fileURLWithPath: sandbox.files)
        try Program.run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", "k"], in: folder)
        try Program.run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "secret", "-f", "locked"], in: folder)
        try await sandbox.done("get", server.url("/a"))
        #expect(try await sandbox.fk("provenance", "a", "--sign", "k").status == 2)
        for _ in 0..<2 { try await sandbox.done("provenance", "a", "-o", "p.json", "--sign", "k") }
        let key = try SignatureKey(contentsOf: URL(fileURLWithPath: "\(sandbox.files)/k.pub"))
        let signature = [UInt8](try Data(contentsOf: folder.appendingPathComponent("p.json.sig")))
        #expect(try key.verify(signature, ofFile: URL(fileURLWithPath: "\(sandbox.files)/p.json")) == key.description)
        try sandbox.put("me \(key.description)\n", "signers")
        let verify = "ssh-keygen -Y verify -f signers -I me -n file -s p.json.sig < "
        try Program.run("sh", ["-c", verify + "p.json"], in: folder)
        #expect(throws: Program.Failure.self) { try Program.run("sh", ["-c", verify + "k.pub"], in: folder) }
        let before = try Data(contentsOf: folder.appendingPathComponent("p.json"))
        let locked = try await sandbox.fk("provenance", "a", "-o", "p.json", "--sign", "locked")
        #expect(locked.status != 0 && locked.errors.contains("ssh-keygen cannot sign"), "\(locked.errors)")
        #expect(try Data(contentsOf: folder.appendingPathComponent("p.json")) == before)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: sandbox.files).filter { $0.hasPrefix("p.json") }.count
                == 2)
    }

    @Test("in-toto's own reader takes the statement", .enabled(if: PythonModule.inToto.isInstalled, "see .ci/needs"))
    func inToto() async throws {
        try await sandbox.done("get", server.url("/a"), server.url("/b"))
        try await sandbox.done("provenance", "*", "-o", "p.json")
        try PythonModule.inToto.run(
            """
            from google.protobuf import json_format
            from in_toto_attestation.v1 import statement, statement_pb2
            read = json_format.Parse(open("p.json").read(), statement_pb2.Statement())
            checked = statement.Statement.copy_from_pb(read)
            checked.validate()
            assert len(checked.pb.subject) == 2 and len(checked.pb.predicate["files"]) == 2
            """, in: URL(fileURLWithPath: sandbox.files))
    }

    @Test("characters that a terminal could interpret are escaped, and read as they were") func controls() async throws
    {
        let tag = "\"\u{9b}31mred\u{202e}\""
        server.route("/c") { _ in .ok([1], headers: ["ETag": tag]) }
        try await sandbox.done("get", "-b", "b\u{202e}", "-d", "out", server.url("/c"))
        let result = try await sandbox.done("provenance", "-b", "b\u{202e}")
        #expect(!result.output.unicodeScalars.contains { $0 != "\n" && $0.isHidden })
        let value = try JSONDecoder().decode(JSONValue.self, from: Data(result.output.utf8))
        #expect(try file("c", value)["response"]?["etag"]?.text == tag)
    }
}
