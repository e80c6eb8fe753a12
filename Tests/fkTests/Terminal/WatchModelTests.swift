import TestSupport
import Testing

@testable import fk

@Suite("Tasks and keys of fk watch") struct WatchModelTests: WatchFixture {
    // MARK: The list

    @Test("Running tasks come first, complete ones last, each in the order of submission") func order() {
        var model = model(mixed + [info("run2", .action)])
        #expect(names(&model) == ["run", "run2", "held", "gone", "wait", "off", "done"])
        model.apply(.changed([info("run", .complete, received: 10, expected: 10)]), time: 0)
        #expect(names(&model) == ["run2", "held", "gone", "wait", "off", "done", "run"])
        model.apply(.changed([info("off", .unknown), info("new", .idle)]), time: 0)
        #expect(names(&model) == ["run2", "held", "gone", "wait", "new", "done", "run"])
        #expect(model.watched.counts[.complete] == 2 && model.watched.counts[.cancel] == 0)
    }

    @Test("A new report of all tasks replaces what was known and keeps the order") func all() {
        var model = model(mixed)
        _ = model.handle(.end, rows: 24)
        model.apply(.all([info("done", .complete), info("wait", .idle)]), time: 0)
        #expect(names(&model) == ["wait", "done"])
        #expect(model.watched.counts.values.reduce(0, +) == 2)
    }

    @Test("The selection stays at its task while the list changes") func selection() {
        var model = model(mixed)
        for _ in 0..<3 { _ = model.handle(.down, rows: 24) }
        #expect(model.selected()?.shownName == "wait")
        model.apply(.changed([info("other", .action), info("wait", .action)]), time: 0)
        #expect(model.selected()?.shownName == "wait" && model.selectedIndex() == 0)
        model.apply(.changed([info("wait", .unknown)]), time: 0)
        #expect(model.selected()?.shownName == "run", "a task that is gone is not selected")
        for key in [WatchKey.end, .down, .pageDown] { _ = model.handle(key, rows: 24) }
        #expect(model.selected()?.shownName == "done")
        for key in [WatchKey.home, .up, .pageUp] { _ = model.handle(key, rows: 24) }
        #expect(model.selectedIndex() == 0)
        var empty = self.model([])
        for key in [WatchKey.down, .end, .enter, .character(" "), .character("c")] {
            #expect(empty.handle(key, rows: 24) == [])
        }
    }

    @Test("The list scrolls with the selection") func scroll() {
        var model = model((0..<100).map { info("f\($0)", .idle) })
        for _ in 0..<50 { _ = model.handle(.down, rows: 24) }
        let lines = frame(&model)
        #expect(lines.contains { $0.contains("> ") && $0.contains("f50") })
        #expect(lines.contains { $0.contains("f31 ") } && !lines.contains { $0.contains("f30 ") })
        _ = model.handle(.end, rows: 24)
        #expect(frame(&model).contains { $0.contains("f99") })
        #expect(frame(&model, rows: 10).contains { $0.contains("> ") && $0.contains("f99") })
    }

    // MARK: Keys

    @Test("Keys ask the engine for the selected task") func verbs() {
        var model = model(mixed)
        let run = TaskID(url: "http://h/run")
        #expect(model.handle(.character(" "), rows: 24) == [.request(.init(.toggle(.id(run))))])
        #expect(model.handle(.character("r"), rows: 24) == [.request(.init(.verb(.retry, .id(run))))])
        #expect(model.handle(.character("f"), rows: 24) == [])
        #expect(model.handle(.character("y"), rows: 24) == [.request(.init(.verb(.forget, .id(run))))])
        #expect(model.handle(.enter, rows: 24) == [.load(run)])
        #expect(model.page == .details(run))
        #expect(model.handle(.escape, rows: 24) == [] && model.page == .list)
        #expect(model.handle(.character("q"), rows: 24) == [.quit])
        #expect(model.handle(.redraw, rows: 24) == [.redraw])
    }

    @Test("Forgetting asks where unfinished bytes would be deleted", arguments: [Int64(0), 5]) func forget(bytes: Int64)
    {
        var model = model([info("held", .suspend, received: bytes, expected: 10)])
        let id = TaskID(url: "http://h/held")
        let asks = bytes > 0
        #expect(model.handle(.character("f"), rows: 24) == (asks ? [] : [.request(.init(.verb(.forget, .id(id))))]))
        guard asks else { return }
        #expect(frame(&model).last == "Forget held and delete its unfinished bytes? y/n")
        #expect(model.handle(.character("y"), rows: 24) == [.request(.init(.verb(.forget, .id(id))))])
    }

