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

    @Test("a JSON export with another folder keeps the folders below the one that all are in") func exportElsewhere()
        async throws
    {
        let server = try FaultServer()
        server.routeOthers { .ok(Array($0.path.utf8)) }
        let sandbox = try Sandbox()
        try "\(server.url("/1"))\n  out=a/same\n\(server.url("/2"))\n  out=b/deep/same\n".write(
            toFile: "\(sandbox.files)/l", atomically: true, encoding: .utf8)
        try await sandbox.done("barrel", "create", "j", "-i", "l", "-d", "old")
        let list = try await sandbox.done("barrel", "export", "j", "--format", "json").output
        try list.write(toFile: "\(sandbox.files)/j.json", atomically: true, encoding: .utf8)
        let other = try Sandbox()
        try await other.done("get", "-i", "\(sandbox.files)/j.json", "-d", "new")
        #expect(try other.bytes("new/a/same") == Array("/1".utf8) && other.bytes("new/b/deep/same") == Array("/2".utf8))
    }

    @Test("what a list of URLs or of aria2 cannot say is named") func poorExport() async throws {
        let server = try FaultServer()
        let sandbox = try Sandbox()
        let list =
            "\(server.url("/1"))\n  out=n\n  header=Accept: text/csv\n  header=Authorization: secret\n  max-download-limit=100K\n"
        try list.write(toFile: "\(sandbox.files)/l", atomically: true, encoding: .utf8)
        try await sandbox.done("barrel", "create", "j", "-i", "l", "-d", "old")
        let urls = try await sandbox.done("barrel", "export", "j")
        #expect(urls.output == "\(server.url("/1"))\n" && urls.errors.contains("1 member has a name"), "\(urls)")
        let aria2 = try await sandbox.done("barrel", "export", "j", "--format", "aria2")
        #expect(
            aria2.output.contains("  header=Accept: text/csv\n")
                && aria2.output.contains("  max-download-limit=102400\n"))
        for format in ["json", "lock", "metalink"] {
            let export = try await sandbox.fk("barrel", "export", "j", "--format", format)
            #expect(export.errors.contains("1 member has header fields, limits or other options"), "\(export.errors)")
        }
        #expect(
            !aria2.output.contains("secret") && aria2.errors.contains("header fields that may be secrets"), "\(aria2)")
    }

    @Test("an export for aria2 has the options that aria2 has, and says what is left out")
    func aria2Options() async throws {
        let server = try FaultServer()
        let sandbox = try Sandbox()
        try await sandbox.done(
            "barrel", "create", "j", server.url("/1"), "-x", "4", "--retry", "7", "--proxy", "http://127.0.0.1:9",
            "--overwrite", "--timeout", "9", "--max-size", "1M")
        let aria2 = try await sandbox.done("barrel", "export", "j", "--format", "aria2")
        for line in [
            "split=4", "max-connection-per-server=4", "max-tries=8", "timeout=9", "all-proxy=http://127.0.0.1:9",
            "allow-overwrite=true",
        ] { #expect(aria2.output.contains("  \(line)\n"), "\(aria2)") }
        #expect(aria2.errors.contains("1 member has options that aria2 does not have"), "\(aria2.errors)")
        try aria2.output.write(toFile: "\(sandbox.files)/l", atomically: true, encoding: .utf8)
        try await sandbox.done("barrel", "create", "k", "-i", "l")
        let again = try await sandbox.done("barrel", "export", "k", "--format", "aria2")
        #expect(again.output == aria2.output && again.errors.isEmpty, "\(again)")
    }

    @Test(
        "an option of curl's config that asks for other bytes is a bad line", arguments: ["data = \"a=1\"", "-r 0-9"])
    func curlRequest(line: String) async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        try "url = \"\(server.url("/1"))\"\n\(line)\n".write(
            toFile: "\(sandbox.files)/c", atomically: true, encoding: .utf8)
        let result = try await sandbox.fk("get", "-i", "c")
        #expect(result.status == 2 && result.errors.contains("c:2: ") && server.requests.isEmpty, "\(result)")
    }

    @Test("a file in place of a URL is a list") func fileAsURL() async throws {
        let sandbox = try Sandbox()
        try "http://h/1\n".write(toFile: "\(sandbox.files)/list.txt", atomically: true, encoding: .utf8)
        for name in ["list.txt", "./list.txt"] {
            let result = try await sandbox.fk("get", name)
            #expect(result.status == 2 && result.errors.contains("-i \(name) reads a list of URLs"), "\(result)")
        }
    }

    @Test("--glob has no meaning for a list") func glob() async throws {
        let sandbox = try Sandbox()
        try "http://h/[1-2]\n".write(toFile: "\(sandbox.files)/l", atomically: true, encoding: .utf8)
        let result = try await sandbox.fk("get", "--glob", "-i", "l")
        #expect(result.status == 2 && result.errors.contains("--glob"), "\(result)")
    }

    @Test(
        "a list, a listing and a list of digests whose server asks to wait end at --max-time, with the reason",
        arguments: [["-i", "U/list"], ["-r", "U/pub/"], ["--checksum", "@U/SUMS", "U/f"]])
    func waitingList(words: [String]) async throws {
        let server = try FaultServer()
        server.routeOthers { $0.path == "/f" ? .ok([1]) : .retryAfter("3600") }
        let sandbox = try Sandbox()
        let result = try await sandbox.fk(
            ["get", "--max-time", "20"] + words.map { $0.replacing("U/", with: server.url("/")) })
        #expect(
            result.status == 1 && result.errors.contains("503") && result.errors.contains("--max-time"), "\(result)")
        #expect(server.requests.filter { $0.path != "/f" }.count <= 2)
    }
}
