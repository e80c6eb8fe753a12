import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import fk

@Suite("What is refused before anything is fetched", .timeLimit(.minutes(10))) struct EndToEndUsageTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox() }

    @Test(
        "What is no URL ends with 2 and says which it is",
        arguments: [
            "", "host/file", "ftp://h/a", "file:///etc/passwd", "http://", "http:///a", "http://h h/a", "http://h:0/a",
            "http://h:99999/a", "http://[::1/a", "http://a\nb/", "://x", "http://h\u{7f}/", "javascript:alert(1)",
        ])
    func badURL(url: String) async throws {
        let result = try await sandbox.fk("get", "--", url)
        #expect(result.status == 2, "\(result.errors)")
        #expect(result.output == "")
        #expect(result.errors.hasPrefix("fk: ") && result.errors.contains("URL"))
        if url.hasPrefix("http://h") { #expect(result.errors.contains(Escaping.visible(url))) }
        #expect(!FileManager.default.fileExists(atPath: "\(sandbox.workPath)/tasks"))
    }

    @Test(
        "Unusual URLs are sent percent-encoded and named readably",
        arguments: [
            ("with space", "/with%20space", "with space"), ("中文", "/%E4%B8%AD%E6%96%87", "中文"),
            ("😀.zip", "/%F0%9F%98%80.zip", "😀.zip"), ("%zz", "/%25zz", nil), ("a%20b", "/a%20b", "a b"),
            ("x?q=ü&r=1#frag", "/x?q=%C3%BC&r=1", "x"), ("'$(touch x)'", "/'$(touch%20x)'", nil),
        ] as [(String, String, String?)])
    func encoding(path: String, sent: String, name: String?) async throws {
        let server = try FaultServer()
        server.routeOthers { _ in .ok([1, 2, 3]) }
        let result = try await sandbox.fk("get", server.url("/\(path)"))
        #expect(result.status == 0, "\(result.errors)")
        #expect(server.requests.map(\.target) == [sent])
        let names = try sandbox.names()
        #expect(names.count == 1)
        if let name { #expect(names == [name]) }
    }

    @Test("One bad URL among several: nothing is fetched") func oneBad() async throws {
        let server = try FaultServer()
        let result = try await sandbox.fk("get", server.url("/a"), "http://h:0/b")
        #expect(result.status == 2)
        #expect(server.requests.isEmpty)
    }

    @Test(
        "A folder that cannot be written to is named, and the server asked for nothing",
        arguments: ["file", "file/sub"])
    func folder(path: String) async throws {
        let server = try FaultServer()
        try sandbox.put("", "file")
        let result = try await sandbox.fk("get", server.url("/a"), "-d", path)
        #expect(result.status == 1)
        #expect(result.errors.contains("\(sandbox.files)/\(path)"))
        #expect(server.requests.isEmpty)
    }

    @Test(
        "A typing error gets a suggestion",
        arguments: [
            (["gte"], "'get'"), (["barrel", "shwo", "x"], "'show'"),
            (["get", "--retrry", "3", "http://h/a"], "'--retry'"),
            (["list", "--sate", "idle"], "'--state'"),
        ])
    func suggestion(words: [String], expected: String) async throws {
        let result = try await sandbox.fk(words)
        #expect(result.status == 2)
        #expect(result.errors.contains("Did you mean \(expected)?"))
    }

    @Test(
        "What does not exist ends with 4",
        arguments: [
            ["info", "http://h/nothing"], ["why", "abcdef"], ["suspend", "http://h/nothing"], ["resume", "abcdef"],
            ["cancel", "0123456789"], ["retry", "http://h/x"], ["trash", "-y", "http://h/x"],
            ["barrel", "show", "nix"],
            ["barrel", "run", "nix"], ["barrel", "watch", "nix"], ["barrel", "add", "nix", "http://h/a"],
            ["barrel", "suspend", "nix"], ["barrel", "delete", "nix"], ["barrel", "export", "nix"],
            ["list", "--barrel", "nix"], ["info", "not-an-id"],
        ], [false, true])
    func notFound(words: [String], hasWorkPath: Bool) async throws {
        if hasWorkPath { #expect(try await sandbox.fk("trash", "--all", "-y").status == 0) }
        let result = try await sandbox.fk(words)
        #expect(result.status == 4, "\(result.errors)")
        #expect(result.output == "" && result.errors.hasPrefix("fk: "))
    }

    @Test("Queries of an empty work path are empty, not wrong") func empty() async throws {
        #expect(try await sandbox.fk("list").errors == "No tasks.\n")
        #expect(try await sandbox.json("list").array.isEmpty)
        #expect(try await sandbox.json("barrel", "list").array.isEmpty)
        let run = try await sandbox.fk("run")
        #expect(run.status == 0 && run.output == "" && run.errors.contains("Nothing"))
    }
}
