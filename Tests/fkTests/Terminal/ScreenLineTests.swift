import Testing

@testable import fk

@Suite("Differences of lines") struct ScreenLineTests {
    /// What a terminal shows after both.
    private func shown(_ old: String, _ new: String) -> (text: String, screen: [String]) {
        let change = ScreenLine(new).text(over: ScreenLine(old))
        var screen = Screen(columns: 100, rows: 5)
        screen.feed(old + "\r" + change)
        return (change, screen.lines)
    }

    @Test(
        "Whatever was there, the new line is shown",
        arguments: [
            ("", ""), ("abc", "abc"), ("abc", "abd"), ("abc", ""), ("", "abc"), ("a long line", "short"),
            ("a.iso ━━━╸──  42%   2m05s", "a.iso ━━━━──  43%   2m00s"), ("東京.pdf 1", "東京.pdf 2"), ("東京.pdf", "a東.pdf"),
            ("東東東", "a東b東"), ("ab東", "東ba"), ("a東b", "aXYb"), ("😀.pdf 10%", "😀.pdf 11%"), ("❤️ 1", "❤️ 2"),
            ("\u{1b}[31mred\u{1b}[0m x", "\u{1b}[32mred\u{1b}[0m x"), ("plain", "\u{1b}[1mplain\u{1b}[0m"),
        ])
    func replaced(old: String, new: String) {
        let plain = Style.removed(from: new)
        #expect(shown(old, new).screen == (plain.isEmpty ? [] : [plain]))
    }

    @Test("Equal lines need nothing, and a digit little") func small() {
        #expect(shown("same 1", "same 1").text == "")
        let (text, _) = shown(String(repeating: "x", count: 70) + " 41%", String(repeating: "x", count: 70) + " 42%")
        #expect(text == "\u{1b}[73G2")
    }

    @Test("Nothing is erased behind a line: the cursor of a full one stands on its last column") func full() {
        for (old, new) in [("", "abc"), ("xyz", "abc"), ("", "❤️ 1"), ("❤️ 1", "❤️ 2")] {
            #expect(!shown(old, new).text.hasSuffix("\u{1b}[K"))
        }
    }

    @Test("A change of a style is written with it") func styles() {
        let (text, _) = shown("a-longer-name \u{1b}[31mx\u{1b}[0m y", "a-longer-name \u{1b}[32mx\u{1b}[0m y")
        #expect(text == "\u{1b}[15G\u{1b}[32mx\u{1b}[0m")
    }
}
