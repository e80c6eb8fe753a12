import FKCore
import FKManifests
import FKRPC
import TestSupport
import Testing

@Suite("RPC requests")
struct RPCRequestTests {
    @Test(
        "what is no call gets the code of aria2, and status 400 or 404",
        arguments: [
            ("{", 400, -32700), ("1", 400, -32700), ("null", 400, -32600), ("\"x\"", 400, -32600), ("", 400, -32700),
            ("\u{0}", 400, -32700),
            ("{}", 400, -32600), (#"{"id":1}"#, 400, -32600), (#"{"id":1,"method":5}"#, 400, -32600),
            (#"{"method":"aria2.getVersion"}"#, 400, -32600),
            (#"{"id":1,"method":"aria2.getVersion","params":{}}"#, 400, -32602),
            (#"{"id":1,"method":"aria2.getVersion","params":null}"#, 400, -32602),
            (#"{"id":1,"method":"aria2.addTorrent","params":["x"]}"#, 404, -32601),
            (#"{"id":1,"method":"fk.nothing"}"#, 404, -32601),
            (#"{"id":1,"method":"aria2.tellStatus","params":["zz"]}"#, 400, 1),
        ]) func faults(body: String, status: Int, code: Int64) async throws
    {
        let fixture = try await RPCFixture()
        let answer = try await fixture.send(body)
        #expect(answer.status == status)
        #expect(answer.json["error"]?["code"] == .integer(code))
    }

    @Test("the answer to one request has at most 8 MiB; it ends with an error")
    func longAnswer() async throws {
        let fixture = try await RPCFixture()
        let calls = JSON.array(Array(repeating: .members(["methodName": "system.listMethods"]), count: 20_000))
        for body in [
            JSON.members(["id": 1, "method": "system.multicall", "params": .array([calls])]),
            JSON.array(Array(repeating: .members(["id": 1, "method": "system.listMethods"]), count: 20_000)),
        ] {
            let answer = await fixture.service.handle(body.bytes, from: RPCCaller())
            #expect(answer.body.count < RPCService.maxAnswer + 1_000)
            let text = String(decoding: answer.body, as: UTF8.self)
            #expect(text.contains("aria2.addUri") && text.contains("longer than 8 MiB"))
        }
        #expect(try await fixture.call("system.listMethods").array?.isEmpty == false)
    }

    @Test("requests in between do not lengthen the answer to a batch") func longAnswerBesideOthers() async throws {
        let fixture = try await RPCFixture()
        let batch = JSON.array(
            Array(repeating: .members(["id": 1, "method": "aria2.getGlobalOption"]), count: 3_000))
        let isDone = Observed(false)
        let others = Task { [service = fixture.service] in
            let body = Array(#"{"id":1,"method":"aria2.getVersion"}"#.utf8)
            while !isDone.value { _ = await service.handle(body, from: RPCCaller()) }
        }
        let answer = await fixture.service.handle(batch.bytes, from: RPCCaller())
        isDone.update { $0 = true }
        await others.value
        #expect(answer.body.count < RPCService.maxAnswer + 1_000)
    }

    @Test("without the secret, an answer is not longer than its request, or 64 KiB, whatever is asked")
    func unprovenAnswer() async throws {
        let fixture = try await RPCFixture(secret: "s")
        let count = 40_000
        let wrong = #"{"id":1,"method":"aria2.getVersion","params":["token:x"]}"#
        for call in ["{}", #"{"id":1}"#, #"{"id":1,"method":"system.listMethods"}"#, wrong] {
            let body = "[" + Array(repeating: call, count: count).joined(separator: ",") + "]"
            let answer = await fixture.service.handle(Array(body.utf8))
            #expect(answer.body.count <= max(body.utf8.count, 64 << 10) + 1_000, "\(call)")
            #expect(!answer.isAdmitted && JSON(parsing: answer.body)?.array?.isEmpty == false)
        }
        let items = Array(repeating: "{}", count: count).joined(separator: ",")
        let body = #"{"id":1,"method":"system.multicall","params":[[\#(items)]]}"#
        #expect(await fixture.service.handle(Array(body.utf8)).body.count <= body.utf8.count + 1_000)
    }

    @Test("a request is one guess: a batch and a multicall end at the first wrong secret") func oneGuess() async throws
    {
        let fixture = try await RPCFixture(secret: "right")
        func call(_ secret: String) -> JSON {
            .members(["id": 1, "method": "aria2.getVersion", "params": .array([.string("token:\(secret)")])])
        }
        func send(_ json: JSON) async throws -> JSON {
            try await fixture.send(String(decoding: json.bytes, as: UTF8.self)).json
        }
        let secrets = (0..<2_500).map { "guess\($0)" } + ["right"]
        #expect(try await send(.array(secrets.map(call))).array?.count == 1)
        #expect(fixture.delays.withLock { $0 } == 1)
        let mixed = try await send(.array([call("right"), call("wrong"), call("right")])).array
        #expect(mixed?.count == 2 && mixed?.first?["result"] != nil && mixed?.last?["error"] != nil)
        for method in ["aria2.getVersion", "aria2.addUri"] {
            let calls = secrets.map { secret in
                JSON.members(["methodName": .string(method), "params": .array([.string("token:\(secret)")])])
            }
            let multicall = JSON.members(["id": 1, "method": "system.multicall", "params": .array([.array(calls)])])
            #expect(try await send(multicall)["result"]?.array?.count == 1)
            #expect(try await send(.array([multicall, call("right")])).array?.count == 1)
        }
        #expect(fixture.delays.withLock { $0 } == 6)
        #expect(try await fixture.call("aria2.tellWaiting", "token:right", 0, 10) == [])
    }

    @Test("a batch is answered with 200 in its order, and elements that are no objects are left out") func batch()
        async throws
    {
        let fixture = try await RPCFixture()
        let answer = try await fixture.send(
            #"[{"id":"a","method":"nope"},5,{"id":{"x":[1]},"method":"aria2.getVersion"}]"#)
        #expect(answer.status == 200)
        let replies = try #require(answer.json.array)
        #expect(replies.count == 2)
        #expect(replies[0]["error"]?["message"] == "No such method: nope")
        #expect(replies[1]["id"] == .members(["x": [1]]))
        #expect(replies[1]["result"]?["version"]?.string == FKCore.Version.text)
        #expect(try await fixture.send("[]").json == [])
    }

    @Test("results of a multicall are arrays of one, and errors stand alone") func multicall() async throws {
        let fixture = try await RPCFixture(secret: "s")
        let calls: JSON = [
            .members(["methodName": "aria2.getVersion", "params": ["token:s"]]),
            .members(["methodName": "x.y", "params": ["token:s"]]),
            .members(["methodName": "system.multicall", "params": []]), 5, .object([]),
            .members(["methodName": "aria2.tellStatus", "params": ["token:s", "zz"]]),
            .members(["methodName": "aria2.getVersion", "params": []]),
            .members(["methodName": "aria2.getVersion", "params": ["token:s"]]),
        ]
        let results = try #require(try await fixture.call("system.multicall", calls).array)
        #expect(results[0].array?.count == 1)
        #expect(
            results.dropFirst().map { $0["message"]?.string } == [
                "No such method: x.y", "Recursive system.multicall forbidden.",
                "system.multicall expected struct.", "Missing methodName.", "Invalid GID zz", "Unauthorized",
            ])
        #expect(fixture.delays.withLock { $0 } == 1)
        #expect(try await fixture.call("system.multicall", 5)["message"] == "The parameter at 0 has wrong type.")
    }

    @Test("downloads of a multicall are added together, and each call keeps its place, its name and its error")
    func downloads() async throws {
        let fixture = try await RPCFixture(secret: "s")
        func download(_ name: String, _ options: JSON.Member..., at position: JSON? = nil, secret: JSON = "token:s")
            -> JSON
        {
            let options = JSON.object([JSON.Member("pause", "true")] + options)
            let params = [secret, [.string(fixture.server.url(name))], options] + [position].compactMap(\.self)
            return .members(["methodName": "aria2.addUri", "params": .array(params)])
        }
        let calls: JSON = [
            download("/a"), download("/a"), download("/b", JSON.Member("gid", "00000000000000b1")),
            download("/c", JSON.Member("gid", "00000000000000B1")),
            .members(["methodName": "aria2.addUri", "params": ["token:s", []]]),
            .members(["methodName": "aria2.tellStatus", "params": ["token:s", "00000000000000b1", ["status"]]]),
            download("/first", at: 0), download("/last"), download("/c", secret: "token:x"), download("/never"),
        ]
        let results = try #require(try await fixture.call("system.multicall", calls).array)
        let gids = results.map { $0.array?.first?.string }
        #expect(gids[2] == "00000000000000b1" && results[5].array?.first?["status"] == "paused")
        #expect(
            [3, 4, 8].map { results[$0]["message"]?.string } == [
                "GID 00000000000000B1 is used already.", "URI is not provided.", "Unauthorized",
            ])
        #expect(results.count == 9, "the first wrong secret ends it")
        let files = try await fixture.call("aria2.tellWaiting", "token:s", 0, 9).array?.map {
            $0["files"]?.array?.first
        }
        let names = files?.map {
            $0?["uris"]?.array?.first?["uri"]?.string?.split(separator: "/").last.map(String.init)
        }
        #expect(names == ["first", "a", "a", "b", "last"])
        #expect(
            files?[2]?["path"]?.string?.hasSuffix("/a.1") == true, "the second download of a URL has a name of its own")
        #expect(Set(gids.compactMap(\.self)).count == 5)
    }

    @Test("a missing or wrong secret is delayed each time and logged once; a right one is taken off") func secret()
        async throws
    {
        let fixture = try await RPCFixture(secret: "geheim")
        for params: JSON in [[], ["token:"], ["token:geheiM"], ["token:geheim1"], ["geheim"]] {
            let body = JSON.members(["id": 1, "method": "aria2.getVersion", "params": params])
            let answer = try await fixture.send(String(decoding: body.bytes, as: UTF8.self))
            #expect(answer.status == 400)
            #expect(answer.json["error"] == .members(["code": 1, "message": "Unauthorized"]))
        }
        #expect(fixture.delays.withLock { $0 } == 5)
        #expect(fixture.log.withLock { $0.count } == 1)
        #expect(try await fixture.call("aria2.getVersion", "token:geheim")["version"] != nil)
        #expect(try await fixture.call("system.listMethods").array?.contains("aria2.addUri") == true)
        #expect(fixture.delays.withLock { $0 } == 5)
        await fixture.close()
        let open = try await RPCFixture()
        #expect(try await open.call("aria2.getVersion", "token:anything")["version"] != nil)
    }

    @Test("a GET has method, id and params in base64") func get() async throws {
        let fixture = try await RPCFixture(secret: "s")
        let params = Data(#"["token:s"]"#.utf8).base64EncodedString()
        var answer = await fixture.service.handle(query: [
            ("method", "aria2.getVersion"), ("id", "x"), ("params", params),
        ])
        #expect(answer.status == 200)
        #expect(JSON(parsing: answer.body)?["id"] == "x")
        answer = await fixture.service.handle(query: [("method", "aria2.getVersion"), ("params", "%%%")])
        #expect(answer.status == 400)
        // No JSON, and JSON that is no list of parameters.
        for text in ["xyz", "{", "5", "\"a\""] {
            let params = Data(text.utf8).base64EncodedString()
            for query in [[("params", params)], [("method", "aria2.getVersion"), ("params", params)]] {
                let answer = await fixture.service.handle(query: query)
                #expect(answer.status == 400 && JSON(parsing: answer.body)?["error"] != nil, "\(text)")
            }
        }
    }

    @Test("deep nesting is no JSON, and strings may hold brackets") func depth() async throws {
        let deep = String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000)
        #expect(JSON(parsing: Array(deep.utf8)) == nil)
        #expect(JSON(parsing: Array("\"\(deep)\"".utf8)) == .string(deep))
        let most = String(repeating: "[", count: JSON.maxDepth) + String(repeating: "]", count: JSON.maxDepth)
        #expect(JSON(parsing: Array(most.utf8)) != nil)
        let fixture = try await RPCFixture()
        #expect(try await fixture.send(deep).status == 400)
    }

    @Test(
        "values keep their type and their text",
        arguments: [
            "null", "true", "false", "0", "-1", "9223372036854775807", "1.5", "\"\"",
            "\"a\\\"\\\\\\n\\u001b\u{e9}\u{1f600}\"", "[]", "{}", "[1,[true],{\"a\":null}]",
        ]) func roundTrip(text: String) throws
    {
        let json = try #require(JSON(parsing: Array(text.utf8)))
        #expect(JSON(parsing: json.bytes) == json)
        #expect(String(decoding: json.bytes, as: UTF8.self) == text)
    }

    @Test("a thousand calls in one multicall are answered") func manyCalls() async throws {
        let fixture = try await RPCFixture()
        let calls = JSON.array((0..<1_000).map { _ in .members(["methodName": "aria2.getGlobalStat"]) })
        #expect(try await fixture.call("system.multicall", calls).array?.count == 1_000)
    }

    @Test(
        "options of the address that would let strangers in are refused",
        arguments: [
            (["0.0.0.0:1"], "needs TLS"), (["192.168.1.2:1", "no-secret"], "needs a secret"),
            (["::1"], "address and a port"), (["[::]:1"], "needs TLS"), (["example.com:1"], "as a number"),
            (["127.0.0.1:70000"], "address and a port"), ([":1"], "address and a port"),
        ]) func listen(words: [String], reason: String)
    {
        let fault = #expect(throws: ListenOptions.Fault.self) {
            try ListenOptions(listen: words[0], hasNoSecret: words.contains("no-secret"))
        }
        #expect(fault?.message.contains(reason) == true)
    }

    @Test("every page of the Internet is not let in without a secret", arguments: ["*", "null", "NULL", "null/"])
    func openOrigin(origin: String) throws {
        let fault = #expect(throws: ListenOptions.Fault.self) {
            try ListenOptions(hasNoSecret: true, origins: ["https://a.example", origin])
        }
        #expect(fault?.message.contains("--no-secret") == true)
        #expect(try ListenOptions(origins: [origin]).origins == [origin])
        #expect(try ListenOptions(hasNoSecret: true, origins: ["https://a.example"]).hasNoSecret)
    }

    @Test("options of the address that are safe are taken") func safeListen() throws {
        #expect(try ListenOptions().isLoopback)
        #expect(try ListenOptions(listen: "[::1]:0", hasNoSecret: true).url(port: 5) == "http://[::1]:5/")
        #expect(try ListenOptions(listen: "6801").port == 6_801)
        #expect(try ListenOptions(listen: "0.0.0.0:1", isPlain: true).address == "0.0.0.0")
        #expect(
            try ListenOptions(listen: "0.0.0.0:1", certificate: "/c", key: "/k").url(port: 1) == "https://0.0.0.0:1/")
        #expect(throws: ListenOptions.Fault.self) { try ListenOptions(certificate: "/c") }
        #expect(throws: ListenOptions.Fault.self) { try ListenOptions(key: "/k") }
        #expect(throws: ListenOptions.Fault.self) { try ListenOptions(secretFile: "/s", hasNoSecret: true) }
    }

    @Test(
        "foreign hosts and origins are refused",
        arguments: [
            ("localhost:6800", nil, true), ("127.0.0.1", nil, true), ("[::1]:6800", nil, true),
            ("LOCALHOST:6800", nil, true), ("evil.example:6800", nil, false), ("", nil, false),
            ("127.0.0.1.evil.example", nil, false), ("localhost:6800", "http://localhost:6800", true),
            ("127.0.0.1:6800", "http://127.0.0.1:6800", true), ("127.0.0.1:6800", "http://localhost:6800", true),
            ("localhost:6800", "http://localhost:80", false), ("localhost:6800", "https://localhost:6800", false),
            ("localhost:6800", "null", false), ("localhost:6800", "http://evil.example", false),
            ("localhost:6800", "https://ok.example", true), ("localhost:6800", "https://ok.example.evil", false),
        ] as [(String, String?, Bool)]) func access(host: String, origin: String?, isServed: Bool)
    {
        let rules = AccessRules(address: "127.0.0.1", port: 6_800, isSecure: false, origins: ["https://OK.example/"])
        #expect((rules.fault(host: host, origin: origin) == nil) == isServed)
        #expect(rules.fault(host: nil, origin: nil) != nil)
    }

    @Test("all addresses are served by number, never by an unknown name; null may be allowed") func wildcard() {
        let rules = AccessRules(address: "0.0.0.0", port: 1, isSecure: true, origins: ["null"])
        #expect(rules.fault(host: "192.168.1.5:1", origin: "https://192.168.1.5:1") == nil)
        #expect(rules.fault(host: "rebound.example:1", origin: nil) != nil)
        #expect(rules.fault(host: "192.168.1.5:1", origin: "null") == nil)
        #expect(
            AccessRules(address: "127.0.0.1", port: 1, isSecure: false, origins: ["*"])
                .fault(host: "localhost", origin: "http://x") == nil)
    }
}
