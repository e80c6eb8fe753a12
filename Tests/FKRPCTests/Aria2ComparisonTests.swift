import FKRPC
import TestSupport
import Testing

/// The same calls to the real aria2c and to `fk rpc`: statuses, error codes, keys and types of the answers are equal.
@Suite("RPC beside aria2c", .enabled(if: Program.find("aria2c") != nil, "aria2c is not installed"))
struct Aria2ComparisonTests {
    /// A call, with `GID` in the place of the task's.
    private static let calls = [
        "{", "1", "[]", "{}", #"{"id":1}"#, #"{"id":1,"method":5}"#, #"{"id":1,"method":"aria2.getVersion"}"#,
        #"{"id":1,"method":"aria2.getVersion","params":{}}"#,
        #"{"id":null,"method":"aria2.getVersion","params":["token:s"]}"#,
        #"[{"id":1,"method":"aria2.getVersion","params":["token:s"]},7]"#, call("tellStatus", #""GID""#),
        call("tellStatus", #""GID",["gid","status","nope"]"#), call("tellStatus", #""GID","x""#),
        call("tellStatus", "5"),
        call("tellStatus"), call("tellStatus", #""zz""#), call("tellStatus", #""""#), call("tellStatus", #""00ff""#),
        call("getUris", #""GID""#), call("getFiles", #""GID""#), call("getServers", #""GID""#),
        call("getPeers", #""GID""#),
        call("tellWaiting", "0,10"), call("tellWaiting", #"-1,10,["gid"]"#), call("tellWaiting", "100,1"),
        call("tellWaiting", "0,0"), call("tellWaiting", "0,-1"), call("tellWaiting"), call("tellWaiting", #""a",1"#),
        call("tellActive"), call("tellActive", #"["gid"]"#), call("tellStopped", "0,10"), call("addUri", "[]"),
        call("addUri", "[1]"),
        call("addUri", #""x""#), call("addUri", #"["foo"]"#), call("addUri", #"["http://h/a"],{"split":"abc"}"#),
        call("addUri", #"["http://h/a"],{"pause":"true","gid":"xy"}"#), call("addUri", #"["http://h/a"],{},-1"#),
        call("changePosition", #""GID",0,"POS_SET""#), call("changePosition", #""GID",1,"X""#),
        call("changePosition", #""GID","1","POS_SET""#), call("changePosition", #""00ff",1,"POS_SET""#),
        call("changeUri", #""GID",1,[],["http://m/a"]"#), call("changeUri", #""GID",0,[],[]"#),
        call("changeUri", #""GID",2,[],[]"#),
        call("changeOption", #""GID",{"max-download-limit":"10K"}"#),
        call("changeOption", #""GID",{"max-download-limit":"x"}"#),
        call("changeOption", #""GID",{"nope":"x"}"#), call("changeOption", #""GID""#),
        call("changeGlobalOption", #"{"max-overall-download-limit":"1M"}"#), call("changeGlobalOption"),
        call("getGlobalStat"), call("getSessionInfo"), call("pause", #""GID""#), call("pauseAll"),
        call("removeDownloadResult", #""GID""#),
        call("purgeDownloadResult"), call("addMetalink", #""x""#), call("addMetalink", "5"),
        #"{"id":1,"method":"system.listMethods"}"#, #"{"id":1,"method":"system.listNotifications"}"#,
        #"{"id":1,"method":"system.multicall","params":[[{"methodName":"aria2.getVersion","params":["token:s"]},5,{},{"methodName":"system.multicall"}]]}"#,
        #"{"id":1,"method":"system.multicall","params":[5]}"#, #"{"id":1,"method":"system.multicall"}"#,
        call("remove", #""GID""#),
    ]

    private static func call(_ method: String, _ params: String = "") -> String {
        let all = params.isEmpty ? #""token:s""# : #""token:s",\#(params)"#
        return #"{"jsonrpc":"2.0","id":1,"method":"aria2.\#(method)","params":[\#(all)]}"#
    }

    @Test("statuses, codes, keys and types are equal; only 500 becomes 400") func shapes() async throws {
        let folder = try TemporaryFolder()
        try folder.write(Array("s\n".utf8), to: "secret")
        let ours = try await RPCProcess(["--secret-file", folder.file("secret").path])
        let (aria2, port) = try await startAria2(folder)
        var gids: [String] = []
        for port in [port, ours.port] {
            let added = try await answer(port, Self.call("addUri", #"["http://127.0.0.1:1/a"],{"pause":"true"}"#))
            gids.append(try #require(added.json["result"]?.string))
        }
        for call in Self.calls {
            let theirs = try await answer(port, call.replacingOccurrences(of: "GID", with: gids[0]))
            let own = try await answer(ours.port, call.replacingOccurrences(of: "GID", with: gids[1]))
            // What a client sends wrongly is its own fault, also where aria2 says 500.
            #expect(own.status == (theirs.status == 500 ? 400 : theirs.status), "\(call)")
            #expect(shape(own.json) == shape(theirs.json), "\(call)")
        }
        // An option that aria2 has and that is shown here has a text there, too.
        for call in [Self.call("getGlobalOption")] {
            let theirs = try await answer(port, call).json["result"]
            for member in try await answer(ours.port, call).json["result"]?.object ?? [] {
                #expect(member.value.string != nil && theirs?[member.name]?.string != nil, "\(member.name)")
            }
        }
        kill(aria2.pid, SIGKILL)
        _ = try await offPool { aria2.end() }
        try await ours.end()
    }

    /// aria2c cannot choose a port itself, so the test looks for a free one.
    private func startAria2(_ folder: TemporaryFolder) async throws -> (ChildProcess, Int) {
        for _ in 0..<10 {
            let port = Int.random(in: 20_000..<30_000)
            let child = try ChildProcess(
                [
                    try #require(Program.find("aria2c")), "--enable-rpc", "--rpc-secret=s", "--rpc-listen-port=\(port)",
                    "--no-conf", "-q", "-d", folder.path,
                ])
            let isThere = try await eventually(within: 10) {
                (try? await answer(port, Self.call("getVersion")))?.status == 200 ? true : nil
            }
            if isThere == true { return (child, port) }
            kill(child.pid, SIGKILL)
            _ = child.end()
        }
        throw RawClient.Failure(call: "aria2c does not serve its RPC")
    }

    private func answer(_ port: Int, _ body: String) async throws -> (status: Int, json: JSON) {
        let text = try await offPool {
            let client = try RawClient(port: port)
            client.send(
                "POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
            )
            return try client.receiveAll()
        }
        let status = try #require(Int(text.dropFirst(9).prefix(3)), "\(text)")
        let end = try #require(text.range(of: "\r\n\r\n"))
        return (status, try #require(JSON(parsing: Array(text[end.upperBound...].utf8)), "\(text)"))
    }

    /// Keys and types, with the codes of errors. Lists of texts, whose lengths differ, have the shape of their first element.
    private func shape(_ json: JSON) -> String {
        switch json {
        case .null: return "null"
        case .bool: return "bool"
        case .integer, .number: return "number"
        case .string: return "text"
        case .array(let values):
            let isOfTexts = values.allSatisfy { $0.string != nil }
            return "[" + (isOfTexts ? values.prefix(1) : values[...]).map(shape).joined(separator: ",") + "]"
        case .object(let members):
            let sorted = members.sorted { $0.name < $1.name }
            return "{"
                + sorted.map { "\($0.name):\($0.name == "code" ? "\($0.value)" : shape($0.value))" }.joined(
                    separator: ",") + "}"
        case .text: return "JSON"
        }
    }
}
