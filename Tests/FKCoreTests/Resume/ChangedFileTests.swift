import TestSupport
import Testing

/// The file on the server becomes another one while ours is not whole. Bytes of the two are
/// never mixed.
@Suite("The file on the server changes", .serialized)
struct ChangedFileTests {
    /// How a server names the version of its file.
    enum Naming: String, Sendable, CaseIterable, CustomTestStringConvertible {
        case etag, date, weakETag, nothing
        var testDescription: String { rawValue }

        /// Only these allow several connections for a file.
        var isStrong: Bool { self == .etag || self == .date }

        func answer(_ version: Int) -> RangeScene.Answer {
            let date = "Sat, 01 Nov 2025 0\(version):00:00 GMT"
            switch self {
            case .etag: return { .ranged($0, for: $1, etag: "\"\(version)\"") }
            case .weakETag: return { .ranged($0, for: $1, etag: "W/\"\(version)\"") }
            case .nothing: return { .ranged($0, for: $1) }
            case .date:
                return {
                    FaultResponse.ranged($0, for: $1, lastModified: date).adding(
                        "Date", "Sat, 01 Nov 2025 09:00:00 GMT")
                }
            }
        }
    }

    /// The scene ends with the whole file.
    private func completed(_ scene: RangeScene) async throws -> RangeScene.Result {
        let result = try await scene.run()
        #expect(result.info.state == .complete, "\(String(describing: result.info.error))")
        return result
    }

    /// Nothing is asked for under a condition, and the last 4 KiB of the half file are asked for once more.
    private func expectComparison(_ result: RangeScene.Result) {
        #expect(result.requests.allSatisfy { $0["If-Range"] == nil })
        #expect(result.later.map { $0["Range"] } == ["bytes=95904-"])
    }

    @Test("the total grew or shrank under the same ETag, begun again", arguments: RangeShape.all, [-1, 1_000])
    func otherTotal(_ shape: RangeShape, _ difference: Int) async throws {
        let now = RangeContent.after(shape.segments, difference)
        _ = try await completed(RangeScene(shape: shape, after: now, lie: Naming.etag.answer(1)))
    }

    @Test("a 206 under another ETag is not combined with ours", arguments: RangeShape.all, [0, 1_000])
    func otherTag(_ shape: RangeShape, _ difference: Int) async throws {
        let now = RangeContent.after(shape.segments, difference)
        let scene = RangeScene(shape: shape, after: now, honestAfter: Naming.etag.answer(2)) {
            .ranged($0, for: $1.without("If-Range"), etag: "\"2\"")
        }
        _ = try await completed(scene)
    }

    @Test("a 206 of another version that leaves its ETag out is not combined", arguments: RangeShape.all)
    func tagLeftOut(_ shape: RangeShape) async throws {
        let now = RangeContent.after(shape.segments, 0)
        let scene = RangeScene(shape: shape, after: now, honestAfter: Naming.nothing.answer(2)) {
            .ranged($0, for: $1.without("If-Range"))
        }
        _ = try await completed(scene)
    }

    @Test("a weak ETag is never in If-Range, and never divides a file", arguments: RangeShape.resumed)
    func weakTag(_ shape: RangeShape) async throws {
        let answer = Naming.weakETag.answer(1)
        expectComparison(
            try await completed(RangeScene(shape: shape, honest: answer, isDivided: false, lie: answer)))
    }

    @Test("Last-Modified alone is a validator when Date is later", arguments: RangeShape.resumed)
    func date(_ shape: RangeShape) async throws {
        let answer = Naming.date.answer(1)
        let result = try await completed(RangeScene(shape: shape, honest: answer, lie: answer))
        #expect(result.later.allSatisfy { $0["If-Range"] == "Sat, 01 Nov 2025 01:00:00 GMT" })
    }

    @Test("Last-Modified in the second of Date is none", arguments: RangeShape.resumed)
    func freshDate(_ shape: RangeShape) async throws {
        let date = "Sat, 01 Nov 2025 01:00:00 GMT"
        let answer: RangeScene.Answer = { .ranged($0, for: $1, lastModified: date).adding("Date", date) }
        expectComparison(
            try await completed(RangeScene(shape: shape, honest: answer, isDivided: false, lie: answer)))
    }

    @Test("without a validator the last 4 KiB are compared", arguments: RangeShape.resumed, [true, false])
    func noValidator(_ shape: RangeShape, _ isSame: Bool) async throws {
        let answer = Naming.nothing.answer(1)
        let now = isSame ? nil : RangeContent.after(shape.segments, 0)
        let result = try await completed(
            RangeScene(shape: shape, honest: answer, isDivided: false, after: now, lie: answer))
        #expect(result.later.map { $0["Range"] } == (isSame ? ["bytes=95904-"] : ["bytes=95904-", nil]))
    }

    @Test("416 with another total, begun again", arguments: RangeShape.all)
    func unsatisfied(_ shape: RangeShape) async throws {
        let now = Array(RangeContent.after(shape.segments, 0).prefix(50_000))
        let scene = RangeScene(shape: shape, after: now, honestAfter: Naming.etag.answer(2)) { body, _ in
            .status(416, headers: ["Content-Range": "bytes */\(body.count)"])
        }
        _ = try await completed(scene)
    }

    @Test("other bytes under the same ETag are found by the digest alone", arguments: RangeShape.all)
    func sameTagOtherBytes(_ shape: RangeShape) async throws {
        let digest = try Checksum(.sha256, hex: Bytes.sha256(RangeContent.before(shape.segments)))
        let other = RangeContent.after(shape.segments, 0)
        var scene = RangeScene(shape: shape) { _, request in .ranged(other, for: request, etag: "\"1\"") }
        scene.options = { $0.checksum = digest }
        let result = try await scene.run()
        #expect(result.info.state == .complete || result.info.error?.code == .checksumMismatch)
    }

    @Test(
        "another file of the same length after the suspension, begun again", arguments: RangeShape.resumed,
        Naming.allCases)
    func sameLength(_ shape: RangeShape, _ naming: Naming) async throws {
        let answer = naming.answer(2)
        _ = try await completed(
            RangeScene(
                shape: shape, honest: naming.answer(1), isDivided: naming.isStrong,
                after: RangeContent.after(shape.segments, 0), honestAfter: answer, lie: answer))
    }
}

extension FaultRequest {
    /// The request as a server sees it that does not know the field.
    func without(_ name: String) -> FaultRequest {
        var request = self
        request.headers.removeAll { $0.name.lowercased() == name.lowercased() }
        return request
    }
}
