import TestSupport
import Testing

@testable import fk

/// Lists of every form whose run is killed in the middle, and Metalinks with pieces.
@Suite("Lists, killed and resumed") final class KilledListTests: ServedSuite {
    private let gate = Gate()
    private let large = Bytes.pattern(count: 3_000_000, seed: 4)
    private let small = Bytes.pattern(count: 40_000, seed: 5)

    override init() throws {
        try super.init()
        server.serve("/set/large.bin", large, stallingAt: 1_500_000, gate)
        server.serve("/set/sub/small.bin", small)
    }

    private var files: [(name: String, bytes: [UInt8])] { [("large.bin", large), ("sub/small.bin", small)] }

    private func metalink(isVersion3: Bool) -> String {
        let body = files.map { file in
            let hash = "<hash type=\"\(isVersion3 ? "sha256" : "sha-256")\">\(Bytes.sha256(file.bytes))</hash>"
            let pieces =
                "<pieces length=\"1000000\" type=\"\(isVersion3 ? "sha256" : "sha-256")\">"
                + stride(from: 0, to: file.bytes.count, by: 1_000_000).enumerated().map { index, start in
                    "<hash\(isVersion3 ? " piece=\"\(index)\"" : "")>"
                        + "\(Bytes.sha256(Array(file.bytes[start..<min(start + 1_000_000, file.bytes.count)])))</hash>"
                }.joined() + "</pieces>"
            let url = server.url("/set/\(file.name)")
            return isVersion3
                ? "<file name=\"\(file.name)\"><size>\(file.bytes.count)</size><verification>\(hash)\(pieces)</verification>"
                    + "<resources><url type=\"http\" preference=\"9\">\(url)</url></resources></file>"
                : "<file name=\"\(file.name)\"><size>\(file.bytes.count)</size>\(hash)\(pieces)<url>\(url)</url></file>"
        }.joined(separator: "\n")
        return isVersion3
            ? "<metalink version=\"3.0\" xmlns=\"http://www.metalinker.org/\"><files>\(body)</files></metalink>"
            : "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\(body)</metalink>"
    }

    /// Writes the list, and returns the words of the command line that name it.
    private func put(_ form: String) throws -> [String] {
        func url(_ name: String) -> String { server.url("/set/\(name)") }
        func sums(_ line: (String, String) -> String) -> String {
            files.map { line(Bytes.sha256($0.bytes), $0.name) + "\n" }.joined()
        }
        switch form {
        case "urls": try sandbox.put(files.map { url($0.name) + "\n" }.joined(), "list")
        case "aria2":
            try sandbox.put(
                files.map { "\(url($0.name))\n  out=\($0.name)\n  checksum=sha-256=\(Bytes.sha256($0.bytes))\n" }
                    .joined(),
                "list")
        case "metalink4": try sandbox.put(metalink(isVersion3: false), "list")
        case "metalink3": try sandbox.put(metalink(isVersion3: true), "list")
        case "gnu": try sandbox.put(sums { "\($0)  \($1)" }, "list")
        case "bsd": try sandbox.put(sums { "SHA256 (\($1)) = \($0)" }, "list")
        case "json":
            try sandbox.put(
                "["
                    + files.map {
                        "{\"url\":\"\(url($0.name))\",\"fileName\":\"\($0.name)\",\"checksum\":\"sha-256=\(Bytes.sha256($0.bytes))\"}"
                    }.joined(separator: ",") + "]", "list")
        case "lock":
            try sandbox.put(
                "{\"fk-lock\":1}\n"
                    + files.map {
                        "{\"name\":\"\($0.name)\",\"size\":\($0.bytes.count),\"sha-256\":\"\(Bytes.sha256($0.bytes))\","
                            + "\"url\":\"\(url($0.name))\"}\n"
                    }.joined(), "list")
        case "bag":
            try FileManager.default.createDirectory(
                atPath: "\(sandbox.files)/bag", withIntermediateDirectories: true)
            try sandbox.put("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n", "bag/bagit.txt")
            try sandbox.put(sums { "\($0)  data/\($1)" }, "bag/manifest-sha256.txt")
            try sandbox.put(
                files.map { "\(url($0.name)) \($0.bytes.count) data/\($0.name)\n" }.joined(), "bag/fetch.txt")
            return ["bag"]
        default: Issue.record("unknown form \(form)")
        }
        return ["list"] + (form == "gnu" || form == "bsd" ? ["--base", server.url("/set/")] : [])
    }

    @Test(
        "killed in the middle, and run again: the bytes stay, and sha256sum agrees",
        arguments: ["urls", "aria2", "metalink4", "metalink3", "gnu", "bsd", "json", "lock", "bag"])
    func killed(_ form: String) async throws {
        let list = try put(form)
        let folder = form == "bag" ? [] : ["-d", "got"]
        try await sandbox.done(["barrel", "import", "set"] + list + folder)
        let run = try sandbox.start("barrel", "run", "set", "-x", "1")
        let record = try await sandbox.record(server.url("/set/large.bin")) { $0.received == 1_500_000 }
        run.kill()
        #expect(await run.end().status == 137 && record != nil)
        gate.open()
        try await sandbox.done("barrel", "run", "set")
        let names = files.map { file in
            switch form {
            case "bag": "bag/data/\(file.name)"
            case "urls": "got/\(file.name.split(separator: "/").last ?? "")"
            default: "got/\(file.name)"
            }
        }
        let output = try Program.run("sha256sum", names.map { "\(sandbox.files)/\($0)" })
        let sums = output.split(separator: "\n").map { $0.prefix(64) }
        #expect(sums.map(String.init) == files.map { Bytes.sha256($0.bytes) })
        // The second run asks for the rest alone.
        #expect(server.requests("/set/large.bin").last?["Range"]?.hasPrefix("bytes=1500000-") == true)
        if form == "bag" {
            // Another program's view of the bag.
            let check = try Program.run("sh", ["-c", "cd '\(sandbox.files)/bag' && sha256sum -c manifest-sha256.txt"])
            #expect(check.contains("data/large.bin: OK"))
        }
    }

    @Test("two mirrors, one with a wrong byte: the piece comes from the other one, also when the run was killed")
    func wrongPiece() async throws {
        let other = try FaultServer()
        var wrong = large
        wrong[1_200_000] = ~wrong[1_200_000]
        server.serve("/lying.bin", wrong, stallingAt: 2_500_000, gate)
        other.serve("/right.bin", large)
        let pieces = stride(from: 0, to: large.count, by: 500_000).map {
            "<hash>\(Bytes.sha256(Array(large[$0..<$0 + 500_000])))</hash>"
        }.joined()
        try sandbox.put(
            "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"f\"><size>\(large.count)</size>"
                + "<pieces length=\"500000\" type=\"sha-256\">\(pieces)</pieces>"
                + "<url priority=\"1\">\(server.url("/lying.bin"))</url><url priority=\"2\">\(other.url("/right.bin"))</url>"
                + "</file></metalink>", "f.meta4")
        let run = try sandbox.start("get", "-i", "f.meta4", "-x", "1")
        // The wrong piece may have been found, and dropped.
        let record = try await sandbox.record(server.url("/lying.bin")) {
            $0.received == 2_500_000 || $0.received == 2_000_000
        }
        run.kill()
        _ = await run.end()
        gate.open()
        try #require(record != nil)
        try await sandbox.done("get", "-i", "f.meta4", "-x", "1")
        #expect(try sandbox.bytes("f") == large)
        #expect(other.requests("/right.bin").map { $0["Range"] } == ["bytes=1000000-1499999"])
        let why = try await sandbox.fk("why", server.url("/lying.bin"))
        #expect(
            why.output.contains("piece 3 of 6 (bytes 1000000-1499999) does not have the list's sha-256"),
            "\(why.output)")
        #expect(try await sandbox.fk("verify", "--all").output == "right f\n")
        // The pieces are in the export as well.
        try await sandbox.done("get", "-i", "f.meta4", "-b", "set")
        let metalink = try await sandbox.fk("barrel", "export", "set", "--format", "metalink").output
        #expect(metalink.contains("<pieces length=\"500000\" type=\"sha-256\">"))
        // A byte of the disk: verify names the piece, and --repair fetches it alone.
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: "\(sandbox.files)/f"))
        try handle.seek(toOffset: 2_999_999)
        try handle.write(contentsOf: Data([~large[2_999_999]]))
        try handle.close()
        let damaged = try await sandbox.fk("verify", "--all")
        #expect(damaged.status == 1 && damaged.errors.contains("2500000-2999999"), "\(damaged.errors)")
        try await sandbox.done("verify", "--all", "--repair")
        #expect(try sandbox.bytes("f") == large)
    }
}
