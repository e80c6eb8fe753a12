import FKMiddleware
import Foundation

/// The request for one byte range.
package struct RangeAsk: Sendable, Hashable {
    /// The first byte of the file that is wanted and missing.
    package var start: Int64
    /// The offset after the last wanted byte; nil requests all bytes to the end.
    package var end: Int64?
    /// The number of bytes before `start` to request again for comparison, 0 to 4096.
    package var overlap: Int64
    /// The value of `If-Range`; nil sends none.
    package var ifRange: String?
    /// False for a plain request for the whole file.
    package var usesRange: Bool
    /// Set in a second request for the same range, after the first response was unusable.
    package var again: ResumeRules.Again?

    /// Creates a request; the default is a plain one for the whole file.
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

    /// The value of `Range` (RFC 9110 section 14.1.2); nil for a plain request.
    package var rangeHeader: String? {
        guard usesRange else { return nil }
        return "bytes=\(start - overlap)-\(end.map { String($0 - 1) } ?? "")"
    }
}

/// Decides what to request from a server and what its response means, before a byte of the body is written.
///
/// ```text
/// ask(for: range) -> request -> decide(head) -> append | startOver | complete | refuse
///                        ^                          |
///                        +------- ask(again:) <- askAgain
/// ```
///
/// Every `askAgain` leads to a request that cannot have the same `askAgain`, so there are at most three requests.
///
/// A response is used only if its status, `Content-Range`, total length and validators match the stored bytes.
/// libcurl checks none of these, and bytes of a changed file would produce a mixed file that looks complete.
package enum ResumeRules {
    /// The number of bytes to compare without a strong validator: 4 KiB.
    package static let maxOverlap: Int64 = 4096

    /// The facts about the file from earlier responses.
    package struct Known: Sendable, Hashable {
        /// The version of the stored bytes, with the length of the file.
        package var version: FileVersion
        /// The URL that is asked.
        package var source: String?
        /// The maximum length in bytes; nil for no limit. A longer file is refused before its body is fetched.
        package var maxSize: Int64?
        /// The length that the file must have in bytes; nil if any may be. A file of another length is refused before
        /// its body is fetched.
        package var size: Int64?
        /// When sources whose bytes are not proven to be the same may be combined.
        package var policy: MirrorPolicy
        /// True for the task's own address, whose file may have changed.
        package var isOwn: Bool
        /// The digest that binds this source, because another server announced it; nil without one.
        package var binding: AnnouncedDigest?
        /// True if damaged bytes of a finished file are requested.
        package var isRepair: Bool
        /// The name that the URL gives to the file, where a web page in its place is refused (`PageRules`); nil if one is
        /// accepted.
        package var name: String?
        /// `TaskOptions.expectedType`.
        package var expectedType: String?
        /// The entity tag that the file must have at this source; nil if any may be.
        package var entityTag: String?

        /// Creates the facts; the default is that nothing is known.
        ///
        /// - Parameter source: nil, the default, for the source of the stored bytes.
        package init(
            _ version: FileVersion = FileVersion(), askedAt source: String? = nil, maxSize: Int64? = nil,
            size: Int64? = nil, policy: MirrorPolicy = .prove, isOwn: Bool = false, binding: AnnouncedDigest? = nil,
            isRepair: Bool = false, name: String? = nil, expectedType: String? = nil, entityTag: String? = nil
        ) {
            self.version = version
            self.name = name
            self.expectedType = expectedType
            self.entityTag = entityTag
            self.binding = binding
            self.isRepair = isRepair
            self.source = source ?? version.source
            self.maxSize = maxSize
            self.size = size
            self.policy = policy
            self.isOwn = isOwn
        }

        /// The length of the file in bytes; nil while unknown.
        package var length: Int64? { version.length }

        /// True if the stored bytes come from another URL of the plan.
        package var isOtherSource: Bool { source != version.source }

        /// True if the source must have a file of the known length. A digest that vouches for all bytes decides without it.
        var needsLength: Bool { isOtherSource && !isOwn && policy != .alternatives && !version.isVouched }

        /// Whether the bytes of a response belong to the stored ones.
        package func joins(_ head: ResponseHead) -> FileVersion.Joining {
            var answer = FileVersion(head, source: source ?? "")
            answer.source = source
            // A response without a body has no coding.
            if !head.carriesFile { answer.validator?.coding = version.validator?.coding }
            return version.joins(answer)
        }

        /// What may follow if `joins` has no answer.
        package var whenUnknown: FileVersion.WhenUnknown {
            FileVersion.whenUnknown(isRepair ? .repair : isOtherSource ? .instead : .resume, policy)
        }
    }

    /// How to repeat a request.
    package enum Again: String, Sendable, Hashable {
        /// Request the same range without `If-Range`. The response's own validators then decide.
        case plainRange
        /// Request the whole file without `Range`, because the stored bytes belong to another version. They are
        /// discarded when the new body arrives.
        case withoutRange
        /// Same as `withoutRange`, and use no second connection for this file, because the server's ranges are
        /// unreliable.
        case oneStream
    }

    /// The meaning of a response head.
    package enum HeadDecision: Sendable, Hashable {
        /// The body starts `skip` bytes before the wanted byte: compare those with the file and write the rest.
        /// `until` is the offset after the last byte to write; bytes beyond it are discarded. If it is less than
        /// wanted, the rest is requested later.
        case append(skip: Int64, until: Int64?, total: Int64?)
        /// The body is the whole file from 0. The stored bytes are discarded.
        case startOver(total: Int64?)
        /// All bytes are stored already.
        case complete(total: Int64)
        /// Discard this response and repeat the request.
        case askAgain(Again)
        /// The attempt has failed.
        case refuse(DownloadError)
    }

    /// The request that fills `range`.
    ///
    /// - Parameter heldBefore: the number of stored bytes directly before `range.start`, for comparison; the default
    ///   is 0.
    package static func ask(for range: SavedRange, known: Known, heldBefore: Int64 = 0) -> RangeAsk {
        let isWhole = range.start == 0 && (range.end == nil || range.end == known.length)
        if isWhole && range.position == 0 { return RangeAsk() }
        // A validator means nothing to another server, which would respond with the whole file.
        let strong = known.isOtherSource ? nil : known.version.validator?.strong
        let held = range.position - range.start + heldBefore
        return RangeAsk(
            start: range.position, end: range.end == known.length ? nil : range.end,
            overlap: strong == nil ? min(maxOverlap, max(0, held)) : 0, ifRange: strong, usesRange: true)
    }

    /// The request after `askAgain`.
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

    /// Interprets a response head.
    ///
    /// - Parameters:
    ///   - segments: the number of ranges of the file that are being filled or partly filled, including this one.
    ///   - now: for a `Retry-After` with a date, if the response has no `Date` of its own; the default is the current
    ///     time.
    package static func decide(
        head: ResponseHead, ask: RangeAsk, known: Known, segments: Int, now: Date = Date()
    ) -> HeadDecision {
        if head.carriesFile, PageRules.isCertain(known.expectedType),
            let error = PageRules.error(known.name ?? "", head, expected: known.expectedType, now: now)
        {
            return .refuse(error)
        }
        if let error = otherVersion(head, known) { return .refuse(error) }
        let decision =
            switch head.status {
            case 200, 203, 206:
                ask.usesRange && head.status == 206 || head.isPart
                    ? partial(head, ask, known, segments) : whole(head, ask, known, segments)
            case 416 where ask.usesRange: unsatisfied(head, ask, known, segments)
            // Whether it heeds a range is not known.
            case _ where head.isUnknownSuccess:
                ask.usesRange ? HeadDecision.askAgain(.withoutRange) : whole(head, ask, known, segments)
            default: HeadDecision.refuse(RetryRules.error(for: head, now: now))
            }
        if head.contentCoding != nil, let error = suspicion(of: head, decision, ask: ask, known: known, now: now) {
            return .refuse(error)
        }
        return decision
    }

    /// The error that ends the transfer if the first bytes of the body are those of a web page; nil if the body is the file
    /// whatever they are. Bytes that follow the stored ones are the file.
    package static func suspicion(
        of head: ResponseHead, _ decision: HeadDecision, ask: RangeAsk, known: Known, now: Date = Date()
    ) -> DownloadError? {
        guard known.name != nil || known.expectedType != nil else { return nil }
        switch decision {
        case .startOver(let total) where total != 0: break
        case .append where ask.start == 0: break
        default: return nil
        }
        return PageRules.error(known.name ?? "", head, expected: known.expectedType, now: now)
    }

    /// True if the body of this response may follow the stored bytes only because a digest of a list or of the user vouches
    /// for all of them.
    package static func needsDigest(head: ResponseHead, ask: RangeAsk, known: Known, segments: Int) -> Bool {
        guard known.version.isVouched, case .append = decide(head: head, ask: ask, known: known, segments: segments)
        else { return false }
        var known = known
        known.version.isVouched = false
        if case .append = decide(head: head, ask: ask, known: known, segments: segments) { return false }
        return true
    }

    /// The error for an answer that shows that its source has another file: than the server that announced a digest, or, for a
    /// mirror, of another length than the file begun. nil if it may be the same.
    private static func otherFile(_ head: ResponseHead, _ known: Known) -> DownloadError? {
        guard known.binding != nil || known.needsLength, case .refuted(let evidence) = known.joins(head) else {
            return nil
        }
        let source = (known.source ?? head.url).masked
        guard let binding = known.binding else {
            guard let old = known.length, let length = FileVersion(head, source: "").length, length != old else {
                return nil
            }
            return DownloadError(
                .changedOnServer,
                "\(source) has another file than the one begun: it has \(length.plural("byte")), not \(old).",
                isRetryable: true)
        }
        let what =
            switch evidence {
            case .length: "its length is another one"
            case .coding: "it sends the file with another content coding"
            default: "its digest is another one"
            }
        return DownloadError(
            .checksumMismatch,
            "\(source) has another file than \(binding.source.masked), whose "
                + "\(binding.checksum.algorithm.rawValue) is \(binding.checksum.hex): \(what).",
            isRetryable: true)
    }

    /// The error for an answer of another version of the file than the list has named; nil if it may be that one. A server that does
    /// not know `If-Match` still sends its entity tag.
    private static func otherVersion(_ head: ResponseHead, _ known: Known) -> DownloadError? {
        guard let wanted = known.entityTag else { return nil }
        let found = head.carriesFile ? head.first("ETag") : nil
        guard head.status == 412 || found.map({ Validator.opaque($0) != Validator.opaque(wanted) }) == true else {
            return nil
        }
        return DownloadError(
            .changedOnServer, "The file on the server has another entity tag than the list has named.",
            remedy: .readListAgain)
    }

    // MARK: Refusals

    /// What to ask after a server has refused a range with an error status, so that a file which it had sent before does not
    /// fail for its ranges. nil ends the attempt with that error.
    ///
    /// | status of the answer to a range | the first time | again, or in the last attempt |
    /// | --- | --- | --- |
    /// | 412, with an entity tag in `If-Range` | the same range without `If-Range` | the same |
    /// | 400, 405, 406, 412, 417, 501 | the whole file | the whole file |
    /// | 403: a link may have expired, and is asked for again | end the attempt | the whole file |
    /// | 500: the server may have a problem of its own | end the attempt | the whole file |
    /// | any other | end the attempt | end the attempt |
    ///
    /// The bytes are kept until the whole file begins to arrive. If that request is refused as well, its error counts.
    ///
    /// - Parameters:
    ///   - isRepeated: true if the attempt before has failed with the same status, and no byte has arrived since.
    ///   - isLast: true if no attempt follows.
    package static func again(
        afterRefusal status: Int?, of ask: RangeAsk, isRepeated: Bool = false, isLast: Bool = false
    ) -> Again? {
        guard ask.usesRange, let status else { return nil }
        return switch status {
        case 412 where ask.ifRange.map(Validator.isStrongTag) == true: .plainRange
        case 400, 405, 406, 412, 417, 501: .withoutRange
        case 403 where isRepeated: .withoutRange
        case 500 where isRepeated || isLast: .withoutRange
        default: nil
        }
    }

    // MARK: 200

    private static func whole(_ head: ResponseHead, _ ask: RangeAsk, _ known: Known, _ segments: Int) -> HeadDecision {
        var length: Int64?
        do { length = try ContentLength.parse(head) } catch { return .refuse(error) }
        if head.status == 206 { length = FileVersion(head, source: "").length }
        if let error = sizeError(length, known) ?? otherFile(head, known) { return .refuse(error) }
        guard ask.usesRange else { return .startOver(total: length) }
        // Asked once more before the stored bytes are dropped.
        if ask.again == nil, known.version.isEmptied(by: head) { return .askAgain(.plainRange) }
        // All bytes of a file of unknown length were there.
        if let length, length == ask.start, ask.end == nil, known.length == nil, segments <= 1, isOfStored(head, known),
            ask.ifRange == nil || known.joins(head) != .unknown
        {
            return .complete(total: length)
        }
        // A server that ignores If-Range sends the whole file although nothing changed. One more request can save
        // gigabytes. Two versions may have one date, so a date does not show that nothing changed.
        if ask.again == nil, ask.ifRange.map(Validator.isStrongTag) == true, length != nil, length == known.length,
            case .proven(let evidence) = known.joins(head), evidence != .comparison,
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
            return .refuse(
                badRange(
                    "The server sent a part of the file (\(head.status)) although the whole file was requested."))
        }
        if head["Content-Type"]?.lowercased().hasPrefix("multipart/byteranges") == true { return .askAgain(.oneStream) }
        // A 200 for a part ignores RFC 9110: asked again, the server would repeat it.
        let unusable: Again = ask.again == nil && head.status == 206 ? .plainRange : .oneStream
        // Without a valid range (missing, another unit, or an end before the start or beyond the total, RFC 9110
        // section 14.4), the position of the bytes is unknown.
        guard let answer = head["Content-Range"].flatMap(ContentRange.init), answer.unit == "bytes",
            let range = answer.range
        else { return .askAgain(unusable) }
        let length: Int64?
        do { length = try ContentLength.parse(head) } catch { return .refuse(error) }
        // Neither of the two lengths is to be trusted then.
        if let length, length != range.count { return .askAgain(unusable) }
        // Only all three numbers together show that a 200 is a part.
        if head.status != 206, length == nil || answer.total == nil { return .askAgain(unusable) }
        if let error = sizeError(answer.total, known) ?? otherFile(head, known) { return .refuse(error) }
        // Bytes beyond the end are of another file, wherever they start.
        if let old = known.length, range.end > old { return .askAgain(.withoutRange) }
        if !mayJoin(head, ask, known, segments) {
            let isAnonymous = known.joins(head) == .unknown && !known.isOtherSource
            return .askAgain(ask.ifRange != nil && isAnonymous ? .oneStream : .withoutRange)
        }
        guard range.first == ask.start - ask.overlap else { return .askAgain(unusable) }
        let total = answer.total ?? known.length
        let until = min(range.end, ask.end ?? .max)
        // A response with only compared bytes and no new ones is useful only at the end of the file.
        guard until > ask.start || (until == ask.start && total == until) else { return .askAgain(unusable) }
        return .append(skip: ask.overlap, until: until, total: total)
    }

    /// True if the bytes of this 206 may follow the stored ones (RFC 9110 section 15.3.7.2).
    private static func mayJoin(_ head: ResponseHead, _ ask: RangeAsk, _ known: Known, _ segments: Int) -> Bool {
        switch known.joins(head) {
        case .refuted: return false
        case .proven: return true
        case .unknown: break
        }
        return switch known.whenUnknown {
        // True if bytes will be compared, if no stored byte could be of another version, or if the server answered
        // 206 to a date in If-Range. Such a 206 confirms the date, and the field itself may be missing in it. A 206
        // to an ETag must contain it (section 15.3.7): one without it comes from a server that ignored If-Range.
        case .compareTail:
            ask.overlap > 0 || (ask.start == 0 && segments <= 1)
                || head.status == 206 && ask.ifRange.map { !Validator.isStrongTag($0) } ?? false
        case .trustSample:
            ask.overlap > 0 && known.length != nil && FileVersion(head, source: "").length == known.length
        case .wholeFile, .never: false
        }
    }

    // MARK: 416

    private static func unsatisfied(
        _ head: ResponseHead, _ ask: RangeAsk, _ known: Known, _ segments: Int
    ) -> HeadDecision {
        guard let answer = head["Content-Range"].flatMap(ContentRange.init), answer.unit == "bytes",
            answer.range == nil,
            let total = answer.total, total == ask.start, ask.end == nil, total == known.length ?? total, segments <= 1,
            isOfStored(head, known)
        else { return .askAgain(.withoutRange) }
        return .complete(total: total)
    }

    /// True if an answer with the length of the stored bytes says that they are all. Few servers send validators with a 416.
    private static func isOfStored(_ head: ResponseHead, _ known: Known) -> Bool {
        switch known.joins(head) {
        case .proven: true
        case .refuted: false
        case .unknown: !known.isOtherSource
        }
    }

    // MARK: Errors

    private static func badRange(_ message: String) -> DownloadError { DownloadError(.badRange, message) }

    /// The error for a file whose length is not the one that the task has.
    ///
    /// - Parameter isAtLeast: true if `total` bytes have arrived and more follow. The default is false.
    static func wrongSize(_ total: Int64, _ size: Int64, isAtLeast: Bool = false) -> DownloadError {
        let found = (isAtLeast ? "at least " : "") + total.plural("byte")
        return DownloadError(
            total > size ? .tooLarge : .changedOnServer,
            "The file is not the one expected: it has \(found), not \(size).")
    }

    private static func sizeError(_ total: Int64?, _ known: Known) -> DownloadError? {
        guard let total else { return nil }
        if let size = known.size, total != size { return wrongSize(total, size) }
        guard let limit = known.maxSize, total > limit else { return nil }
        return DownloadError(
            .tooLarge,
            "The file has \(total.plural("byte")), and the limit is \(limit.plural("byte")).",
            remedy: .raiseMaxSize)
    }
}
