import TestSupport
import Testing

/// A body of HTTP/2 without a length ends, and the transport cannot tell whether that is its end.
@Suite("The end of a body that nothing showed")
struct UnshownEndTests {
    private static let content = Bytes.pattern(count: 300_000)

    enum Proof: CaseIterable, Sendable {
        case unsatisfied, rest, length, wholeAgain, refused, anotherLength
    }

    private static func head(
        _ request: TransportRequest, _ status: Int, _ fields: [HeaderField] = []
    ) -> ScriptedTransport.Answer.Step {
        .head(
            ResponseHead(
                status: status, httpVersion: "2", fields: fields, url: request.urlRequest.url?.absoluteString ?? ""))
    }

    private func bench(_ proof: Proof, sent: Int) async throws -> Bench {
        try await Bench { request, number in
            if number == 1 {
                return .init([
                    Self.head(request, 200), .bytes(Array(Self.content.prefix(sent))), .finish(lengthVerified: false),
                ])
            }
            let count = Self.content.count
            let start = sent == count ? sent : sent - 4096
            switch proof {
            case .unsatisfied: return .init([Self.head(request, 416, [.init("Content-Range", "bytes */\(count)")])])
            case .rest:
                let range = HeaderField("Content-Range", "bytes \(start)-\(count - 1)/\(count)")
                return .init([Self.head(request, 206, [range]), .bytes(Array(Self.content.dropFirst(start)))])
            case .length:
                return .init([
                    Self.head(request, 200, [.init("Content-Length", "\(count)")]), .bytes(Self.content),
                ])
            case .wholeAgain:
                return .init([Self.head(request, 200), .bytes(Self.content), .finish(lengthVerified: false)])
            case .refused: return .init([Self.head(request, 403)])
            case .anotherLength:
                return .init([Self.head(request, 200, [.init("Content-Length", "3")]), .bytes([1, 2, 3])])
            }
        }
    }

    @Test("the rest of a body whose end nothing showed is requested once", arguments: Proof.allCases)
    func asked(_ proof: Proof) async throws {
        // A 416 and a 200 with the same length say that all bytes are there. The others follow a body that was cut.
        let isWhole = [.unsatisfied, .length, .refused].contains(proof)
        let bench = try await bench(proof, sent: isWhole ? Self.content.count : 200_000)
        let id = try await bench.completed("a")
        #expect(try bench.out("a") == (proof == .anotherLength ? [1, 2, 3] : Self.content))
        let record = try bench.stored(id)
        let isProven = ![.wholeAgain, .refused].contains(proof)
        #expect(record.lengthVerified == (isProven ? nil : false))
        #expect(record.history.contains { $0.what.contains("may be cut") } == !isProven)
        #expect(try await #require(bench.messager.record(.id(id))).lengthVerified == record.lengthVerified)
        let asks = bench.sent("Range")
        #expect(asks.count == 2 && asks[0] == "-" && asks[1].hasPrefix("bytes="))
    }

    @Test("a digest decides without another request")
    func digest() async throws {
        let bench = try await bench(.refused, sent: Self.content.count)
        try await bench.completed("a") {
            $0.options.checksum = try? Checksum(.sha256, hex: Bytes.sha256(Self.content))
        }
        #expect(bench.transport.requests.count == 1)
    }
}
