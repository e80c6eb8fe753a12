import FKMiddleware
import Foundation

/// The evidence for one version of a file: what its source, its lists and its user say about the bytes.
///
/// Everything that joins bytes asks `joins`, and does what `whenUnknown` allows if that has no answer.
package struct FileVersion: Sendable, Hashable {
    /// The URL that the validators belong to; nil for bytes that no server sent.
    package var source: String?
    /// The length of the whole file in bytes; nil while unknown.
    package var length: Int64?
    /// The validators of the source, the digest in its answers, and the content coding of the bytes; nil without any
    /// answer.
    package var validator: Validator?
    /// The digest that the first server announced, which the file must have whatever its source is; nil without one.
    package var announced: Checksum?
    /// True if all bytes will be compared before the file gets its name: with a digest of a list or of the user, of the
    /// whole file or of its pieces, or in a repair with what is known of the finished file.
    package var isVouched: Bool
    /// True if the stored bytes were joined only because a digest of a list or of the user vouched for them.
    package var needsDigest: Bool

    /// Creates a version; the default has no evidence.
    package init(
        source: String? = nil, length: Int64? = nil, validator: Validator? = nil, announced: Checksum? = nil,
        isVouched: Bool = false, needsDigest: Bool = false
    ) {
        self.source = source
        self.length = length
        self.validator = validator
        self.announced = announced
        self.isVouched = isVouched
        self.needsDigest = needsDigest
    }

    /// True if all bytes will be compared with a digest.
    package var isCompared: Bool { isVouched || announced != nil || validator?.digest != nil }

    /// True if the stored bytes were joined for a digest that was removed later. Nothing proves then that they are of one
    /// version, so all of them are discarded.
    package var isUnproven: Bool { needsDigest && !isCompared }

    /// The version that a response describes.
    package init(_ head: ResponseHead, source: String) {
        let range = head["Content-Range"].flatMap(ContentRange.init)
        let hasTotal = head.status == 206 || head.status == 416 || head.isPart
        self.init(
            source: source, length: hasTotal ? range?.total : try? ContentLength.parse(head),
            validator: Validator(head))
    }

    /// True for an empty answer without validators, where the file had bytes and validators. A server in trouble sends it more often
    /// than one whose file has become empty.
    package func isEmptied(by head: ResponseHead) -> Bool {
        guard let length, length > 0, let validator, validator.etag != nil || validator.lastModified != nil else {
            return false
        }
        return head.carriesFile && (try? ContentLength.parse(head)) == 0 && head.first("ETag") == nil
            && head.first("Last-Modified") == nil
    }

    /// What proves or refutes that two versions have the same bytes.
    package enum Evidence: String, Sendable, Hashable, CaseIterable {
        case length
        case coding
        /// Both have a digest of the same kind.
        case digest
        case entityTag
        case lastModified
        /// One side has a digest, which all bytes are compared with before the file gets its name. A wrong join costs time,
        /// and never gives a wrong file.
        case comparison
    }

    /// The answer of `joins`.
    package enum Joining: Sendable, Hashable {
        /// The bytes are of one version.
        case proven(by: Evidence)
        /// The bytes are of two versions.
        case refuted(by: Evidence)
        /// Nothing tells.
        case unknown
    }

    /// Decides whether stored bytes, of this version, and those of another answer belong together. The first row that
    /// applies counts.
    ///
    /// | the two versions | answer |
    /// | --- | --- |
    /// | other lengths | refuted |
    /// | other content codings | refuted |
    /// | the digest that the first server announced, and another of the same kind | refuted |
    /// | digests of the same kind | proven if they are equal, else refuted; equal CRCs prove nothing |
    /// | one source, other entity tags | refuted |
    /// | the same strong entity tag | proven |
    /// | one source, other times of the last change | refuted |
    /// | one source, the same time, which is strong in this version | proven |
    /// | two sources, the same time, which is strong in both, and the same length | proven |
    /// | the same length, and a digest of one version is compared with all bytes at the end | proven |
    /// | otherwise | unknown |
    ///
    /// Entity tags and times belong to one source (RFC 9110 section 8.8): those of two sources often differ for the same
    /// file, so they refute nothing. `Last-Modified` is strong by section 8.8.2.2.
    package func joins(_ other: FileVersion) -> Joining {
        if let length, let theirs = other.length, length != theirs { return .refuted(by: .length) }
        let isSameLength = length != nil && length == other.length
        if let announced, let theirs = other.validator?.digest, announced.algorithm == theirs.algorithm,
            announced != theirs
        {
            return .refuted(by: .digest)
        }
        if let old = validator, let new = other.validator {
            if old.coding != new.coding { return .refuted(by: .coding) }
            if let mine = old.digest, let theirs = new.digest, mine.algorithm == theirs.algorithm {
                if mine != theirs { return .refuted(by: .digest) }
                if mine.algorithm.isDigest { return .proven(by: .digest) }
            }
            let isOneSource = source == other.source
            if let mine = old.etag, let theirs = new.etag {
                if isOneSource, Validator.opaque(mine) != Validator.opaque(theirs) { return .refuted(by: .entityTag) }
                if mine == theirs, Validator.isStrongTag(mine) { return .proven(by: .entityTag) }
            }
            if let mine = old.lastModified, let theirs = new.lastModified {
                if Validator.isSameTime(mine, theirs) {
                    let isStrong =
                        isOneSource
                        ? old.hasStrongTime
                        : old.hasStrongTime && new.hasStrongTime && isSameLength
                    if isStrong { return .proven(by: .lastModified) }
                } else if isOneSource {
                    return .refuted(by: .lastModified)
                }
            }
        }
        return isSameLength && (isCompared || other.isCompared) ? .proven(by: .comparison) : .unknown
    }

    /// True if one source gives both versions the same validators, also weak ones (RFC 9110 section 8.8.3.2), and no other
    /// length. That is enough to keep a finished file, but not to join bytes.
    package func isEquivalent(to other: FileVersion) -> Bool {
        guard source == other.source, let old = validator, let new = other.validator else { return false }
        if let length, let theirs = other.length, length != theirs { return false }
        if let mine = old.etag, let theirs = new.etag { return Validator.opaque(mine) == Validator.opaque(theirs) }
        guard let mine = old.lastModified, let theirs = new.lastModified else { return false }
        return Validator.isSameTime(mine, theirs)
    }

    // MARK: Unknown

    /// Where bytes of two versions may meet.
    package enum Meeting: String, Sendable, Hashable, CaseIterable {
        /// The source of the stored bytes continues them.
        case resume
        /// Another source sends ranges while the first one delivers.
        case beside
        /// Another source continues: a mirror after a failure, one that a server offers, or a new address.
        case instead
        /// Damaged bytes of a finished file are replaced.
        case repair
        /// A finished file is taken in place of a download.
        case reuse
        /// A finished file is compared with the one of its server.
        case refresh
    }

    /// What may follow if `joins` has no answer.
    package enum WhenUnknown: String, Sendable, Hashable, CaseIterable {
        /// The last 4 KiB are requested again. Equal bytes are joined, and a difference starts again from byte 0.
        case compareTail
        /// 4 KiB are requested again. Equal bytes are joined unless they are a run of one value. That proves nothing about
        /// the rest, and the history says so.
        case trustSample
        /// The source sends the whole file from byte 0, and no other byte is kept.
        case wholeFile
        /// The source is not used.
        case never
    }

    /// What may follow if `joins` has no answer.
    ///
    /// | where | prove | combine | failover, alternatives |
    /// | --- | --- | --- | --- |
    /// | resume | compare the tail | compare the tail | compare the tail |
    /// | beside | never | trust a sample | never |
    /// | instead | whole file | trust a sample | whole file |
    /// | repair | whole file | whole file | whole file |
    /// | reuse | never | never | never |
    /// | refresh | whole file | whole file | whole file |
    package static func whenUnknown(_ meeting: Meeting, _ policy: MirrorPolicy) -> WhenUnknown {
        switch (meeting, policy) {
        case (.resume, _): .compareTail
        case (.beside, .combine), (.instead, .combine): .trustSample
        case (.beside, _), (.reuse, _): .never
        case (.instead, _), (.repair, _), (.refresh, _): .wholeFile
        }
    }
}

