import TestSupport
import Testing

@testable import fk

@Suite("forget, relink, aliases and selected tasks") final class VerbCommandTests: ServedSuite {
    private let body = Bytes.pattern(count: 1_000_000)

    override init() throws {
        try super.init()
        for name in ["a", "b"] { server.serve("/\(name)", body) }
        server.route("/none") { _ in .status(404) }
    }

    private func url(_ name: String) -> String { server.url("/\(name)") }

    @Test("forget drops the records in a state and keeps their files; the others stay")
    func forgetState() async throws {
        #expect(try await sandbox.fk("get", url("a"), url("none")).status == 1)
        let result = try await sandbox.fk("forget", "--state", "complete")
        #expect(result.status == 0 && result.output.contains("forgotten, kept"), "\(result.output)\(result.errors)")
        #expect(try sandbox.bytes("a") == body)
        #expect(try await sandbox.json("list").array.map { $0.text("url") } == [url("none")])
        let again = try await sandbox.json("forget", "--state", "complete")
        #expect(again.array.isEmpty)
        let rest = try await sandbox.json("rm", "--all")
        #expect(rest.array.map { $0.text("verb") } == ["forget"] && rest.array.map { $0.text("before") } == ["error"])
        #expect(try await sandbox.json("ls").array.isEmpty)
        #expect(try sandbox.names() == ["a"])
    }

    @Test("A file's name or a pattern selects tasks; a name that several have is listed, and only --all takes them all")
    func names() async throws {
        for path in ["/1/x.iso", "/2/x.iso", "/y.iso"] { server.serve(path, body) }
        let urls = ["/1/x.iso", "/2/x.iso", "/y.iso"].map { server.url($0) }
        #expect(try await sandbox.fk(["barrel", "create", "set"] + urls).status == 0)
        #expect(try await sandbox.json("info", "y.iso").text("url") == urls[2])
        let several = try await sandbox.fk("suspend", "x.iso")
        #expect(several.status == 2 && several.errors.contains("2 tasks match"), "\(several.errors)")
        #expect(urls[..<2].allSatisfy { several.errors.contains($0) })
        #expect(try await sandbox.json("why", "x.iso").array.count == 2)
        #expect(try await sandbox.json("suspend", "x.iso", "--all").array.count == 2)
        #expect(try await sandbox.json("resume", "*.iso").array.map { $0["applied"] as? Bool } == [true, true, false])
        #expect(try await sandbox.fk("suspend", "*.zip").status == 4)
        #expect(try await sandbox.fk("relink", "x.iso", url("a")).status == 2)
        let asked = try await sandbox.fk("trash", "*.iso")
        #expect(asked.status == 2 && asked.errors.contains("pass --yes"), "\(asked.errors)")
        #expect(try await sandbox.json("forget", "-y", "?.iso").array.count == 3)
        #expect(try await sandbox.json("list").array.isEmpty)
    }

    @Test("fk set --priority changes the order in which waiting tasks start")
    func priority() async throws {
        try await sandbox.fk("barrel", "create", "set", url("a"), url("b"), server.url("/c"))
        func queue() async throws -> [String?] {
            try await sandbox.json("list", "--sort", "queue").array.map { $0.text("url")?.suffix(1).description }
        }
        #expect(try await sandbox.fk("set", "c", "--priority", "first").status == 0)
        #expect(try await queue() == ["c", "a", "b"])
        #expect(try await sandbox.fk("set", "a", "--priority", "last").status == 0)
        #expect(try await queue() == ["c", "b", "a"])
        #expect(try await sandbox.fk("set", "b", "--priority", "7", "owner=me").status == 0)
        #expect(try await queue() == ["b", "c", "a"])
        #expect(try await sandbox.fk("set", "b", "--priority", "soon").status == 2)
        #expect(try await sandbox.fk("set", "b").status == 2)
    }

