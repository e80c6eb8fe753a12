import TestSupport
import Testing

@testable import FKCore

/// The file is the same as before, and the answers to range requests are wrong.
@Suite("Wrong answers to range requests", .serialized, .timeLimit(.minutes(10)))
struct RangeAnswerTests {
    /// The file is right in the end, for every shape.
    @discardableResult
    private func survives(
        _ shape: RangeShape, _ lie: @escaping RangeScene.Answer
    ) async throws -> RangeScene.Result {
        let result = try await RangeScene(shape: shape, lie: lie).run()
        #expect(result.info.state == .complete, "\(String(describing: result.info.error)) \(result.history)")
        return result
    }

    private static func honest(_ body: [UInt8], _ request: FaultRequest) -> FaultResponse {
        .ranged(body, for: request, etag: "\"1\"")
    }

    private static func range(_ body: [UInt8], _ request: FaultRequest) -> Range<Int> {
        request.range(of: body.count) ?? 0..<0
    }

    /// A 206 that says what it likes about bytes that are right.
    private static func saying(
        _ text: @escaping @Sendable (Range<Int>, Int) -> String
    ) -> RangeScene.Answer {
        { body, request in
            honest(body, request).setting("Content-Range", text(range(body, request), body.count))
        }
    }

    @Test("200 with the whole file to a range request, begun again at 0", arguments: RangeShape.all)
    func ignoresRange(_ shape: RangeShape) async throws {
        try await survives(shape) { body, _ in .ok(body, headers: ["ETag": "\"1\""]) }
    }

    @Test("200 without any validator", arguments: RangeShape.all)
    func ignoresRangeSilently(_ shape: RangeShape) async throws {
        try await survives(shape) { body, _ in .ok(body) }
    }

    @Test("a server that only cannot read If-Range is asked once more without", arguments: RangeShape.all)
    func ignoresIfRange(_ shape: RangeShape) async throws {
        let result = try await survives(shape) { body, request in
            request["If-Range"] == nil ? Self.honest(body, request) : .ok(body, headers: ["ETag": "\"1\""])
        }
        #expect(shape.isRunning || result.later.contains { $0["Range"] != nil && $0["If-Range"] == nil })
        #expect(result.later.allSatisfy { $0["Range"] != nil })
    }

    @Test("a 206 of another start is thrown away", arguments: RangeShape.all, [-4_096, 1])
    func otherStart(_ shape: RangeShape, _ shift: Int) async throws {
        let result = try await survives(shape) { body, request in
            let asked = Self.range(body, request)
            let start = min(asked.lowerBound + shift, asked.upperBound - 1)
            return .status(
                206, body: Array(body[start..<asked.upperBound]),
                headers: [
                    "ETag": "\"1\"", "Content-Range": "bytes \(start)-\(asked.upperBound - 1)/\(body.count)",
                ])
        }
        #expect(shape.isRunning || result.later.contains { $0["Range"] != nil && $0["If-Range"] == nil })
    }

    @Test("a 206 without Content-Range is thrown away", arguments: RangeShape.all)
    func noContentRange(_ shape: RangeShape) async throws {
        try await survives(shape) { Self.honest($0, $1).removing("Content-Range") }
    }

    @Test("a 206 of the whole file without Content-Range is not appended", arguments: RangeShape.all)
    func wholeAsPart(_ shape: RangeShape) async throws {
        try await survives(shape) { body, _ in .status(206, body: body, headers: ["ETag": "\"1\""]) }
    }

    @Test("a Content-Range that ends before it begins", arguments: RangeShape.all)
    func backwards(_ shape: RangeShape) async throws {
        try await survives(shape, Self.saying { "bytes \($0.lowerBound)-\($0.lowerBound - 1)/\($1)" })
    }

    @Test("a Content-Range that ends beyond its total", arguments: RangeShape.all)
    func beyondTotal(_ shape: RangeShape) async throws {
        try await survives(
            shape,
            Self.saying { range, _ in
                "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(range.upperBound - 1)"
            })
    }

    @Test("a Content-Range of another unit", arguments: RangeShape.all)
    func otherUnit(_ shape: RangeShape) async throws {
        try await survives(shape, Self.saying { "lines \($0.lowerBound)-\($0.upperBound - 1)/\($1)" })
    }

    @Test("a part of what was asked for is kept, the rest asked for", arguments: RangeShape.all)
    func subRange(_ shape: RangeShape) async throws {
        let result = try await survives(shape) { body, request in
            let asked = Self.range(body, request)
            let end = min(asked.upperBound, asked.lowerBound + max(65_536, asked.count / 2))
            return .status(
                206, body: Array(body[asked.lowerBound..<end]),
                headers: ["ETag": "\"1\"", "Content-Range": "bytes \(asked.lowerBound)-\(end - 1)/\(body.count)"])
        }
        #expect(result.later.allSatisfy { $0["Range"] != nil })
    }

    @Test("a 206 that is longer than its range is cut at the end of the range", arguments: RangeShape.all)
    func longerThanAsked(_ shape: RangeShape) async throws {
        let result = try await survives(shape) { body, request in
            let start = Self.range(body, request).lowerBound
            return .status(
                206, body: Array(body[start...]),
                headers: ["ETag": "\"1\"", "Content-Range": "bytes \(start)-\(body.count - 1)/\(body.count)"])
        }
        #expect(result.later.allSatisfy { $0["Range"] != nil })
    }

    @Test("more bytes than the Content-Range says are dropped", arguments: RangeShape.all)
    func excess(_ shape: RangeShape) async throws {
        let result = try await survives(shape) { body, request in
            let asked = Self.range(body, request)
            var answer = FaultResponse.untilClose(body[asked] + Bytes.pattern(count: 70_000, seed: 3)).withStatus(206)
            answer = answer.adding("ETag", "\"1\"")
            return answer.adding("Content-Range", "bytes \(asked.lowerBound)-\(asked.upperBound - 1)/\(body.count)")
        }
        #expect(result.later.allSatisfy { $0["Range"] != nil })
    }

    @Test("416 with our own length is no completion while bytes are missing", arguments: RangeShape.all)
    func unsatisfiedOwnLength(_ shape: RangeShape) async throws {
        try await survives(shape) { body, _ in
            .status(416, headers: ["Content-Range": "bytes */\(body.count)", "ETag": "\"1\""])
        }
    }

    @Test("416 without Content-Range leads to a request without a range", arguments: RangeShape.all)
    func unsatisfied(_ shape: RangeShape) async throws {
        let result = try await survives(shape) { _, _ in .status(416) }
        #expect(shape.isRunning || result.later.contains { $0["Range"] == nil })
    }

    @Test("multipart/byteranges is refused, one stream fetches the file", arguments: RangeShape.all)
    func multipart(_ shape: RangeShape) async throws {
        try await survives(shape) { body, request in
            let asked = Self.range(body, request)
            let part = "--x\r\nContent-Range: bytes \(asked.lowerBound)-\(asked.upperBound - 1)/\(body.count)\r\n\r\n"
            return .status(
                206, body: Array(part.utf8) + body[asked] + Array("\r\n--x--\r\n".utf8),
                headers: ["ETag": "\"1\"", "Content-Type": "multipart/byteranges; boundary=x"])
        }
    }

    @Test("a 206 that is encoded where the part is not starts again", arguments: RangeShape.all)
    func encoded(_ shape: RangeShape) async throws {
        try await survives(shape) { Self.honest($0, $1).adding("Content-Encoding", "gzip") }
    }
}
