import TestSupport
import Testing

@testable import fk

@Suite("Keys, limits and graph of fk watch") struct WatchValueTests {
    @Test(
        "Bytes become keys",
        arguments: [
            ("a", [.character("a")]), (" ?", [.character(" "), .character("?")]), ("\r", [.enter]), ("\n", [.enter]),
            ("\u{7f}\u{8}", [.backspace, .backspace]), ("\u{1b}[A\u{1b}[B", [.up, .down]), ("\u{1b}OA", [.up]),
            ("\u{1b}[5~\u{1b}[6~", [.pageUp, .pageDown]),
            ("\u{1b}[H\u{1b}[F\u{1b}[1~\u{1b}[4~", [.home, .end, .home, .end]),
            ("\u{1b}[1;5C", []), ("\u{1b}[200~x", [.character("x")]), ("\u{c}", [.redraw]), ("\u{1}\u{2}", []),
            ("東é😀", [.character("東"), .character("é"), .character("😀")]), ("\u{1b}q", [.escape, .character("q")]),
        ] as [(String, [WatchKey])])
    func keys(text: String, expected: [WatchKey]) {
        var parser = WatchKeyParser()
        #expect(parser.feed(text.utf8) == expected)
        #expect(!parser.isPending)
        // One byte after the other is the same.
        var slow = WatchKeyParser()
        #expect(text.utf8.flatMap { slow.feed([$0]) } == expected)
    }

    @Test("Escape alone is a key when nothing follows; a broken sequence is not") func escape() {
        var parser = WatchKeyParser()
        #expect(parser.feed([0x1b]) == [] && parser.isPending)
        #expect(parser.flush() == [.escape] && !parser.isPending)
        #expect(parser.feed([0x1b, 0x5b]) == [] && parser.isPending)
        #expect(parser.flush() == [.character("[")])
        #expect(parser.feed([0xff, 0xc3]) == [] && parser.isPending)
        #expect(parser.flush() == [])
        var random = SeededRandom(seed: 1)
        for _ in 0..<2_000 {
            let bytes = (0..<20).map { _ in UInt8.random(in: 0...255, using: &random) }
            _ = parser.feed(bytes)
            while parser.isPending { _ = parser.flush() }
        }
    }

    @Test("Plus and minus choose the next step") func steps() {
        #expect(RateSteps.higher(than: nil) == nil)
        #expect(RateSteps.higher(than: 1 << 20) == 2 << 20)
        #expect(RateSteps.higher(than: 1_500_000) == 2 << 20)
        #expect(RateSteps.higher(than: 1 << 30) == nil)
        #expect(RateSteps.lower(than: 2 << 20, rate: 0) == 1 << 20)
        #expect(RateSteps.lower(than: nil, rate: 3_000_000) == 2 << 20, "the first one with an effect")
        #expect(RateSteps.lower(than: nil, rate: 0) == 1 << 30)
        #expect(RateSteps.lower(than: 64 << 10, rate: 0) == 64 << 10)
    }

    @Test("The graph is as wide as asked, newest at the right") func graph() {
        #expect(RateGraph.text([], columns: 3, usesUnicode: true) == "▁▁▁")
        #expect(RateGraph.text([0, 50, 100], columns: 4, usesUnicode: true) == "▁▁▅█")
        #expect(RateGraph.text([1, 2, 3, 100], columns: 1, usesUnicode: true) == "█")
        #expect(RateGraph.text([0, 100], columns: 2, usesUnicode: false) == "_#")
        #expect(RateGraph.text([1], columns: 0, usesUnicode: true) == "")
    }
}
