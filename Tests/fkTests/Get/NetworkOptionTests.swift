import Foundation
import TestSupport
import Testing

@testable import fk

@Suite("Signatures for S3, name servers and HTTP/3, end to end")
struct NetworkOptionTests {
    private static let variables = [
        "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "very-secret", "AWS_SESSION_TOKEN": "session-token",
    ]

    @Test("--aws-sigv4 signs each request; another origin gets nothing, and the record has no credentials")
    func signature() async throws {
        let sandbox = try Sandbox(environment: Self.variables)
        let server = try FaultServer()
        let other = try FaultServer()
        server.route("/bucket/a") { $0.index == 0 ? .status(503) : .redirect(to: other.url("/a")) }
        other.route("/a") { _ in .ok([1, 2, 3]) }
        try await sandbox.done("get", server.url("/bucket/a"), "--aws-sigv4", "aws:amz:eu-west-1:s3")
        #expect(try sandbox.bytes("a") == [1, 2, 3])
        let asked = server.requests("/bucket/a")
        #expect(asked.count == 2)
        for request in asked {
            #expect(request["Authorization"]?.contains("Credential=AKID/") == true)
            #expect(request["Authorization"]?.contains("/eu-west-1/s3/aws4_request") == true)
            #expect(request["x-amz-security-token"] == "session-token")
        }
        #expect(other.requests.allSatisfy { $0["Authorization"] == nil && $0["x-amz-security-token"] == nil })
        let raw = try await sandbox.done("info", "a", "--raw").output
        for secret in Self.variables.values { #expect(!raw.contains(secret)) }
    }

    @Test("--aws-sigv4 without credentials, with another login or another provider is refused")
    func refused() async throws {
        let none = try await Sandbox(environment: ["HOME": "/nonexistent"]).fk(
            "get", "http://h/a", "--aws-sigv4", "aws")
        #expect(none.status == 2 && none.errors.contains("AWS_ACCESS_KEY_ID"), "\(none.errors)")
        let sandbox = try Sandbox(environment: Self.variables)
        #expect(try await sandbox.fk("get", "http://h/a", "--aws-sigv4", "aws", "--user", "a:b").status == 2)
        #expect(try await sandbox.fk("get", "http://h/a", "--aws-sigv4", "a b").status == 2)
    }

    @Test("what libcurl lacks is refused before anything is fetched, and by the transport")
    func lacking() async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        server.route("/a") { _ in .ok([1]) }
        var http3 = TransportOptions()
        http3.httpVersion = .http3
        var servers = TransportOptions()
        servers.dnsServers = "127.0.0.1"
        for (words, options) in [(["--http3"], http3), (["--dns-servers", "127.0.0.1:53"], servers)] {
            let result = try await sandbox.fk(["get", server.url("/a")] + words)
            guard let lack = TransportLibrary.lack(for: options) else { continue }
            #expect(result.status == 2 && result.errors.contains(lack), "\(result.errors)")
        }
        #expect(try await sandbox.fk("get", server.url("/a"), "--doh-url", "http://h/").errors.contains("no https URL"))
        #expect(try await sandbox.fk("get", server.url("/a"), "--dns-servers", "a b").errors.contains("name servers"))
    }

    @Test("--doh-url looks a name up over https", .enabled(if: Program.find("python3") != nil))
    func lookUp() async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        server.route("/a") { _ in .ok([1, 2, 3]) }
        let certificates = try TestCertificates()
        let names = try await NameServer(certificates)
        let url = try #require(URLComponents(string: server.url("/a"))?.port).description
        let words = ["get", "http://files.example:\(url)/a", "--doh-url", names.url]
        #expect(try await sandbox.fk(words + ["--retry", "0"]).status == 1, "an unknown authority")
        try await sandbox.done(words + ["--cacert", certificates.caFile])
        #expect(try sandbox.bytes("a") == [1, 2, 3])
    }
}

/// A server for DNS over HTTPS: every name has the address 127.0.0.1.
private final class NameServer {
    let url: String
    private let child: ChildProcess

    init(_ certificates: TestCertificates) async throws {
        let folder = try TemporaryFolder()
        let script = """
            import http.server, ssl, struct, sys
            class Handler(http.server.BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"
                def do_POST(self):
                    query = self.rfile.read(int(self.headers["Content-Length"]))
                    end = query.index(0, 12) + 5
                    isAddress = query[end - 4:end - 2] == bytes([0, 1])
                    answer = query[:2] + bytes([0x81, 0x80, 0, 1, 0, isAddress, 0, 0, 0, 0]) + query[12:end]
                    if isAddress: answer += struct.pack(">HHHIH4B", 0xc00c, 1, 1, 60, 4, 127, 0, 0, 1)
                    self.send_response(200)
                    self.send_header("Content-Type", "application/dns-message")
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                def log_message(self, *words): pass
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[1], sys.argv[2])
            server.socket = context.wrap_socket(server.socket, server_side=True)
            print(server.server_address[1], flush=True)
            server.serve_forever()
            """
        let output = "\(folder.path)/port"
        child = try ChildProcess(
            [
                try #require(Program.find("python3")), "-c", script, certificates.certificate(.good),
                certificates.key(.good),
            ], output: .file(output))
        let port = try #require(
            try await eventually {
                (try? String(contentsOfFile: output, encoding: .utf8)).flatMap { $0.hasSuffix("\n") ? $0 : nil }
            })
        url = "https://localhost:\(port.dropLast())/dns-query"
    }

    deinit {
        kill(child.pid, SIGKILL)
        _ = child.end()
    }
}
