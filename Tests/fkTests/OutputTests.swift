import FKCore
import FKMiddleware
import Foundation
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
        #expect(Escaping.visible(text) == shown)
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
        "Durations",
        arguments: [
            (0, "0s"), (59.2, "1m00s"), (185, "3m05s"), (7620, "2h07m"), (356_400, "4d03h"), (1e12, "99d+"), (-1, "-"),
            (.infinity, "-"), (.nan, "-"),
        ] as [(Double, String)])
    func durations(seconds: Double, expected: String) {
        #expect(Formatting.duration(seconds) == expected)
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

    @Test(
        "Passwords and query values are masked",
        arguments: [
            ("https://h/a", "https://h/a"), ("https://u:p@h/a", "https://***@h/a"), ("https://u@p@h", "https://***@h"),
            ("https://h/a?sig=1&b&c=2#f?x=1", "https://h/a?sig=***&b&c=***#f?x=1"), ("plain?x=1", "plain?x=1"),
            ("http://h/a@b", "http://h/a@b"),
        ])
    func masking(url: String, shown: String) {
        #expect(URLMasking.mask(url) == shown)
    }
}

@Suite("Terminal decisions") struct TerminalTests {
    @Test(
        "Colour",
        arguments: [
            (.auto, true, false, nil, true), (.auto, false, false, nil, false), (.auto, true, true, nil, false),
            (.auto, true, false, "1", false), (.auto, true, false, "", true), (.always, false, true, "1", true),
            (.never, true, false, nil, false),
        ] as [(ColorChoice, Bool, Bool, String?, Bool)])
    func color(choice: ColorChoice, isTerminal: Bool, isDumb: Bool, noColor: String?, expected: Bool) {
        #expect(Terminal.usesColor(choice, isTerminal: isTerminal, isDumb: isDumb, noColor: noColor) == expected)
    }

    @Test("The locale decides on Unicode; none at all means yes") func locale() {
        #expect(Terminal.usesUnicode([:]))
        #expect(Terminal.usesUnicode(["LANG": "de_CH.UTF-8"]))
        #expect(!Terminal.usesUnicode(["LANG": "C"]))
        #expect(Terminal.usesUnicode(["LANG": "C", "LC_ALL": "C.utf8"]))
    }
}

@Suite("JSON output") struct JSONOutputTests {
    @Test("Events have the documented fields in the documented order") func events() {
        let url = "https://u:p@h/a?k=v"
        let time = Date(timeIntervalSince1970: 1_700_000_000.25)
        #expect(
            RunEvent.state(id: "ab", url: url, state: .action, time: time).json.compact
                == #"{"event":"state","id":"ab","url":"https://***@h/a?k=***","state":"action","time":"2023-11-14T22:13:20.250Z"}"#
        )
        #expect(
            RunEvent.progress(
                id: "ab", url: "http://h/a", bytes: ByteCount(received: 5, previousReceived: 2, expected: nil),
                bytesPerSecond: 1.9
            ).json.compact
                == #"{"event":"progress","id":"ab","url":"http://h/a","received":5,"previousReceived":2,"expected":null,"bytesPerSecond":1}"#
        )
        #expect(
            RunEvent.barrel(name: "n", bytes: ByteCount(received: 5, expected: 9), complete: 1, error: 0, total: 2).json
                .compact
                == #"{"event":"barrel","name":"n","received":5,"expected":9,"complete":1,"error":0,"total":2}"#)
        #expect(
            RunEvent.summary(complete: 1, error: 2, suspend: 3, bytes: 4, seconds: 1.25).json.compact
                == #"{"event":"summary","complete":1,"error":2,"suspend":3,"bytes":4,"seconds":1.25}"#)
    }

    @Test("Strings come back as they went in, and hold nothing a terminal acts on") func strings() throws {
        let text = "\"\\/\u{8}\u{1b}[m\u{0}\u{202e}\u{2028}\u{e0041} ä東😀\n\r\t"
        let json = JSONValue.array([.string(text)]).compact
        #expect(!json.unicodeScalars.contains(where: Escaping.isHidden))
        #expect(try JSONDecoder().decode([String].self, from: Data(json.utf8)) == [text])
    }

    @Test(
        "Numbers",
        arguments: [
            (0, "0"), (1.5, "1.5"), (-0.25, "-0.25"), (2.0004, "2"), (-0.0001, "0"), (.nan, "null"),
            (.infinity, "null"),
            (3.007, "3.007"),
        ] as [(Double, String)])
    func numbers(value: Double, expected: String) {
        #expect(JSONValue.number(value).compact == expected)
    }

    @Test("Documents are indented and valid") func pretty() throws {
        let value = JSONValue.object([("a", 1), ("b", .array([])), ("c", .array([.null, true])), ("d", .object([]))])
        #expect(value.pretty == "{\n  \"a\": 1,\n  \"b\": [],\n  \"c\": [\n    null,\n    true\n  ],\n  \"d\": {}\n}")
    }

    @Test("A task's document has the promised fields") func document() {
        var task = TaskDescription(url: "https://h/a?token=secret")
        task.directory = "/d"
        var record = TaskRecord(task: task, number: 1, created: Date(timeIntervalSince1970: 0))
        record.error = DownloadError(.httpStatus, "404", status: 404)
        record.waiting = Waiting(.retry, until: Date(timeIntervalSince1970: 1))
        let json = TaskDocument.json(record, received: 7).compact
        for field in ["id", "url", "state", "received", "expected", "path", "attempts", "barrels", "error", "waiting"] {
            #expect(json.contains("\"\(field)\":"))
        }
        #expect(json.contains(#""received":7,"#))
        #expect(json.contains(#""error":{"code":"http-status","message":"404","status":404,"retryable":false}"#))
        #expect(json.contains(#""waiting":{"reason":"retry","until":"1970-01-01T00:00:01.000Z"}"#))
        #expect(!json.contains("secret"))
    }
}

