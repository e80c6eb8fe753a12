import TestSupport
import Testing

@Suite("Content-Range and Content-Length")
struct HeaderRulesTests {
    @Test(
        "Content-Range is read",
        arguments: [
            ("bytes 0-99/200", "bytes", 0, 99, 200), ("bytes 0-0/1", "bytes", 0, 0, 1),
            ("BYTES 5-9/*", "bytes", 5, 9, nil), ("bytes */200", "bytes", nil, nil, 200),
            ("bytes */0", "bytes", nil, nil, 0), ("lines 1-2/3", "lines", 1, 2, 3),
            (
                "bytes 0-9223372036854775805/9223372036854775806", "bytes", 0, 9_223_372_036_854_775_805,
                9_223_372_036_854_775_806
            ),
            ("bytes 0-9223372036854775806/9223372036854775807", "bytes", 0, 9_223_372_036_854_775_806, .max),
        ] as [(String, String, Int64?, Int64?, Int64?)])
    func range(value: String, unit: String, first: Int64?, last: Int64?, total: Int64?) throws {
        let range = try #require(ContentRange(value))
        #expect(range.unit == unit)
        #expect(range.range?.first == first)
        #expect(range.range?.last == last)
        #expect(range.range?.end == last.map { $0 + 1 })
        #expect(range.total == total)
    }

    @Test(
        "a wrong Content-Range is none",
        arguments: [
            "", "bytes", "bytes ", "bytes 0-99", "bytes 0-99/", "bytes /200", "bytes -/200", "bytes 0-/200",
            "bytes -99/200", "bytes */*", "bytes 99-0/200", "bytes 0-200/200", "bytes 0-99/99", "bytes 0-99/200/300",
            "bytes 0-9-9/200", "bytes=0-99/200", "bytes  0-99/200", "bytes 0-99/200 ", " bytes 0-99/200",
            "bytes 0 - 99/200", "bytes +0-99/200", "bytes 0x0-99/200", "bytes 0-99/2e3",
            "bytes 0-9223372036854775807/*", "bytes 0-9223372036854775808/*", "bytes 0-99/9223372036854775808",
            "bytes 99999999999999999999-999999999999999999999/*", "0-99/200", "bytes 0-99/200, bytes 0-99/200",
            "by tes 0-99/200", "bytes ٠-٩/١٠", "bytes\t0-99/200",
        ])
    func wrongRange(value: String) {
        #expect(ContentRange(value) == nil)
    }

    @Test(
        "Content-Length is one number",
        arguments: [
            ([], nil), (["0"], 0), (["9223372036854775807"], .max), (["5, 5"], 5), (["5", "5"], 5), ([" 5\t"], 5),
            (["007"], 7),
        ] as [([String], Int64?)])
    func length(values: [String], expected: Int64?) throws {
        #expect(try ContentLength.parse(values) == expected)
    }

    @Test(
        "a Content-Length that is not is refused",
        arguments: [
            ["-1"], ["+1"], [""], ["x"], ["1.5"], ["0x10"], ["9223372036854775808"], ["99999999999999999999999"],
            ["5", "6"], ["5, 6"], ["5,"], ["5 5"], ["٥"],
        ])
    func wrongLength(values: [String]) {
        #expect { try ContentLength.parse(values) } throws: { ($0 as? DownloadError)?.code == .protocolViolation }
    }
}

@Suite("Dates of HTTP")
struct DateTests {
    private static let now = Date(timeIntervalSince1970: 1_780_000_000)  // May 2026

    @Test(
        "are read in all three forms",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Tue, 29 Feb 2000 23:59:59 GMT", 951_868_799), ("Fri, 31 Dec 1999 23:59:60 GMT", 946_684_800),
            ("Wed, 01 Mar 2000 00:00:00 UTC", 951_868_800), ("Mon, 18 Jan 2038 03:14:08 GMT", 2_147_397_248),
            ("Friday, 01-Jan-27 00:00:00 GMT", 1_798_761_600), ("Friday, 01-Jan-76 00:00:00 GMT", 3_345_062_400),
            ("Friday, 01-Jan-77 00:00:00 GMT", 220_924_800), ("sun, 06 NOV 1994 08:49:37 GMT", 784_111_777),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
        ])
    func read(value: String, seconds: Double) {
        #expect(HTTPDate.parse(value, now: Self.now)?.timeIntervalSince1970 == seconds)
    }

    @Test(
        "are nothing else",
        arguments: [
            "", "now", "Sun, 06 Nov 1994", "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 29 Feb 1900 08:49:37 GMT",
            "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:00 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Nov 1994 08:49 GMT", "Sun, 06 Nov 1994 08:49:37 +0100",
            "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, -6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 199 08:49:37 GMT",
            "Sun, 06 Nov 99999 08:49:37 GMT", "1994-11-06T08:49:37Z", "784111777", "Sunday, 06-Nov 08:49:37 GMT",
        ])
    func wrong(value: String) {
        #expect(HTTPDate.parse(value, now: Self.now) == nil)
    }
}
