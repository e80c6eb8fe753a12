import TestSupport
import Testing

@testable import fk

/// Lists of every form, from the command line to the finished files, and back.
@Suite("Lists, end to end") final class ManifestCommandTests: ServedSuite {
    private let bodies = (1...3).map { Bytes.pattern(count: 50_000 * $0, seed: UInt64($0)) }
    private static let names = ["a.bin", "b c.bin", "sub/d.bin"]

    override init() throws {
        try super.init()
        for (name, body) in zip(Self.names, bodies) {
            server.serve("/\(name.replacing(" ", with: "%20"))", body)
        }
    }

    private func sums() -> String {
        zip(Self.names, bodies).map { "\(Bytes.sha256($0.1))  \($0.0)\n" }.joined()
    }

    private func got(_ folder: String, in sandbox: Sandbox) throws -> [[UInt8]] {
        try Self.names.map { try sandbox.bytes("\(folder)/\($0)") }
    }

    @Test(
        "What is exported is imported again to the same barrel, and elsewhere to the same files",
        arguments: ["urls", "json", "aria2", "metalink", "sha256sums", "lock"])
    func roundTrip(format: String) async throws {
        try sandbox.put(sums(), "SUMS")
        let base = ["--base", server.url("/")]
        try await sandbox.done(["barrel", "import", "set", "SUMS", "-d", "got"] + base)
        try await sandbox.done("barrel", "run", "set")
        let exported = try await sandbox.fk("barrel", "export", "set", "--format", format)
        #expect(exported.status == 0)
        // A list of URLs has no digests, which is said.
        #expect(format == "urls" ? exported.errors.contains("3 members have a name, a digest") : exported.errors == "")
        try sandbox.put(exported.output, "list")
        let more = format == "sha256sums" ? base : []
        let again = try await sandbox.fk(["barrel", "import", "set", "list"] + more)
        #expect(again.status == 0 && again.output.contains("0 added, 3 known already"), "\(again)")

        let other = try Sandbox()
        try other.put(exported.output, "list")
        let folder = format == "json" || format == "aria2" ? [] : ["-d", "new"]
        // Lists with absolute folders find the files of the first work path.
        if format == "aria2" || format == "json" { try FileManager.default.removeItem(atPath: "\(sandbox.files)/got") }
        try await other.done(["barrel", "import", "copy", "list"] + folder + more)
        try await other.done("barrel", "run", "copy")
        switch format {
        case "urls": #expect(try other.bytes("new/a.bin") == bodies[0])
        case "json", "aria2": #expect(try got("got", in: sandbox) == bodies)
        default: #expect(try got("new", in: other) == bodies)
        }
        guard format == "lock" else { return }
        let second = try await other.fk("barrel", "export", "copy", "--format", "lock").output
        #expect(second == exported.output.replacing("\"set\"", with: "\"copy\""))
        #expect(!second.contains(sandbox.files))
    }

    @Test("A lock binds: a longer or shorter answer is refused at its head, and another digest after it") func lock()
        async throws
    {
        server.route("/long") { _ in .ok(Bytes.pattern(count: 5_000_000)) }
        server.route("/short") { _ in .ok(Bytes.pattern(count: 10)) }
        server.route("/endless") { _ in .chunked(Bytes.pattern(count: 300_000)) }
        let member = { (name: String) in
            "{\"name\":\"\(name)\",\"size\":200000,\"sha-256\":\"\(String(repeating: "a", count: 64))\","
                + "\"url\":\"\(self.server.url("/\(name)"))\"}\n"
        }
        try sandbox.put("{\"fk-lock\":1}\n" + ["endless", "long", "short"].map(member).joined(), "l.lock")
        let result = try await sandbox.fk("get", "-i", "l.lock", "--retry", "0")
        #expect(result.status == 1)
        #expect(result.errors.contains("it has 5000000 bytes, not 200000"), "\(result.errors)")
        #expect(result.errors.contains("it has 10 bytes, not 200000"))
        #expect(result.errors.contains("not 200000"))
        let sent = server.requests("/long").first?.bytesSent ?? 0
        #expect(sent < 5_000_000, "the body was not fetched")
        #expect(try sandbox.names().filter { !$0.hasPrefix(".") } == ["l.lock"], "no file has got its name")
    }