@Suite("Tables") struct TableTests {
    private var table: TableWriter {
        var table = TableWriter([.init("STATE"), .init("SIZE", alignsRight: true), .init("NAME", isFlexible: true)])
        table.add(["complete", "1.0 MiB", "東京.iso"])
        table.add([.init("error", .red), "5 B", "a-rather-long-name-of-a-file.tar.gz"])
        return table
    }

    @Test("Columns stand below their headings") func whole() {
        #expect(
            table.lines(width: nil, usesColor: false) == [
                "STATE        SIZE  NAME", "complete  1.0 MiB  東京.iso",
                "error         5 B  a-rather-long-name-of-a-file.tar.gz",
            ])
    }

    @Test("On a terminal the flexible column shrinks", arguments: [40, 36, 30]) func narrow(width: Int) {
        let lines = table.lines(width: width, usesColor: false)
        #expect(lines.allSatisfy { Columns.width(of: $0) <= width })
        #expect(lines[2].hasSuffix(".gz"))
    }

    @Test("Colour does not move columns") func color() {
        #expect(table.lines(width: nil, usesColor: true)[2].hasPrefix("\u{1b}[31merror\u{1b}[0m         5 B"))
    }

    @Test("Cells are escaped") func escaped() {
        var table = TableWriter([.init("NAME")])
        table.add(["a\u{1b}b"])
        #expect(table.lines(width: nil, usesColor: false)[1] == "a\\eb")
    }
}

@Suite("Output streams") struct OutputStreamTests {
    @Test("A reader that went away breaks the stream and nothing else") func brokenPipe() throws {
        SignalTrap.ignoreWriteSignals()
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        let stream = OutputStream(ends[1])
        stream.writeLine("heard")
        #expect(!stream.isBroken)
        close(ends[0])
        stream.writeLine("not heard")
        #expect(stream.isBroken)
        stream.writeLine("not tried")
        close(ends[1])
    }

    @Test("Lines of many threads never mix", .timeLimit(.minutes(1))) func threads() async throws {
        let folder = try TemporaryFolder()
        let handle = try folder.fileHandle("out")
        let stream = OutputStream(handle.fileDescriptor)
        await withTaskGroup(of: Void.self) { group in
            for letter in "abcdefgh" {
                group.addTask { for _ in 0..<200 { stream.writeLine(String(repeating: letter, count: 300)) } }
            }
        }
        let lines = try folder.text("out").split(separator: "\n")
        #expect(lines.count == 1600)
        #expect(lines.allSatisfy { line in line.count == 300 && line.allSatisfy { $0 == line.first } })
    }
}
