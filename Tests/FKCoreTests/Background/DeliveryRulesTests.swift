import TestSupport
import Testing

@testable import FKEngine

@Suite("What becomes of a delivered piece")
struct DeliveryRulesTests {
    static let id = TaskID(url: "http://h.example/a")
    static let key = PieceKey(task: id, generation: 7, form: 1, condition: 2, start: 100, end: 200)

    // MARK: Arrival

    @Test("the file of a piece is kept for a known task, once, while it exists")
    func arrival() {
        for isKnown in [false, true] {
            for isKept in [false, true] {
                for exists in [false, true] {
                    let expected: DeliveryRules.Arrival
                    switch (isKnown, isKept, exists) {
                    case (true, false, true): expected = .keep
                    case (true, false, false): expected = .fail
                    default: expected = .discard
                    }
                    #expect(DeliveryRules.arrival(isKnown: isKnown, isKept: isKept, exists: exists) == expected)
                }
            }
        }
    }

    // MARK: The record

    private static func record(_ state: DownloadState, received: Int64, number: UInt64 = 7) -> TaskRecord {
        var record = TaskRecord(task: TaskDescription(url: "http://h.example/a"), number: number, created: Date())
        record.edit {
            $0.ranges = [SavedRange(start: 0, end: 1_000, position: received)]
            $0.expected = 1_000
        }
        record.state = state
        return record
    }

    @Test("each state of a task, with and without the bytes of the piece", arguments: DownloadState.allCases)
    func fate(_ state: DownloadState) {
        let expected: (missing: DeliveryRules.Fate, there: DeliveryRules.Fate)
        switch state {
        case .idle, .action: expected = (.expected, .unwanted)
        case .suspend, .error: expected = (.rests, .unwanted)
        case .cancel, .complete, .unknown: expected = (.unwanted, .unwanted)
        }
        for received: Int64 in [0, 100, 150, 199] {
            #expect(DeliveryRules.fate(of: Self.key, for: Self.record(state, received: received)) == expected.missing)
        }
        for received: Int64 in [200, 1_000] {
            #expect(DeliveryRules.fate(of: Self.key, for: Self.record(state, received: received)) == expected.there)
        }
        #expect(DeliveryRules.fate(of: Self.key, for: Self.record(state, received: 0, number: 8)) == .unwanted)
    }

    @Test("a piece without a record, of the whole file, and beyond its end")
    func otherFates() {
        #expect(DeliveryRules.fate(of: Self.key, for: nil) == .unwanted)
        let whole = Self.key.with(start: 0, end: nil)
        #expect(DeliveryRules.fate(of: whole, for: Self.record(.idle, received: 1_000)) == .expected)
        // The last piece may have been requested before the length was known.
        let last = Self.key.with(start: 900, end: 2_000)
        #expect(DeliveryRules.fate(of: last, for: Self.record(.idle, received: 999)) == .expected)
        #expect(DeliveryRules.fate(of: last, for: Self.record(.idle, received: 1_000)) == .unwanted)
        let fresh = TaskRecord(task: TaskDescription(url: "http://h.example/a"), number: 7, created: Date())
        #expect(DeliveryRules.fate(of: Self.key.with(start: 0, end: 100), for: fresh) == .expected)
    }

    // MARK: An attempt

    private static func head(_ status: Int, range: String?, tag: String?, modified: String? = nil) -> ResponseHead {
        var fields: [HeaderField] = []
        if let range { fields += [.init("content-range", range), .init("Content-Length", "100")] }
        if let tag { fields.append(.init("ETag", tag)) }
        if let modified { fields.append(.init("Last-Modified", modified)) }
        return ResponseHead(status: status, fields: fields, url: "http://h.example/a")
    }

    /// One row of the table for each combination.
    @Test("generation, form, condition, range, status, Content-Range and tag of a piece")
    func match() {
        var seen: Set<String> = []
        for generation: UInt64 in [7, 8] {
            for form: UInt64 in [1, 9] {
                for condition: UInt64 in [2, 9] {
                    for start: Int64 in [100, 50, 0] {
                        for status in [206, 200, 404, 416] {
                            for range in [
                                "bytes 50-149/1000", "bytes 100-199/1000", "bytes 0-99/1000", "lines 1-2/3", nil,
                            ] {
                                for tag in ["\"a\"", "\"b\"", nil] {
                                    let piece = Delivery(
                                        key: PieceKey(
                                            task: Self.id, generation: generation, form: form, condition: condition,
                                            start: start, end: start + 100),
                                        head: Self.head(status, range: range, tag: tag), length: 100)
                                    let ask = DeliveryAsk(key: Self.key, ifRange: "\"a\"")
                                    let found = DeliveryRules.match(piece, ask)
                                    #expect(found == expected(piece, ask, status, range, tag))
                                    seen.insert("\(found)")
                                }
                            }
                        }
                    }
                }
            }
        }
        #expect(seen == ["answers(skip: 0)", "answers(skip: 50)", "other", "stale"])
    }

