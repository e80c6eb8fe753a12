import TestSupport
import Testing

@testable import FKEngine

@Suite("Several mirrors at once")
struct MirrorSourcesTests {
    private let validator = Validator(etag: "\"m\"")

    /// Gives out connections until none is given any more; "-" is the attempt's own URL.
    private func spread(_ sources: MirrorSources, limit: Int, closed: Set<String> = []) -> [String: Int] {
        var load: [String: Int] = [:]
        while load.values.reduce(0, +) < limit,
            let next = sources.next(
                limit: limit, connections: { load[$0 ?? "-", default: 0] }, isOpen: { !closed.contains($0 ?? "-") })
        {
            load[next ?? "-", default: 0] += 1
        }
        return load
    }

    @Test("a plan without mirrors, or only with repetitions: all go to the one URL")
    func alone() {
        for plan in [["a"], ["a", "a", "a"]] {
            let sources = MirrorSources(own: "a", plan: plan)
            #expect(!sources.isUndecided && spread(sources, limit: 16) == ["-": 16])
        }
    }

    @Test("each URL of the plan counts once, the attempt's own not at all")
    func distinct() {
        let sources = MirrorSources(own: "b", plan: ["a", "a", "b", "c"])
        #expect(sources.mirrors.map(\.url) == ["a", "c"])
    }

    @Test("until a mirror is decided on, its share is kept free", arguments: [(2, 1), (3, 2), (4, 2), (16, 8)])
    func reserved(_ limit: Int, _ own: Int) {
        var sources = MirrorSources(own: "a", plan: ["a", "b"])
        #expect(spread(sources, limit: limit) == ["-": own])
        #expect(sources.startTrial { _ in true } == "b")
        #expect(spread(sources, limit: limit) == ["-": own])
        sources.prove("b", by: validator)
        #expect(spread(sources, limit: limit) == ["-": (limit + 1) / 2, "b": limit / 2])
    }

    @Test("a refused mirror's share goes to the others")
    func refused() {
        var sources = MirrorSources(own: "a", plan: ["a", "b", "c"])
        sources.prove("c", by: validator)
        sources.refuse("b")
        #expect(!sources.isUndecided && sources.validator(of: "b") == nil)
        #expect(spread(sources, limit: 6) == ["-": 3, "c": 3])
    }

    @Test("a host that may have no more connections is passed over")
    func closed() {
        var sources = MirrorSources(own: "a", plan: ["a", "b"])
        sources.prove("b", by: validator)
        #expect(spread(sources, limit: 4, closed: ["-"]) == ["b": 4])
        #expect(spread(sources, limit: 4, closed: ["-", "b"]).isEmpty)
    }

    @Test("trials without a verdict are repeated, five in all")
    func postponed() {
        var sources = MirrorSources(own: "a", plan: ["a", "b"])
        for _ in 0..<MirrorSources.maxTrials {
            #expect(sources.startTrial { _ in true } == "b")
            #expect(sources.startTrial { _ in true } == nil)
            sources.postpone("b")
        }
        #expect(sources.startTrial { _ in true } == nil && !sources.isUndecided)
    }

    @Test("a mirror whose host is closed is not put on trial")
    func closedTrial() {
        var sources = MirrorSources(own: "a", plan: ["a", "b", "c"])
        #expect(sources.startTrial { $0 == "c" } == "c")
        #expect(sources.startTrial { $0 == "c" } == nil)
    }
}

/// What a mirror answers when asked for bytes that are held.
@Suite("A mirror's trial")
struct MirrorTrialTests {
    private static let held = Bytes.pattern(count: 4096)

    struct Row: CustomTestStringConvertible, Sendable {
        var name: String
        var status = 206
        var range: String? = "bytes 1000-5095/9000"
        var etag: String? = "\"m\""
        var fields: [HeaderField] = []
        var body = MirrorTrialTests.held
        var held = MirrorTrialTests.held
        var validator: Validator? = Validator(etag: "\"a\"")
        var isVouched = false
        var policy = MirrorPolicy.prove
        var expected: String
        var testDescription: String { name }
    }

    private static func digest(of content: [UInt8]) -> HeaderField {
        .init("Repr-Digest", "sha-256=:\(Bytes.base64(.sha256, content)):")
    }

    private static let blank = [UInt8](repeating: 0, count: 4096)

