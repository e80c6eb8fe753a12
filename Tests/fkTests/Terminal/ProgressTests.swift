import TestSupport
import Testing

@testable import fk

@Suite("Progress frames") struct ProgressFrameTests {
    private let tasks = [
        TaskLine(name: "ubuntu.iso", received: 104_857_600, expected: 209_715_200, rate: 10_485_760),
        TaskLine(
            name: "a-very-long-name-of-a-file-that-is-cut.tar.gz", received: 1 << 20, expected: nil, rate: 2_097_152),
        TaskLine(name: "東京\u{1b}.pdf", received: 0, expected: 5 << 30, note: "retry in 5s"),
    ]
    private let total = TotalLine(
        complete: 12, error: 1, total: 34, received: 131_072_000, expected: 209_715_200, rate: 52_428_800)

    private func frame(_ columns: Int, rows: Int = 23, unicode: Bool = true, color: Bool = false) -> ProgressFrame {
        ProgressFrame(columns: columns, rows: rows, usesColor: color, usesUnicode: unicode, nameColumns: 60)
    }

    @Test("80 columns: the remaining time comes before amount and rate") func eighty() {
        #expect(
            frame(79).lines(tasks, total) == [
                "ubuntu.iso             ━━━━━━━╸───────   50%     10s    100/200 MiB  10.0 MiB/s",
                "a-very-long-na…tar.gz  ───────────────                      1.0 MiB   2.0 MiB/s",
                "東京\\e.pdf             retry in 5s",
                "12/34 files, 1 failed  ━━━━━━━━━──────   62%      2s    125/200 MiB  50.0 MiB/s",
            ])
    }

    @Test("Narrow terminals drop the bar, the amount, the rate and the percentage, never the remaining time")
    func narrow() {
        let shapes = [70, 69, 49, 35, 23, 11].map { columns in
            let line = frame(columns).lines([tasks[0]], total)[0]
            return ["━", "100/200", "MiB/s", "50%", "10s"].map { line.contains($0) }
        }
        #expect(
            shapes == [
                [true, true, true, true, true], [false, true, true, true, true], [false, false, true, true, true],
                [false, false, false, true, true], [false, false, false, false, true],
                [false, false, false, false, true],
            ])
    }

    @Test("A single file has one row and no total line, whatever it does") func single() {
        var single = TotalLine(complete: 0, total: 1, received: 5, expected: 10)
        #expect(frame(79).lines([tasks[0]], single).count == 1)
        #expect(frame(79, rows: 1).lines([tasks[0]], single).count == 1)
        #expect(frame(79).lines([], single).isEmpty)
        single.waiting = "1 waiting: all 3 slots are taken"
        #expect(frame(79).lines([], single) == ["1 waiting: all 3 slots are taken"])
        #expect(frame(79).lines([tasks[0]], single).count == 1)
    }

    @Test("Waiting tasks have a line above the total") func waiting() {
        var total = total
        total.waiting = "12 waiting: example.com asked for 1m58s"
        let lines = frame(79).lines(tasks, total)
        #expect(lines.count == 5 && lines[3] == "12 waiting: example.com asked for 1m58s")
        #expect(frame(20).lines(tasks, total)[3].hasPrefix("12 waiting"))
        #expect(frame(79, rows: 1).lines(tasks, total).count == 1)
    }

    @Test("Attempts, connections and silence of a row") func details() {
        var task = TaskLine(name: "a.iso", received: 50 << 20, expected: 100 << 20, rate: 1_048_576)
        task.attempt = 2
        task.attempts = 5
        task.connections = 4
        var wide = frame(119)
        wide.hasConnections = true
        wide.hasAttempts = true
        #expect(wide.line(task).hasSuffix("50%     50s   50.0/100 MiB   1.0 MiB/s  ×4    attempt 2 of 5"))
        var normal = frame(79)
        normal.hasConnections = true
        normal.hasAttempts = true
        #expect(normal.line(task).contains("attempt 2/5") && normal.line(task).contains("×4"))
        #expect(!normal.line(task).contains("━"))
        task.attempts = nil
        #expect(frame(119).line(task).contains("attempt 2 "))
        task.silence = 8
        #expect(frame(79).line(task).contains("50%         no data for 8s"))
        #expect(!frame(79).line(task).contains("MiB/s"))
        #expect(frame(40).line(task).contains("no data for 8s"))
        for columns in 12...200 {
            var frame = frame(columns)
            frame.hasConnections = true
            frame.hasAttempts = true
            #expect(Columns.width(of: frame.line(task)) <= columns)
        }
    }

    @Test("Bytes from before this run have their own mark") func resumed() {
        var task = TaskLine(name: "a.iso", received: 75, expected: 100)
        task.resumed = 50
        #expect(frame(79).line(task).contains("╍╍╍╍╍╍╍━━━━────"))
        #expect(frame(79, unicode: false).line(task).contains("=======####...."))
        task.resumed = 75
        #expect(!frame(79).line(task).contains("━"))
        task.resumed = 80
        #expect(Columns.width(of: frame(79).line(task)) <= 79)
    }

    @Test("A label tells files of the same name apart, however long the name is") func labels() {
        var task = TaskLine(name: "a-very-long-name-of-a-file-that-is-cut.tar.gz", received: 0)
        task.label = "eu.host"
        #expect(frame(79).line(task).contains("(eu.host)"))
        for columns in 12...120 { #expect(Columns.width(of: frame(columns).line(task)) <= columns) }
    }

    @Test("No line is ever wider than the terminal", arguments: [true, false]) func widths(color: Bool) {
        for columns in 12...200 {
            for line in frame(columns, color: color).lines(tasks, total) {
                let plain = line.replacing(#/\u{1b}\[[0-9]*m/#, with: "")
                #expect(Columns.width(of: plain) <= columns, "\(columns): \(plain)")
            }
        }
    }

    @Test("ASCII where the locale is not UTF-8") func ascii() {
        let lines = frame(79, unicode: false).lines([tasks[0], tasks[1]], total)
        #expect(lines.allSatisfy { $0.utf8.allSatisfy { $0 < 0x80 } })
        #expect(lines[0].contains("#######........") && lines[0].contains("10s"))
    }

    @Test("Tasks that do not fit are counted", arguments: [(5, 5, 3), (6, 6, 4), (4, 4, 2)])
    func height(rows: Int, lines expected: Int, shown: Int) {
        let many = (1...20).map { TaskLine(name: "f\($0)", received: 0) }
        let lines = frame(79, rows: rows).lines(many, total)
        #expect(lines.count == expected)
        #expect(lines[shown] == "… and \(20 - shown) more")
    }

    @Test("A single row shows the total") func oneRow() {
        #expect(frame(79, rows: 1).lines(tasks, total).count == 1)
    }

    @Test("Time left needs a length and a rate") func timeLeft() {
        #expect(ProgressFrame.timeLeft(50, 100, 10) == 5)
        #expect(ProgressFrame.timeLeft(150, 100, 10) == 0)
        #expect(ProgressFrame.timeLeft(50, nil, 10) == nil)
        #expect(ProgressFrame.timeLeft(50, 100, 0) == nil)
        #expect(ProgressFrame.timeLeft(50, 100, nil) == nil)
    }

    @Test("How a task ended") func finished() {
        func text(_ outcome: FinishedLine.Outcome, columns: Int? = nil, unicode: Bool = true) -> String {
            FinishedLine(name: "a.iso", outcome: outcome, bytes: 10 << 20, seconds: 2)
                .text(columns: columns, usesColor: false, usesUnicode: unicode)
        }
        #expect(text(.complete) == "✓ a.iso  10.0 MiB in 2.0s, 5.0 MiB/s")
        #expect(text(.complete, unicode: false) == "ok a.iso  10.0 MiB in 2.0s, 5.0 MiB/s")
        #expect(text(.failed("the server\nsaid 404")) == "✗ a.iso  the server\\nsaid 404")
        #expect(text(.suspended) == "‖ a.iso  suspended, 10.0 MiB kept")
        #expect(text(.unchanged) == "✓ a.iso  10.0 MiB, already complete")
        #expect(text(.cancelled) == "– a.iso  cancelled")
        for columns in 10...80 {
            let line = text(.failed(String(repeating: "long reason ", count: 20)), columns: columns)
            #expect(Columns.width(of: line) <= columns)
        }
    }
}

@Suite("Live view") struct ProgressViewTests {
    /// A view that writes to a file, and what a terminal makes of it.
    private final class Fixture {
        let folder: TemporaryFolder
        let view: ProgressView
        private let handle: FileHandle
        private let columns: Int
        private let rows: Int

        init(
            columns: Int = 60, rows: Int = 8, mode: ProgressView.Mode = .live, isTerminal: Bool = true,
            isForeground: @escaping @Sendable () -> Bool = { true }
        ) throws {
            folder = try TemporaryFolder()
            handle = try folder.fileHandle("out")
            self.columns = columns
            self.rows = rows
            var terminal = Terminal(descriptor: handle.fileDescriptor, color: .never, environment: ["LANG": "C.UTF-8"])
            terminal.isTerminal = isTerminal
            terminal.canMoveCursor = isTerminal
            view = ProgressView(
                output: OutputStream(handle.fileDescriptor), terminal: terminal, mode: mode,
                size: { Terminal.Size(columns: columns, rows: rows) }, isForeground: isForeground)
        }

        func write(_ text: String) { OutputStream(handle.fileDescriptor).write(text) }

        func raw() throws -> String { try folder.text("out") }

        func screen() throws -> [String] {
            var screen = Screen(columns: columns, rows: rows)
            // A terminal driver turns each line end into a return and a line feed.
            screen.feed(try raw().replacing("\n", with: "\r\n"))
            return screen.lines
        }
    }

    private func total(_ complete: Int) -> TotalLine {
        TotalLine(complete: complete, total: 3, received: Int64(complete) * 100, expected: 300)
    }

    @Test("A frame replaces the one before; permanent lines stay above it") func redraw() throws {
        let fixture = try Fixture()
        let tasks = ["a", "b", "c"].map { TaskLine(name: $0, received: 50, expected: 100) }
        fixture.view.update(tasks, total(0))
        fixture.view.finished(FinishedLine(name: "a", outcome: .complete, bytes: 100))
        fixture.view.update(Array(tasks.dropFirst()), total(1))
        fixture.view.permanent("a warning")
        let screen = try fixture.screen()
        #expect(screen.count == 5)
        #expect(screen[0].hasPrefix("✓ a") && screen[1] == "a warning")
        #expect(screen[2].hasPrefix("b ") && screen[3].hasPrefix("c ") && screen[4].hasPrefix("1/3 files"))
    }

    @Test("Closing leaves the total, and nothing is drawn afterwards") func close() throws {
        let fixture = try Fixture()
        fixture.view.update([TaskLine(name: "a", received: 1)], total(2))
        fixture.view.close()
        fixture.view.update([TaskLine(name: "a", received: 1)], total(3))
        fixture.view.close()
        let screen = try fixture.screen()
        #expect(screen.count == 1)
        #expect(screen[0].hasPrefix("2/3 files"))
    }

    @Test("Closing without the total leaves nothing") func closeEmpty() throws {
        let fixture = try Fixture()
        fixture.view.update([TaskLine(name: "a", received: 1)], total(2))
        fixture.view.close(keepsTotal: false)
        #expect(try fixture.screen().isEmpty)
    }

    @Test("A finished task leaves the frame at once") func finishedLeaves() throws {
        let fixture = try Fixture()
        fixture.view.update([TaskLine(name: "a", received: 1), TaskLine(name: "b", received: 1)], total(0))
        fixture.view.finished(FinishedLine(name: "a", outcome: .complete, bytes: 100))
        let screen = try fixture.screen()
        #expect(screen.count == 3)
        #expect(screen[0].hasPrefix("✓ a") && screen[1].hasPrefix("b "))
    }

    @Test("After the terminal got narrower the whole old frame goes, and nothing above it") func narrower() throws {
        let columns = Observed(100)
        let folder = try TemporaryFolder()
        let handle = try folder.fileHandle("out")
        var terminal = Terminal(descriptor: handle.fileDescriptor, color: .always, environment: ["LANG": "C.UTF-8"])
        terminal.isTerminal = true
        terminal.canMoveCursor = true
        let view = ProgressView(output: OutputStream(handle.fileDescriptor), terminal: terminal, mode: .live) {
            Terminal.Size(columns: columns.value, rows: 24)
        }
        view.update([TaskLine(name: "a", received: 1, expected: 2)], total(0))
        columns.update { $0 = 50 }
        view.update([TaskLine(name: "a", received: 1, expected: 2)], total(0))
        // Two lines of 87 columns, of which 50 fit into a row: four rows up, then everything below is cleared.
        #expect(try folder.text("out").contains("\r\u{1b}[4A\u{1b}[J"))
    }

    @Test("More tasks than rows stay within the screen") func tall() throws {
        let fixture = try Fixture()
        for step in 0..<5 {
            fixture.view.update((0..<50).map { TaskLine(name: "f\($0)", received: Int64(step)) }, total(0))
        }
        let screen = try fixture.screen()
        #expect(screen.count == 7)
        #expect(screen[5] == "… and 45 more")
    }

    @Test("Nothing is written where nothing changed, and only what differs otherwise") func differences() throws {
        let fixture = try Fixture(columns: 80)
        let tasks = ["a", "b"].map { TaskLine(name: $0, received: 10 << 20, expected: 100 << 20, rate: 1_048_576) }
        fixture.view.update(tasks, total(0))
        let first = try fixture.raw()
        fixture.view.update(tasks, total(0))
        #expect(try fixture.raw() == first)
        var changed = tasks
        changed[1].received = 11 << 20
        fixture.view.update(changed, total(0))
        let second = try fixture.raw().dropFirst(first.count)
        #expect(second.utf8.count < 60, "\(second.debugDescription)")
        let screen = try fixture.screen()
        #expect(screen.count == 3)
        #expect(screen[1].contains("11.0/100 MiB") && screen[0].contains("10.0/100 MiB"))
    }

    @Test("Eight steady transfers take at most 6 KB a second on the terminal") func amount() throws {
        let fixture = try Fixture(columns: 100, rows: 24)
        for frame in 0..<50 {
            let tasks = (0..<8).map { number in
                TaskLine(
                    name: "file-\(number).tar.gz", received: Int64(frame) << 20 + Int64(number * 70_000),
                    expected: 200 << 20, rate: 5_242_880 + Double(frame % 7) * 30_000)
            }
            var total = total(0)
            total.received = Int64(8 * frame) << 20
            total.expected = 1_600 << 20
            total.rate = 41_943_040
            fixture.view.update(tasks, total)
        }
        #expect(try fixture.raw().utf8.count < 60_000, "50 frames are ten seconds")
    }

    @Test("In the background nothing is drawn, only ends are written; the frame comes back in the foreground")
    func background() throws {
        let isForeground = Observed(false)
        let fixture = try Fixture(isForeground: { isForeground.value })
        let tasks = [TaskLine(name: "a", received: 1), TaskLine(name: "b", received: 1)]
        fixture.view.update(tasks, total(0))
        #expect(try fixture.raw() == "")
        fixture.view.finished(FinishedLine(name: "a", outcome: .complete, bytes: 100))
        #expect(try fixture.raw().hasPrefix("✓ a"))
        let plain = try fixture.raw()
        #expect(!plain.contains("\u{1b}"))
        isForeground.update { $0 = true }
        fixture.view.update(Array(tasks.dropFirst()), total(1))
        #expect(try fixture.screen().count == 3)
    }

    @Test("Many ends in one moment are written with the next frame, in their order") func manyEnds() throws {
        let fixture = try Fixture(rows: 40)
        fixture.view.update([], total(0))
        for number in 0..<20 {
            fixture.view.finished(FinishedLine(name: "f\(number)", outcome: .complete, bytes: 100))
        }
        fixture.view.close(keepsTotal: false)
        let screen = try fixture.screen()
        #expect(
            screen.map { $0.prefix(4) }
                == (0..<20).map { "✓ f\($0)".padding(toLength: 4, withPad: " ", startingAt: 0).prefix(4) })
        let frames = try fixture.raw().components(separatedBy: "0/3 files").count - 1
        #expect(frames < 5, "one frame for many ends")
    }

    @Test("Something else may be written to the terminal between frames") func aside() throws {
        let fixture = try Fixture()
        fixture.view.update([TaskLine(name: "a", received: 1)], total(0))
        fixture.view.aside { fixture.write("/tmp/a\n") }
        let screen = try fixture.screen()
        #expect(screen.count == 3 && screen[0] == "/tmp/a" && screen[1].hasPrefix("a "))
    }

    @Test("Where the output is no terminal only ends are written") func lines() throws {
        let fixture = try Fixture(isTerminal: false)
        fixture.view.update([TaskLine(name: "a", received: 1)], total(0))
        fixture.view.finished(FinishedLine(name: "a", outcome: .complete, bytes: 100))
        fixture.view.finished(FinishedLine(name: "b", outcome: .failed("404"), bytes: 0))
        fixture.view.close()
        #expect(try fixture.raw() == "✓ a  100 B\n✗ b  404\n")
    }

    @Test("Quiet writes failures only") func quiet() throws {
        let fixture = try Fixture(mode: .quiet)
        fixture.view.update([TaskLine(name: "a", received: 1)], total(0))
        fixture.view.finished(FinishedLine(name: "a", outcome: .complete, bytes: 100))
        fixture.view.finished(FinishedLine(name: "b", outcome: .failed("404"), bytes: 0))
        #expect(try fixture.screen().count == 1)
    }
}
