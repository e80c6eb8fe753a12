import TestSupport
import Testing

@testable import fk

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

    @Test("a long failure has lines that end between words, and nothing of the frame stays beside them") func failure()
        throws
    {
        let fixture = try Fixture(columns: 40)
        let tasks = ["a", "b", "c"].map { TaskLine(name: $0, received: 50, expected: 100) }
        fixture.view.update(tasks, total(0))
        let reason = "The server answered 404: it has no such file. The server says: nothing of use"
        fixture.view.finished(FinishedLine(name: "a", outcome: .failed(reason), bytes: 0))
        fixture.view.permanent("fk: warning: \(reason)")
        let screen = try fixture.screen()
        #expect(
            Array(screen.prefix(7)) == [
                "✗ a", "  The server answered 404: it has no", "  such file. The server says: nothing", "  of use",
                "fk: warning: The server answered 404:", "it has no such file. The server says:", "nothing of use",
            ], "\(screen)")
        #expect(screen.count == 10 && screen[7].hasPrefix("b "))
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
