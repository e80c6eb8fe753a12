import FKCore
import TestSupport
import Testing

@testable import fk

/// What a run wants is handed over as a whole: to a background process and to `fk rpc`.
@Suite("The orders of a run")
struct RunOrdersTests {
    /// A value of each option of a run.
    private static let words: [String: [String]] = [
        "jobs": ["5"], "connections": ["auto"], "limit-rate": ["1000"], "per-host": ["2"], "rate": ["3/m"],
        "contact": ["me@example.org"], "min-free": ["2000"], "disk-budget": ["3000"], "parts-folder": ["/p"],
        "durability": ["power"],
        "transport": ["curl"], "log": ["/l"], "log-level": ["debug"], "at": ["+1h"], "no-wait": [], "no-private": [],
    ]
    /// The options that concern the process at the terminal alone.
    private static let own: Set<String> = ["detach", "print", "null", "verbose"]

    private func options(_ names: [String]) throws -> RunOptions {
        let context = CommandContext(environment: [:], workingDirectory: "/")
        let words = ["run"] + names.flatMap { ["--\($0)"] + (Self.words[$0] ?? []) }
        guard case .command(_, let arguments) = try CommandTable.parser.parse(words) else { throw Unusable() }
        return try RunOptions(arguments, context)
    }

    private struct Unusable: Error {}

    @Test("each option of a run is in the orders, or concerns this process alone") func each() throws {
        let none = try options([]).orders
        for spec in RunOption.specs where !Self.own.contains(spec.long) {
            #expect(Self.words[spec.long] != nil, "--\(spec.long) has no value here")
            let names = spec.long == "log-level" ? ["log", "log-level"] : [spec.long]
            var (orders, plain) = (try options(names).orders, none)
            (orders.group, plain.group) = ("", "")
            if spec.long == "log-level" { plain.log = orders.log }
            #expect(orders != plain, "--\(spec.long) is not in the orders")
        }
    }

    @Test("what has no effect while another process is the engine is named, for the tasks that the command is about")
    func ignored() throws {
        let orders = try options(Self.words.keys.sorted()).orders
        let engine = ["--disk-budget", "--parts-folder", "--durability", "--transport"]
        #expect(RunOption.ignored(orders, .added) == engine)
        #expect(RunOption.ignored(orders, .barrels(["b"])) == engine + ["--no-private"])
        #expect(RunOption.ignored(orders, .tasks([])) == engine + ["--no-private"])
        #expect(RunOption.ignored(orders, .everything) == ["--min-free"] + engine + ["--no-private"])
        #expect(RunOption.ignored(RunOrders(), .everything).isEmpty)
    }

    @Test("every field arrives, also in the file of a background run") func whole() throws {
        var orders = try options(Self.words.keys.sorted()).orders
        orders.shards = 4
        let none = RunOrders()
        for (field, plain) in zip(Mirror(reflecting: orders).children, Mirror(reflecting: none).children) {
            #expect("\(field.value)" != "\(plain.value)", "\(field.label ?? "") has no value of its own here")
        }
        // The wire has milliseconds.
        orders.start = orders.start.map { Date(timeIntervalSince1970: $0.timeIntervalSince1970.rounded()) }
        #expect(try RunOrders(text: orders.text()) == orders)
        let ids = [TaskID(url: "http://h.example/a"), TaskID(url: "http://h.example/b")]
        let handed = try #require(Detach.parse(String(decoding: Detach.bytes(orders, ids), as: UTF8.self)))
        #expect(handed == Detach.Handed(orders: orders, tasks: ids))
        #expect(handed.orders.own == orders.own && orders.own?.contact == "me@example.org")
        #expect(Detach.parse("\(ids[0].hex)\n") == nil)
    }

    @Test("--detach: the rate of requests and the contact hold without another engine") func detached() async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        for name in ["/a", "/b"] { server.route(name) { _ in .ok(Array("x".utf8)) } }
        try await sandbox.done(
            "get", "--detach", "--rate", "60/m", "--contact", "me@example.org", server.url("/a"), server.url("/b"))
        for name in ["/a", "/b"] {
            #expect(try await sandbox.record(server.url(name)) { $0.state == .complete } != nil)
        }
        #expect(server.requests.count == 2)
        for request in server.requests { #expect(request["User-Agent"]?.contains("me@example.org") == true) }
    }
}
