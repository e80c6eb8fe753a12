import FKCore
import FKRPC
import TestSupport
import Testing

@testable import FKWeb

@Suite("RPC server")
struct RPCServerTests {
    private static let version = #"{"id":1,"method":"aria2.getVersion"}"#

    @Test("paths, methods and lengths have their statuses") func statuses() async throws {
        let server = try await RPCProcess()
        func status(_ line: String, _ fields: [String] = [], body: String? = nil, host: String = "localhost")
            async throws -> Int?
        {
            let answer = try await server.exchange(line, fields, body: body, host: host)
            return Int(answer.dropFirst(9).prefix(3))
        }
        #expect(try await status("POST /jsonrpc", body: Self.version) == 200)
        #expect(try await status("POST /jsonrpc", body: #"{"id":1,"method":"x"}"#) == 404)
        #expect(try await status("POST /jsonrpc", body: "{") == 400)
        #expect(try await status("POST /jsonrpc", body: "") == 400)
        #expect(try await status("POST /jsonrpc") == 411)
        let refusal = try await server.exchange("POST /jsonrpc", ["Content-Length: 2097153"])
        #expect(refusal.hasPrefix("HTTP/1.1 413 ") && refusal.contains("\r\nContent-Type: application/json-rpc\r\n"))
        #expect(refusal.contains(#""error":{"code":-32600,"message":"The request is too large: at most 2097152 bytes"#))
        #expect(try await status("POST /jsonrpc", ["Content-Length: 99999999999999999999"]) == 411)
        #expect(try await status("GET /jsonrpc?method=aria2.getVersion&id=1") == 200)
        #expect(try await status("GET /jsonrpc") == 400)
        #expect(try await status("GET /nope") == 404)
        #expect(try await status("GET /../../etc/passwd") != 200)
        #expect(try await status("POST /rpc", body: "<a/>") == 404)
        #expect(try await status("POST /jsonrpc", body: Self.version, host: "evil.example") == 403)
        #expect(try await status("POST /jsonrpc", ["Origin: http://evil.example"], body: Self.version) == 403)
        #expect(try await status("POST /jsonrpc", ["Origin: null"], body: Self.version) == 403)
        #expect(
            try await status("POST /jsonrpc", ["Origin: http://localhost:\(server.port)"], body: Self.version) == 200)
        try await server.end()
    }

    @Test("a foreign origin runs nothing") func foreign() async throws {
        let server = try await RPCProcess()
        _ = try await server.exchange(
            "POST /jsonrpc", ["Origin: http://evil.example"],
            body: #"{"id":1,"method":"aria2.addUri","params":[["http://h/a"],{"pause":"true"}]}"#)
        #expect(try await server.call("aria2.tellWaiting", 0, 10) == [])
        let head = try await offPool { try RawClient(port: server.port).upgrade("Origin: http://evil.example\r\n") }
        #expect(head.hasPrefix("HTTP/1.1 403"))
        try await server.end()
    }

    @Test("the page is served with a policy, and an allowed origin may read answers") func page() async throws {
        let server = try await RPCProcess(["--no-secret", "--allow-origin", "https://ok.example"])
        for path in ["/", "/page.css", "/page.js"] {
            let answer = try await server.exchange("GET \(path)")
            #expect(answer.hasPrefix("HTTP/1.1 200") && answer.contains("Content-Security-Policy: default-src 'none'"))
        }
        let index = try Repository.text("Sources/FKWeb/Page/index.html")
        #expect(try await server.exchange("GET /").hasSuffix("\r\n\r\n" + index))
        let flight = try await server.exchange(
            "OPTIONS /jsonrpc",
            [
                "Origin: https://ok.example", "Access-Control-Request-Method: POST",
                "Access-Control-Request-Headers: x-a",
            ])
        #expect(flight.contains("Access-Control-Allow-Origin: https://ok.example\r\n"))
        #expect(flight.contains("Access-Control-Allow-Headers: x-a\r\n"))
        let answer = try await server.exchange("POST /jsonrpc", ["Origin: https://ok.example"], body: Self.version)
        #expect(answer.contains("Access-Control-Allow-Origin: https://ok.example\r\n"))
        try await server.end()
    }

    @Test("the first start makes a secret that only the user can read; a wrong one costs a second") func secret()
        async throws
    {
        var server = try await RPCProcess([])
        let path = server.folder.file("work/rpc-secret").path
        let secret = try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .newlines)
        #expect(secret.count == 32)
        // The output is no terminal, but a log that others may read.
        let logs = try FileManager.default.contentsOfDirectory(atPath: server.folder.url.path)
            .filter { $0.hasPrefix("output-") }
        for log in logs {
            let text = String(decoding: try server.folder.read(log), as: UTF8.self)
            #expect(text.contains("secret: in ") && !text.contains(secret), "\(text)")
        }
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(try await server.call("aria2.getVersion", .string("token:\(secret)"))["version"] != nil)
        let start = ContinuousClock.now
        #expect(try await server.call("aria2.getVersion", "token:x")["message"] == "Unauthorized")
        #expect(ContinuousClock.now - start >= .milliseconds(950))
        try await server.end()
        server = try await RPCProcess([], folder: server.folder)
        #expect(try await server.call("aria2.getVersion", .string("token:\(secret)"))["version"] != nil)
        try await server.end()
    }

    @Test("a browser's page of another site adds nothing without a secret") func crossSite() async throws {
        let server = try await RPCProcess()
        let params = Data(#"[["http://127.0.0.1:1/a"],{"pause":"true"}]"#.utf8).base64EncodedString()
        let line = "GET /jsonrpc?method=aria2.addUri&id=1&params=\(params)"
        for fields in [["Sec-Fetch-Site: cross-site"], ["Sec-Fetch-Site: same-site"]] {
            #expect(try await server.exchange(line, fields).hasPrefix("HTTP/1.1 403"))
            #expect(try await server.exchange("GET /", fields).hasPrefix("HTTP/1.1 403"))
        }
        for fields in [["Sec-Fetch-Site: none"], ["User-Agent: Mozilla/5.0"]] {
            #expect(try await server.exchange(line, fields).hasPrefix("HTTP/1.1 400"))
        }
        #expect(try await server.call("aria2.tellWaiting", 0, 10) == [])
        #expect(try await server.exchange(line).hasPrefix("HTTP/1.1 200"))
        try await server.end()
    }

    @Test("a kill loses neither tasks nor gids nor order") func kill() async throws {
        var server = try await RPCProcess()
        var gids: [JSON] = []
        for index in 0..<4 {
            gids.append(
                try await server.call(
                    "aria2.addUri", [.string("http://h/\(index)")],
                    .members(["pause": "true", "gid": .string("000000000000000\(index + 1)")])))
        }
        _ = try await server.call("aria2.changePosition", gids[3], 0, "POS_SET")
        _ = try await server.call("aria2.remove", gids[1])
        try await server.end(SIGKILL)
        server = try await RPCProcess(folder: server.folder)
        let waiting = try await server.call("aria2.tellWaiting", 0, 10, ["gid"])
        #expect(waiting.array?.compactMap { $0["gid"] } == [gids[3], gids[0], gids[2]])
        #expect(try await server.call("aria2.tellStatus", gids[1])["status"] == "removed")
        try await server.end()
    }

    @Test("downloads go on after a kill in their middle, and the files are right") func killInTheMiddle() async throws {
        let files = try FaultServer()
        let body = Bytes.pattern(count: 3 << 20)
        let gate = Gate()
        for name in ["a", "b"] {
            files.route("/\(name)") { request in
                let response = FaultResponse.ranged(body, for: request, etag: "\"1\"")
                return request["Range"] == nil ? response.stalling(at: 2 << 20, until: gate) : response
            }
        }
        let words = ["--no-secret", "-x", "1"]
        var server = try await RPCProcess(words)
        for name in ["a", "b"] { _ = try await server.call("aria2.addUri", [.string(files.url("/\(name)"))]) }
        let paused = try await server.call("aria2.addUri", [.string(files.url("/c"))], .members(["pause": "true"]))
        let arrived = try await eventually { [server] in
            let lists = try await server.call("aria2.tellActive", ["completedLength"]).array ?? []
            return lists.count == 2 && lists.allSatisfy { ($0["completedLength"]?.string).flatMap(Int.init) == 2 << 20 }
                ? true : nil
        }
        #expect(arrived == true)
        try await server.end(SIGKILL)
        gate.open()
        server = try await RPCProcess(words, folder: server.folder)
        let ended = try await eventually { [server] in
            let lists = try await server.call("aria2.tellStopped", 0, 10, ["status"]).array ?? []
            return lists.count == 2 && lists.allSatisfy { $0["status"] == "complete" } ? true : nil
        }
        #expect(ended == true)
        for name in ["a", "b"] {
            #expect(try server.folder.read("downloads/\(name)") == body)
            // Nearly everything was kept.
            let ranges = files.requests("/\(name)").compactMap { $0["Range"] }
            #expect(ranges.count == 1, "\(ranges)")
            let start = ranges.first.flatMap { Int($0.dropFirst("bytes=".count).prefix { $0.isNumber }) } ?? 0
            #expect(start >= (2 << 20) - (64 << 10), "\(ranges)")
        }
        #expect(try await server.call("aria2.tellStatus", paused)["status"] == "paused")
        try await server.end()
    }

    @Test("without libwebsockets the package is named that has it")
    func missingLibrary() throws {
        let missing = #expect(throws: WebSocketsLibrary.Missing.self) {
            try WebSocketsLibrary.open(["libnothing-of-this-name.so.1"])
        }
        let message = try #require(missing).message
        for word in ["libwebsockets17", "libwebsockets19t64", "EPEL"] { #expect(message.contains(word)) }
        // A library that is another one is refused by what it lacks.
        let other = #expect(throws: WebSocketsLibrary.Missing.self) {
            try WebSocketsLibrary.open(["libc.so.6", "/usr/lib/libSystem.dylib"])
        }
        #expect(try #require(other).message.contains("lws_"))
    }

    @Test("no command but fk rpc loads libwebsockets") func loadedLate() async throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            ["/bin/sh", "-c", "LD_DEBUG=files exec \"$0\" list --work-path \"$1\" 2>&1", RPCProcess.fk, folder.path],
            folder: folder.path, output: .file(folder.file("output").path))
        #expect(try await offPool { child.end() } == 0)
        #expect(!String(decoding: try folder.read("output"), as: UTF8.self).contains("libwebsockets"))
    }

    @Test("forceShutdown ends within two seconds with status 0", arguments: ["aria2.shutdown", "aria2.forceShutdown"])
    func shutdown(method: String) async throws {
        let server = try await RPCProcess()
        let start = ContinuousClock.now
        #expect(try await server.call(method) == "OK")
        #expect(try await offPool { server.child.end() } == 0)
        #expect(ContinuousClock.now - start < .seconds(10))
    }

    @Test(
        "refused options end with 2 and name what is missing",
        arguments: [
            (["--listen", "0.0.0.0:0"], "needs TLS"), (["--listen", "0.0.0.0:0", "--no-secret"], "needs a secret"),
            (["--cert", "/nope"], "--key FILE"), (["--cert", "/nope", "--key", "/nope"], "/nope cannot be read"),
            (["--listen", "x"], "an address and a port"), (["--nope"], "--nope"),
            (["--secret-file", "/nope"], "/nope"),
            (["-d", ""], "-d"),
        ]) func refused(words: [String], reason: String) async throws
    {
        let (status, output) = try await RPCProcess.run(words)
        #expect(status == 2 && output.contains(reason), "\(status) \(output)")
    }

    @Test("an address in use is named") func busyPort() async throws {
        let server = try await RPCProcess()
        let (status, output) = try await RPCProcess.run(["--no-secret", "--listen", "127.0.0.1:\(server.port)"])
        #expect(status == 2 && output.contains("Address already in use"), "\(output)")
        try await server.end()
    }

    @Test(
        "with a certificate calls are encrypted",
        .enabled(if: Program.find("openssl") != nil && Program.find("curl") != nil))
    func encrypted() async throws {
        let folder = try TemporaryFolder()
        try Program.run(
            "openssl",
            [
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                "subjectAltName=IP:127.0.0.1", "-keyout", folder.file("key.pem").path, "-out",
                folder.file("cert.pem").path,
            ])
        let server = try await RPCProcess(
            ["--no-secret", "--cert", folder.file("cert.pem").path, "--key", folder.file("key.pem").path])
        let answer = try await offPool {
            try Program.run(
                "curl",
                [
                    "-sS", "--cacert", folder.file("cert.pem").path, "-d", Self.version,
                    "https://127.0.0.1:\(server.port)/jsonrpc",
                ])
        }
        #expect(answer.contains(#""version":"\#(FKCore.Version.text)""#))
        try await server.end()
    }
}