    static let rows = [
        Row(name: "the same bytes", expected: "nothing proves"),
        Row(name: "the same bytes, never at the same time", policy: .failover, expected: "nothing proves"),
        Row(name: "the same bytes, combined", policy: .combine, expected: "trusted"),
        Row(name: "the same bytes, a digest follows", isVouched: true, expected: "same"),
        Row(name: "the same strong tag", validator: Validator(etag: "\"m\""), expected: "same"),
        Row(name: "other bytes", body: Bytes.pattern(count: 4096, seed: 9), expected: "not the ones we hold"),
        Row(
            name: "other bytes under the same tag", body: Bytes.pattern(count: 4096, seed: 9),
            validator: Validator(etag: "\"m\""), expected: "not the ones we hold"),
        Row(name: "another length", range: "bytes 1000-5095/9001", expected: "9001 bytes"),
        Row(name: "no length", range: "bytes 1000-5095/*", expected: "not known"),
        Row(name: "another place", range: "bytes 0-4095/9000", expected: "from 0"),
        Row(name: "too little", body: Array(held.prefix(100)), expected: "100 of 4096"),
        Row(name: "ranges ignored", status: 200, range: nil, expected: "answers 200"),
        Row(name: "not there", status: 404, range: nil, expected: "answers 404"),
        Row(name: "a range without a field", range: nil, expected: "answers 206"),
        Row(name: "another unit", range: "items 1000-5095/9000", expected: "answers 206"),
        Row(name: "no validator", etag: nil, expected: "no strong validator"),
        Row(name: "a weak tag", etag: "W/\"m\"", expected: "no strong validator"),
        Row(
            name: "encoded as ours is", fields: [.init("Content-Encoding", "gzip")],
            validator: Validator(etag: "\"m\"", coding: "gzip"), expected: "same"),
        Row(name: "encoded", fields: [.init("Content-Encoding", "gzip")], expected: "encodes"),
        Row(
            name: "another digest", fields: [digest(of: [1])],
            validator: Validator(ResponseHead(status: 200, fields: [digest(of: [2])], url: "")),
            expected: "another digest"),
        Row(name: "a run of one value", body: blank, held: blank, expected: "nothing proves"),
        Row(name: "a run of one value, combined", body: blank, held: blank, policy: .combine, expected: "no verdict"),
        Row(
            name: "a run of one value, a digest follows", body: blank, held: blank, isVouched: true,
            expected: "same"),
        Row(
            name: "a run of one value, the same tag", body: blank, held: blank,
            validator: Validator(etag: "\"m\""), expected: "same"),
    ]

    @Test("what it says", arguments: rows)
    func verdict(_ row: Row) {
        let trial = MirrorTrial(start: 1000, held: row.held) { _ in }
        var fields = row.fields
        if let range = row.range { fields.append(.init("Content-Range", range)) }
        if let etag = row.etag { fields.append(.init("ETag", etag)) }
        trial.transport(didReceive: ResponseHead(status: row.status, fields: fields, url: ""))
        row.body.withUnsafeBytes { _ = trial.transport(didReceive: $0) }
        let version = FileVersion(source: "a", length: 9000, validator: row.validator, isVouched: row.isVouched)
        let text =
            switch trial.verdict(version, source: "b", policy: row.policy) {
            case .same(let validator): validator.etag == row.etag ? "same" : "the wrong validator"
            case .trusted(let validator): validator.etag == row.etag ? "trusted" : "the wrong validator"
            case .provesNothing: "no verdict"
            case .refused(let reason): reason
            }
        #expect(text.contains(row.expected), "\(text)")
    }

    @Test("no answer at all")
    func silent() {
        let trial = MirrorTrial(start: 0, held: Self.held) { _ in }
        trial.transportDidFinish(.failure(DownloadError(.connectionLost, "gone")))
        #expect(trial.verdict(FileVersion(length: 9), source: "b", policy: .combine) == .refused(reason: "gone"))
    }

    @Test("a body without end is left after the bytes asked for")
    func endless() {
        let trial = MirrorTrial(start: 0, held: [1, 2, 3]) { _ in }
        let verdict = [UInt8](repeating: 1, count: 100).withUnsafeBytes { trial.transport(didReceive: $0) }
        guard case .enough = verdict else { return unexpected("\(verdict)") }
        #expect(trial.received == [1, 1, 1])
    }
}