    @Test("A finished file that differs from the digest of a list does not become a member of its barrel")
    func refusedMember() async throws {
        try await sandbox.done("get", "-o", "a.bin", server.url("/a.bin"))
        let bytes = try sandbox.bytes("a.bin")
        for (digest, count) in [(String(repeating: "0", count: 64), 0), (Bytes.sha256(bytes), 1)] {
            try sandbox.put("\(digest)  a.bin\n", "SUMS")
            let result = try await sandbox.fk("barrel", "import", "b", "SUMS", "--base", server.url("/"))
            #expect(result.status == (count == 0 ? 1 : 0), "\(result)")
            #expect(result.errors.contains("is not the file expected") == (count == 0), "\(result)")
            #expect(try await sandbox.json("barrel", "show", "b").array("members").count == count)
            #expect(try sandbox.bytes("a.bin") == bytes)
        }
    }

    @Test("Bad entries of a Metalink are left out by name and line, the others taken, status 1; malformed XML: 2")
    func faults() async throws {
        let file = { (name: String, path: String) in
            "<file name=\"\(name)\"><url>\(self.server.url(path))</url></file>\n"
        }
        let head = "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\n"
        try sandbox.put(head + file("../x", "/a.bin") + file("a.bin", "/a.bin") + "</metalink>", "x.meta4")
        let result = try await sandbox.fk("get", "-i", "x.meta4")
        #expect(result.status == 1 && result.errors.contains("fk: x.meta4:2:1: '../x': its name has '..'"))
        #expect(try sandbox.names() == ["a.bin", "x.meta4"])
        try sandbox.put(head + file("b.bin", "/a.bin"), "x.meta4")
        let broken = try await sandbox.fk("barrel", "import", "b", "x.meta4")
        #expect(broken.status == 2 && broken.errors.contains("x.meta4:"))
        #expect(try await sandbox.fk("barrel", "show", "b").status == 4)
        let bad = try await sandbox.fk("get", "-i", "-", input: "\(server.url("/a.bin"))\nnonsense\n")
        #expect(bad.status == 2)
        let skipped = try await sandbox.fk(
            "get", "-i", "-", "--skip-bad", "-d", "s", input: "\(server.url("/a.bin"))\nnonsense\n")
        #expect(skipped.status == 1 && skipped.errors.contains("standard input:2: 'nonsense'"))
        #expect(sandbox.exists("s/a.bin"))
    }

    @Test("Mirrors of a Metalink are used when the first one fails") func mirrors() async throws {
        try sandbox.put(
            "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"m.bin\"><size>\(bodies[0].count)</size>"
                + "<hash type=\"sha-256\">\(Bytes.sha256(bodies[0]))</hash><url priority=\"9\">\(server.url("/a.bin"))</url>"
                + "<url priority=\"1\">\(server.url("/gone"))</url></file></metalink>", "m.meta4")
        try await sandbox.done("get", "-i", "m.meta4")
        #expect(try sandbox.bytes("m.bin") == bodies[0])
        #expect(server.requests("/gone").count == 1)
    }

    @Test("A Metalink in place of a file is followed only with --metalink") func followed() async throws {
        let list =
            "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"m.bin\">"
            + "<url>\(server.url("/a.bin"))</url></file></metalink>"
        server.route("/x") { _ in .ok(Array(list.utf8), headers: ["Content-Type": "application/metalink4+xml"]) }
        try await sandbox.done("get", server.url("/x"))
        #expect(try sandbox.bytes("x") == Array(list.utf8))
        try await sandbox.done("get", "--metalink", server.url("/x"), server.url("/sub/d.bin"), "-d", "f")
        #expect(try sandbox.bytes("f/m.bin") == bodies[0] && sandbox.bytes("f/d.bin") == bodies[2])
    }

