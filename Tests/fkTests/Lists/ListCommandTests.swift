import TestSupport
import Testing

@testable import fk

@Suite("fk list, set and attributes") final class ListCommandTests: ServedSuite {

    override init() throws {
        try super.init()
        for (name, count) in [("small.txt", 10), ("large.zip", 3_000), ("middle.zip", 200)] {
            server.route("/\(name)") { _ in .ok(Bytes.pattern(count: count)) }
        }
    }

    private func url(_ name: String) -> String { server.url("/\(name)") }

    private func names(_ arguments: String...) async throws -> [String] {
        try await sandbox.json(["list"] + arguments).array.compactMap { $0.text("path")?.split(separator: "/").last }
            .map(String.init)
    }

    @Test("conditions, order and pages")
    func list() async throws {
        try await sandbox.done("get", url("small.txt"), "--attribute", "model=7")
        try await sandbox.done("get", url("large.zip"), url("middle.zip"), "-b", "zips")
        #expect(try await names() == ["small.txt", "large.zip", "middle.zip"])
        #expect(try await names("--sort", "size") == ["small.txt", "middle.zip", "large.zip"])
        #expect(try await names("--sort", "size", "--reverse", "--limit", "1") == ["large.zip"])
        #expect(try await names("--offset", "1", "--limit", "1") == ["large.zip"])
        #expect(try await names("--format", ".ZIP", "--min-size", "1K") == ["large.zip"])
        #expect(try await names("--max-size", "200") == ["small.txt", "middle.zip"])
        #expect(try await names("--text", "MIDDLE") == ["middle.zip"])
        #expect(try await names("--attribute", "model=7") == ["small.txt"])
        #expect(try await names("--host", "127.0.0.1", "-b", "zips", "--sort", "name") == ["large.zip", "middle.zip"])
        #expect(try await names("--host", "elsewhere") == [])
        #expect(try await names("--since", "1h", "--state", "complete").count == 3)
        #expect(try await names("--until", "2001-02-03") == [])
        #expect(try await names("--since", "2001-02-03T04:05:06Z").count == 3)
    }

    @Test("attributes are set, shown and removed")
    func attributes() async throws {
        try await sandbox.done("get", url("small.txt"), "--attribute", "model=7", "--attribute", "a=b=c")
        #expect(try await sandbox.fk("info", url("small.txt")).output.contains("a=b=c"))
        try await sandbox.done("set", url("small.txt"), "owner=me", "a=")
        let shown = try await sandbox.json("info", url("small.txt"))
        #expect(shown["attributes", "owner"] as? String == "me")
        #expect(shown["attributes", "model"] as? String == "7")
        #expect(shown["attributes", "a"] == nil)
        #expect(try await sandbox.fk("set", server.url("/none"), "a=b").status == 4)
    }
}