    private func expected(
        _ piece: Delivery, _ ask: DeliveryAsk, _ status: Int, _ range: String?, _ tag: String?
    ) -> DeliveryRules.Match {
        if piece.key.generation != 7 || piece.key.form != 1 { return .stale }
        // The answer to this very request: `ResumeRules` judges it.
        if piece.key.start == 100, piece.key.condition == 2 { return .answers(skip: 0) }
        let isPart = status == 206 && range?.hasPrefix("bytes") == true
        guard isPart else { return piece.key.condition == 2 ? .other : .stale }
        if tag == "\"b\"" { return .stale }
        guard tag == "\"a\"" else { return .other }
        switch range {
        case "bytes 50-149/1000": return .answers(skip: 50)
        case "bytes 100-199/1000": return .answers(skip: 0)
        default: return .other
        }
    }

    @Test("without If-Range the bytes are compared, with a date the date is")
    func conditions() {
        let older = Delivery(
            key: Self.key.with(start: 50, end: 150),
            head: Self.head(206, range: "bytes 50-149/1000", tag: "\"b\"", modified: "Sun, 06 Nov 1994 08:49:37 GMT"),
            length: 100)
        #expect(DeliveryRules.match(older, DeliveryAsk(key: Self.key)) == .answers(skip: 50))
        let date = "Sunday, 06-Nov-94 08:49:37 GMT"
        #expect(DeliveryRules.match(older, DeliveryAsk(key: Self.key, ifRange: date)) == .answers(skip: 50))
        let other = DeliveryAsk(key: Self.key, ifRange: "Sun, 06 Nov 1994 08:49:38 GMT")
        #expect(DeliveryRules.match(older, other) == .stale)
        // A request for the whole file begins at byte 0 and takes no part.
        let whole = DeliveryAsk(key: Self.key.with(start: 0, end: nil))
        #expect(DeliveryRules.match(older, whole) == .other)
    }

    @Test("a head without its first bytes is that of the rest, and ResumeRules judges it so")
    func narrowed() throws {
        let piece = Delivery(
            key: Self.key.with(start: 50, end: 150), head: Self.head(206, range: "bytes 50-149/1000", tag: "\"a\""),
            length: 100)
        #expect(piece.head(without: 0) == piece.head)
        let rest = piece.head(without: 50)
        #expect(rest["Content-Range"] == "bytes 100-149/1000" && rest["Content-Length"] == "50")
        let known = ResumeRules.Known(
            FileVersion(source: "http://h.example/a", length: 1_000, validator: Validator(etag: "\"a\"")))
        let ask = RangeAsk(start: 100, end: 200, ifRange: "\"a\"", usesRange: true)
        func decide(_ head: ResponseHead) -> ResumeRules.HeadDecision {
            ResumeRules.decide(head: head, ask: ask, known: known, segments: 1)
        }
        #expect(decide(rest) == .append(skip: 0, until: 150, total: 1_000))
        // What a file transport can deliver besides.
        #expect(decide(piece.head) == .askAgain(.plainRange))
        #expect(decide(Self.head(206, range: "bytes 100-199/1000", tag: "\"b\"")) == .askAgain(.withoutRange))
        #expect(decide(Self.head(200, range: nil, tag: "\"b\"")) == .startOver(total: nil))
        guard case .refuse(let error) = decide(Self.head(404, range: nil, tag: nil)) else {
            return unexpected("a 404 was taken")
        }
        #expect(error.status == 404)
    }

    // MARK: Requests