    @Test("--checksum takes a digest alone, and a list from a file or a server that has the file's name") func digests()
        async throws
    {
        try sandbox.put(sums(), "SUMS")
        server.route("/SUMS") { [sums = sums()] _ in .ok(Array(sums.utf8)) }
        let url = server.url("/a.bin")
        func get(_ checksum: String, _ folder: String) async throws -> FKProgram.Output {
            try await sandbox.fk("get", url, "-d", folder, "--checksum", checksum)
        }
        for (index, checksum) in [Bytes.sha256(bodies[0]), "@SUMS", "@\(server.url("/SUMS"))"].enumerated() {
            #expect(try await get(checksum, "d\(index)").status == 0)
        }
        #expect(try await get(Bytes.sha256(bodies[1]), "w").status == 1)
        #expect(try await get("abc", "w").status == 2)
        #expect(try await get("@nowhere", "w").status == 2)
        let none = try await sandbox.fk("get", server.url("/b%20c.bin"), "-o", "e", "--checksum", "@SUMS")
        #expect(none.status == 2 && none.errors.contains("SUMS has no digest of 'e'"))
        try await sandbox.done("get", server.url("/sub/d.bin"), url, "-d", "two", "--checksum", "@SUMS")
    }

    @Test("A list that cannot be used is named without the secrets of its URL") func secretNames() async throws {
        server.route("/L") { _ in .ok(Array("no list\u{0}\n".utf8)) }
        server.route("/E") { _ in .ok([]) }
        let url = server.url("/a.bin")
        for path in ["/L", "/E"] {
            let list = server.url(path) + "?password=hunter2&sig=SIG1&X-Amz-Security-Token=TOKEN1"
            for arguments in [["-i", list], [url, "--checksum", "@\(list)"]] {
                let answer = try await sandbox.fk(["get"] + arguments)
                #expect(answer.status != 0 && answer.errors.contains("password=***"), "\(answer)")
                for secret in ["hunter2", "SIG1", "TOKEN1"] { #expect(!answer.errors.contains(secret), "\(answer)") }
            }
        }
    }

    @Test("a file of the same name in another folder is no twin: the folders of the URL decide") func sameNames()
        async throws
    {
        try sandbox.put("\(Bytes.sha256(bodies[0]))  a.bin\n\(Bytes.sha256(bodies[1]))  sub/a.bin\n", "SUMS")
        server.route("/sub/a.bin") { [bodies] _ in .ok(bodies[1]) }
        server.route("/other/a.bin") { [bodies] _ in .ok(bodies[1]) }
        try await sandbox.done("get", server.url("/a.bin"), "-d", "one", "--checksum", "@SUMS", "--retry", "0")
        try await sandbox.done("get", server.url("/sub/a.bin"), "-d", "two", "--checksum", "@SUMS", "--retry", "0")
        let other = try await sandbox.fk(
            "get", server.url("/other/a.bin"), "-d", "three", "--checksum", "@SUMS", "--retry", "0")
        #expect(other.status == 1 && !sandbox.exists("three/a.bin"), "\(other)")
        try sandbox.put("\(Bytes.sha256(bodies[0]))  x/a.bin\n\(Bytes.sha256(bodies[1]))  y/a.bin\n", "SUMS")
        let several = try await sandbox.fk("get", server.url("/a.bin"), "-d", "four", "--checksum", "@SUMS")
        #expect(several.status == 2 && several.errors.contains("several files named 'a.bin'"), "\(several)")
    }

    @Test("--checksum auto takes the first list beside the file that has its name, and says which") func digestsBeside()
        async throws
    {
        let (sum, other) = (Bytes.sha256(bodies[0]), Bytes.sha256(bodies[1]))
        server.route("/x/a.bin") { [bodies] _ in .ok(bodies[0]) }
        server.route("/x/b.bin") { [bodies] _ in .ok(bodies[1]) }
        let (a, b) = (server.url("/x/a.bin") + "?v=1", server.url("/x/b.bin"))
        let none = try await sandbox.fk("get", a, "-d", "n", "--checksum", "auto")
        #expect(none.status == 1 && server.requests("/x/a.bin").isEmpty)
        for place in ["a.bin.sha256?v=1", "a.bin.sha512?v=1", "SHA256SUMS?v=1", "sha256sum.txt?v=1"] {
            #expect(none.errors.contains("/x/\(place) (HTTP 404)"), "\(none.errors)")
        }
        #expect(
            server.requests.map(\.path).suffix(4)
                == ["a.bin.sha256", "a.bin.sha512", "SHA256SUMS", "sha256sum.txt"].map { "/x/\($0)" })
        // A page in place of a list, and a list without the name, are passed over.
        server.route("/x/a.bin.sha256") { _ in .ok(Array("<html>not here</html>".utf8)) }
        server.route("/x/SHA256SUMS") { _ in .ok(Array("\(other)  b.bin\n".utf8)) }
        server.route("/x/sha256sum.txt") { _ in .ok(Array("\(sum) *./a.bin\n\(sum)  b.bin\n".utf8)) }
        let both = try await sandbox.fk("get", "-q", a, b, "-d", "both", "--checksum", "auto")
        #expect(
            both.status == 0
                && both.errors.contains("fk: a.bin: the sha-256 digest is from \(server.url("/x/sha256sum.txt"))"))
        #expect(
            both.errors.contains("fk: b.bin: the sha-256 digest is from \(server.url("/x/SHA256SUMS"))"),
            "\(both.errors)")
        #expect(try sandbox.bytes("both/a.bin") == bodies[0])
        // A digest alone is that of the file which the list is named after.
        server.route("/x/b.bin.sha256") { _ in .ok(Array("\(sum)\n".utf8)) }
        let wrong = try await sandbox.fk("get", b, "-d", "wrong", "--checksum", "auto")
        #expect(wrong.status == 1 && wrong.errors.contains("/x/b.bin.sha256") && !sandbox.exists("wrong/b.bin"))
        let list = try await sandbox.fk("get", "-i", "SUMS", "--checksum", "auto")
        #expect(list.status == 2)
    }

    @Test("A table and JSON Lines are fetched with names and digests; bad rows are named and status is 1") func tables()
        async throws
    {
        try sandbox.put(
            "caption,url,name,size,sha256\n\"a, b\",\(server.url("/a.bin")),d/x.bin,\(bodies[0].count),\(Bytes.sha256(bodies[0]))\n"
                + "c,ftp://h/a,,,\n", "list.csv")
        let table = try await sandbox.fk("get", "-i", "list.csv", "-d", "t")
        #expect(table.status == 1 && table.errors.contains("list.csv:3:3: 'ftp://h/a': scheme"), "\(table.errors)")
        #expect(try sandbox.bytes("t/d/x.bin") == bodies[0])
        try sandbox.put("{\"url\":\"a.bin\",\"name\":\"y\",\"size\":\"\(bodies[0].count)\"}\n", "list")
        try await sandbox.done("barrel", "import", "l", "list", "-d", "l", "--base", server.base)
        try await sandbox.done("barrel", "run", "l")
        #expect(try sandbox.bytes("l/y") == bodies[0])
        try sandbox.put("PAR1....", "list.parquet")
        let parquet = try await sandbox.fk("get", "-i", "list.parquet")
        #expect(parquet.status == 2 && parquet.errors.contains("duckdb"), "\(parquet.errors)")
    }

    @Test("aria2c and sha256sum take what is exported") func otherPrograms() async throws {
        try sandbox.put(sums(), "SUMS")
        _ = try await sandbox.fk("barrel", "import", "set", "SUMS", "-d", "got", "--base", server.url("/"))
        try await sandbox.done("barrel", "run", "set")
        try sandbox.put(try await sandbox.fk("barrel", "export", "set", "--format", "sha256sums").output, "ours")
        if let program = Tool.path("sha256sum") {
            let result = try await FKProgram.run(program, ["-c", "../ours"], folder: "\(sandbox.files)/got")
            #expect(result.status == 0 && result.output.contains("sub/d.bin: OK"), "\(result)")
        }
        try sandbox.put(try await sandbox.fk("barrel", "export", "set", "--format", "metalink").output, "ours.meta4")
        if let program = Tool.path("aria2c") {
            let result = try await FKProgram.run(
                program, ["--no-conf", "-q", "-d", "aria", "-M", "ours.meta4", "--file-allocation=none"],
                folder: sandbox.files)
            #expect(result.status == 0, "\(result)")
            #expect(try got("aria", in: sandbox) == bodies)
        }
    }
}

/// Programs of the system that judge ours.
enum Tool {
    /// The path of a program; nil if it is not installed.
    static func path(_ name: String) -> String? {
        (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":").map { "\($0)/\(name)" }
            .first { access($0, X_OK) == 0 }
    }
}
