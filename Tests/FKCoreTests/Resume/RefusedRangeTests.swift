import TestSupport
import Testing

/// A server breaks the first transfer off, and then refuses every range.
@Suite("Refused ranges")
struct RefusedRangeTests {
    private static let content = Bytes.pattern(count: 900_000)

    private func server(_ status: Int, plain: Int? = nil) throws -> FaultServer {
        let server = try FaultServer()
        server.route("/a") { request in
            guard request.index > 0 else {
                return FaultResponse.ranged(Self.content, for: request, etag: "\"1\"").cut(at: 300_000)
            }
            if request["Range"] != nil { return .status(status) }
            return plain.map { .status($0) } ?? .ranged(Self.content, for: request, etag: "\"1\"")
        }
        return server
    }

    @Test(
        "the whole file is asked for before it is a failure", arguments: [400, 403, 405, 406, 412, 417, 500, 501],
        [1, 4])
    func refused(_ status: Int, _ connections: Int) async throws {
        let server = try server(status)
        let live = try LiveBench { $0.connections = .fixed(connections) }
        let info = try await live.fetch(server.url("/a"))
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a") == Self.content)
    }

    @Test("without another attempt too, and a later command begins again", arguments: [400, 500])
    func once(_ status: Int) async throws {
        let server = try server(status)
        let live = try LiveBench { $0.retry.maxAttempts = 1 }
        #expect(try await live.fetch(server.url("/a")).error?.code == .incompleteBody)
        let info = try await live.fetch(server.url("/a"))
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a") == Self.content)
    }

    @Test(
        "where the whole file is refused as well, that error counts, the bytes stay, and nothing is asked for ever",
        arguments: [(400, 404), (403, 403), (403, 404), (405, 401), (500, 500)] as [(range: Int, plain: Int)])
    func both(_ statuses: (range: Int, plain: Int)) async throws {
        let server = try server(statuses.range, plain: statuses.plain)
        let live = try LiveBench { $0.retry.maxAttempts = 2 }
        let info = try await live.fetch(server.url("/a"))
        #expect(info.error?.status == statuses.plain && info.count.received == 300_000)
        #expect(server.requests.count <= 6, "\(server.requests.count)")
        let count = server.requests.count
        let again = try await live.fetch(server.url("/a"))
        #expect(again.error?.status == statuses.plain && server.requests.count > count)
    }

    @Test("412 to If-Range: the range without it, and the stored bytes stay")
    func precondition() async throws {
        let server = try FaultServer()
        server.route("/a") { request in
            if request["If-Range"] != nil { return .status(412) }
            let answer = FaultResponse.ranged(Self.content, for: request, etag: "\"1\"")
            return request.index == 0 ? answer.cut(at: 300_000) : answer
        }
        for connections in [1, 4] {
            let live = try LiveBench { $0.connections = .fixed(connections) }
            let info = try await live.fetch(server.url("/a"))
            #expect(info.state == .complete, "\(String(describing: info.error))")
            #expect(try live.out("a") == Self.content)
        }
        #expect(server.requests[2]["Range"] == "bytes=300000-" && server.requests[2]["If-Range"] == nil)
    }

    @Test("a 206 whose lengths contradict each other: the range once more, then one stream")
    func contradiction() async throws {
        let server = try FaultServer()
        server.route("/a") { request in
            let answer = FaultResponse.ranged(Self.content, for: request, etag: "\"1\"")
            if request.index == 0 { return answer.cut(at: 300_000) }
            guard request["Range"] != nil else { return answer }
            let head = "HTTP/1.1 206 Partial Content\r\nETag: \"1\"\r\nContent-Range: bytes 300000-899999/900000\r\n"
            return .raw([.text(head + "Content-Length: 900000\r\n\r\n"), .send(Self.content), .close])
        }
        let live = try LiveBench()
        let info = try await live.fetch(server.url("/a"))
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a") == Self.content)
        #expect(server.requests.map { $0["Range"] } == [nil, "bytes=300000-", "bytes=300000-", nil])
    }
}
