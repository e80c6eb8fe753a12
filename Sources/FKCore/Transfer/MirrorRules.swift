import FKMiddleware

/// Decides when bytes from one URL of the plan may be joined with bytes from another (a mirror).
///
/// Entity tags and dates belong to one server (RFC 9110 section 8.8), so two mirrors of a file often differ in both.
/// Therefore:
///
/// | the two responses | decision |
/// | --- | --- |
/// | different lengths, or no length | never joined |
/// | different content codings | never joined |
/// | different digests of the same kind | never joined |
/// | the same digest, or the same strong tag | joined |
/// | only the same length | joined if up to 4 KiB before the seam are equal and not a run of one value |
///
/// Any two files may contain a run of one value, so such a run proves nothing. If a digest of the whole file is
/// known, it is compared at the end in any case, and a run of one value at the seam is accepted.
extension ResumeRules {
    /// What the validators of two URLs say about their bytes.
    static func compareMirrors(_ known: Validator?, _ answer: Validator) -> Comparison {
        guard let known else { return .unknown }
        if let agree = compareDigests(known, answer) { return agree ? .same : .different }
        if let old = known.etag, old == answer.etag, isStrongTag(old) { return .same }
        return .unknown
    }

    /// nil unless both have a digest of the same kind.
    static func compareDigests(_ known: Validator, _ answer: Validator) -> Bool? {
        guard let old = known.digest, let new = answer.digest, old.algorithm == new.algorithm else { return nil }
        return old == new
    }

    /// The comparison that applies to this response.
    static func compare(_ head: ResponseHead, _ known: Known) -> Comparison {
        if isInAnotherCoding(head, known.validator) { return .different }
        let answer = validator(of: head)
        return known.isOtherSource ? compareMirrors(known.validator, answer) : compare(known.validator, answer)
    }

    /// True if the bytes at the seam are the only evidence for joining. They must then differ between files, so a run
    /// of one value is not enough.
    static func isSeamTheOnlyEvidence(_ head: ResponseHead, _ known: Known) -> Bool {
        known.isOtherSource && !known.isDigestKnown && compare(head, known) == .unknown
    }

    /// The reason why a response does not match the stored bytes, for the task's history.
    package static func reason(_ head: ResponseHead, _ ask: RangeAsk, _ known: Known) -> String {
        let range = head["Content-Range"].flatMap(ContentRange.init)
        let total = range?.total ?? (head.status == 206 || head.status == 416 ? nil : try? ContentLength.parse(head))
        if let old = known.length, let total, total != old {
            return "the file there has \(Plural.count(total, "byte")), the one begun has \(old)"
        }
        if head.status == 206, range?.total == nil, known.isOtherSource || known.length == nil {
            return "the length of the file there is not known"
        }
        if isInAnotherCoding(head, known.validator) {
            func name(_ coding: String?) -> String { coding ?? "plain bytes" }
            return "the server sends \(name(head.contentCoding)), the part is of \(name(known.validator?.coding))"
        }
        if compare(head, known) == .different { return "the file there is another one: its validators differ" }
        if let range = range?.range, range.first != ask.start - ask.overlap {
            return "the server sent the bytes from \(range.first), not from \(ask.start - ask.overlap)"
        }
        return "the server's answer to a range request was not usable"
    }
}
