import FKMiddleware
import Foundation

/// What is put into the request for one byte range.
package struct RangeAsk: Sendable, Hashable {
    /// First byte of the file that is wanted and not had yet.
    package var start: Int64
    /// Offset after the last wanted byte; nil asks to the end.
    package var end: Int64?
    /// So many bytes before `start` are asked for again to be compared, 0...4096.
    package var overlap: Int64
    /// The value for `If-Range`.
    package var ifRange: String?
    /// False: a plain request for the whole.
    package var usesRange: Bool
    /// Set when an earlier answer to the same wish was of no use and this is the second try.
    package var again: ResumeRules.Again?

    package init(
        start: Int64 = 0, end: Int64? = nil, overlap: Int64 = 0, ifRange: String? = nil, usesRange: Bool = false,
        again: ResumeRules.Again? = nil
    ) {
        self.start = start
        self.end = end
        self.overlap = overlap
        self.ifRange = ifRange
        self.usesRange = usesRange
        self.again = again
    }

    /// The value for `Range` (RFC 9110 section 14.1.2), or nil for a plain request.
    package var rangeHeader: String? {
        guard usesRange else { return nil }
        return "bytes=\(start - overlap)-\(end.map { String($0 - 1) } ?? "")"
    }
}

/// Decides what to ask a server for and what its answer means, before a byte of the body is written.
///
/// ```text
/// ask(for: range) -> request -> decide(head) -> append | startOver | complete | refuse
///                        ^                          |
///                        +------- ask(again:) <- askAgain
/// ```
///
/// Every `askAgain` leads to an ask that cannot lead to the same `askAgain`, so there are at most three requests.
/// An answer is used only when the status, `Content-Range`, the whole length and the validators agree with what is
/// held: libcurl checks none of them, and appending to a file that changed gives a mixed file that looks whole.
package enum ResumeRules {
    /// Bytes compared where there is no strong validator: 4 KiB.
    package static let maxOverlap: Int64 = 4096

    /// What is known about the file from earlier answers.
    package struct Known: Sendable, Hashable {
        package var length: Int64?
        package var validator: Validator?
        /// More bytes than this are refused before they are fetched.
        package var maxSize: Int64?
        /// The bytes held and the validator came from another URL of the plan (`MirrorRules`).
        package var isOtherSource: Bool
        /// A digest of the whole file will be compared at the end.
        package var isDigestKnown: Bool
        package init(
            length: Int64? = nil, validator: Validator? = nil, maxSize: Int64? = nil, isOtherSource: Bool = false,
            isDigestKnown: Bool = false
        ) {
            self.length = length
            self.validator = validator
            self.maxSize = maxSize
            self.isOtherSource = isOtherSource
            self.isDigestKnown = isDigestKnown
        }
    }

    package enum Again: String, Sendable, Hashable {
        /// The same range once more, without `If-Range`; the answer's own validators are then what counts.
        case plainRange
        /// The whole file from 0, without `Range`: what is held belongs to another version. It is dropped once the
        /// new body arrives.
        case withoutRange
        /// As `withoutRange`, and no second connection for this file: the server's ranges cannot be relied on.
        case oneStream
    }

    package enum HeadDecision: Sendable, Hashable {
        /// The body begins `skip` bytes before the wanted byte: compare those with the file, write the rest. `until`
        /// is the offset after the last byte to take: what comes beyond is dropped; where it is less than wanted,
        /// the rest is asked for later.
        case append(skip: Int64, until: Int64?, total: Int64?)
        /// The body is the whole file from 0: what is held is dropped.
        case startOver(total: Int64?)
        /// Everything is here already.
        case complete(total: Int64)
        /// Drop this answer and ask in another way.
        case askAgain(Again)
        /// The attempt failed.
        case refuse(DownloadError)
    }

    /// What to ask for to fill `range`.
    ///
    /// - Parameter heldBefore: bytes directly before `range.start` that are in the part file, for comparing.
    package static func ask(for range: SavedRange, known: Known, heldBefore: Int64 = 0) -> RangeAsk {
        let isWhole = range.start == 0 && (range.end == nil || range.end == known.length)
        if isWhole && range.position == 0 { return RangeAsk() }
        // A validator means nothing to another server: it would answer with the whole file.
        let strong = known.isOtherSource ? nil : known.validator.flatMap(strongValidator)
        let held = range.position - range.start + heldBefore
        return RangeAsk(
            start: range.position, end: range.end == known.length ? nil : range.end,
            overlap: strong == nil ? min(maxOverlap, max(0, held)) : 0, ifRange: strong, usesRange: true)
    }

    /// What to ask for after `askAgain`.
    package static func ask(again: Again, after ask: RangeAsk) -> RangeAsk {
        switch again {
        case .plainRange:
            var next = ask
            next.ifRange = nil
            next.again = again
            return next
        case .withoutRange, .oneStream:
            return RangeAsk(again: again)
        }
    }

    /// What the head of an answer means.
    ///
    /// - Parameters:
    ///   - segments: how many ranges of the file are being filled or partly filled, this one included.
    ///   - now: only for a `Retry-After` that is a date; the answer's own `Date` is preferred to it.
    package static func decide(
        head: ResponseHead, ask: RangeAsk, known: Known, segments: Int, now: Date = Date()
    ) -> HeadDecision {
        switch head.status {
        case 200, 203: whole(head, ask, known, segments)
        case 206: partial(head, ask, known, segments)
        case 416 where ask.usesRange: unsatisfied(head, ask, known, segments)
        default: .refuse(RetryRules.error(for: head, now: now))
        }
    }

    // MARK: 200

    private static func whole(_ head: ResponseHead, _ ask: RangeAsk, _ known: Known, _ segments: Int) -> HeadDecision {
        let length: Int64?
        do { length = try ContentLength.parse(head) } catch { return .refuse(error) }
        if let error = sizeError(length, known) { return .refuse(error) }
        guard ask.usesRange else { return .startOver(total: length) }
        // A server that ignores If-Range sends everything though nothing changed: gigabytes for the want of one question.
        if ask.again == nil, ask.ifRange != nil, length != nil, length == known.length,
            compare(head, known) == .same,
            head["Accept-Ranges"].map({ $0.lowercased() != "none" }) ?? true
        {
            return .askAgain(.plainRange)
        }
        return segments > 1 ? .askAgain(.oneStream) : .startOver(total: length)
    }

    // MARK: 206

    private static func partial(
        _ head: ResponseHead, _ ask: RangeAsk, _ known: Known, _ segments: Int
    ) -> HeadDecision {
        guard ask.usesRange else {
            return .refuse(badRange("The server sent a part of the file (206) though the whole was asked for."))
        }
        if head["Content-Type"]?.lowercased().hasPrefix("multipart/byteranges") == true { return .askAgain(.oneStream) }
        let unusable: Again = ask.again == nil ? .plainRange : .oneStream
        // None, another unit, or one that ends before it begins or beyond its total (RFC 9110 section 14.4): nobody can
        // say which bytes these are.
        guard let answer = head["Content-Range"].flatMap(ContentRange.init), answer.unit == "bytes",
            let range = answer.range
        else { return .askAgain(unusable) }
        let length: Int64?
        do { length = try ContentLength.parse(head) } catch { return .refuse(error) }
        if let length, length != range.count {
            return .refuse(
                DownloadError(
                    .protocolViolation, "The server's Content-Length and Content-Range contradict each other."))
        }
        if let error = sizeError(answer.total, known) { return .refuse(error) }
        // Another length or another validator is another file, wherever its bytes begin.
        if let old = known.length, answer.total ?? old != old || range.end > old { return .askAgain(.withoutRange) }
        if !mayJoin(head, ask, known, segments) {
            let isAnonymous = compare(head, known) == .unknown
            return .askAgain(ask.ifRange != nil && isAnonymous ? .oneStream : .withoutRange)
        }
        guard range.first == ask.start - ask.overlap else { return .askAgain(unusable) }
        let total = answer.total ?? known.length
        let until = min(range.end, ask.end ?? .max)
        // Only compared bytes and nothing new: of use only where they end the file.
        guard until > ask.start || (until == ask.start && total == until) else { return .askAgain(unusable) }
        return .append(skip: ask.overlap, until: until, total: total)
    }

    /// Whether the bytes of this 206 may be put after those held (RFC 9110 section 15.3.7.2).
    private static func mayJoin(_ head: ResponseHead, _ ask: RangeAsk, _ known: Known, _ segments: Int) -> Bool {
        switch compare(head, known) {
        case .different: false
        case .same: true
        case .unknown where known.isOtherSource:
            ask.overlap > 0 && known.length != nil && ContentRange(head["Content-Range"] ?? "")?.total == known.length
        // Bytes will be compared, or nothing is held that could be of another version, or the server answered 206 to a
        // date in If-Range, which says that it still holds: the field itself may then be left out. Not so an ETag
        // (section 15.3.7): an answer without it comes from a server that did not look at If-Range.
        case .unknown:
            ask.overlap > 0 || (ask.start == 0 && segments <= 1) || ask.ifRange.map { !isStrongTag($0) } ?? false
        }
    }

    // MARK: 416

    private static func unsatisfied(
        _ head: ResponseHead, _ ask: RangeAsk, _ known: Known, _ segments: Int
    ) -> HeadDecision {
        guard let answer = head["Content-Range"].flatMap(ContentRange.init), answer.unit == "bytes",
            answer.range == nil,
            let total = answer.total, total == ask.start, ask.end == nil, total == known.length ?? total, segments <= 1,
            known.isOtherSource ? compare(head, known) == .same : compare(head, known) != .different
        else { return .askAgain(.withoutRange) }
        return .complete(total: total)
    }

    // MARK: Errors

    private static func badRange(_ message: String) -> DownloadError { DownloadError(.badRange, message) }

    private static func sizeError(_ total: Int64?, _ known: Known) -> DownloadError? {
        guard let total, let limit = known.maxSize, total > limit else { return nil }
        return DownloadError(.tooLarge, "The file has \(Plural.count(total, "byte")); the limit for it is \(limit).")
    }
}

/// Compares the bytes that are asked for a second time with those held, as they arrive in pieces.
package struct TailComparison: Sendable {
    private let held: [UInt8]
    private var compared = 0

    /// - Parameter held: the last bytes of the part file, as many as `RangeAsk.overlap`.
    package init(held: [UInt8]) { self.held = held }

    package var isDone: Bool { compared == held.count }

    package enum Verdict: Sendable, Hashable {
        /// All of the buffer was equal; more is to come before the first new byte.
        case needsMore
        /// Everything is equal; new bytes begin after so many bytes of this buffer.
        case equal(newBytesAt: Int)
        /// The file on the server is another one: start again from 0.
        case different
    }

    package mutating func feed(_ bytes: UnsafeRawBufferPointer) -> Verdict {
        let count = min(bytes.count, held.count - compared)
        guard bytes.prefix(count).elementsEqual(held[compared..<compared + count]) else { return .different }
        compared += count
        return isDone ? .equal(newBytesAt: count) : .needsMore
    }
}
