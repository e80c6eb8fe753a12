import TestSupport
import Testing

@testable import fk

@Suite("Tasks that wait, totals that are not known")
struct WaitingTaskTests {
    @Test("why, info and list of another process say which host asked, and until when")
    func host() async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        server.routeOthers { _ in .retryAfter("300") }
        let urls = ["/a", "/b"].map(server.url)
        let host = "127.0.0.1:\(server.port)"
        let running = try sandbox.start(["get"] + urls + ["-j", "1"])
        let held = try await sandbox.record(urls[1]) { $0.waiting?.until != nil }
        #expect(held?.waiting?.reason == .host && held?.waiting?.host == host)
        let why = try await sandbox.fk("why", urls[1])
        #expect(why.output.contains("waiting until ") && why.output.contains("because \(host) asked for it"))
        #expect(!why.output.contains("slots"))
        let first = try await sandbox.fk("why", urls[0])
        #expect(first.output.contains("the last attempt failed; waiting until "))
        #expect(first.output.contains("because \(host) asked for it"))
        for document in [try await sandbox.json("info", urls[1]), try await sandbox.json("list").array[1]] {
            let waiting = try #require(document["waiting"] as? [String: Any])
            #expect(waiting["reason"] as? String == "host" && waiting["host"] as? String == host)
            #expect(waiting["until"] is String && waiting["limit"] is NSNull)
        }
        #expect(server.requests.count == 1)
        // The next engine keeps to it, and says so while it waits.
        running.signal(SIGTERM)
        _ = await running.end()
        let next = try sandbox.start("get", server.url("/c"))
        let third = try await sandbox.record(server.url("/c")) { $0.waiting?.until != nil }
        #expect(third?.waiting?.host == host)
        #expect(server.requests.count == 1)
        next.kill()
    }

    @Test("a total of which a part is unknown is marked, and has neither percentage nor time left")
    func total() {
        var total = TotalLine(complete: 12, total: 34, received: 131_072_000, expected: 209_715_200, rate: 52_428_800)
        total.isLowerBound = true
        total.fraction = nil
        for columns in 12...200 {
            for usesUnicode in [true, false] {
                let frame = ProgressFrame(
                    columns: columns, rows: 2, usesColor: false, usesUnicode: usesUnicode, nameColumns: 20)
                let line = frame.line(total)
                #expect(Columns.width(of: line) <= columns, "\(columns): \(line)")
                #expect(!line.contains("%") && !line.contains("2s"))
                #expect(columns < 50 || line.contains(usesUnicode ? "125/≥200 MiB" : "125/>=200 MiB"), "\(line)")
            }
        }
        #expect(Formatting.amount(5, of: 5, orMore: "≥") == "5 B", "a total of what is there says nothing")
        // Bytes were dropped: the fraction stays, the amount is what it is.
        total.fraction = 0.75
        let line = ProgressFrame(columns: 79, rows: 2, usesColor: false, usesUnicode: true, nameColumns: 20).line(total)
        #expect(line.contains(" 75%") && line.contains("125/≥200 MiB"))
    }

    @Test("barrel show and list mark a sum of which a part is unknown")
    func barrel() async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        let gate = Gate()
        server.serve("/a", Bytes.pattern(count: 2_048))
        server.serve("/b", Bytes.pattern(count: 600_000), stallingAt: 300_000, gate)
        server.serve("/c", Bytes.pattern(count: 10_000))
        try await sandbox.fk("barrel", "create", "set", server.url("/a"), server.url("/b"), server.url("/c"))
        let running = try sandbox.start("barrel", "run", "set", "-j", "1", "--json")
        #expect(try await sandbox.record(server.url("/b")) { $0.received == 300_000 } != nil)
        let shown = try await sandbox.json("barrel", "show", "set")
        #expect(shown["isExpectedKnown"] as? Bool == false && shown.number("expected") == 602_048)
        #expect(try await sandbox.fk("barrel", "show", "set").output.contains("set: 1 of 3 complete, 295/≥588 KiB"))
        let list = try await sandbox.fk("barrel", "list").output
        #expect(list.contains("295/≥588 KiB") && !list.contains("%"))
        gate.open()
        let events = try JSON.lines(await running.end().output).filter { $0.text("event") == "barrel" }
        #expect(events.last?["isExpectedKnown"] as? Bool == true && events.last?.number("expected") == 612_048)
        #expect(try await sandbox.json("barrel", "show", "set")["isExpectedKnown"] as? Bool == true)
        #expect(try await sandbox.fk("barrel", "list").output.contains("100%"))
    }
}
