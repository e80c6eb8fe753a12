import FKMiddleware

/// When bytes from one URL of the plan may be joined with bytes from another (a mirror).
///
/// Entity tags and dates are a server's own (RFC 9110 section 8.8): two mirrors of one file often differ in both. So:
///
/// | what the two say | then |
/// | --- | --- |
/// | another length, or no length | never joined |
/// | another content coding | never joined |
/// | digests of the same kind that differ | never joined |
/// | the same digest, or the same strong tag | joined |
/// | the same length and nothing else | joined when up to 4 KiB before the seam are the same bytes, and are no run of a single value, which any file may have |
///
/// Where a digest of the whole file is known, it is compared at the end whatever was joined, and a run of a single value
/// at the seam does not matter.
extension ResumeRules {
    /// What the validators of two URLs say about their bytes.
    static func compareMirrors(_ known: Validator?, _ answer: Validator) -> Comparison {
        guard let known else { return .unknown }
        if let agree = compareDigests(known, answer) { return agree ? .same : .different }
        if let old = known.etag, old == answer.etag, isStrongTag(old) { return .same }
        return .unknown
    }

    /// nil when there are not two digests of one kind.
    static func compareDigests(_ known: Validator, _ answer: Validator) -> Bool? {
        guard let old = known.digest, let new = answer.digest, old.algorithm == new.algorithm else { return nil }
        return old == new
    }

    /// The comparison that holds for this answer.
    static func compare(_ head: ResponseHead, _ known: Known) -> Comparison {
        if isInAnotherCoding(head, known.validator) { return .different }
        let answer = validator(of: head)
        return known.isOtherSource ? compareMirrors(known.validator, answer) : compare(known.validator, answer)
    }

    /// Whether the bytes compared at the seam are all that speaks for joining: they must then be able to tell files
    /// apart.
    static func isSeamTheOnlyEvidence(_ head: ResponseHead, _ known: Known) -> Bool {
        known.isOtherSource && !known.isDigestKnown && compare(head, known) == .unknown
    }

    /// Why an answer does not go with the bytes held, for the task's history.
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
