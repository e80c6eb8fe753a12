import TestSupport
import Testing

@testable import fk

@Suite("The work path and the downloads are renamed")
final class MovedFolderTests: ServedSuite {
    private let body = Bytes.pattern(count: 3 << 20)

    override init() throws {
        try super.init()
        server.routeOthers { [body] in .ranged(body, for: $0, etag: "\"1\"") }
        try FileManager.default.createDirectory(atPath: place("old"), withIntermediateDirectories: true)
    }

    private func place(_ name: String, _ part: String = "") -> String {
        "\(sandbox.folder.path)/\(name)" + (part.isEmpty ? "" : "/\(part)")
    }

    private func fk(_ place: String, _ words: String...) async throws -> FKProgram.Output {
        try await sandbox.done(words + ["--work-path", self.place(place, "work")])
    }

    private func ids(_ place: String) async throws -> [String: String] {
        let list = try JSON(try await fk(place, "list", "--json").output).array
        return Dictionary(uniqueKeysWithValues: list.map { ($0.text("url") ?? "", $0.text("id") ?? "") })
    }

    /// Starts `fk get`, and sends it the signal once it has received bytes.
    private func interrupted(_ name: String, _ signal: Int32) async throws {
        let gate = Gate()
        server.serve("/\(name)", body, stallingAt: 1_000_000, gate)
        let run = try sandbox.start(
            "get", server.url("/\(name)"), "-d", place("old", "dl"), "--work-path", place("old", "work"))
        let part: String? = try await eventually {
            try? FileManager.default.contentsOfDirectory(atPath: place("old", "dl")).first {
                $0.hasPrefix(".\(name)") && $0.hasSuffix(".fkpart")
            }
        }
        let path = place("old", "dl/\(try #require(part))")
        _ = try await eventually {
            let size = try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
            return size.flatMap { $0 > 0 ? $0 : nil }
        }
        run.signal(signal)
        _ = await run.end()
        gate.open()
    }

    @Test("finished, suspended, killed, barrelled and sharded tasks continue, verify and are repaired, with their ids")
    func renamed() async throws {
        let dl = place("old", "dl")
        _ = try await fk("old", "config", "set", "base.dl", dl)
        #expect(try await fk("old", "config", "show").output.contains("base.dl = \(dl)\n"))
        _ = try await fk("old", "get", server.url("/whole"), "-d", dl)
        try await interrupted("stopped", SIGINT)
        try await interrupted("killed", SIGKILL)
        _ = try await fk("old", "suspend", server.url("/stopped"))
        _ = try await fk("old", "barrel", "create", "set", server.url("/m1"), server.url("/m2"), "-d", dl)
        _ = try await fk("old", "barrel", "run", "set")
        try sandbox.put((0..<4).map { server.url("/s\($0)") }.joined(separator: "\n"), "list")
        _ = try await fk("old", "get", "-i", "list", "-d", dl, "--shard", "1/2")
        _ = try await fk("old", "get", "-i", "list", "-d", dl, "--shard", "2/2")
        let before = try await ids("old")
        #expect(before.count == 9)

        try FileManager.default.moveItem(atPath: place("old"), toPath: place("new"))
        let moved = place("new", "dl")
        _ = try await fk("new", "config", "set", "base.dl", moved)
        #expect(try await ids("new") == before)
        let info = try await fk("new", "info", server.url("/whole"))
        #expect(info.output.contains("\(moved)/whole") && info.output.contains("dl, \(moved)"))
        let why = try await fk("new", "why", server.url("/s0"))
        #expect(why.output.contains("\(moved)/s0 in base dl, since"))
        let json = try JSON(try await fk("new", "info", server.url("/s1"), "--json").output)
        #expect(json.text("base") == "dl" && json.text("path") == "\(moved)/s1")
        #expect(try await fk("new", "info", server.url("/m1"), "--raw").output.contains(#""path":"dl:m1""#))

        let count = server.requests.count
        _ = try await fk("new", "resume", server.url("/stopped"))
        // On a busy machine, auto would try another connection.
        _ = try await fk("new", "run", "-x1")
        #expect(server.requests.count == count + 2)
        #expect(server.requests[count...].allSatisfy { $0["Range"] != nil })
        for name in ["stopped", "killed"] {
            #expect(try [UInt8](Data(contentsOf: URL(fileURLWithPath: "\(moved)/\(name)"))) == body)
        }
        // The same requests find the same tasks, also in the shards.
        _ = try await fk("new", "get", server.url("/whole"), "-d", moved)
        _ = try await fk("new", "barrel", "add", "set", server.url("/m2"))
        _ = try await fk("new", "get", "-i", "list", "-d", moved, "--shard", "1/2")
        #expect(server.requests.count == count + 2)
        #expect(try await ids("new") == before)
        _ = try await fk("new", "verify", "--all")

        try Bytes.damage("\(moved)/whole", at: 2 << 20)
        _ = try await fk("new", "verify", "--all", "--repair")
        _ = try await fk("new", "run", "-x1")
        #expect(try [UInt8](Data(contentsOf: URL(fileURLWithPath: "\(moved)/whole"))) == body)
        #expect(server.requests.count == count + 3 && server.requests.last?["Range"] != nil)
        let names = try FileManager.default.contentsOfDirectory(atPath: moved).sorted()
        #expect(names == ["killed", "m1", "m2", "s0", "s1", "s2", "s3", "stopped", "whole"])
        #expect(!FileManager.default.fileExists(atPath: place("old")))
    }

    @Test("a base without a folder: list and why say how to name it, and the task is kept")
    func unnamed() async throws {
        let (dl, url) = (place("old", "dl"), server.url("/a"))
        _ = try await fk("old", "config", "set", "base.dl", dl)
        _ = try await fk("old", "get", url, "-d", dl)
        _ = try await fk("old", "config", "set", "base.dl", "")
        // Without an engine, the last one's folder counts.
        #expect(try await fk("old", "list").errors == "")
        _ = try await fk("old", "run")
        let list = try await fk("old", "list")
        #expect(list.errors.contains("The base \"dl\"") && list.errors.contains("fk config set base.NAME FOLDER"))
        let why = try await sandbox.fk("why", url, "--work-path", place("old", "work"))
        #expect(why.status != 0)
        _ = try await fk("old", "config", "set", "base.dl", dl)
        #expect(try await fk("old", "why", url).output.contains("\(dl)/a in base dl"))
        #expect(server.requests.count == 1)
    }

    @Test(
        "names and folders that no base can have",
        arguments: [["base.work", "/x"], ["base.", "/x"], ["base.a/b", "/x"], ["base.x", "/"]])
    func refused(_ words: [String]) async throws {
        let result = try await sandbox.fk(["config", "set"] + words)
        #expect(result.status == 2 && result.errors.contains("base"), "\(result.errors)")
    }
}
