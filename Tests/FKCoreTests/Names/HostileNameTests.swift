import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore
@testable import FKModel

/// Rows 39 to 51, on a real disk: whatever a server calls a file, it arrives as one harmless name in the folder that was
/// asked for, and nothing else is touched. `RulesNameTests` has the rules as values.
@Suite("Faults: names of files", .timeLimit(.minutes(10)))
struct FaultNameTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var number: Int
        var sent: String
        var name: String
        var testDescription: String { "fault \(number): \(sent.debugDescription.prefix(60))" }
        init(_ number: Int, _ sent: String, _ name: String) {
            self.number = number
            self.sent = sent
            self.name = name
        }
    }

    static let rows: [Row] = [
        .init(39, "../../../../tmp/x", "x"), .init(39, "..\\..\\x", "x"), .init(39, "/etc/passwd", "passwd"),
        .init(39, "~/.ssh/authorized_keys", "authorized_keys"), .init(39, "~root", "_root"),
        .init(40, "a\u{1b}]0;t\u{7}b", "a_]0;t_b"), .init(40, "a\u{7f}b", "a_b"), .init(40, "a\u{202e}b", "a_b"),
        .init(41, "", "f"), .init(41, ".", "f"), .init(41, "..", "f"), .init(41, "/", "f"),
        .init(42, "con.txt", "con_.txt"), .init(42, "NUL", "NUL_"), .init(42, "lpt1.bin", "lpt1_.bin"),
        .init(43, "  a.bin  ", "a.bin"), .init(43, "a.bin. . ", "a.bin"),
        .init(44, ".bashrc", "_bashrc"), .init(44, "...hidden", "_hidden"),
        .init(45, "-rf", "_-rf"), .init(45, "--help.bin", "_--help.bin"),
        .init(46, String(repeating: "n", count: 300) + ".tar", String(repeating: "n", count: 211) + ".tar"),
        .init(46, String(repeating: "é", count: 200) + ".bin", String(repeating: "é", count: 105) + ".bin"),
        .init(49, "a.fkpart", "a.fkpart_"), .init(49, "a.bin.FKREJECTED", "a.bin.FKREJECTED_"),
        .init(49, ".a.0123456789abcdef.fkpart", "_a.0123456789abcdef.fkpart_"),
    ]

    private static let content = Bytes.pattern(count: 2_000)

    @Test("faults 39 to 46 and 49: a name that a server sends becomes one harmless name", arguments: rows)
    func sent(_ row: Row) async throws {
        let server = try FaultServer()
        let quoted = row.sent.replacing("\\", with: "\\\\")
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
        #expect(live.names == [row.name])
        #expect(try FileManager.default.contentsOfDirectory(atPath: live.folder.path).sorted() == ["out", "work"])
    }

    @Test("faults 39 to 46 and 49: the same where the name comes percent-encoded in the URL", arguments: rows)
    func inURL(_ row: Row) async throws {
        let allowed = CharacterSet.alphanumerics
        let server = try FaultServer()
        server.routeOthers { _ in .ok(Self.content) }
        let live = try LiveBench()
        let part = row.sent.addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
        let info = try await live.fetch(server.url("/dir/\(part)"))
        await live.downloader.close()
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(live.names.count == 1 && !live.names[0].hasPrefix(".") && !live.names[0].hasPrefix("-"))
        // Where nothing of the name is left, the part before it or the fallback stands in.
        if row.number != 41 { #expect(live.names == [row.name]) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: live.folder.path).sorted() == ["out", "work"])
    }

    @Test("fault 40: NUL in a URL's name")
    func nul() async throws {
        let server = try FaultServer()
        server.routeOthers { _ in .ok(Self.content) }
        let live = try LiveBench()
        #expect(try await live.fetch(server.url("/a%00b%0d%0a.bin")).state == .complete)
        #expect(live.names == ["a_b__.bin"])
        await live.downloader.close()
    }

    @Test("fault 47: bytes of a name that are not UTF-8 are escaped")
    func invalidUTF8() async throws {
        let server = try FaultServer()
        server.routeOthers { _ in .ok(Self.content) }
        let live = try LiveBench()
        #expect(try await live.fetch(server.url("/a%ff%c3.bin")).state == .complete)
        #expect(live.names == ["a%FF%C3.bin"])
        await live.downloader.close()
    }

    @Test(
        "fault 48: the twin of an existing file, by composition or case, replaces nothing",
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
        await live.downloader.close()
    }

    @Test(
        "fault 50: a symlink in the place of the file is never written through",
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
        await live.downloader.close()
    }

    @Test("fault 51: the folder is swapped for a symlink while the bytes arrive: nothing goes where it leads")
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
        await live.downloader.close()
    }
}