    @Test("A key acts on the task of the key before, although another one has come to its line") func follows() {
        var model = model(mixed)
        for key in [WatchKey.character("c"), .character("y")] { _ = model.handle(key, rows: 24) }
        model.apply(.changed([info("run", .cancel)]), time: 0)
        #expect(
            model.handle(.character("f"), rows: 24) == [
                .request(.init(.verb(.forget, .id(TaskID(url: "http://h/run")))))
            ])
    }

    @Test("The filter finds tasks by the words of the header and by the stored ones") func states() {
        var model = model(mixed)
        for (text, name) in [
            ("fail", "gone"), ("error", "gone"), ("susp", "held"), ("running", "run"), ("action", "run"),
            ("wait", "wait"), ("cancelled", "off"), ("compl", "done"),
        ] {
            model.setFilter(text)
            #expect(names(&model) == [name], "\(text)")
        }
    }

    // MARK: Rates

    @Test("Bytes that came before the first look are no rate, those of a finished file are") func trueRates() {
        let second: Int64 = 1_000_000_000
        var model = model([info("run", .action, received: 0, expected: 1 << 40)])
        func look(_ bytes: Int64, _ seconds: Int64) {
            model.apply(.progress([info("run", .action, received: bytes, expected: 1 << 40)]), time: seconds * second)
        }
        look(50_000_000, 0)
        look(50_400_000, 1)
        look(50_800_000, 2)
        #expect(model.watched.rates == [400_000, 400_000] && model.watched.meters.rate == 400_000)
        model.apply(.changed([info("run", .complete, received: 51_200_000)]), time: 2 * second)
        model.apply(.progress([]), time: 3 * second)
        #expect(model.watched.rates.last == 400_000)
        // Another report of all tasks is no moment in which everything arrived.
        model.apply(.all([info("run", .action, received: 90_000_000)]), time: 3 * second)
        look(91_000_000, 4)
        #expect(model.watched.rates.last == 0)
    }

    @Test("Without a process there is no rate, and no task runs") func rateOfNobody() {
        var model = model([info("run", .action, received: 0, expected: 100_000)])
        for second in 0..<4 {
            model.apply(
                .progress([info("run", .action, received: Int64(second) * 1_000, expected: 100_000)]),
                time: Int64(second) * 1_000_000_000)
        }
        #expect(frame(&model)[0].hasSuffix("1.0 KiB/s"))
        model.apply(.owner(pid: nil), time: 4_000_000_000)
        #expect(!frame(&model)[0].contains("B/s") && frame(&model)[0].hasPrefix("fk watch  1 waiting"))
        model.apply(.progress([info("run", .action, received: 9_000)]), time: 5_000_000_000)
        model.apply(.changed([info("run", .action, received: 9_000)]), time: 5_000_000_000)
        #expect(model.watched.counts[.action] == 0 && model.watched.meters.rate == nil)
    }

    @Test("A second after the last task was suspended there is no rate, and the next one is that of what runs then")
    func rateAfterPause() {
        let second: Int64 = 1_000_000_000
        var model = model([info("run", .action, received: 0, expected: 1 << 40)])
        func look(_ infos: [DownloadInfo], _ tenths: Int64) {
            model.apply(.progress(infos), time: tenths * second / 10)
        }
        for tenths in Int64(0)..<50 { look([info("run", .action, received: tenths * 100_000)], tenths) }
        #expect(model.watched.meters.rate == 1_000_000)
        look([], 50)
        #expect(model.watched.meters.rate != nil, "the next file may begin at once")
        for tenths in Int64(51)...69 { look([], tenths) }
        #expect(model.watched.meters.rate == nil && frame(&model)[0].hasSuffix(" 0 B/s"))
        for tenths in Int64(70)...80 {
            look([info("run", .action, received: 5_000_000 + (tenths - 70) * 50_000)], tenths)
        }
        #expect(
            model.watched.meters.rate.map { abs($0 - 500_000) < 60_000 } == true, "\(model.watched.meters.rate ?? 0)")
    }

    @Test(
        "A narrow screen shows the keys of the answer",
        arguments: [
            (46, "Cancel held.bin and delete bytes? y/n"), (37, "Cancel held.bin and delete bytes? y/n"),
            (30, "Cancel held.bin? y/n"), (16, "Cancel h….bin? y/n"),
        ])
    func narrowQuestion(columns: Int, text: String) {
        var model = model([info("held.bin", .suspend)])
        _ = model.handle(.character("c"), rows: 24)
        let last = frame(&model, columns: columns).last ?? ""
        #expect(last.hasSuffix("? y/n") && Columns.width(of: last) <= columns, "\(last)")
        if columns > 16 { #expect(last == text) }
    }

    @Test("Cancelling asks: only y does it", arguments: ["y", "Y", "n", "N", "x", "q"]) func cancel(answer: String) {
        var model = model(mixed)
        #expect(model.handle(.character("c"), rows: 24) == [])
        #expect(frame(&model).last == "Cancel run and delete its unfinished bytes? y/n")
        let effects = model.handle(.character(Character(answer)), rows: 24)
        let isYes = answer.lowercased() == "y"
        #expect(effects == (isYes ? [.request(.init(.verb(.cancel, .id(TaskID(url: "http://h/run")))))] : []))
        #expect((model.prompt == nil) == (answer.lowercased() != "x" && answer != "q"), "another key is no answer")
        _ = model.handle(.escape, rows: 24)
        #expect(model.prompt == nil)
    }

    @Test("A task that cannot be cancelled says so") func cannotCancel() {
        var model = model([info("done", .complete)])
        _ = model.handle(.character("c"), rows: 24)
        #expect(model.prompt == nil && frame(&model).last == "done: is complete already")
    }

    @Test("The keys ask for a step from what is in force, which the engine knows") func limit() {
        var model = model(mixed)
        model.apply(.limit(2 << 20), time: 0)
        #expect(frame(&model)[1] == "Process 4711 runs the downloads. Limit 2.0 MiB/s.")
        #expect(model.handle(.character("-"), rows: 24) == [.limit(barrel: nil, isRaised: false, rate: 0)])
        #expect(model.handle(.character("+"), rows: 24) == [.limit(barrel: nil, isRaised: true, rate: 0)])
    }

    @Test("With a barrel chosen, the limit is the barrel's") func barrelLimit() {
        var member = info("run", .action)
        member.barrels = ["books"]
        member.bytesPerSecond = 3_000_000
        var model = model([member, info("other", .action)])
        _ = model.handle(.character("b"), rows: 24)
        #expect(frame(&model).last?.contains("+ - limit of the barrel") == true)
        #expect(model.handle(.character("-"), rows: 24) == [.limit(barrel: "books", isRaised: false, rate: 3_000_000)])
        _ = model.handle(.enter, rows: 24)
        #expect(model.handle(.character("+"), rows: 24) == [.limit(barrel: "books", isRaised: true, rate: 3_000_000)])
        _ = model.handle(.escape, rows: 24)
        #expect(model.handle(.character("-"), rows: 24) == [.limit(barrel: nil, isRaised: false, rate: 0)])
    }

    @Test("Answers are shown until the next key") func answers() {
        var model = model(mixed)
        let result = VerbResult(
            id: TaskID(url: "http://h/run"), url: "http://h/run", verb: .suspend, before: .action, after: .suspend,
            applied: true, note: "suspended, 5 B kept")
        model.answer(.verbs([result]))
        #expect(frame(&model).last == "run: suspended, 5 B kept")
        _ = model.handle(.down, rows: 24)
        #expect(frame(&model).last?.hasPrefix("q quit") == true)
        model.answer(.failed(DownloadError(.disk, "a\u{1b}b")))
        #expect(frame(&model).last == "a\\eb")
        model.answer(.verbs([]))
        #expect(frame(&model).last == "The task is gone.")
    }

    // MARK: Filter

    @Test("/ text Enter filters, Esc clears") func filter() {
        var model = model(mixed + [info("other", .complete, barrels: ["Photos"])])
        for key in [WatchKey.character("/"), .character("O"), .character("x"), .backspace] {
            #expect(model.handle(key, rows: 24) == [])
        }
        #expect(frame(&model).last == "/O_")
        #expect(names(&model) == ["gone", "off", "done", "other"])
        #expect(model.handle(.character("q"), rows: 24) == [], "a letter is text here")
        #expect(names(&model) == [] && frame(&model).contains { $0.contains("No task matches") })
        _ = model.handle(.backspace, rows: 24)
        _ = model.handle(.enter, rows: 24)
        #expect(model.prompt == nil && names(&model).count == 4)
        #expect(frame(&model)[0].contains("/O"))
        #expect(model.handle(.escape, rows: 24) == [] && names(&model).count == 7)
        for text in ["photos", "complete", "http://h/other"] {
            model.setFilter(text)
            #expect(names(&model).contains("other"), "\(text)")
        }
        model.setFilter("run")
        _ = model.handle(.character("/"), rows: 24)
        _ = model.handle(.escape, rows: 24)
        #expect(model.filter == "" && model.prompt == nil)
    }

    @Test("The filter sees new tasks, and secrets of URLs are not searched") func filterNews() {
        var model = model(mixed)
        model.setFilter("run")
        model.apply(.changed([info("run9", .action)]), time: 0)
        #expect(names(&model) == ["run", "run9"])
        model.apply(.changed([info("z?token=abcdef", .idle)]), time: 0)
        model.setFilter("abcdef")
        #expect(names(&model) == [])
    }

    // MARK: Pages

    @Test("Sums by barrel; Enter shows its members") func barrels() {
        var model = model([
            info("a", .complete, received: 10, expected: 10, barrels: ["one", "two"]),
            info("b", .error, barrels: ["two"]), info("c", .action, received: 5, expected: 10, barrels: ["one"]),
        ])
        let sums = model.barrelSums()
        #expect(sums.map(\.name) == ["one", "two"])
        #expect(sums[0].complete == 1 && sums[0].total == 2 && sums[0].received == 15 && !sums[0].isLowerBound)
        #expect(sums[1].failed == 1 && sums[1].isLowerBound)
        _ = model.handle(.character("b"), rows: 24)
        let lines = frame(&model)
        #expect(lines.contains { $0.contains("one") && $0.contains("1/2") && $0.contains("75%") })
        _ = model.handle(.down, rows: 24)
        _ = model.handle(.enter, rows: 24)
        #expect(model.page == .list && names(&model) == ["b", "a"])
        _ = model.handle(.escape, rows: 24)
        #expect(names(&model).count == 3)
    }

    @Test("Details scroll, and go when the task is gone") func details() {
        var model = model(mixed)
        let id = TaskID(url: "http://h/run")
        _ = model.handle(.enter, rows: 24)
        model.show(details: (0..<50).map { "line \($0)" }, of: id)
        #expect(frame(&model).contains("  line 0"))
        for _ in 0..<100 { _ = model.handle(.pageDown, rows: 24) }
        #expect(frame(&model).contains("  line 49") && !frame(&model).contains("  line 0"))
        model.show(details: ["of another"], of: TaskID(url: "http://h/wait"))
        #expect(!frame(&model).contains("  of another"))
        model.apply(.changed([info("run", .unknown)]), time: 0)
        #expect(model.page == .list)
    }

    @Test("Help names every key") func help() {
        var model = model(mixed)
        _ = model.handle(.character("?"), rows: 24)
        let text = frame(&model).joined(separator: "\n")
        for word in ["space", "retry", "cancel", "forget", "limit", "filter", "quit", "details", "barrel"] {
            #expect(text.contains(word), "\(word)")
        }
        #expect(model.handle(.character("x"), rows: 24) == [] && model.page == .list)
    }

    @Test("Help is scrolled on a small terminal, to its end and no further") func longHelp() {
        var model = model(mixed)
        _ = model.handle(.character("?"), rows: 12)
        #expect(frame(&model, columns: 40, rows: 12).joined().contains("select a task"))
        for _ in 0..<9 { _ = model.handle(.pageDown, rows: 12) }
        let end = frame(&model, columns: 40, rows: 12)
        #expect(end.joined().contains("quit; the") && !end.joined().contains("select a task"))
        _ = model.handle(.up, rows: 12)
        #expect(model.page == .help && frame(&model, columns: 40, rows: 12) != end)
        #expect(model.handle(.escape, rows: 12) == [] && model.page == .list)
    }
}
