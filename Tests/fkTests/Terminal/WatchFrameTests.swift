import TestSupport
import Testing

@testable import fk

@Suite("The screen of fk watch") struct WatchFrameTests: WatchFixture {
    @Test("With nothing running it says so and how to start") func nobody() {
        var model = model(mixed)
        model.apply(.owner(pid: nil), time: 0)
        #expect(frame(&model)[1] == "No process runs the downloads. Start them with: fk run, or x")
        #expect(model.handle(.character("x"), rows: 24) == [.start])
        #expect(frame(&model, rows: 5)[1].hasPrefix("No process"))
        model.apply(.owner(pid: 7), time: 0)
        model.apply(.engineNews(.silent, pid: 7), time: 0)
        #expect(frame(&model)[1].contains("shows no sign of life: kill -CONT 7"))
        model.apply(.engineNews(.back, pid: 7), time: 0)
        #expect(frame(&model)[1] == "Process 7 runs the downloads.")
        var empty = WatchModel()
        #expect(frame(&empty).contains("  Reading the tasks ..."))
        var none = self.model([])
        #expect(frame(&none).contains("  No tasks. Add some with: fk get URL"))
    }

    @Test("Every frame has the size of the terminal", arguments: [true, false]) func sizes(color: Bool) {
        var long = info("東京😀-a-very-long-name-of-a-file-\u{1b}[31m.tar.gz", .action, received: 5, expected: 10)
        long.attempts = 2
        long.connections = 16
        let states = mixed + [long, info("x/same", .idle), info("y/same", .idle)]
        for keys in [[], [WatchKey.enter], [.character("b")], [.character("?")], [.character("/")], [.character("c")]] {
            var model = model(
                states.map { info in
                    var info = info
                    info.barrels = ["a barrel"]
                    return info
                })
            for key in keys { _ = model.handle(key, rows: 24) }
            for (columns, rows) in [(12, 5), (20, 3), (40, 10), (80, 24), (120, 40), (200, 60), (1, 1), (5, 2)] {
                let lines = frame(&model, columns: columns, rows: rows, color: color, unicode: color)
                #expect(lines.count == rows)
                for line in lines {
                    let width = ScreenLine(line).width
                    #expect(width <= columns, "\(columns): \(line)")
                }
            }
        }
    }

    @Test("Each state has its sign and text") func rows() {
        var model = model(mixed)
        let lines = frame(&model)
        #expect(lines[3].contains("> ▸ run") && lines[3].contains("50%"))
        #expect(lines.contains { $0.hasPrefix("  ✗ gone") && $0.contains("The server answered 404.") })
        #expect(lines.contains { $0.hasPrefix("  ‖ held") && $0.contains("suspended, 5/10 B kept") })
        #expect(lines.contains { $0.hasPrefix("  ✓ done") && $0.contains("complete, 10 B") })
        #expect(lines[0].hasPrefix("fk watch  1 running  1 waiting  1 failed  1 suspended  1 cancelled  1 complete"))
    }

    @Test("A narrow title has whole words, and a mark for those that do not fit") func narrow() {
        var model = model(mixed)
        func title(_ columns: Int) -> String {
            frame(&model, columns: columns)[0].trimmingCharacters(in: .whitespaces)
        }
        #expect(title(40) == "1 running  1 waiting  1 failed …")
        #expect(title(10) == "1 runni…")
    }

    @Test("The graph has the bytes of each second") func rates() {
        var model = model([info("run", .action)])
        for second in 0...5 {
            model.apply(
                .progress([info("run", .action, received: Int64(second) << 20, expected: 10 << 20)]),
                time: Int64(second) * 1_000_000_000)
        }
        #expect(model.watched.rates == [Double](repeating: 1_048_576, count: 5))
        #expect(frame(&model)[2].hasSuffix("peak 1.0 MiB/s") && frame(&model)[0].hasSuffix("1.0 MiB/s"))
        for second in 6...2_000 { model.apply(.progress([]), time: Int64(second) * 1_000_000_000) }
        #expect(model.watched.rates.count == WatchedTasks.graphLength)
    }

    @Test("Ten thousand tasks: a frame and a key take little") func many() {
        var model = model((0..<10_000).map { info("file-\($0).bin", $0 < 50 ? .action : .idle, expected: 100) })
        _ = frame(&model)
        let start = ProcessorTime.ofThread
        for step in 0..<20 {
            model.apply(.changed([info("file-\(step + 100).bin", .complete)]), time: Int64(step))
            _ = model.handle(.down, rows: 40)
            _ = frame(&model, columns: 120, rows: 40)
        }
        let time = ProcessorTime.ofThread - start
        // 0.1 s of each second at ten frames in an optimised program; a debug build is about ten times slower.
        #expect(time < .seconds(20), "\(time)")
    }
}
