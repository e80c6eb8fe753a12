import Foundation
import TestSupport
import Testing

@testable import fk

@Suite("fk get --extract")
struct ExtractTests {
    private let sandbox: Sandbox
    private let server: FaultServer

    init() throws { (sandbox, server) = (try Sandbox(), try FaultServer()) }

    /// A member of a tar in the form of POSIX (ustar).
    private static func member(
        _ name: String, _ body: String = "", type: Character = "0", link: String = "", device: (Int, Int) = (0, 0),
        mode: Int = 0o644
    ) -> [UInt8] {
        var head = [UInt8](repeating: 0, count: 512)
        func put(_ text: String, _ offset: Int) {
            for (index, byte) in text.utf8.enumerated() { head[offset + index] = byte }
        }
        func octal(_ value: Int, _ digits: Int) -> String {
            let text = String(value, radix: 8)
            return String(repeating: "0", count: digits - text.count) + text
        }
        put(name, 0)
        put(octal(mode, 7), 100)
        put(octal(0, 7), 108)
        put(octal(0, 7), 116)
        put(octal(body.utf8.count, 11), 124)
        put(octal(1_000_000, 11), 136)
        put("        ", 148)
        put(String(type), 156)
        put(link, 157)
        put("ustar\u{0}00", 257)
        put(octal(device.0, 7), 329)
        put(octal(device.1, 7), 337)
        put(octal(head.reduce(0) { $0 + Int($1) }, 6) + "\u{0} ", 148)
        let padding = (512 - body.utf8.count % 512) % 512
        return head + Array(body.utf8) + [UInt8](repeating: 0, count: padding)
    }

    private static func tar(_ members: [UInt8]...) -> [UInt8] {
        members.flatMap(\.self) + [UInt8](repeating: 0, count: 10_240)
    }

