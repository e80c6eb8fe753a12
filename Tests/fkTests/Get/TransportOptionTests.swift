import TestSupport
import Testing

@testable import fk

@Suite("The choice of a transport, end to end") struct TransportOptionTests {
    @Test("A saved transport moves the bytes, also of a resumed file; libcurl and URLSession tell a server apart")
    func saved() async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        let content = Bytes.pattern(count: 2_000_000)
        server.route("/a.bin") { request in
            let whole = FaultResponse.ranged(content, for: request, etag: "\"1\"")
            return request.index == 0 ? whole.cut(at: 700_000) : whole
        }
        server.serve("/b.bin", content)
        try await sandbox.done("config", "set", "transport", "urlsession")
        try await sandbox.done("get", server.url("/a.bin"))
        #expect(try sandbox.bytes("a.bin") == content)
        #expect(server.requests.map { $0["Range"] } == [nil, "bytes=700000-"])
        // FoundationNetworking adds the language of the user, libcurl does not.
        #expect(server.requests.allSatisfy { $0["Accept-Language"] != nil })
        try await sandbox.done("get", server.url("/b.bin"), "--transport", "curl")
        #expect(server.requests("/b.bin")[0]["Accept-Language"] == nil)
    }
}
