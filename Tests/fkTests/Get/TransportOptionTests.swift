import Foundation
import TestSupport
import Testing

@testable import fk

@Suite("The choice of a transport, end to end", .timeLimit(.minutes(10))) struct EndToEndTransportTests {
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
        #expect(try await sandbox.fk("config", "set", "transport", "urlsession").status == 0)
        let first = try await sandbox.fk("get", server.url("/a.bin"))
        #expect(first.status == 0, "\(first.errors)")
        #expect(try sandbox.bytes("a.bin") == content)
        #expect(server.requests.map { $0["Range"] } == [nil, "bytes=700000-"])
        // FoundationNetworking adds the language of the user, libcurl does not.
        #expect(server.requests.allSatisfy { $0["Accept-Language"] != nil })
        #expect(try await sandbox.fk("get", server.url("/b.bin"), "--transport", "curl").status == 0)
        #expect(server.requests("/b.bin")[0]["Accept-Language"] == nil)
    }

    @Test("An option that URLSession cannot keep fails the file and says so") func refused() async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        server.serve("/a.bin", [1])
        let result = try await sandbox.fk(
            "get", server.url("/a.bin"), "--transport", "urlsession", "--insecure", "--retry", "0")
        #expect(result.status == 1)
        #expect(result.errors.contains("URLSession cannot do this"))
        #expect(server.requests.isEmpty)
    }
}
