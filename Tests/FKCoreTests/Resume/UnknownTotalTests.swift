import TestSupport
import Testing

/// A body without a length is cut, and the rest comes in parts whose `Content-Range` has the total `*`.
@Suite("Parts of a file of unknown length")
struct UnknownTotalTests {
    private static func head(_ status: Int, _ fields: [HeaderField] = []) -> ScriptedTransport.Answer.Step {
        .head(ResponseHead(status: status, fields: [.init("ETag", "\"x\"")] + fields, url: "http://a.example/f"))
    }

    /// - Parameters:
    ///   - part: the most bytes of a part.
    ///   - short: the bytes that the first part has less than its Content-Range.
    ///   - proof: false answers the request beyond the end without a total.
    private func run(
        _ content: [UInt8], part: Int, short: Int = 0, proof: Bool = true
    ) async throws -> (Bench, TaskID) {
        let bench = try await Bench { request, number in
            guard let range = request.urlRequest.value(forHTTPHeaderField: "Range"),
                let start = Int(range.dropFirst("bytes=".count).prefix { $0 != "-" })
            else {
                let body = ScriptedTransport.Answer.Step.bytes(
                    Array(content.prefix(number == 1 ? content.count / 4 : .max)))
                return number == 1
                    ? .init([Self.head(200), body, .fail(DownloadError(.incompleteBody, "cut", isRetryable: true))])
                    : .init([Self.head(200), body])
            }
            guard start < content.count else {
                return .init([Self.head(416, proof ? [.init("Content-Range", "bytes */\(content.count)")] : [])])
            }
            let end = min(start + part, content.count)
            let sent = content[start..<(number == 2 ? end - short : end)]
            return .init([
                Self.head(206, [.init("Content-Range", "bytes \(start)-\(end - 1)/*")]), .bytes(Array(sent)),
            ])
        }
        let id = try await bench.add("http://a.example/f")
        await bench.retried("f", after: 60)
        if short > 0 {
            await bench.reached("f", .idle, times: 3)
            await bench.advance(60)
        }
        return (bench, id)
    }

    @Test(
        "a part ends where its Content-Range says, and the rest is asked for until an answer proves the end",
        arguments: [10_000, 400_000], [1_000_000, 7_000, 100_000])
    func parts(_ size: Int, _ part: Int) async throws {
        let content = Bytes.pattern(count: size)
        let (bench, id) = try await run(content, part: max(part, size / 8))
        try await bench.expect("f", content, of: id)
        #expect(bench.sent("Range").last == "bytes=\(size)-")
        #expect(try bench.stored(id).lengthVerified == nil)
    }

    @Test("a part that is shorter than its Content-Range is cut, and tried again")
    func short() async throws {
        let content = Bytes.pattern(count: 400_000)
        let (bench, id) = try await run(content, part: 100_000, short: 10)
        try await bench.expect("f", content, of: id)
        #expect(bench.sent("Range").contains("bytes=199990-"))
    }

    @Test("a 416 without a total proves nothing: the whole file is fetched once more")
    func unproven() async throws {
        let content = Bytes.pattern(count: 400_000)
        let (bench, id) = try await run(content, part: 1_000_000, proof: false)
        try await bench.expect("f", content, of: id)
        #expect(bench.sent("Range").last == "-")
    }
}
