import TestSupport
import Testing

/// Whatever a server calls a file, it arrives as one harmless name in the folder that was
/// asked for, and nothing else is touched. `NameRulesTests` has the rules as values.
@Suite("Names of files")
struct HostileNameTests {
    /// What a server sends, and the name that comes of it.
    static let rows: [(String, String)] = [
        ("../../../../tmp/x", "x"), ("..\\..\\x", "x"), ("/etc/passwd", "passwd"),
        ("~/.ssh/authorized_keys", "authorized_keys"), ("~root", "_root"), ("a\u{1b}]0;t\u{7}b", "a_]0;t_b"),
        ("a\u{7f}b", "a_b"), ("a\u{202e}b", "a_b"), ("", "f"), (".", "f"), ("..", "f"), ("/", "f"),
        ("con.txt", "con_.txt"), ("NUL", "NUL_"), ("lpt1.bin", "lpt1_.bin"), ("  a.bin  ", "a.bin"),
        ("a.bin. . ", "a.bin"), (".bashrc", "_bashrc"), ("...hidden", "_hidden"), ("-rf", "_-rf"),
        ("--help.bin", "_--help.bin"),
        (String(repeating: "n", count: 300) + ".tar", String(repeating: "n", count: 211) + ".tar"),
        (String(repeating: "é", count: 200) + ".bin", String(repeating: "é", count: 105) + ".bin"),
        ("a.fkpart", "a.fkpart_"), ("a.bin.FKREJECTED", "a.bin.FKREJECTED_"),
        (".a.0123456789abcdef.fkpart", "_a.0123456789abcdef.fkpart_"),
    ]

    private static let content = Bytes.pattern(count: 2_000)

    @Test("a name that a server sends becomes one harmless name", arguments: rows)
    func sent(_ sent: String, _ name: String) async throws {
        let server = try FaultServer()
        let quoted = sent.replacing("\\", with: "\\\\")
        server.route("/f") { _ in
            .ok(Self.content, headers: ["Content-Disposition": "attachment; filename=\"\(quoted)\""])
        }
        let live = try LiveBench()
        let info = try await live.fetch(server.url("/f"))
        await live.downloader.close()
        // libcurl and we refuse some of the characters in a header already; then there is nothing at all.
        guard info.state == .complete else {
            #expect(info.error?.code == .protocolViolation && live.names == [])
            return
        }
        #expect(live.names == [name])
        #expect(try FileManager.default.contentsOfDirectory(atPath: live.folder.path).sorted() == ["out", "work"])
    }

    @Test("the same where the name comes percent-encoded in the URL", arguments: rows)
    func inURL(_ sent: String, _ name: String) async throws {
        let allowed = CharacterSet.alphanumerics
        let server = try FaultServer()
        server.routeOthers { _ in .ok(Self.content) }
        let live = try LiveBench()
        let part = sent.addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
        let info = try await live.fetch(server.url("/dir/\(part)"))
        await live.downloader.close()
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(live.names.count == 1 && !live.names[0].hasPrefix(".") && !live.names[0].hasPrefix("-"))
        // Where nothing of the name is left, the part before it or the fallback stands in.
        if name != "f" { #expect(live.names == [name]) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: live.folder.path).sorted() == ["out", "work"])
    }

    @Test("NUL in a URL's name")
    func nul() async throws {
        let server = try FaultServer()
        server.routeOthers { _ in .ok(Self.content) }
        let live = try LiveBench()
        #expect(try await live.fetch(server.url("/a%00b%0d%0a.bin")).state == .complete)
        #expect(live.names == ["a_b__.bin"])
    }

    @Test("bytes of a name that are not UTF-8 are escaped")
    func invalidUTF8() async throws {
        let server = try FaultServer()
        server.routeOthers { _ in .ok(Self.content) }
        let live = try LiveBench()
        #expect(try await live.fetch(server.url("/a%ff%c3.bin")).state == .complete)
        #expect(live.names == ["a%FF%C3.bin"])
    }

    @Test(
        "the twin of an existing file, by composition or case, replaces nothing",
        arguments: [("caf\u{e9}", "cafe\u{301}"), ("Read.me", "read.me"), ("same", "same")])
    func twin(_ existing: String, _ sent: String) async throws {
        let server = try FaultServer()
        server.route("/f") { _ in
            .ok(Self.content, headers: ["Content-Disposition": "attachment; filename=\"\(sent)\""])
        }
        let live = try LiveBench()
        try live.folder.write([1, 2, 3], to: "out/\(existing)")
        let info = try await live.fetch(server.url("/f"))
        #expect(info.state == .complete && live.names.count == 2)
        #expect(try live.out(existing) == [1, 2, 3])
        let path = try #require(info.path)
        #expect([UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) == Self.content)
    }

    @Test(
        "a symlink in the place of the file is never written through",
        arguments: [nil, .overwrite, .rename, .refuse] as [ExistingFilePolicy?], [true, false])
    func symlink(_ policy: ExistingFilePolicy?, _ isAskedFor: Bool) async throws {
        let server = try FaultServer()
        server.route("/f") { _ in .ok(Self.content) }
        let live = try LiveBench()
        try live.folder.write([1, 2, 3], to: "precious")
        try live.folder.write([], to: "out/other")
        for name in ["f", "g"] {
            try FileManager.default.createSymbolicLink(
                atPath: live.out + "/\(name)", withDestinationPath: "../precious")
        }
        var builder = try Builder(server.url("/f"))
        builder.directory = live.out
        if isAskedFor { try builder.setFileName("g") }
        builder.options.existing = policy
        let id = try await builder.prepare(in: live.downloader)
        let info = try #require(await live.downloader.messager.finished(id))
        #expect(try live.folder.read("precious") == [1, 2, 3])
        if let path = info.path {
            #expect((try? FileManager.default.destinationOfSymbolicLink(atPath: path)) == nil)
        }
    }

    @Test("the folder is swapped for a symlink while the bytes arrive: nothing goes where it leads")
    func swapped() async throws {
        let server = try FaultServer()
        let gate = Gate()
        server.route("/f") { _ in FaultResponse.ok(Self.content).stalling(at: 1_000, until: gate) }
        let live = try LiveBench()
        let id = try await live.add(server.url("/f"))
        await server.waitForRequests(1)
        let manager = FileManager.default
        try manager.createDirectory(atPath: live.folder.path + "/theirs", withIntermediateDirectories: false)
        try manager.moveItem(atPath: live.out, toPath: live.folder.path + "/moved")
        try manager.createSymbolicLink(atPath: live.out, withDestinationPath: "theirs")
        gate.open()
        let info = try #require(await live.downloader.messager.finished(id))
        #expect(try manager.contentsOfDirectory(atPath: live.folder.path + "/theirs") == [])
        let moved = try manager.contentsOfDirectory(atPath: live.folder.path + "/moved")
        if info.state == .complete { #expect(moved == ["f"]) } else { #expect(!moved.contains("f")) }
    }
}