extension TaskRecord {
    /// The version of the stored bytes.
    package var version: FileVersion {
        FileVersion(
            source: source ?? task.url, length: expected, validator: validator, announced: announced?.checksum,
            isVouched: task.optionsBox?.value.checksum != nil || task.optionsBox?.value.pieces != nil || isRepair,
            needsDigest: needsDigest == true)
    }
}

extension TaskRecord {
    /// The version of the finished file, with the digest that it must have.
    package var versionOfFinished: FileVersion {
        var version = version
        if let checksum = task.optionsBox?.value.checksum {
            version.validator = version.validator ?? Validator()
            version.validator?.digest = checksum
        }
        return version
    }
}

extension Validator {
    package init(_ head: ResponseHead) {
        self.init(
            etag: head.first("ETag"), lastModified: head.first("Last-Modified"), date: head.first("Date"),
            digest: ServerDigest.parse(head), coding: head.carriesFile ? head.contentCoding : nil)
    }

    /// The value for `If-Range`: a strong entity tag, else a strong `Last-Modified`; nil without either.
    package var strong: String? {
        if let etag, Self.isStrongTag(etag) { return etag }
        return hasStrongTime ? lastModified : nil
    }

    /// True if `Last-Modified` is strong, because the response's date is at least one second later (RFC 9110 section
    /// 8.8.2.2).
    package var hasStrongTime: Bool {
        guard let modified = lastModified.flatMap({ HTTPDate.parse($0) }),
            let date = date.flatMap({ HTTPDate.parse($0) })
        else { return false }
        return date.timeIntervalSince(modified) >= 1
    }

    /// True for a quoted tag without `W/` (RFC 9110 section 8.8.3). Some servers send tags without quotes. They are
    /// not strong, because in `If-Range` they would be read as dates.
    package static func isStrongTag(_ tag: String) -> Bool {
        let bytes = Array(tag.utf8)
        return bytes.count >= 2 && bytes.first == 0x22 && bytes.last == 0x22
            && bytes.dropFirst().dropLast().allSatisfy { $0 > 0x20 && $0 != 0x22 && $0 != 0x7f }
    }

    /// The tag for a weak comparison (RFC 9110 section 8.8.3.2).
    package static func opaque(_ tag: String) -> Substring { tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...] }

    /// True for the same text or the same time.
    package static func isSameTime(_ one: String, _ other: String) -> Bool {
        if one == other { return true }
        guard let first = HTTPDate.parse(one) else { return false }
        return first == HTTPDate.parse(other)
    }
}