    @Test("forget of a barrel's members: part files go, finished files stay, the barrel is empty")
    func forgetBarrel() async throws {
        let gate = Gate()
        server.serve("/slow", body, stallingAt: 500_000, gate)
        let running = try sandbox.start("get", url("a"), url("slow"), "-b", "set")
        #expect(try await sandbox.record(url("a")) { $0.state == .complete } != nil)
        #expect(try await sandbox.record(url("slow")) { $0.received == 500_000 } != nil)
        for words in [["forget", "-b", "set"], ["forget", "--all"], ["forget", "--state", "running"]] {
            let refused = try await sandbox.fk(words)
            #expect(refused.status == 2 && refused.errors.contains("pass --yes"), "\(refused.errors)")
            #expect(refused.errors.contains("Delete the 488 KiB of 1 unfinished file?"), "\(refused.errors)")
        }
        try await sandbox.done("forget", "-y", "-b", "set")
        #expect(await running.end().status == 1)
        #expect(try sandbox.names() == ["a"])
        #expect(try await sandbox.json("barrel", "show", "set").number("total") == 0)
        #expect(try await sandbox.fk("forget", "-b", "nix").status == 4)
        #expect(try await sandbox.fk("barrel", "forget", "nix").status == 4)
    }

    @Test("An alias is its command, also in help; a verb of another meaning is suggested")
    func aliases() async throws {
        let gate = Gate()
        server.serve("/slow", body, stallingAt: 500_000, gate)
        let running = try sandbox.start("get", url("slow"))
        #expect(try await sandbox.record(url("slow")) { $0.received == 500_000 } != nil)
        #expect(try await sandbox.fk("pause", url("slow")).output.contains("suspended"))
        #expect(try await sandbox.fk("status", "--state", "suspend").output.contains("slow"))
        #expect(try await sandbox.fk("start", url("slow")).output.contains("queued"))
        gate.open()
        _ = await running.end()
        #expect(try await sandbox.fk("help", "rm").output.contains("fk forget - "))
        #expect(try await sandbox.fk("forget", "-h").output.contains("Also: fk rm"))
        let wrong = try await sandbox.fk("delete", url("slow"))
        #expect(wrong.status == 2 && wrong.errors.contains("Did you mean 'forget' or 'trash'?"), "\(wrong.errors)")
        let barrel = try await sandbox.fk("barrel", "ls")
        #expect(barrel.status == 2 && barrel.errors.contains("Did you mean 'list'?"), "\(barrel.errors)")
    }

    @Test("relink gives an expired link's task another address, and its bytes stay")
    func relink() async throws {
        let half = body.count / 2
        server.route("/expired") { [body] request in
            request["Range"] == nil ? .ranged(body, for: request, etag: "\"1\"").cut(at: half) : .status(403)
        }
        #expect(try await sandbox.fk("get", url("expired"), "--retry", "1", "-x", "1").status == 1)
        let result = try await sandbox.fk("relink", url("expired"), url("a?sig=secret"))
        #expect(result.status == 0 && result.output.contains("the new address"), "\(result.errors)")
        #expect(!result.output.contains("secret"))
        try await sandbox.done("run")
        #expect(try sandbox.bytes("expired") == body)
        #expect(server.requests("/a").first?["Range"]?.hasPrefix("bytes=4959") == true)
        #expect(try await sandbox.json("info", url("expired")).text("url") == url("expired"))
        #expect(try await sandbox.fk("relink", url("nothing"), url("a")).status == 4)
    }

    @Test("relink does not choose between two tasks of one URL") func ambiguous() async throws {
        for folder in ["x", "y"] { #expect(try await sandbox.fk("get", url("a"), "-d", folder).status == 0) }
        let result = try await sandbox.fk("relink", url("a"), url("b"))
        #expect(result.status == 2 && result.errors.contains("2 tasks match"), "\(result.errors)")
        let id = try #require(sandbox.reader.records(url: url("a")).first).id
        try await sandbox.done("relink", id.hex, url("b"))
    }
}
