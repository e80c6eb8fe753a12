import TestSupport
import Testing

private let tag = "\"v1\""
private let date = "Sun, 06 Nov 1994 08:49:37 GMT"
private let later = "Sun, 06 Nov 1994 08:49:38 GMT"
private let strong = Validator(etag: tag, lastModified: date, date: later)
private let known = ResumeRules.Known(length: 1000, validator: strong)
private let blind = ResumeRules.Known(length: 1000)
/// 100 bytes are held, the rest is wanted.
private let resumed = RangeAsk(start: 100, ifRange: tag, usesRange: true)
private let compared = RangeAsk(start: 100, overlap: 100, usesRange: true)

private func head(_ status: Int, _ fields: KeyValuePairs<String, String> = [:]) -> ResponseHead {
    ResponseHead(status: status, fields: fields.map { .init($0.key, $0.value) }, url: "http://e.com/a")
}

@Suite("What is asked")
struct RangeRequestTests {
    struct Row: Sendable {
        var name: String
        var range: SavedRange
        var known: ResumeRules.Known
        var heldBefore: Int64 = 0
        var ask: RangeAsk
        var header: String?
    }

    @Test(
        "one range at a time",
        arguments: [
            Row(name: "nothing held", range: .init(start: 0, end: nil), known: .init(), ask: .init(), header: nil),
            Row(
                name: "nothing held, length known", range: .init(start: 0, end: 1000), known: known, ask: .init(),
                header: nil),
            Row(
                name: "strong tag", range: .init(start: 0, end: 1000, position: 100), known: known,
                ask: .init(start: 100, ifRange: tag, usesRange: true), header: "bytes=100-"),
            Row(
                name: "only Last-Modified, a second before Date",
                range: .init(start: 0, end: 1000, position: 100),
                known: .init(length: 1000, validator: .init(lastModified: date, date: later)),
                ask: .init(start: 100, ifRange: date, usesRange: true), header: "bytes=100-"),
            Row(
                name: "weak tag", range: .init(start: 0, end: 1000, position: 100),
                known: .init(length: 1000, validator: .init(etag: "W/\"v1\"")),
                ask: .init(start: 100, overlap: 100, usesRange: true), header: "bytes=0-"),
            Row(
                name: "no validator", range: .init(start: 0, end: 9000, position: 5000),
                known: .init(length: 9000),
                ask: .init(start: 5000, overlap: 4096, usesRange: true), header: "bytes=904-"),
            Row(
                name: "length unknown", range: .init(start: 0, end: nil, position: 5000), known: .init(),
                ask: .init(start: 5000, overlap: 4096, usesRange: true), header: "bytes=904-"),
            Row(
                name: "first of several", range: .init(start: 0, end: 500), known: known,
                ask: .init(start: 0, end: 500, ifRange: tag, usesRange: true), header: "bytes=0-499"),
            Row(
                name: "middle of several", range: .init(start: 300, end: 500, position: 400), known: known,
                ask: .init(start: 400, end: 500, ifRange: tag, usesRange: true), header: "bytes=400-499"),
            Row(
                name: "last of several", range: .init(start: 500, end: 1000), known: known,
                ask: .init(start: 500, ifRange: tag, usesRange: true), header: "bytes=500-"),
            Row(
                name: "no validator, nothing held in this range", range: .init(start: 500, end: 1000), known: blind,
                heldBefore: 50, ask: .init(start: 500, overlap: 50, usesRange: true), header: "bytes=450-"),
        ])
    func ask(row: Row) {
        let ask = ResumeRules.ask(for: row.range, known: row.known, heldBefore: row.heldBefore)
        #expect(ask == row.ask)
        #expect(ask.rangeHeader == row.header)
    }

    @Test("again in another way")
    func again() {
        let plain = ResumeRules.ask(again: .plainRange, after: resumed)
        #expect(plain == RangeAsk(start: 100, usesRange: true, again: .plainRange))
        for again in [ResumeRules.Again.withoutRange, .oneStream] {
            let whole = ResumeRules.ask(again: again, after: compared)
            #expect(whole == RangeAsk(again: again))
            #expect(whole.rangeHeader == nil)
        }
    }
}

@Suite("Validators")
struct ValidatorTests {
    @Test(
        "are strong as RFC 9110 section 8.8 says",
        arguments: [
            (Validator(etag: "\"a\""), "\"a\""), (Validator(etag: "\"\""), "\"\""),
            (Validator(etag: "\"a\"", lastModified: date, date: later), "\"a\""),
            (Validator(etag: "W/\"a\""), nil), (Validator(etag: "a"), nil), (Validator(etag: "\"a"), nil),
            (Validator(etag: "\"a\"b\""), nil), (Validator(etag: "\""), nil), (Validator(etag: ""), nil),
            (Validator(etag: "W/\"a\"", lastModified: date, date: later), date),
            (Validator(lastModified: date, date: later), date),
            (Validator(lastModified: date, date: date), nil), (Validator(lastModified: later, date: date), nil),
            (Validator(lastModified: date), nil), (Validator(lastModified: "yesterday", date: later), nil),
            (Validator(lastModified: date, date: "now"), nil), (Validator(), nil),
        ] as [(Validator, String?)])
    func strength(validator: Validator, expected: String?) {
        #expect(validator.strong == expected)
    }

    @Test("are read from a head")
    func read() {
        let value = Validator(head(200, ["etag": tag, "LAST-MODIFIED": date, "Date": later]))
        #expect(value == strong)
        #expect(Validator(head(200)) == Validator())
    }
}

@Suite("Tail comparison")
struct TailTests {
    @Test("finds the first new byte however the bytes are cut", arguments: 1...9)
    func pieces(size: Int) {
        let held: [UInt8] = [1, 2, 3, 4, 5]
        let body: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
        var comparison = TailComparison(held: held)
        var offset = 0
        while !comparison.isDone {
            let piece = Array(body[offset..<min(offset + size, body.count)])
            switch piece.withUnsafeBytes({ comparison.feed($0) }) {
            case .needsMore: offset += piece.count
            case .equal(let index): #expect(offset + index == held.count)
            case .different:
                Issue.record("different")
                return
            }
        }
    }

    @Test("sees a difference at any place", arguments: 0..<5)
    func different(index: Int) {
        var body: [UInt8] = [1, 2, 3, 4, 5, 6]
        body[index] = 0
        var comparison = TailComparison(held: [1, 2, 3, 4, 5])
        #expect(body.withUnsafeBytes { comparison.feed($0) } == .different)
    }

    @Test("of nothing is equal at once")
    func nothing() {
        var comparison = TailComparison(held: [])
        #expect(comparison.isDone)
        #expect([UInt8(1)].withUnsafeBytes { comparison.feed($0) } == .equal(newBytesAt: 0))
    }
}
