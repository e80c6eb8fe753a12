import TestSupport
import Testing

private typealias Ask = RangeAsk

private let tag = "\"v1\""
private let date = "Sun, 06 Nov 1994 08:49:37 GMT"
private let later = "Sun, 06 Nov 1994 08:49:38 GMT"
private let strong = Validator(etag: tag, lastModified: date, date: later)
private let blind = ResumeRules.Known(length: 1000)
/// 100 bytes are held, the rest is wanted.
private let resumed = RangeAsk(start: 100, ifRange: tag, usesRange: true)
private let compared = RangeAsk(start: 100, overlap: 100, usesRange: true)

private func head(_ status: Int, _ fields: KeyValuePairs<String, String> = [:]) -> ResponseHead {
    ResponseHead(status: status, fields: fields.map { .init($0.key, $0.value) }, url: "http://e.com/a")
}

/// A 206 with our entity tag.
private func part(_ range: String, _ more: KeyValuePairs<String, String> = [:]) -> ResponseHead {
    var result = head(206, ["Content-Range": range, "ETag": tag])
    result.fields += more.map { .init($0.key, $0.value) }
    return result
}

@Suite("What an answer means")
struct ResumeDecisionTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        var head: ResponseHead
        var ask: RangeAsk = resumed
        var known: ResumeRules.Known = ResumeDecisionTests.standard
        var segments = 1
        var decision: ResumeRules.HeadDecision?
        /// Only the code of a refusal is compared.
        var refused: DownloadError.Code?
        var testDescription: String { name }
        static func answer(
            _ name: String, _ head: ResponseHead, _ ask: RangeAsk = resumed,
            _ known: ResumeRules.Known = ResumeDecisionTests.standard, segments: Int = 1,
            gives decision: ResumeRules.HeadDecision
        ) -> Row { Row(name: name, head: head, ask: ask, known: known, segments: segments, decision: decision) }
        static func refusal(
            _ name: String, _ head: ResponseHead, _ ask: RangeAsk = resumed,
            _ known: ResumeRules.Known = ResumeDecisionTests.standard, gives code: DownloadError.Code
        ) -> Row { Row(name: name, head: head, ask: ask, known: known, refused: code) }
    }

    static let standard = ResumeRules.Known(length: 1000, validator: strong)
    private static let plainAgain = RangeAsk(start: 100, usesRange: true, again: .plainRange)
    private static let comparedAgain = RangeAsk(start: 100, overlap: 100, usesRange: true, again: .plainRange)
    private static let empty = ResumeRules.Known()
    private static let piece = RangeAsk(start: 100, end: 500, ifRange: tag, usesRange: true)

    static let rows200: [Row] = [
        .answer(
            "first answer with a length", head(200, ["Content-Length": "1000"]), Ask(), empty,
            gives: .startOver(total: 1000)),
        .answer("first answer without a length", head(200), Ask(), empty, gives: .startOver(total: nil)),
        .answer("203 is a 200", head(203, ["Content-Length": "5"]), Ask(), empty, gives: .startOver(total: 5)),
        .answer(
            "an unknown 2xx is a 200", head(299, ["Content-Length": "5"]), Ask(), empty, gives: .startOver(total: 5)),
        .answer("226 without IM is a 200", head(226), Ask(), empty, gives: .startOver(total: nil)),
        .refusal("226 with a difference", head(226, ["IM": "vcdiff"]), Ask(), empty, gives: .httpStatus),
        .answer("an unknown 2xx to a range", head(299, ["Content-Length": "5"]), gives: .askAgain(.withoutRange)),
        .answer("empty body", head(200, ["Content-Length": "0"]), Ask(), empty, gives: .startOver(total: 0)),
        .answer(
            "an empty body without validators to a range: asked once more", head(200, ["Content-Length": "0"]),
            gives: .askAgain(.plainRange)),
        .answer(
            "the same again: the file is empty", head(200, ["Content-Length": "0"]), plainAgain,
            gives: .startOver(total: 0)),
        .answer(
            "an empty body with another entity tag", head(200, ["Content-Length": "0", "ETag": "\"v2\""]),
            gives: .startOver(total: 0)),
        .answer(
            "chunked: the length is void", head(200, ["Content-Length": "7", "Transfer-Encoding": "chunked"]), Ask(),
            empty, gives: .startOver(total: nil)),
        .answer(
            "identity coding", head(200, ["Content-Encoding": "Identity"]), Ask(), empty, gives: .startOver(total: nil)),
        .refusal(
            "two lengths", head(200, ["Content-Length": "5", "content-length": "6"]), Ask(), empty,
            gives: .protocolViolation),
        .refusal(
            "negative length", head(200, ["Content-Length": "-5"]), Ask(), empty, gives: .protocolViolation),
        .refusal(
            "a bad length: overflow", head(200, ["Content-Length": "9223372036854775808"]), Ask(), empty,
            gives: .protocolViolation),
        .answer(
            "coding nobody asked for", head(200, ["Content-Encoding": "gzip"]), Ask(), empty,
            gives: .startOver(total: nil)),
        .answer(
            "ranges ignored, and encoded under our tag",
            head(200, ["Content-Length": "1000", "ETag": tag, "Content-Encoding": "gzip"]),
            gives: .startOver(total: 1000)),
        .refusal(
            "longer than allowed", head(200, ["Content-Length": "11"]), Ask(), .init(maxSize: 10),
            gives: .tooLarge),
        .answer(
            "just as long", head(200, ["Content-Length": "10"]), Ask(), .init(maxSize: 10),
            gives: .startOver(total: 10)),

        .answer(
            "the file changed", head(200, ["Content-Length": "1000", "ETag": "\"v2\""]),
            gives: .startOver(total: 1000)),
        .answer(
            "If-Range is ignored", head(200, ["Content-Length": "1000", "ETag": tag]),
            gives: .askAgain(.plainRange)),
        .answer(
            "a date in If-Range, and the whole file: another version may have the same date",
            head(200, ["Content-Length": "1000", "Last-Modified": date]),
            RangeAsk(start: 100, ifRange: date, usesRange: true),
            .init(length: 1000, validator: .init(lastModified: date, date: later)), gives: .startOver(total: 1000)),
        .answer(
            "200 to a range: and so is Range", head(200, ["Content-Length": "1000", "ETag": tag]), plainAgain,
            gives: .startOver(total: 1000)),
        .answer(
            "ranges are declined",
            head(200, ["Content-Length": "1000", "ETag": tag, "Accept-Ranges": "none"]),
            gives: .startOver(total: 1000)),
        .answer(
            "same tag, other length", head(200, ["Content-Length": "999", "ETag": tag]),
            gives: .startOver(total: 999)),
        .answer("same tag, no length", head(200, ["ETag": tag]), gives: .startOver(total: nil)),
        .answer(
            "weak tag", head(200, ["Content-Length": "1000", "ETag": "W/\"v1\""]),
            gives: .startOver(total: 1000)),
        .answer(
            "nothing to recognise it by", head(200, ["Content-Length": "1000"]), compared, blind,
            gives: .startOver(total: 1000)),
        .answer(
            "200 to a range, segments: changed", head(200, ["ETag": "\"v2\""]), piece, segments: 4,
            gives: .askAgain(.oneStream)),
        .answer(
            "200 to a range, segments: If-Range is ignored", head(200, ["Content-Length": "1000", "ETag": tag]), piece,
            segments: 16,
            gives: .askAgain(.plainRange)),
        .answer(
            "200 to a range, segments: and so is Range", head(200, ["Content-Length": "1000", "ETag": tag]),
            RangeAsk(start: 100, end: 500, usesRange: true, again: .plainRange), segments: 16,
            gives: .askAgain(.oneStream)),
        .answer(
            "the first connection of several asks for all", head(200, ["Content-Length": "9"]), Ask(), empty,
            segments: 4, gives: .startOver(total: 9)),
        .answer(
            "a coding nobody asked for when resuming", head(200, ["Content-Encoding": "br"]),
            gives: .startOver(total: nil)),
        .refusal(
            "longer than allowed when resuming", head(200, ["Content-Length": "1001"]), resumed,
            .init(length: 9, maxSize: 1000),
            gives: .tooLarge),
    ]

    /// A 200 with Content-Range, and our entity tag unless there is another one.
    private static func part200(_ range: String, _ length: Int? = nil, etag: String? = tag) -> ResponseHead {
        var result = head(200, ["Content-Range": range])
        if let length { result.fields.append(.init("Content-Length", "\(length)")) }
        if let etag { result.fields.append(.init("ETag", etag)) }
        return result
    }

    static let rows200Part: [Row] = [
        .answer("the rest", part200("bytes 100-999/1000", 900), gives: .append(skip: 0, until: 1000, total: 1000)),
        .answer(
            "the rest, bytes are compared", part200("bytes 50-999/1000", 950, etag: nil),
            RangeAsk(start: 100, overlap: 50, usesRange: true), blind,
            gives: .append(skip: 50, until: 1000, total: 1000)),
        .answer("another start", part200("bytes 200-999/1000", 800), gives: .askAgain(.oneStream)),
        .answer("another length", part200("bytes 100-999/1000", 1000), gives: .askAgain(.oneStream)),
        .answer("no length", part200("bytes 100-999/1000"), gives: .askAgain(.oneStream)),
        .answer("no total", part200("bytes 100-999/*", 900), gives: .askAgain(.oneStream)),
        .answer("another total", part200("bytes 100-1099/1100", 1000), gives: .askAgain(.withoutRange)),
        .answer("another tag", part200("bytes 100-999/1000", 900, etag: "\"v2\""), gives: .askAgain(.withoutRange)),
        .answer("no tag", part200("bytes 100-999/1000", 900, etag: nil), gives: .askAgain(.oneStream)),
        .answer(
            "a date in If-Range is not confirmed", part200("bytes 100-999/1000", 900, etag: nil),
            RangeAsk(start: 100, ifRange: date, usesRange: true),
            .init(length: 1000, validator: .init(lastModified: date, date: later)), gives: .askAgain(.oneStream)),
        .answer(
            "the whole file", part200("bytes 0-999/1000", 1000, etag: nil), compared, blind,
            gives: .startOver(total: 1000)),
        .answer(
            "the whole file without a range in the request", part200("bytes 0-999/1000", 1000), Ask(), empty,
            gives: .startOver(total: 1000)),
        .refusal("nobody asked for it", part200("bytes 100-999/1000", 900), Ask(), empty, gives: .badRange),
        .refusal("nobody asked for the first bytes", part200("bytes 0-99/1000", 100), Ask(), empty, gives: .badRange),
    ]

    static let rows206: [Row] = [
        .answer("the rest", part("bytes 100-999/1000"), gives: .append(skip: 0, until: 1000, total: 1000)),
        .answer(
            "the rest, with its length", part("bytes 100-999/1000", ["Content-Length": "900"]),
            gives: .append(skip: 0, until: 1000, total: 1000)),
        .answer("total not told", part("bytes 100-999/*"), gives: .append(skip: 0, until: 1000, total: 1000)),
        .answer(
            "total told for the first time", part("bytes 100-999/1000"), resumed, .init(validator: strong),
            gives: .append(skip: 0, until: 1000, total: 1000)),
        .answer("unit in capitals", part("Bytes 100-999/1000"), gives: .append(skip: 0, until: 1000, total: 1000)),
        .answer("starts later", part("bytes 200-999/1000"), gives: .askAgain(.plainRange)),
        .answer("starts earlier", part("bytes 0-999/1000"), gives: .askAgain(.plainRange)),
        .answer("another start: once more", part("bytes 0-999/1000"), plainAgain, gives: .askAgain(.oneStream)),
        .answer(
            "another start: once more, compared", head(206, ["Content-Range": "bytes 50-999/1000"]), comparedAgain,
            blind,
            gives: .askAgain(.oneStream)),
        .answer("another start, segments", part("bytes 0-399/1000"), piece, segments: 4, gives: .askAgain(.plainRange)),
        .answer("no Content-Range", head(206, ["ETag": tag]), gives: .askAgain(.plainRange)),
        .answer("no Content-Range: once more", head(206, ["ETag": tag]), plainAgain, gives: .askAgain(.oneStream)),
        .answer("last < first", part("bytes 100-99/1000"), gives: .askAgain(.plainRange)),
        .answer("total <= last", part("bytes 100-1000/1000"), gives: .askAgain(.plainRange)),
        .answer(
            "an invalid Content-Range: overflow", part("bytes 100-9223372036854775807/*"), gives: .askAgain(.plainRange)
        ),
        .answer(
            "an invalid Content-Range: once more", part("bytes 100-99/1000"), plainAgain, gives: .askAgain(.oneStream)),
        .answer(
            "two fields", part("bytes 100-999/1000", ["Content-Range": "bytes 0-9/1000"]),
            gives: .askAgain(.plainRange)),
        .answer("unsatisfied form", part("bytes */1000"), gives: .askAgain(.plainRange)),
        .answer("another unit", part("lines 100-999/1000"), gives: .askAgain(.plainRange)),
        .answer("another unit: once more", part("lines 100-999/1000"), plainAgain, gives: .askAgain(.oneStream)),
        .answer("sub-range", part("bytes 100-199/1000"), gives: .append(skip: 0, until: 200, total: 1000)),
        .answer(
            "a sub-range, segments", part("bytes 100-199/1000"), piece, segments: 4,
            gives: .append(skip: 0, until: 200, total: 1000)),
        .answer(
            "longer than asked", part("bytes 100-999/1000"), piece, segments: 4,
            gives: .append(skip: 0, until: 500, total: 1000)),
        .answer("the total: grew", part("bytes 100-1000/1001"), gives: .askAgain(.withoutRange)),
        .answer("the total: shrank", part("bytes 100-998/999"), gives: .askAgain(.withoutRange)),
        .answer("the total: grew, total not told", part("bytes 100-1000/*"), gives: .askAgain(.withoutRange)),
        .answer("grew and starts elsewhere", part("bytes 0-1000/1001"), gives: .askAgain(.withoutRange)),
        .answer(
            "another tag", head(206, ["Content-Range": "bytes 100-999/1000", "ETag": "\"v2\""]),
            gives: .askAgain(.withoutRange)),
        .answer(
            "another tag, segments", head(206, ["Content-Range": "bytes 100-499/1000", "ETag": "\"v2\""]), piece,
            segments: 16, gives: .askAgain(.withoutRange)),
        .answer(
            "If-Range is not looked at and the tag is left out",
            head(206, ["Content-Range": "bytes 100-999/1000"]), gives: .askAgain(.oneStream)),
        .answer(
            "another tag, segments: the tag is left out", head(206, ["Content-Range": "bytes 100-499/1000"]), piece,
            segments: 4, gives: .askAgain(.oneStream)),
        .answer(
            "a date that holds may be left out", head(206, ["Content-Range": "bytes 100-999/1000"]),
            RangeAsk(start: 100, ifRange: date, usesRange: true),
            .init(length: 1000, validator: .init(lastModified: date, date: later)),
            gives: .append(skip: 0, until: 1000, total: 1000)),
        .answer(
            "same tag, other date (machines of one service)",
            part("bytes 100-999/1000", ["Last-Modified": later]),
            gives: .append(skip: 0, until: 1000, total: 1000)),
        .answer(
            "other date", head(206, ["Content-Range": "bytes 100-999/1000", "Last-Modified": later]),
            compared,
            .init(length: 1000, validator: .init(lastModified: date, date: date)), gives: .askAgain(.withoutRange)),
        .answer(
            "other weak tag", head(206, ["Content-Range": "bytes 0-999/1000", "ETag": "W/\"v2\""]), compared,
            .init(length: 1000, validator: .init(etag: "W/\"v1\"")), gives: .askAgain(.withoutRange)),
        .answer(
            "same weak tag, bytes are compared",
            head(206, ["Content-Range": "bytes 0-999/1000", "ETag": "W/\"v1\""]),
            compared, .init(length: 1000, validator: .init(etag: "W/\"v1\"")),
            gives: .append(skip: 100, until: 1000, total: 1000)),
        .answer(
            "bytes are compared", head(206, ["Content-Range": "bytes 0-999/1000"]), compared, blind,
            gives: .append(skip: 100, until: 1000, total: 1000)),
        .answer(
            "all was there", head(206, ["Content-Range": "bytes 0-99/100"]), compared, empty,
            gives: .append(skip: 100, until: 100, total: 100)),
        .answer(
            "only compared bytes and no end", head(206, ["Content-Range": "bytes 0-99/1000"]), compared,
            blind,
            gives: .askAgain(.plainRange)),
        .answer(
            "nothing to recognise it by and nothing compared", head(206, ["Content-Range": "bytes 100-999/1000"]),
            RangeAsk(start: 100, usesRange: true), blind, gives: .askAgain(.withoutRange)),
        .answer(
            "plain range without our tag", head(206, ["Content-Range": "bytes 100-999/1000"]), plainAgain,
            gives: .askAgain(.withoutRange)),
        .answer(
            "plain range with our tag", part("bytes 100-999/1000"), plainAgain,
            gives: .append(skip: 0, until: 1000, total: 1000)),
        .answer(
            "multipart", part("bytes 100-999/1000", ["Content-Type": "Multipart/Byteranges; boundary=x"]),
            gives: .askAgain(.oneStream)),
        .answer(
            "encoded", part("bytes 100-999/1000", ["Content-Encoding": "gzip"]),
            gives: .askAgain(.withoutRange)),
        .answer(
            "in the coding it began with", part("bytes 100-999/1000", ["Content-Encoding": "X-GZip"]),
            resumed, .init(length: 1000, validator: Validator(etag: tag, coding: "gzip")),
            gives: .append(skip: 0, until: 1000, total: 1000)),
        .answer(
            "plain where it began encoded", part("bytes 100-999/1000"), resumed,
            .init(length: 1000, validator: Validator(etag: tag, coding: "gzip")), gives: .askAgain(.withoutRange)),
        .answer(
            "lengths that contradict each other", part("bytes 100-999/1000", ["Content-Length": "5"]),
            gives: .askAgain(.plainRange)),
        .answer(
            "lengths that contradict each other, again", part("bytes 100-999/1000", ["Content-Length": "5"]),
            plainAgain,
            gives: .askAgain(.oneStream)),
        .refusal(
            "a bad length in a 206", part("bytes 100-999/1000", ["Content-Length": "x"]), gives: .protocolViolation),
        .refusal(
            "longer than allowed in a 206", part("bytes 100-999/1000"), resumed, .init(validator: strong, maxSize: 999),
            gives: .tooLarge),
        .refusal("206 that nobody asked for", part("bytes 0-99/1000"), Ask(), empty, gives: .badRange),
        .refusal("a rest that nobody asked for", part("bytes 100-999/1000"), Ask(), empty, gives: .badRange),
        .refusal(
            "nobody asked, and the lengths contradict each other", part("bytes 0-999/1000", ["Content-Length": "5"]),
            Ask(), empty, gives: .badRange),
        .answer(
            "the whole file that nobody asked for as a range", part("bytes 0-999/1000", ["Content-Length": "1000"]),
            Ask(), empty, gives: .startOver(total: 1000)),
    ]

    static let rows416: [Row] = [
        .answer(
            "our own length", head(416, ["Content-Range": "bytes */100"]), resumed, .init(validator: strong),
            gives: .complete(total: 100)),
        .answer(
            "our own length: compared", head(416, ["Content-Range": "bytes */100"]), compared, empty,
            gives: .complete(total: 100)),
        .answer(
            "our own length: other tag", head(416, ["Content-Range": "bytes */100", "ETag": "\"v2\""]), resumed,
            .init(validator: strong), gives: .askAgain(.withoutRange)),
        .answer(
            "another length was known", head(416, ["Content-Range": "bytes */100"]),
            gives: .askAgain(.withoutRange)),
        .answer("another total", head(416, ["Content-Range": "bytes */50"]), gives: .askAgain(.withoutRange)),
        .answer("another total: longer", head(416, ["Content-Range": "bytes */5000"]), gives: .askAgain(.withoutRange)),
        .answer("no Content-Range", head(416), gives: .askAgain(.withoutRange)),
        .answer(
            "no Content-Range: of no use", head(416, ["Content-Range": "bytes 0-9/100"]),
            gives: .askAgain(.withoutRange)),
        .answer(
            "no Content-Range: other unit", head(416, ["Content-Range": "lines */100"]), resumed, empty,
            gives: .askAgain(.withoutRange)),
        .answer(
            "segments", head(416, ["Content-Range": "bytes */100"]), resumed, empty, segments: 4,
            gives: .askAgain(.withoutRange)),
        .answer(
            "a piece with an end", head(416, ["Content-Range": "bytes */100"]), piece, empty,
            gives: .askAgain(.withoutRange)),
        .refusal("without a range in the request", head(416), Ask(again: .withoutRange), gives: .httpStatus),
    ]

    static let rowsOther: [Row] = [201, 202, 204, 205, 300, 302, 304, 400, 401, 403, 404, 410, 412, 429, 500, 503, 599]
        .map {
            .refusal("\($0)", head($0, ["Content-Length": "5"]), gives: .httpStatus)
        }

    @Test("200", arguments: rows200)
    func whole(row: Row) { check(row) }

    @Test("200 with Content-Range", arguments: rows200Part)
    func partUnder200(row: Row) { check(row) }

    @Test("206", arguments: rows206)
    func partial(row: Row) { check(row) }

    @Test("416", arguments: rows416)
    func unsatisfied(row: Row) { check(row) }

    @Test("error statuses", arguments: rowsOther)
    func errors(row: Row) {
        check(row)
        guard case .refuse(let error) = decide(row) else { return }
        #expect(error.status == row.head.status)
        #expect(error.isRetryable == [429, 500, 503].contains(row.head.status))
    }

    @Test("a refused range is asked for in another way, and each request only once", arguments: 400..<600)
    func refusals(status: Int) {
        let plain = RangeAsk(start: 100, usesRange: true)
        for ask in [resumed, plain] {
            for (isRepeated, isLast) in [(false, false), (true, false), (false, true)] {
                let again = ResumeRules.again(
                    afterRefusal: status, of: ask, isRepeated: isRepeated, isLast: isLast)
                let expected: ResumeRules.Again? =
                    switch status {
                    case 412 where ask.ifRange?.hasPrefix("\"") == true: .plainRange
                    case 400, 405, 406, 412, 417, 501: .withoutRange
                    case 403: isRepeated ? .withoutRange : nil
                    case 500: isRepeated || isLast ? .withoutRange : nil
                    default: nil
                    }
                #expect(again == expected)
                if let again {
                    let next = ResumeRules.ask(again: again, after: ask)
                    #expect(next.ifRange == nil)
                    if !next.usesRange {
                        #expect(
                            ResumeRules.again(afterRefusal: status, of: next, isRepeated: true, isLast: true) == nil)
                    }
                }
            }
        }
        #expect(ResumeRules.again(afterRefusal: nil, of: resumed) == nil)
    }

    @Test("asks at most three times, whatever the server says", arguments: rows200 + rows200Part + rows206 + rows416)
    func ends(row: Row) {
        var row = row
        for _ in 0..<2 {
            guard case .askAgain(let again) = decide(row) else { return }
            row.ask = ResumeRules.ask(again: again, after: row.ask)
        }
        if case .askAgain = decide(row) { Issue.record("asks a fourth time") }
    }

    @Test("puts Retry-After into the error, by the server's own clock")
    func retryAfter() {
        let fields: KeyValuePairs = ["Date": date, "Retry-After": "Sun, 06 Nov 1994 08:50:37 GMT"]
        guard
            case .refuse(let error) = ResumeRules.decide(
                head: head(503, fields), ask: Ask(), known: .init(), segments: 1)
        else { return unexpected("not refused") }
        #expect(error.retryAfter == .seconds(60))
    }

    private func check(_ row: Row) {
        let decision = decide(row)
        if let expected = row.decision {
            #expect(decision == expected)
        } else if case .refuse(let error) = decision {
            #expect(error.code == row.refused)
        } else {
            Issue.record("\(decision)")
        }
    }

    private func decide(_ row: Row) -> ResumeRules.HeadDecision {
        ResumeRules.decide(head: row.head, ask: row.ask, known: row.known, segments: row.segments)
    }
}
