import TestSupport
import Testing

extension ResumeRules.Known {
    /// The source of the stored bytes is asked.
    @_disfavoredOverload
    init(length: Int64? = nil, validator: Validator? = nil, maxSize: Int64? = nil, size: Int64? = nil) {
        self.init(FileVersion(length: length, validator: validator), maxSize: maxSize, size: size)
    }
}

/// Every combination of what two answers may say about a file.
@Suite("File versions: which bytes belong together")
struct FileVersionTests {
    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let later = "Sun, 06 Nov 1994 08:49:38 GMT"
    private static let otherDate = "Sat, 05 Nov 1994 08:49:37 GMT"

    /// The evidence of one kind, on both sides.
    private enum Pair: CaseIterable {
        case none, onlyMine, onlyTheirs, same, other

        func values<Value>(_ value: Value, _ other: Value) -> (mine: Value?, theirs: Value?) {
            switch self {
            case .none: (nil, nil)
            case .onlyMine: (value, nil)
            case .onlyTheirs: (nil, value)
            case .same: (value, value)
            case .other: (value, other)
            }
        }
    }

    /// Which of the two times is strong.
    private enum Strength: CaseIterable { case none, mine, theirs, both }

    private static func sum(_ digit: Character) throws -> Checksum {
        try Checksum(.md5, hex: String(repeating: digit, count: 32))
    }

    /// The table of `joins`, cell by cell: 2 sources, 5 lengths, 2 codings, 5 digests, 5 tags that are strong or weak, 5
    /// times of 4 strengths, vouched or not.
    @Test("each combination of evidence has its answer")
    func cells() throws {
        let (one, other) = (try Self.sum("1"), try Self.sum("2"))
        var cells = 0
        for isOneSource in [true, false] {
            for (lengthPair, isOtherCoding) in Pair.allCases.flatMap({ pair in [true, false].map { (pair, $0) } }) {
                for (digestPair, tagPair) in Pair.allCases.flatMap({ pair in Pair.allCases.map { (pair, $0) } }) {
                    for (isWeak, timePair) in [true, false].flatMap({ weak in Pair.allCases.map { (weak, $0) } }) {
                        for (strength, isVouched) in Strength.allCases.flatMap({ s in [true, false].map { (s, $0) } }) {
                            let length = lengthPair.values(Int64(9), 10)
                            let digest = digestPair.values(one, other)
                            let tag = tagPair.values(isWeak ? "W/\"a\"" : "\"a\"", "\"b\"")
                            let time = timePair.values(Self.date, Self.otherDate)
                            let mine = FileVersion(
                                source: "a", length: length.mine,
                                validator: Validator(
                                    etag: tag.mine, lastModified: time.mine,
                                    date: strength == .mine || strength == .both ? Self.later : nil,
                                    digest: digest.mine), isVouched: isVouched)
                            let theirs = FileVersion(
                                source: isOneSource ? "a" : "b", length: length.theirs,
                                validator: Validator(
                                    etag: tag.theirs, lastModified: time.theirs,
                                    date: strength == .theirs || strength == .both ? Self.later : nil,
                                    digest: digest.theirs, coding: isOtherCoding ? "gzip" : nil))
                            let expected: FileVersion.Joining =
                                if lengthPair == .other { .refuted(by: .length) } else if isOtherCoding {
                                    .refuted(by: .coding)
                                } else if digestPair == .other { .refuted(by: .digest) } else if digestPair == .same {
                                    .proven(by: .digest)
                                } else if isOneSource, tagPair == .other {
                                    .refuted(by: .entityTag)
                                } else if tagPair == .same, !isWeak {
                                    .proven(by: .entityTag)
                                } else if isOneSource, timePair == .other {
                                    .refuted(by: .lastModified)
                                } else if isOneSource, timePair == .same, strength == .mine || strength == .both {
                                    .proven(by: .lastModified)
                                } else if timePair == .same, strength == .both, lengthPair == .same {
                                    .proven(by: .lastModified)
                                } else if lengthPair == .same, isVouched || digestPair != .none {
                                    .proven(by: .comparison)
                                } else { .unknown }
                            let answer = mine.joins(theirs)
                            cells += 1
                            #expect(
                                answer == expected,
                                "\((isOneSource, lengthPair, isOtherCoding, digestPair, tagPair, isWeak, timePair, strength, isVouched))"
                            )
                        }
                    }
                }
            }
        }
        #expect(cells == 40_000)
    }

    @Test("weak and strong forms of one tag are one version of one source, and prove nothing")
    func forms() {
        let strong = FileVersion(source: "a", length: 9, validator: Validator(etag: "\"a\""))
        let weak = FileVersion(source: "a", length: 9, validator: Validator(etag: "W/\"a\""))
        #expect(strong.joins(weak) == .unknown)
        #expect(FileVersion(source: "a").joins(strong) == .unknown)
        #expect(FileVersion(source: "a", length: 8).joins(strong) == .refuted(by: .length))
    }

    @Test("one time in two forms of HTTP's dates is one time; a text that is no date is only equal to itself")
    func times() {
        func version(_ time: String) -> FileVersion {
            FileVersion(source: "a", validator: Validator(lastModified: time, date: Self.later))
        }
        #expect(
            version(Self.date).joins(version("Sunday, 06-Nov-94 08:49:37 GMT")) == .proven(by: .lastModified))
        #expect(version("once").joins(version("twice")) == .refuted(by: .lastModified))
        #expect(version("once").joins(version("once")) == .unknown)
    }

    @Test("weak validators of one source tell that a file has not changed")
    func equivalent() {
        func version(_ etag: String?, _ time: String? = nil, source: String = "a", length: Int64? = 9) -> FileVersion {
            FileVersion(source: source, length: length, validator: Validator(etag: etag, lastModified: time))
        }
        let known = version("W/\"1\"", "x")
        #expect(known.isEquivalent(to: version("\"1\"", "y")))
        #expect(known.isEquivalent(to: version(nil, "x", length: nil)))
        for other in [
            version("\"2\"", "x"), version(nil, "y"), version(nil), version("\"1\"", length: 8),
            version("\"1\"", source: "b"), FileVersion(source: "a", length: 9),
        ] {
            #expect(!known.isEquivalent(to: other))
        }
    }

    @Test("what may follow without an answer", arguments: FileVersion.Meeting.allCases, MirrorPolicy.allCases)
    func unknown(_ meeting: FileVersion.Meeting, _ policy: MirrorPolicy) {
        let expected: FileVersion.WhenUnknown =
            switch meeting {
            case .resume: .compareTail
            case .beside: policy == .combine ? .trustSample : .never
            case .instead: policy == .combine ? .trustSample : .wholeFile
            case .repair, .refresh: .wholeFile
            case .reuse: .never
            }
        #expect(FileVersion.whenUnknown(meeting, policy) == expected)
    }
}
