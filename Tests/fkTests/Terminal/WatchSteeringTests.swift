import FKCore
import FKMiddleware
import Foundation
import Testing

@testable import fk

@Suite("Marks, order, queue and mouse in fk watch") struct WatchSteeringTests: WatchFixture {
    @Test("A verb acts on the marked tasks, in one request; Esc unmarks before it clears the filter") func marks() {
        var model = model([
            info("run", .action, received: 5, expected: 9), info("held", .suspend), info("gone", .error),
            info("wait", .idle), info("done", .complete),
        ])
        for _ in 0..<2 { #expect(model.handle(.character("v"), rows: 24) == []) }
        #expect(model.marked == [id("run"), id("held")] && model.selected()?.id == id("gone"))
        #expect(frame(&model)[3].hasPrefix(" *▸ run") && frame(&model)[0].contains("2 marked"))
        let both = [id("run"), id("held")]
        #expect(
            model.handle(.character(" "), rows: 24) == [
                .request(
                    .init(.chosen([VerbChoice(id: both[0], verb: .suspend), VerbChoice(id: both[1], verb: .resume)])))
            ])
        #expect(model.handle(.character("f"), rows: 24) == [])
        #expect(frame(&model).last == "Forget 2 tasks and delete their unfinished bytes? y/n")
        #expect(
            model.handle(.character("y"), rows: 24) == [
                .request(.init(.chosen(both.map { VerbChoice(id: $0, verb: .forget) })))
            ])
        model.setFilter("n")
        _ = model.handle(.character("A"), rows: 24)
        #expect(model.marked == [id("run"), id("gone"), id("done")])
        _ = model.handle(.character("A"), rows: 24)
        #expect(model.marked.isEmpty)
        _ = model.handle(.character("v"), rows: 24)
        _ = model.handle(.escape, rows: 24)
        #expect(model.marked.isEmpty && model.filter == "n")
        _ = model.handle(.escape, rows: 24)
        #expect(model.filter == "")
        _ = model.handle(.character("A"), rows: 24)
        model.apply(.changed([info("run", .unknown)]), time: 0)
        #expect(model.marked.count == 4, "a task that is gone is not marked")
    }

    @Test("s sorts by name, size, rate and age") func sort() {
        var fast = info("c", .action, expected: 5)
        fast.bytesPerSecond = 100
        var model = model([info("b", .complete, received: 9, expected: 9), info("a", .idle, expected: 7), fast])
        for (order, expected) in [
            ("name", ["a", "b", "c"]), ("size", ["b", "a", "c"]), ("rate", ["c", "b", "a"]), ("age", ["c", "a", "b"]),
            ("state", ["c", "a", "b"]),
        ] {
            _ = model.handle(.character("s"), rows: 24)
            #expect(model.sorting.rawValue == order && names(&model) == expected, "\(order)")
            #expect(frame(&model)[0].contains("by \(order)") == (order != "state"))
        }
    }

    @Test("J and K move a waiting task in the queue, past the next one that is shown") func queue() {
        var model = model(["run"].map { info($0, .action) } + (1...4).map { info("w\($0)", .idle) })
        model.selection = id("w1")
        let down = model.handle(.character("J"), rows: 24)
        #expect(names(&model) == ["run", "w2", "w1", "w3", "w4"])
        #expect(down.count == 1, "one request")
        // An event without a priority does not put it back.
        model.apply(.changed([info("w1", .idle)]), time: 0)
        #expect(names(&model) == ["run", "w2", "w1", "w3", "w4"])
        for _ in 0..<2 { _ = model.handle(.character("J"), rows: 24) }
        #expect(names(&model) == ["run", "w2", "w3", "w4", "w1"] && model.selected()?.id == id("w1"))
        for _ in 0..<3 { _ = model.handle(.character("K"), rows: 24) }
        #expect(names(&model) == ["run", "w1", "w2", "w3", "w4"])
        #expect(model.handle(.character("K"), rows: 24) == [], "a running task stays first")
        #expect(frame(&model).last?.contains("only a waiting task moves") == true)
    }

    @Test("The wheel and a click select; the last line has the position") func mouse() {
        var model = model((0..<100).map { info("f\($0)", .idle) })
        #expect(frame(&model).last?.hasSuffix("  1/100") == true)
        for _ in 0..<10 { _ = model.handle(.wheelDown, rows: 24) }
        #expect(frame(&model).last?.hasSuffix(" 31/100") == true)
        #expect(frame(&model)[5].contains("f13"))
        _ = model.handle(.click(row: 5), rows: 24)
        #expect(model.selected()?.shownName == "f13")
        for row in [0, 2, 23, 400] { _ = model.handle(.click(row: row), rows: 24) }
        #expect(model.selected()?.shownName == "f13", "a click beside the list selects nothing")
        _ = model.handle(.wheelUp, rows: 24)
        #expect(model.selected()?.shownName == "f10")
        var keys = WatchKeyParser()
        #expect(
            keys.feed("\u{1b}[<0;12;6M\u{1b}[<0;12;6m\u{1b}[<64;1;1M\u{1b}[<65;1;1Mj".utf8)
                == [.click(row: 5), .wheelUp, .wheelDown, .character("j")])
    }

    @Test("x starts what waits, and only if nothing runs it") func start() {
        var model = model([info("wait", .idle)])
        #expect(
            model.handle(.character("x"), rows: 24) == []
                && frame(&model).last == "Process 4711 runs the downloads already.")
        model.apply(.owner(pid: nil), time: 0)
        #expect(model.handle(.character("x"), rows: 24) == [.start])
        model.apply(.changed([info("wait", .complete)]), time: 0)
        #expect(model.handle(.character("x"), rows: 24) == [] && frame(&model).last == "Nothing waits.")
    }

    @Test("The keys of the last line follow the selection, and one row tells that all slots are taken") func rows() {
        var waiting = (0..<3).map { info("w\($0)", .idle) }
        for index in waiting.indices { waiting[index].wait = Waiting(.slot, limit: 8) }
        var model = model([info("gone", .error)] + waiting)
        #expect(frame(&model).last?.contains("r retry") == true && frame(&model).last?.contains("space") == false)
        _ = model.handle(.down, rows: 24)
        #expect(frame(&model).last?.contains("space suspend  J K move") == true)
        let lines = frame(&model).joined(separator: "\n")
        #expect(lines.components(separatedBy: "all 8 slots are taken").count == 2)
    }

    @Test("A wait that is over is no reason any more, and its task is in the queue again") func endedWait() {
        var (soon, later) = (info("soon", .idle), info("later", .idle))
        soon.wait = Waiting(.host, until: Date(timeIntervalSince1970: -1), host: "a.example")
        later.wait = Waiting(.host, until: Date(timeIntervalSince1970: 60), host: "b.example")
        var model = model([later, soon])
        let lines = frame(&model).joined(separator: "\n")
        #expect(!lines.contains("a.example") && lines.contains("b.example asked for 1m"), "\(lines)")
        #expect(names(&model) == ["later", "soon"], "a task with a time is before the queue")
        #expect(model.watched.tasks[soon.id].map { WatchedTasks.isQueued($0.info) } == true)
    }

    @Test("The answer to a verb on several tasks has no bytes of one of them, and counts what became of them")
    func sums() {
        func result(_ name: String, _ note: String, applied: Bool = true) -> VerbResult {
            VerbResult(
                id: id(name), url: "http://h/\(name)", verb: .suspend, before: .action, after: .suspend,
                applied: applied, note: note)
        }
        var model = model(mixed)
        model.answer(.verbs([result("a", "suspended, 0 B kept"), result("b", "suspended, 11.8 MiB kept")]))
        #expect(model.message == "2 of 2 tasks: suspended")
        model.answer(
            .verbs([result("a", "suspended, 5 B kept"), result("b", "queued"), result("c", "is so", applied: false)]))
        #expect(model.message == "2 of 3 tasks: 1 suspended, 1 queued")
        model.answer(.verbs([result("a", "is complete", applied: false), result("b", "is complete", applied: false)]))
        #expect(model.message == "0 of 2 tasks: is complete")
    }
}
