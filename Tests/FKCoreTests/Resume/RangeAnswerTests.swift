import TestSupport
import Testing

/// The file is the same as before, and the answers to range requests are wrong.
@Suite("Wrong answers to range requests", .serialized)
struct RangeAnswerTests {
    struct Lie: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// What the requests from the first lie on have in common.
        var later: @Sendable (ArraySlice<FaultRequest>, RangeShape) -> Bool = { _, _ in true }
        var answer: RangeScene.Answer

        init(
            _ text: String,
            later: @escaping @Sendable (ArraySlice<FaultRequest>, RangeShape) -> Bool = { _, _ in true },
            _ answer: @escaping RangeScene.Answer
        ) {
            (testDescription, self.later, self.answer) = (text, later, answer)
        }

        /// A 206 that says what it likes about bytes that are right.
        init(_ text: String, saying range: @escaping @Sendable (Range<Int>, Int) -> String) {
            self.init(text) { body, request in
                honest(body, request).setting("Content-Range", range(asked(body, request), body.count))
            }
        }
    }

    private static func honest(_ body: [UInt8], _ request: FaultRequest) -> FaultResponse {
        .ranged(body, for: request, etag: "\"1\"")
    }

    private static func asked(_ body: [UInt8], _ request: FaultRequest) -> Range<Int> {
        request.range(of: body.count) ?? 0..<0
    }

    /// A 206 with these bytes of the file and a Content-Range that says so.
    private static func part(_ body: [UInt8], _ range: Range<Int>) -> FaultResponse {
        .status(
            206, body: Array(body[range]),
            headers: [
                "ETag": "\"1\"", "Content-Range": "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(body.count)",
            ])
    }

    /// Every further request is one for a range: what has arrived is kept.
    @Sendable private static func staysDivided(_ requests: ArraySlice<FaultRequest>, _: RangeShape) -> Bool {
        requests.allSatisfy { $0["Range"] != nil }
    }

    /// A range is asked for once more without a condition.
    @Sendable private static func asksPlainly(_ requests: ArraySlice<FaultRequest>, _ shape: RangeShape) -> Bool {
        shape.isRunning || requests.contains { $0["Range"] != nil && $0["If-Range"] == nil }
    }

    /// A 206 of another start.
    private static func shifted(_ shift: Int) -> Lie {
        Lie("a 206 whose start is off by \(shift) is thrown away", later: asksPlainly) { body, request in
            let asked = asked(body, request)
            return part(body, min(asked.lowerBound + shift, asked.upperBound - 1)..<asked.upperBound)
        }
    }

    static let lies: [Lie] = [
        Lie("200 with the whole file to a range request, begun again at 0") { body, _ in
            .ok(body, headers: ["ETag": "\"1\""])
        },
        Lie("200 without any validator") { body, _ in .ok(body) },
        Lie(
            "a server that only cannot read If-Range is asked once more without",
            later: { staysDivided($0, $1) && asksPlainly($0, $1) }
        ) { body, request in
            request["If-Range"] == nil ? honest(body, request) : .ok(body, headers: ["ETag": "\"1\""])
        },
        shifted(-4_096), shifted(1),
        Lie("a 206 without Content-Range is thrown away") { honest($0, $1).removing("Content-Range") },
        Lie("a 206 of the whole file without Content-Range is not appended") { body, _ in
            .status(206, body: body, headers: ["ETag": "\"1\""])
        },
        Lie(
            "a Content-Range that ends before it begins",
            saying: { "bytes \($0.lowerBound)-\($0.lowerBound - 1)/\($1)" }),
        Lie(
            "a Content-Range that ends beyond its total",
            saying: { range, _ in "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(range.upperBound - 1)" }),
        Lie("a Content-Range of another unit", saying: { "lines \($0.lowerBound)-\($0.upperBound - 1)/\($1)" }),
        Lie("a part of what was asked for is kept, the rest asked for", later: staysDivided) { body, request in
            let asked = asked(body, request)
            return part(
                body, asked.lowerBound..<min(asked.upperBound, asked.lowerBound + max(65_536, asked.count / 2)))
        },
        Lie("a 206 that is longer than its range is cut at the end of the range", later: staysDivided) {
            body, request in
            part(body, asked(body, request).lowerBound..<body.count)
        },
        Lie("more bytes than the Content-Range says are dropped", later: staysDivided) { body, request in
            let asked = asked(body, request)
            return FaultResponse.untilClose(body[asked] + Bytes.pattern(count: 70_000, seed: 3)).withStatus(206)
                .adding("ETag", "\"1\"")
                .adding("Content-Range", "bytes \(asked.lowerBound)-\(asked.upperBound - 1)/\(body.count)")
        },
        Lie("a 200 whose Content-Range is the range asked for is that part", later: staysDivided) {
            honest($0, $1).withStatus(200)
        },
        Lie("a 200 with a part that starts elsewhere is thrown away") { body, request in
            let asked = asked(body, request)
            return part(body, min(asked.lowerBound + 1, asked.upperBound - 1)..<asked.upperBound).withStatus(200)
        },
        Lie(
            "the last bytes come in no range: one stream fetches the file",
            later: { requests, _ in requests.count { $0["Range"] == nil } <= 2 }
        ) { body, request in
            let asked = asked(body, request)
            let end = body.count - 2_000
            guard asked.lowerBound < end else {
                return .status(
                    206, headers: ["ETag": "\"1\"", "Content-Range": "bytes \(end)-\(end - 1)/\(body.count)"])
            }
            return part(body, asked.lowerBound..<min(asked.upperBound, end))
        },
        Lie("416 with our own length is no completion while bytes are missing") { body, _ in
            .status(416, headers: ["Content-Range": "bytes */\(body.count)", "ETag": "\"1\""])
        },
        Lie(
            "416 without Content-Range leads to a request without a range",
            later: { requests, shape in shape.isRunning || requests.contains { $0["Range"] == nil } }
        ) { _, _ in .status(416) },
        Lie("multipart/byteranges is refused, one stream fetches the file") { body, request in
            let asked = asked(body, request)
            let part = "--x\r\nContent-Range: bytes \(asked.lowerBound)-\(asked.upperBound - 1)/\(body.count)\r\n\r\n"
            return .status(
                206, body: Array(part.utf8) + body[asked] + Array("\r\n--x--\r\n".utf8),
                headers: ["ETag": "\"1\"", "Content-Type": "multipart/byteranges; boundary=x"])
        },
        Lie("a 206 that is encoded where the part is not starts again") {
            honest($0, $1).adding("Content-Encoding", "gzip")
        },
    ]

    @Test("the file is right in the end, for every shape", arguments: lies, RangeShape.all)
    func survives(_ lie: Lie, _ shape: RangeShape) async throws {
        let result = try await RangeScene(shape: shape, lie: lie.answer).run()
        #expect(result.info.state == .complete, "\(String(describing: result.info.error)) \(result.history)")
        #expect(lie.later(result.later, shape))
    }
}