    private func names(_ folder: String = "") throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "\(sandbox.files)/\(folder)").sorted()
    }

    @Test("the folder appears with what the archive has, and its path is printed; nothing else is left")
    func right() async throws {
        let tar = Self.tar(Self.member("a", "one"), Self.member("sub/b", "two"), Self.member("l", type: "2", link: "a"))
        server.route("/a.tar") { .ranged(tar, for: $0, etag: "\"a\"").cut(at: 1_500) }
        let result = try await sandbox.done("get", "--extract", "out", server.url("/a.tar"))
        #expect(result.output == "\(sandbox.files)/out\n")
        #expect(result.errors.hasSuffix(" is unpacked in \(sandbox.files)/out.\n"), "\(result.errors)")
        #expect(try names() == ["out"] && names("out") == ["a", "l", "sub"])
        #expect(try sandbox.bytes("out/a") == Array("one".utf8) && sandbox.bytes("out/sub/b") == Array("two".utf8))
        // An empty folder may be there.
        try FileManager.default.createDirectory(atPath: "\(sandbox.files)/empty", withIntermediateDirectories: true)
        #expect(chmod("\(sandbox.files)/empty", 0o2710) == 0)
        try await sandbox.done("get", "--extract", "empty", server.url("/a.tar"))
        #expect(try names("empty") == ["a", "l", "sub"])
        var status = stat()
        #expect(stat("\(sandbox.files)/empty", &status) == 0 && status.st_mode & 0o7777 == 0o2710)
        let here = try await sandbox.fk("get", "--extract", ".", server.url("/a.tar"))
        #expect(here.status == 1, "\(here.errors)")
        let again = try await sandbox.fk("get", "--extract", "out", server.url("/a.tar"))
        #expect(again.status == 1 && again.errors.contains("exists already"))
        let quiet = try await sandbox.done("get", "--extract", "quiet", "-q", server.url("/a.tar"))
        #expect(quiet.errors == "")
    }

    @Test("compressions are told by the first bytes", arguments: ["gzip", "bzip2", "xz", "zstd"])
    func compressed(_ program: String) async throws {
        let tar = Self.tar(Self.member("a", "one"))
        try sandbox.folder.write(tar, to: "plain")
        let path = "\(sandbox.folder.path)/plain"
        let packed = try await FKProgram.run("/bin/sh", ["-c", "\(program) -c '\(path)' > '\(path).z'"])
        // Not every machine has each of them.
        guard packed.status == 0 else { return }
        let bytes = try sandbox.folder.read("plain.z")
        server.route("/a") { _ in .ok(bytes) }
        try await sandbox.done("get", "--extract", "out", server.url("/a"))
        #expect(try sandbox.bytes("out/a") == Array("one".utf8))
    }

    @Test("the first bytes of each form")
    func forms() {
        #expect(Archive(Data([0x1f, 0x8b, 8])) == .tar("--gzip"))
        #expect(Archive(Data([0x28, 0xb5, 0x2f, 0xfd])) == .tar("--zstd"))
        #expect(Archive(Data([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0])) == .tar("--xz"))
        #expect(Archive(Data("BZh9".utf8)) == .tar("--bzip2"))
        #expect(Archive(Data("PK\u{3}\u{4}".utf8)) == .zip)
        #expect(Archive(Data("a/".utf8)) == .tar(nil))
    }

    /// A zip with an empty member.
    private static func zip(_ name: String) -> [UInt8] {
        func number(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(value >> (8 * $0) & 0xff) } }
        let name = Array(name.utf8)
        let rest = number(0, 8) + number(0, 12) + number(name.count, 2) + number(0, 2)
        let local = Array("PK\u{3}\u{4}".utf8) + number(20, 2) + rest + name
        let entry = Array("PK\u{1}\u{2}".utf8) + number(20, 2) + number(20, 2) + rest + number(0, 14) + name
        return local + entry + Array("PK\u{5}\u{6}".utf8) + number(0, 4) + number(1, 2) + number(1, 2)
            + number(entry.count, 4) + number(local.count, 4) + number(0, 2)
    }

    /// Archives that are refused as a whole.
    private static let refused: [(String, [UInt8])] = [
        ("a member above the folder", tar(member("../../evil", "x"))),
        ("a member of a zip above the folder", zip("a/../../evil")),
        ("through a link out of the folder", tar(member("d", type: "2", link: "/tmp"), member("d/fk-evil", "x"))),
        ("through a relative link", tar(member("d", type: "2", link: "../.."), member("d/fk-evil", "x"))),
        ("a hard link to a file of the system", tar(member("h", type: "1", link: "/etc/passwd"))),
        ("a device", tar(member("null", type: "3", device: (1, 3)))),
        ("a pipe", tar(member("p", type: "6"))),
        ("cut in a member", Array(tar(member("a", String(repeating: "x", count: 2_000)))[..<1_500])),
        ("no archive", Array(repeating: 0x41, count: 2_000)), ("empty", []),
    ]

    @Test("what tar refuses, and devices: status 1, and nothing appears", arguments: refused.map(\.0))
    func hostile(_ name: String) async throws {
        let bytes = try #require(Self.refused.first { $0.0 == name }).1
        server.route("/a") { _ in .ok(bytes) }
        let result = try await sandbox.fk("get", "--extract", "out", server.url("/a"))
        #expect(result.status == 1 && result.output == "", "\(result.errors)")
        #expect(try names().isEmpty)
        #expect(!FileManager.default.fileExists(atPath: "/tmp/fk-evil"))
        #expect(!FileManager.default.fileExists(atPath: "\(sandbox.folder.path)/evil"))
    }

    @Test("a wrong digest, a missing file and a missing tar leave nothing; modes of the archive do not stay")
    func failures() async throws {
        let tar = Self.tar(Self.member("a", "one", mode: 0o4777))
        server.route("/a") { _ in .ok(tar) }
        let wrong = try await sandbox.fk(
            "get", "--extract", "out", "--checksum", "sha256:\(String(repeating: "0", count: 64))", server.url("/a"))
        #expect(wrong.status == 1 && wrong.errors.contains("its sha-256 is"))
        #expect(try await sandbox.fk("get", "--extract", "out", server.url("/none")).status == 1)
        let bare = try sandbox.start(["get", "--extract", "out", server.url("/a")], environment: ["PATH": "/nothing"])
        let result = await bare.end()
        #expect(result.status == 1 && result.errors.contains("install tar"))
        #expect(try names().isEmpty)
        try await sandbox.done("get", "--extract", "out", server.url("/a"))
        var status = stat()
        #expect(stat("\(sandbox.files)/out/a", &status) == 0 && status.st_mode & 0o7022 == 0)
    }

    @Test("after a kill, the same command removes what was left beside the folder")
    func killed() async throws {
        let tar = Self.tar(Self.member("a", String(repeating: "x", count: 100_000)))
        server.route("/a") {
            .ranged(tar, for: $0, etag: "\"a\"").stalling(at: $0.index == 0 ? 50_000 : tar.count, until: Gate())
        }
        let get = try sandbox.start("get", "--extract", "out", server.url("/a"))
        _ = try await eventually { try names().isEmpty || server.requests.isEmpty ? nil : true }
        kill(get.pid, SIGKILL)
        _ = await get.end()
        #expect(try names().count == 1)
        server.route("/a") { _ in .ok(tar) }
        try await sandbox.done("get", "--extract", "out", server.url("/a"))
        #expect(try names() == ["out"])
    }

    @Test("options that keep a file, or describe several, are refused")
    func options() async throws {
        for words in [["-o", "f"], ["-b", "x"], ["--detach"], ["--skip"], ["--json"], ["http://h/b"]] {
            #expect(try await sandbox.fk(["get", "--extract", "out", "http://h/a"] + words).status == 2, "\(words)")
        }
    }
}
