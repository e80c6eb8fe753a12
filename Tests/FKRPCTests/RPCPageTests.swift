import TestSupport
import Testing

@testable import FKRPC

@Suite("RPC methods of the page")
struct RPCPageTests {
    @Test("a list is filtered, sorted and cut in one call, with its sums") func tasks() async throws {
        let fixture = try await RPCFixture(isActive: false)
        let urls = JSON.array((0..<30).map { .string("http://h\($0 % 3)/file-\(String(format: "%02d", $0)).bin") })
        let added = try await fixture.call("fk.add", .members(["urls": urls, "barrel": "isos", "paused": true]))
        #expect(added.array?.count == 30)
        #expect(
            added.array?.allSatisfy { $0["error"] == .null && $0["new"] == true && $0["state"] == "suspend" } == true)
        var page = try await fixture.call("fk.tasks", .members(["limit": 5, "offset": 10]))
        #expect(page["total"] == 30 && page["offset"] == 10 && page["tasks"]?.array?.count == 5)
        #expect(page["tasks"]?.array?.first?["name"] == "file-10.bin")
        #expect(page["states"]?["suspend"] == 30 && page["isExpectedKnown"] == false)
        page = try await fixture.call(
            "fk.tasks", .members(["text": "FILE-1", "sort": "name", "ascending": false, "barrel": "isos"]))
        #expect(page["total"] == 10 && page["tasks"]?.array?.first?["name"] == "file-19.bin")
        #expect(try await fixture.call("fk.tasks", .members(["states": ["error"]]))["total"] == 0)
        for sort in [
            "queue", "number", "host", "size", "received", "percentage", "bytesPerSecond", "state", "created",
            "finished",
        ] {
            #expect(try await fixture.call("fk.tasks", .members(["sort": .string(sort)]))["total"] == 30)
        }
        let barrels = try await fixture.call("fk.barrels")
        #expect(barrels.array?.first?["name"] == "isos" && barrels.array?.first?["total"] == 30)
    }

    @Test("a file that wants a login is retried with one, which is not shown") func login() async throws {
        let fixture = try await RPCFixture()
        fixture.server.route("/locked") { request in
            request.headers.contains { $0.value == "Basic am9lOnB3" } ? .ok([1, 2, 3]) : .status(401)
        }
        let url = JSON.array([.string(fixture.server.url("/locked"))])
        let gid = try #require(try await fixture.call("aria2.addUri", url).string)
        try await fixture.wait(gid, for: "error")
        let row = try #require(try await fixture.call("fk.tasks")["tasks"]?.array?.first)
        #expect(row["error"]?["message"] == "The server answered 401: it wants a login.")
        let ids = JSON.array([try #require(row["id"])])
        for (user, state) in [("eve", "error"), ("joe", "complete")] {
            let call = JSON.members(["ids": ids, "user": .string(user), "password": "pw"])
            #expect(try await fixture.call("fk.retry", call).array?.first?["after"] == "idle")
            try await fixture.wait(gid, for: state)
        }
        #expect(try await fixture.call("aria2.getOption", .string(gid))["header"] == nil)
    }

    @Test("a failed attempt is in the history, and is no verdict of a middleware") func attempts() async throws {
        let fixture = try await RPCFixture()
        let url = JSON.array([.string(fixture.server.url("/gone"))])
        let gid = try #require(try await fixture.call("aria2.addUri", url).string)
        try await fixture.wait(gid, for: "error")
        let row = try await fixture.call("fk.tasks")["tasks"]?.array?.first
        let details = try await fixture.call("fk.task", .members(["id": try #require(row?["id"])]))
        #expect(details["history"]?.array?.first?["by"] == "attempt 1" && details["verdicts"] == [], "\(details)")
    }

    @Test("barrels that cannot be listed are an error with the folder's name") func barrelFolder() async throws {
        let fixture = try await RPCFixture(isActive: false)
        let folder = fixture.folder.file("work/barrels").path
        try FileManager.default.removeItem(atPath: folder)
        // A link to itself cannot be listed, by root neither.
        try FileManager.default.createSymbolicLink(atPath: folder, withDestinationPath: folder)
        let answer = try await fixture.call("fk.barrels")
        #expect(answer["message"]?.string?.contains(folder) == true, "\(answer)")
    }

    @Test(
        "wrong members are named",
        arguments: [
            ("fk.tasks", #"{"limt":5}"#, "no member limt"), ("fk.tasks", #"{"limit":0}"#, "from 1 to 1000"),
            ("fk.tasks", #"{"sort":"x"}"#, "no order x"), ("fk.tasks", #"{"states":["x"]}"#, "no state x"),
            ("fk.tasks", #"{"states":"x"}"#, "an array"), ("fk.tasks", "5", "takes an object"),
            ("fk.task", "{}", "needs the member id"), ("fk.task", #"{"id":"zz"}"#, "no id of a task"),
            ("fk.task", #"{"id":"abcdef"}"#, "There is no task"), ("fk.add", "{}", "needs urls"),
            ("fk.add", #"{"urls":["http://h/a","http://h/b"],"out":"x"}"#, "single URL"),
            ("fk.suspend", "{}", "needs ids"), ("fk.retry", #"{"all":true,"user":"a"}"#, "a login needs ids"),
            ("fk.retry", #"{"ids":[],"user":""}"#, "a login needs ids and a user"),
            ("fk.rates", #"{"seconds":601}"#, "from 1 to 600"), ("fk.limit", #"{"rate":-1}"#, "rate must be"),
            ("fk.limit", #"{"barrel":"none"}"#, "none"),
            ("fk.import", #"{"text":"nonsense"}"#, "it has no scheme, such as https:// in front of a host"),
            ("fk.subscribe", "{}", "WebSocket"),
        ]) func faults(method: String, params: String, reason: String) async throws
    {
        let fixture = try await RPCFixture(isActive: false)
        let answer = try await fixture.send(#"{"id":1,"method":"\#(method)","params":[\#(params)]}"#)
        #expect(answer.status == 400)
        #expect(answer.json["error"]?["message"]?.string?.contains(reason) == true, "\(answer.json)")
    }

    @Test("verbs, limits, addresses and details of a task") func verbs() async throws {
        let fixture = try await RPCFixture(isActive: false)
        let added = try await fixture.call(
            "fk.add",
            .members([
                "urls": ["http://h/a?token=geheim"], "mirrors": ["http://m/a"], "paused": true, "headers": ["X-A: 1"],
                "checksum": .string("sha-256=" + String(repeating: "0", count: 64)), "rateLimit": 1_000,
            ]))
        let id = try #require(added.array?.first?["id"]?.string, "\(added)")
        var details = try await fixture.call("fk.task", .members(["id": .string(String(id.prefix(8)))]))
        #expect(
            details["state"] == "suspend" && details["reason"] == "it was suspended" && details["rateLimit"] == 1_000)
        #expect(details["mirrors"] == ["http://m/a"] && details["ranges"] == [] && details["history"] == [])
        #expect(details["url"]?.string?.contains("geheim") == false)
        let verb = try await fixture.call("fk.cancel", .members(["ids": [.string(id)]]))
        #expect(verb.array?.first?["after"] == "cancel" && verb.array?.first?["applied"] == true)
        #expect(try await fixture.call("fk.retry", .members(["all": true])).array?.first?["after"] == "idle")
        #expect(try await fixture.call("fk.suspend", .members(["ids": [.string(id)]])).array?.count == 1)
        #expect(
            try await fixture.call("fk.relink", .members(["id": .string(id), "url": "http://n/a"]))["done"] == true)
        details = try await fixture.call("fk.task", .members(["id": .string(id)]))
        #expect(details["url"] == "http://n/a" && details["history"]?.array?.isEmpty == false)
        #expect(details["verdicts"] == [])
        #expect(try await fixture.call("fk.limit", .members(["rate": 5_000])) == .members(["rate": 5_000]))
        #expect(try await fixture.call("fk.limit") == .members(["rate": 5_000]))
        #expect(try await fixture.call("fk.limit", .members(["rate": .null])) == .members(["rate": .null]))
        #expect(try await fixture.call("fk.limit", .members(["id": .string(id), "rate": 7]))["rate"] == 7)
        #expect(try await fixture.call("fk.forget", .members(["ids": [.string(id)]])).array?.count == 1)
        #expect(try await fixture.call("fk.status")["total"] == 0)
        #expect(try await fixture.call("fk.middlewares") == [])
        #expect(try await fixture.call("fk.rates", .members(["seconds": 3]))["samples"]?.array?.count == 3)
    }

    @Test("a bucket that is added as a link is refused with what fetches it") func bucket() async throws {
        let fixture = try await RPCFixture(isActive: false)
        let added = try await fixture.call("fk.add", .members(["urls": ["s3://bucket/a"]]))
        let error = added.array?.first?["error"]?["message"]?.string ?? "\(added)"
        #expect(error == "s3://bucket/a is a source and no link: choose \"All files of a source\" (fk.fetch).")
    }

    @Test("a dropped list is imported, and its bad entries are named by line") func list() async throws {
        let fixture = try await RPCFixture(isActive: false)
        let text = "http://h/a\n  out=x\nftp://h/b\nhttp://h/c\n  dir=/etc\n"
        let result = try await fixture.call(
            "fk.import", .members(["text": .string(text), "barrel": "b", "paused": true, "skipBad": true]))
        #expect(result["added"]?.array?.count == 1, "\(result)")
        #expect(result["faults"]?.array?.count == 2)
        #expect(try await fixture.call("fk.deleteBarrel", .members(["barrel": "b"]))["done"] == true)
        #expect(try await fixture.call("fk.tasks")["tasks"]?.array?.first?["barrels"] == [])
    }

    @Test("a subscription tells of rows in view and of changes of the list, and ends") func subscription() async throws
    {
        let fixture = try await RPCFixture(secret: "s", isActive: false)
        let seen = Observed<[JSON]>([])
        let peer = RPCPeer { bytes in
            guard let json = JSON(parsing: bytes), json["method"] == "fk.onChange" else { return }
            seen.update { $0.append(json["params"]?.array?.first ?? .null) }
        }
        await fixture.service.connect(peer)
        let added = try await fixture.call("fk.add", "token:s", .members(["urls": ["http://h/a"], "paused": true]))
        let id = try #require(added.array?.first?["id"]?.string)
        let status = try await fixture.call(
            "fk.subscribe", "token:s", .members(["ids": [.string(id)], "interval": 0.25]), from: peer)
        #expect(status["total"] == 1)
        _ = await seen.wait { $0.contains { $0["tasks"]?.array?.first?["id"]?.string == id } }
        _ = try await fixture.call("fk.add", "token:s", .members(["urls": ["http://h/b"], "paused": true]))
        _ = await seen.wait { $0.contains { $0["listChanged"] == true && $0["total"] == 2 } }
        _ = try await fixture.call("fk.subscribe", "token:s", .members(["off": true]), from: peer)
    }

    @Test("a verb for many tasks has a result for each, in their order") func many() async throws {
        let fixture = try await RPCFixture(isActive: false)
        let urls = (0..<50).map { JSON.string("http://h/\($0)") }
        let added = try await fixture.call("fk.add", .members(["urls": .array(urls)]))
        let ids = (added.array ?? []).compactMap { $0["id"] }
        #expect(ids.count == 50)
        let results = try await fixture.call("fk.suspend", .members(["ids": .array(ids + [ids[3]])]))
        #expect(results.array?.map { $0["id"] } == ids + [ids[3]])
        #expect(results.array?.map { $0["applied"]?.bool } == [Bool](repeating: true, count: 50) + [false])
        let page = try await fixture.call("fk.tasks", .members(["states": ["suspend"]]))
        #expect(page["total"] == 50)
        let resumed = try await fixture.call("fk.resume", .members(["ids": .array(Array(ids.prefix(7)))]))
        #expect(resumed.array?.count == 7)
        #expect(try await fixture.call("fk.resume", .members(["ids": []])) == [])
        #expect(try await fixture.call("fk.tasks", .members(["states": ["idle"]]))["total"] == 7)
    }

    @Test("the silence of the process that runs the downloads is told") func silence() async throws {
        let folder = try TemporaryFolder()
        let configure = Configure(workPath: folder.file("work"))
        let workPath = WorkPath(configure.workPath)
        try workPath.open(create: true)
        // It holds the lock and shows no sign of life.
        let lock = try #require(try EngineLock.tryAcquire(workPath))
        let downloader = try Downloader(configure, role: .either)
        let service = RPCService(
            downloader, RPCSettings(folders: [folder.path], secret: nil), workPath: configure.workPath.path)
        let now = EngineWatch.now
        for second in stride(from: Int64(-12), through: 0, by: 1) {
            await service.watchEngine(now: now + second * 1_000_000_000)
        }
        let answer = await service.handle(Array(#"{"id":1,"method":"fk.status"}"#.utf8))
        let status = try #require(JSON(parsing: answer.body)?["result"])
        #expect(status["owner"] == "process" && status["ownerPid"] == JSON(Int64(getpid())))
        #expect((status["silentSeconds"]?.integer ?? 0) >= 12, "\(status)")
        lock.release()
        await service.watchEngine(now: now)
        await downloader.close()
        let own = try await RPCFixture()
        #expect(try await own.call("fk.status")["silentSeconds"] == .null)
    }

    @Test("another process's downloads are shown and steered") func follower() async throws {
        let owner = try await RPCFixture()
        let other = try await RPCFixture(folder: owner.folder)
        #expect(try await other.call("fk.status")["owner"] != "nobody")
        let gid = try await other.addPaused("a")
        #expect(try await other.status(gid) == "paused")
        try await owner.wait(gid, for: "paused")
        _ = try await other.call("aria2.remove", .string(gid))
        #expect(try await other.status(gid) == "removed")
        try await owner.wait(gid, for: "removed")
        _ = try await owner.call("aria2.removeDownloadResult", .string(gid))
        let isGone = try await eventually { try await other.status(gid) == nil ? true : nil }
        #expect(isGone == true)
    }
}
