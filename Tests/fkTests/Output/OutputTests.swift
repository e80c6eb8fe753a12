import TestSupport
import Testing

@testable import fk

@Suite("Showing text") struct TextOutputTests {
    @Test(
        "What could act on a terminal is shown escaped",
        arguments: [
            ("plain ä 東 😀", "plain ä 東 😀"), ("\u{1b}[31m", "\\e[31m"), ("a\r\nb\t", "a\\r\\nb\\t"), ("\u{0}", "\\u{0}"),
            ("\u{7f}\u{9b}", "\\u{7f}\\u{9b}"), ("\u{202e}gpj", "\\u{202e}gpj"),
            ("\u{2066}x\u{2069}", "\\u{2066}x\\u{2069}"),
            ("a\u{200b}b", "a\\u{200b}b"), ("\u{2028}", "\\u{2028}"), ("\u{e0041}", "\\u{e0041}"),
        ])
    func escaping(text: String, shown: String) {
        #expect(text.visible == shown)
    }

    @Test(
        "Columns of text",
        arguments: [
            ("", 0), ("abc", 3), ("äöü", 3), ("e\u{301}", 1), ("東京", 4), ("ｆｕｌｌ", 8), ("ﾊﾝｶｸ", 4), ("한글", 4), ("😀", 2),
            ("👨‍👩‍👧", 2), ("🇨🇭", 2), ("❤️", 2), ("\u{301}", 0), ("–…", 2), ("━╸", 2),
        ])
    func widths(text: String, expected: Int) {
        #expect(Columns.width(of: text) == expected)
    }

    @Test(
        "Cutting keeps the beginning and the extension, and never exceeds the columns",
        arguments: [
            ("short.iso", 20, "short.iso"), ("a-very-long-name.iso", 12, "a-very-l…iso"), ("東京東京東京.pdf", 9, "東京東…df"),
            ("abc", 0, ""), ("abcdef", 2, "ab"), ("東京", 1, ""),
        ])
    func fitting(text: String, columns: Int, expected: String) {
        let fitted = Columns.fit(text, to: columns)
        #expect(Columns.width(of: fitted) <= columns)
        #expect(fitted == expected)
    }

    @Test("Cut text is never wider than asked, whatever it is") func fittingAlways() {
        for text in [
            "东京-long-名字-😀😀😀.tar.gz", "plain-ascii-name-that-is-long.bin", "e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}",
        ] {
            for columns in 0...40 { #expect(Columns.width(of: Columns.fit(text, to: columns)) <= columns) }
        }
    }

    @Test("A line is folded after a space or within a long word, and never wider than asked") func folding() {
        let line = "error     The server answered 404: it has no such file."
        #expect(
            Columns.fold(line, to: 30, indent: 4) == [
                "error     The server answered ", "    404: it has no such file.",
            ])
        #expect(Columns.fold("id  0123456789abcdef", to: 16, indent: 4) == ["id  0123456789ab", "    cdef"])
        #expect(Columns.fold("short", to: 30, indent: 4) == ["short"])
        for text in [line, "東京东京-long-名字-😀😀😀.tar.gz", String(repeating: "x", count: 99)] {
            for columns in 0...40 {
                let lines = Columns.fold(text, to: columns, indent: 4)
                #expect(lines.allSatisfy { Columns.width(of: $0) <= columns }, "\(columns)")
            }
        }
    }

    @Test("A narrow table leaves spare columns out, and cuts sentences at their end") func narrowTable() {
        var table = TableWriter([
            .init("ID", spare: 1), .init("STATE"), .init("BYTES", alignsRight: true, spare: 2),
            .init("NAME", isFlexible: true), .init("REASON", isFlexible: true, isSentence: true),
        ])
        table.add(["0123456789ab", "failed", "1.0 MiB", "a-long-name.tar.gz", "The server answered 404: no such file."])
        func lines(_ width: Int?) -> [String] { table.lines(width: width, usesColor: false) }
        #expect(lines(nil)[1].hasSuffix("a-long-name.tar.gz  The server answered 404: no such file."))
        #expect(lines(80)[0].hasPrefix("ID            STATE     BYTES  NAME"))
        #expect(lines(56)[1] == "0123456789ab  failed  a-long-nam…ar.gz  The server answ…")
        #expect(lines(40) == ["STATE   NAME             REASON", "failed  a-long-nam…r.gz  The server ans…"])
        for width in 32...100 { #expect(lines(width).allSatisfy { Columns.width(of: $0) <= width }, "\(width)") }
    }

    @Test(
        "Sizes",
        arguments: [
            (0, "0 B"), (999, "999 B"), (1000, "1.0 KiB"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (102_400, "100 KiB"),
            (1_048_575, "1.0 MiB"), (209_715_200, "200 MiB"), (Int64.max, "8192 PiB"),
        ] as [(Int64, String)])
    func bytes(count: Int64, expected: String) {
        #expect(Formatting.bytes(count) == expected)
    }

    @Test("Amounts share the larger unit") func amounts() {
        #expect(Formatting.amount(65_536_000, of: 209_715_200) == "62.5/200 MiB")
        #expect(Formatting.amount(512, of: nil) == "512 B")
        #expect(Formatting.amount(0, of: 0) == "0/0 B")
    }

    @Test(
        "Durations, also of something that is over",
        arguments: [
            (0, false, "0s"), (59.2, false, "1m00s"), (185, false, "3m05s"), (7620, false, "2h07m"),
            (356_400, false, "4d03h"), (1e12, false, "99d+"), (-1, false, "-"), (.infinity, false, "-"),
            (.nan, false, "-"), (0, true, "0ms"), (0.0003, true, "1ms"), (0.017, true, "17ms"), (0.0994, true, "100ms"),
            (0.1, true, "0.1s"), (9.9, true, "9.9s"), (12, true, "12s"),
        ] as [(Double, Bool, String)])
    func durations(seconds: Double, isOver: Bool, expected: String) {
        #expect(Formatting.duration(seconds, precise: isOver) == expected)
    }

    @Test(
        "Of a page that came with an error only the text is shown",
        arguments: [
            (
                "<html> <head><title>404 Not Found</title></head> <body><h1>Not Found</h1><hr>nginx</body>",
                "Not Found nginx"
            ),
            ("<HTML><style>b{a<c}</STYLE>busy &lt;now", "busy <now"), ("<p>cut <b>here<a hre", "cut here"),
            ("plain reason", "plain reason"), ("1 < 2", "1 < 2"), ("<title>never closed", "never closed"),
            ("<!-- a > b --><br>", nil),
        ] as [(String, String?)])
    func reasons(page: String, expected: String?) {
        var error = DownloadError(.httpStatus, "The server answered 404.")
        error.status = 404
        error.underlying = page
        #expect(error.reason == expected)
        #expect(
            error.shortText == (expected.map { "The server answered 404. The server says: \"\($0)\"" } ?? error.message)
        )
    }

    @Test("Percent is rounded down, so that 100% means all of it") func percent() {
        #expect(Formatting.percent(999, of: 1000) == "99%")
        #expect(Formatting.percent(1000, of: 1000) == "100%")
        #expect(Formatting.percent(29, of: 100) == "29%")
        #expect(Formatting.percent(0, of: 0) == "100%")
        #expect(Formatting.percent(5, of: nil) == "")
    }

    @Test("Rates survive nonsense", arguments: [-Double.infinity, .nan, -5, 0]) func rates(rate: Double) {
        #expect(Formatting.rate(rate) == "0 B/s")
    }
}
