import TestSupport
import Testing

@testable import FKCore
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
        // Once bytes arrive, the bar is back.
        #expect(normal.line(task).contains("━") && normal.line(task).contains("×4"))
        task.rate = nil
        #expect(normal.line(task).contains("attempt 2/5") && !normal.line(task).contains("━"))
        task.rate = 1_048_576
        task.isStalling = true
        #expect(!wide.line(task).contains("50s") && wide.line(task).contains("50%"))
        task.isStalling = false
        task.attempts = nil
        task.rate = nil
        #expect(frame(119).line(task).contains("attempt 2 "))
        task.rate = 1_048_576
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

    @Test("Without the lengths of all files there is no percentage: the bar is by files")
    func byFiles() throws {
        func info(_ number: Int, _ state: DownloadState, _ received: Int64, of expected: Int64?) -> DownloadInfo {
            let url = "http://h/\(number)"
            let id = TaskID(url: url, destination: nil)
            let count = ByteCount(received: received, expected: expected)
            return DownloadInfo(id: id, url: url, state: state, count: count)
        }
        var tracker = RunTracker()
        for number in 0..<40 { _ = tracker.update(info(number, .idle, 0, of: nil)) }
        func total() -> TotalLine { TotalLine(tracker, rate: 1_000, waiting: nil) }
        for number in 0..<8 { _ = tracker.update(info(number, .complete, 100, of: 100)) }
        for number in 8..<10 { _ = tracker.update(info(number, .error, 0, of: nil)) }
        _ = tracker.update(info(10, .action, 99, of: 100))
        #expect(
            frame(79).line(total())
                == "8/40 files, 2 failed   ━━━────────────                   899/≥900 B   1.0 KiB/s")
        #expect(total().left == nil && total().fraction == nil, "without all lengths nobody knows")
        #expect(StatusLine.text([], total(), usesUnicode: true) == nil)
        let line = StatusLine.text([TaskLine(name: "a", received: 99, expected: 100)], total(), usesUnicode: true)
        #expect(line?.hasSuffix("1.0 KiB/s; a 99%") == true, "\(line ?? "")")
        for number in 10..<40 { _ = tracker.update(info(number, .action, 50, of: 100)) }
        #expect(frame(79).line(total()).contains("%"), "every length is known")
    }

    @Test("The reason of a failure is never cut: it gets a line of its own") func wholeReason() {
        let reason = "/tmp/a.bin exists and was not made by this task: use --overwrite, --rename or --skip."
        let line = FinishedLine(name: "a.bin", outcome: .failed(reason), bytes: 0)
        let broken = reason.replacing("use --overwrite", with: "use\n  --overwrite")
        #expect(line.text(columns: 60, usesColor: false, usesUnicode: true) == "✗ a.bin\n  \(broken)")
        #expect(line.text(columns: 120, usesColor: false, usesUnicode: true).hasSuffix("  \(reason)"))
        #expect(!line.text(columns: 120, usesColor: false, usesUnicode: true).contains("\n"))
    }

    @Test("Without room for the name and the speed there is no speed, and nothing is cut") func narrowEnd() {
        let line = FinishedLine(name: "part-000.bin", outcome: .complete, bytes: 6_000_000, seconds: 0.6)
        #expect(
            line.text(columns: 39, usesColor: false, usesUnicode: true) == "✓ part-000.bin          5.7 MiB in 0.6s")
        #expect(line.text(columns: 60, usesColor: false, usesUnicode: true).hasSuffix("5.7 MiB in 0.6s, 9.5 MiB/s"))
        #expect(line.text(columns: 20, usesColor: false, usesUnicode: true).contains("…"), "there is no room at all")
    }

    @Test(
        "A file of which next to nothing was fetched has no rate",
        arguments: [
            (1 << 20, 1 << 20, true), (1 << 20, 1024, true), (1 << 20, 1023, false), (1 << 20, 0, false),
            (10, 10, true), (10, 9, false), (0, 0, false),
        ] as [(Int64, Int64, Bool)])
    func rate(_ bytes: Int64, _ fetched: Int64, _ hasRate: Bool) {
        let line = FinishedLine(name: "a", outcome: .complete, bytes: bytes, fetched: fetched, seconds: 2)
        #expect(line.text(columns: nil, usesColor: false, usesUnicode: true).contains("/s") == hasRate)
    }

    @Test("A silent server has not answered, or sends nothing more") func silence() {
        var task = TaskLine(name: "a", received: 0)
        #expect(task.silenceText == nil)
        task.silence = 8
        #expect(frame(79).line(task).contains("no answer for 8s") && frame(40).line(task).hasSuffix("no answer for 8s"))
        task.received = 5
        #expect(task.silenceText == "no data for 8s")
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
            #expect(Columns.width(of: text(.complete, columns: columns)) <= columns)
        }
    }
}
