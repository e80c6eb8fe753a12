import FKMiddleware
import Foundation

/// Decides which validators prove that bytes are the same (RFC 9110 section 8.8).
extension ResumeRules {
    /// The validator of a response, to recognise its representation again.
    package static func validator(of head: ResponseHead) -> Validator {
        Validator(
            etag: head.first("ETag"), lastModified: head.first("Last-Modified"), date: head.first("Date"),
            digest: ServerDigest.parse(head), coding: head.carriesFile ? head.contentCoding : nil)
    }

    /// True if the body has another content coding than the stored bytes. The two cannot be joined, whatever their
    /// validators are.
    static func isInAnotherCoding(_ head: ResponseHead, _ known: Validator?) -> Bool {
        guard head.carriesFile, let known else { return false }
        return known.coding != head.contentCoding
    }

    /// The value for `If-Range`: a strong entity tag, else a `Last-Modified` that is strong because the response's
    /// date is at least one second later (RFC 9110 section 8.8.2.2), else nil.
    package static func strongValidator(_ validator: Validator) -> String? {
        if let tag = validator.etag, isStrongTag(tag) { return tag }
        guard let text = validator.lastModified, let modified = HTTPDate.parse(text),
            let date = validator.date.flatMap({ HTTPDate.parse($0) }), date.timeIntervalSince(modified) >= 1
        else { return nil }
        return text
    }

    /// True for a quoted tag without `W/` (RFC 9110 section 8.8.3). Some servers send tags without quotes. They are
    /// not strong, because in `If-Range` they would be read as dates.
    static func isStrongTag(_ tag: String) -> Bool {
        let bytes = Array(tag.utf8)
        return bytes.count >= 2 && bytes.first == 0x22 && bytes.last == 0x22
            && bytes.dropFirst().dropLast().allSatisfy { $0 > 0x20 && $0 != 0x22 && $0 != 0x7f }
    }

    /// Whether two responses have the same bytes, according to their validators.
    enum Comparison: Sendable, Hashable {
        case same
        case different
        case unknown
    }

    static func compare(_ known: Validator?, _ answer: Validator) -> Comparison {
        guard let known else { return .unknown }
        if let agree = compareDigests(known, answer) { return agree ? .same : .different }
        if let old = known.etag, let new = answer.etag {
            if opaque(old) != opaque(new) { return .different }
            // The same strong tag is sufficient, because the machines of one service often differ in Last-Modified.
            if old == new, isStrongTag(old) { return .same }
        }
        if let old = known.lastModified, let new = answer.lastModified {
            if old != new, HTTPDate.parse(old) != HTTPDate.parse(new) || HTTPDate.parse(old) == nil {
                return .different
            }
            if strongValidator(Validator(lastModified: old, date: known.date)) != nil { return .same }
        }
        return .unknown
    }

    private static func opaque(_ tag: String) -> Substring { tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...] }
}