    @Test("a request is for at most one piece, and pieces behind it need a strong validator and a length")
    func cap() {
        func cap(_ ask: RangeAsk, total: Int64?) -> String? {
            DeliveryRules.cap(ask, total: total, size: 100).rangeHeader
        }
        #expect(cap(RangeAsk(), total: nil) == "bytes=0-99")
        #expect(cap(RangeAsk(), total: 101) == "bytes=0-99")
        #expect(cap(RangeAsk(), total: 100) == nil)
        #expect(cap(RangeAsk(again: .withoutRange), total: nil) == nil)
        #expect(cap(RangeAsk(start: 150, usesRange: true), total: nil) == "bytes=150-249")
        #expect(cap(RangeAsk(start: 150, usesRange: true), total: 200) == "bytes=150-199")
        #expect(cap(RangeAsk(start: 150, end: 160, usesRange: true), total: 200) == "bytes=150-159")
        #expect(cap(RangeAsk(start: 150, overlap: 10, usesRange: true), total: 1_000) == "bytes=140-249")
        // The file may be longer than it was known to be.
        #expect(cap(RangeAsk(start: 200, usesRange: true), total: 200) == "bytes=200-200")

        func ahead(_ tag: String?, _ total: Int64?) -> [String] {
            DeliveryRules.ahead(of: Self.key, ifRange: tag, total: total, size: 100).map { $0.rangeHeader ?? "all" }
        }
        #expect(ahead("\"a\"", 450) == ["bytes=200-299", "bytes=300-399", "bytes=400-449"])
        #expect(ahead("\"a\"", 10_000).count == DeliveryRules.ahead)
        #expect(ahead("\"a\"", 200) == [] && ahead("\"a\"", nil) == [] && ahead(nil, 450) == [])
        #expect(DeliveryRules.ahead(of: Self.key.with(start: 0, end: nil), ifRange: "\"a\"", total: 9, size: 1) == [])
    }

    @Test("a piece in flight answers the same request, or one whose first byte it has")
    func inFlight() {
        let ask = DeliveryAsk(key: Self.key, ifRange: "\"a\"")
        func answers(_ key: PieceKey) -> Bool { DeliveryRules.answers(key, ask) }
        #expect(answers(Self.key) && answers(Self.key.with(start: 50, end: 101)))
        #expect(!answers(Self.key.with(start: 50, end: 100)) && !answers(Self.key.with(start: 101, end: 200)))
        #expect(!answers(Self.key.with(start: 0, end: nil)))
        for other in [
            PieceKey(task: Self.id, generation: 8, form: 1, condition: 2, start: 100, end: 200),
            PieceKey(task: Self.id, generation: 7, form: 9, condition: 2, start: 100, end: 200),
            PieceKey(task: Self.id, generation: 7, form: 1, condition: 9, start: 100, end: 200),
        ] { #expect(!answers(other)) }
    }

    @Test("a piece is used up unless the attempt was stopped or the local disk failed")
    func afterwards() {
        let codes: [DownloadError.Code] = [
            .cancelled, .noSpace, .disk, .destination, .httpStatus, .badRange, .incompleteBody, .tooLarge,
            .protocolViolation,
        ]
        for code in codes {
            let outcome = RangeReceiver.Outcome.ended(.failure(DownloadError(code, "no")))
            let keeps = [.cancelled, .noSpace, .disk, .destination].contains(code)
            #expect(DeliveryRules.isUsed(outcome, localError: nil) == !keeps)
            #expect(!DeliveryRules.isUsed(outcome, localError: DownloadError(.disk, "no")))
        }
        let success = RangeReceiver.Outcome.ended(.success(TransportSummary(bodyBytes: 1, lengthVerified: true)))
        for outcome in [success, .complete(total: 1), .askAgain(.plainRange), .seamDiffers, .seamProvesNothing] {
            #expect(DeliveryRules.isUsed(outcome, localError: nil))
        }
    }

    @Test("a handler is due once: when its session has delivered and the engine is quiet, or too much time has passed")
    func handlers() {
        var events = BackgroundEvents()
        func due(_ isQuiet: Bool, _ now: Int64) -> [String] { events.due(isQuiet: isQuiet, now: now).map(\.identifier) }
        func add(_ identifier: String, _ now: Int64) { events.add(.init(identifier: identifier) {}, now: now) }
        #expect(due(true, 0) == [])
        add("a", 3)
        #expect(due(true, 1) == [] && events.isWaiting)
        events.delivered(["b"])
        #expect(due(true, 2) == [])
        events.delivered(["a"])
        #expect(due(false, 3) == [] && due(false, 3 + BackgroundEvents.patience - 1) == [])
        #expect(due(true, 3 + BackgroundEvents.patience - 1) == ["a"])
        #expect(due(true, 4 + BackgroundEvents.patience) == [] && !events.isWaiting)
        // Woken again: the events before count no more.
        add("a", 100)
        #expect(due(true, 100) == [])
        add("b", 50)
        #expect(due(false, 100) == [] && due(false, 50 + BackgroundEvents.patience) == ["b"])
        // The session of "a" has nothing to report.
        #expect(
            due(false, 99 + BackgroundEvents.patience) == [] && due(false, 100 + BackgroundEvents.patience) == ["a"])
        add("a", 0)
        #expect(events.drainAll().map(\.identifier) == ["a"] && events.drainAll().isEmpty)
    }
}
