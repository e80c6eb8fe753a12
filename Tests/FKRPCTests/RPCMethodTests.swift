import FKManifests
import FKRPC
import TestSupport
import Testing

@Suite("RPC methods")
struct RPCMethodTests {
    private let body = [UInt8](repeating: 7, count: 100_000)

    @Test("a file is added, downloaded and told, and every value is a string") func download() async throws {
        let fixture = try await RPCFixture()
        fixture.server.route("/a.bin") { [body] _ in .ok(body) }
        let result = try await fixture.call("aria2.addUri", [.string(fixture.server.url("/a.bin"))])
        let gid = try #require(result.string)
        #expect(gid.count == 16)
        try await fixture.wait(gid, for: "complete")
        let status = try await fixture.call("aria2.tellStatus", .string(String(gid.prefix(6))))
        for member in try #require(status.object) where member.name != "files" {
            #expect(member.value.string != nil, "\(member.name)")
        }
        #expect(status["totalLength"] == "100000" && status["completedLength"] == "100000")
        #expect(status["errorCode"] == "0" && status["bitfield"] == "80" && status["numPieces"] == "1")
        #expect(status["dir"]?.string == fixture.downloads)
        #expect(status["files"]?.array?.first?["path"]?.string == "\(fixture.downloads)/a.bin")
        #expect(try fixture.folder.read("downloads/a.bin") == body)
        #expect(try await fixture.gids("aria2.tellStopped", 0, 10) == [gid])
        #expect(try await fixture.call("aria2.tellActive") == [])
        #expect(try await fixture.call("aria2.getGlobalStat")["numStopped"] == "1")
    }

    @Test("a download that has just begun is active for a service that starts then") func justBegun() async throws {
        let fixture = try await RPCFixture()
        let hold = DispatchSemaphore(value: 0)
        fixture.server.route("/a.bin") { [body] _ in
            hold.wait()
            return .ok(body)
        }
        let gid = try await fixture.call("aria2.addUri", [.string(fixture.server.url("/a.bin"))])
        try await fixture.wait(try #require(gid.string), for: "active")
        let second = RPCService(
            fixture.downloader, RPCSettings(folders: [fixture.downloads], secret: nil),
            workPath: fixture.folder.file("work").path)
        await second.start()
        let answer = await second.handle(Array(#"{"id":1,"method":"aria2.tellActive","params":[["gid"]]}"#.utf8))
        #expect(JSON(parsing: answer.body)?["result"] == .array([.members(["gid": gid])]))
        hold.signal()
        await second.stop()
    }

    @Test("the same URL twice makes a second task under the next free name") func twice() async throws {
        let fixture = try await RPCFixture()
        fixture.server.route("/a.bin") { [body] _ in .ok(body) }
        var gids: [String] = []
        for _ in 0..<3 {
            let gid = try await fixture.call("aria2.addUri", [.string(fixture.server.url("/a.bin"))])
            gids.append(try #require(gid.string))
            try await fixture.wait(gids[gids.count - 1], for: "complete")
        }
        #expect(Set(gids).count == 3)
        for name in ["a.bin", "a.1.bin", "a.2.bin"] { #expect(try fixture.folder.read("downloads/\(name)") == body) }
    }

    @Test("pause, unpause, remove and removing the result change the lists as aria2 does") func verbs() async throws {
        let fixture = try await RPCFixture()
        let gid = try await fixture.addPaused("x")
        #expect(try await fixture.status(gid) == "paused")
        #expect(fixture.server.requests("/x").isEmpty)
        #expect(
            try await fixture.call("aria2.pause", .string(gid))["message"]?.string == "GID#\(gid) cannot be paused now")
        #expect(try await fixture.call("aria2.removeDownloadResult", .string(gid))["code"] == 1)
        let gate = Gate()
        fixture.server.route("/x") { _ in
            .raw([.text("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), .stall(gate), .close])
        }
        #expect(try await fixture.call("aria2.unpause", .string(gid)).string == gid)
        try await fixture.wait(gid, for: "active")
        #expect(try await fixture.call("aria2.getServers", .string(gid)).array?.first?["servers"]?.array?.count == 1)
        #expect(try await fixture.call("aria2.pause", .string(gid)).string == gid)
        #expect(try await fixture.status(gid) == "paused")
        #expect(try await fixture.call("aria2.unpauseAll") == "OK")
        try await fixture.wait(gid, for: "active")
        #expect(try await fixture.call("aria2.forcePauseAll") == "OK")
        #expect(try await fixture.status(gid) == "paused")
        #expect(try await fixture.call("aria2.remove", .string(gid)).string == gid)
        #expect(try await fixture.status(gid) == "removed")
        #expect(try await fixture.status(gid, "errorCode") == "31")
        #expect(try await fixture.call("aria2.remove", .string(gid))["code"] == 1)
        #expect(try await fixture.call("aria2.removeDownloadResult", .string(gid)) == "OK")
        #expect(
            try await fixture.call("aria2.tellStatus", .string(gid))["message"]?.string == "GID \(gid) is not found")
        gate.open()
    }

    @Test("positions are aria2's, and survive a restart with gids and states") func positions() async throws {
        let folder = try TemporaryFolder()
        var fixture = try await RPCFixture(folder: folder, isActive: false)
        var gids: [String] = []
        for index in 0..<5 { gids.append(try await fixture.addPaused("\(index)")) }
        let own = try await fixture.addPaused("own", .init("gid", "00000000000000AB"))
        #expect(own == "00000000000000ab")
        #expect(try await fixture.gids("aria2.tellWaiting", 0, 10) == gids + [own])
        #expect(try await fixture.call("aria2.changePosition", .string(gids[4]), 0, "POS_SET") == 0)
        #expect(try await fixture.call("aria2.changePosition", .string(gids[0]), 1, "POS_CUR") == 2)
        #expect(try await fixture.call("aria2.changePosition", .string(gids[1]), 0, "POS_END") == 5)
        #expect(try await fixture.call("aria2.changePosition", .string(gids[2]), -100, "POS_CUR") == 0)
        #expect(
            try await fixture.call("aria2.changePosition", .string(gids[2]), 0, "POS_X")["message"]
                == "Illegal argument.")
        let order = [gids[2], gids[4], gids[0], gids[3], own, gids[1]]
        #expect(try await fixture.gids("aria2.tellWaiting", 0, 10) == order)
        let result = try await fixture.call("aria2.addUri", ["http://h/placed"], .members(["pause": "true"]), 1)
        let placed = try #require(result.string)
        #expect(try await fixture.gids("aria2.tellWaiting", 1, 1) == [placed])
        #expect(try await fixture.gids("aria2.tellWaiting", -1, 2) == [gids[1], own])
        _ = try await fixture.call("aria2.remove", .string(gids[3]))
        await fixture.close()
        fixture = try await RPCFixture(folder: folder)
        #expect(
            try await fixture.gids("aria2.tellWaiting", 0, 10)
                == [gids[2], placed, gids[4], gids[0], own, gids[1]])
        #expect(try await fixture.gids("aria2.tellStopped", 0, 10) == [gids[3]])
        #expect(try await fixture.status(own) == "paused")
        #expect(try await fixture.status(gids[3]) == "removed")
    }

    @Test("positions at the edge of 64 bits are the end or refused", arguments: [Int64.max, Int64.max - 1, Int64.min])
    func edges(number: Int64) async throws {
        let fixture = try await RPCFixture(isActive: false)
        let first = try await fixture.addPaused("a")
        let number = JSON.integer(number)
        let xml = """
            <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="a"><size>9223372036854775807</size>\
            <url>http://h/a</url></file><file name="b"><url>http://h/b</url></file></metalink>
            """
        _ = try await fixture.call(
            "aria2.addMetalink", .string(Data(xml.utf8).base64EncodedString()), .members(["pause": "true"]), number)
        _ = try await fixture.call("aria2.addUri", ["http://h/c"], .members(["pause": "true"]), number)
        for how: JSON in ["POS_SET", "POS_CUR", "POS_END"] {
            _ = try await fixture.call("aria2.changePosition", .string(first), number, how)
        }
        _ = try await fixture.call("aria2.changeUri", .string(first), 1, [], ["http://h/z"], number)
        #expect(try await fixture.call("aria2.tellWaiting", number, number).array != nil || number.integer ?? 0 < 0)
        #expect(try await fixture.call("aria2.tellWaiting", 0, 10).array?.isEmpty == false)
    }

    @Test(
        "a file that is there is refused without auto-file-renaming: each request is an ended download with error 13",
        arguments: [[], [JSON.Member("out", "q")]])
    func refused(_ more: [JSON.Member]) async throws {
        let fixture = try await RPCFixture()
        fixture.server.route("/a") { [body] _ in .ok(body) }
        let url = JSON.array([.string(fixture.server.url("/a"))])
        let path = fixture.downloads + (more.isEmpty ? "/a" : "/q")
        let options = JSON.object([.init("auto-file-renaming", "false")] + more)
        var gids: [String] = []
        for status in ["complete", "error", "error"] {
            let gid = try #require(try await fixture.call("aria2.addUri", url, options).string)
            try await fixture.wait(gid, for: status)
            #expect(try await fixture.status(gid, "errorCode") == (status == "error" ? "13" : "0"))
            let files = try await fixture.call("aria2.getFiles", .string(gid))
            #expect(files.array?.first?["path"]?.string == path)
            gids.append(gid)
        }
        #expect(Set(gids).count == 3)
        #expect(fixture.server.requests("/a").count == 1)
        #expect(Set(try await fixture.gids("aria2.tellStopped", 0, 10)) == Set(gids))
        #expect(try await fixture.call("aria2.removeDownloadResult", .string(gids[1])) == "OK")
        #expect(try await fixture.gids("aria2.tellStopped", 0, 10).count == 2)
        #expect(try await fixture.call("aria2.remove", .string(gids[2]))["code"] == 1)
        #expect(try await fixture.call("aria2.unpause", .string(gids[2]))["code"] == 1)
        #expect(try await fixture.status(gids[0]) == "complete")
        #expect(try await fixture.call("aria2.purgeDownloadResult") == "OK")
        #expect(try await fixture.gids("aria2.tellStopped", 0, 10) == [])
        #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.downloads).count == 1)
        // The file alone refuses it too, and without the file it is fetched.
        let foreign = try #require(try await fixture.call("aria2.addUri", url, options).string)
        try await fixture.wait(foreign, for: "error")
        #expect(try await fixture.status(foreign, "errorCode") == "13")
        #expect(unlink(path) == 0)
        let again = try #require(try await fixture.call("aria2.addUri", url, options).string)
        try await fixture.wait(again, for: "complete")
        #expect(unlink(path) == 0)
        let third = try #require(try await fixture.call("aria2.addUri", url, options).string)
        _ = try await eventually { access(path, F_OK) == 0 ? true : nil }
        try await fixture.wait(third, for: "complete")
    }

    @Test("a known file of a Metalink is refused without auto-file-renaming, and the others are added")
    func refusedInMetalink() async throws {
        let fixture = try await RPCFixture(isActive: false)
        func add(_ names: [String]) async throws -> [String] {
            let files = names.map { "<file name=\"\($0)\"><url>http://h/\($0)</url></file>" }.joined()
            let xml = "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\(files)</metalink>"
            let gids = try await fixture.call(
                "aria2.addMetalink", .string(Data(xml.utf8).base64EncodedString()),
                .members(["auto-file-renaming": "false", "pause": "true"]))
            return try #require(gids.array, "\(gids)").compactMap(\.string)
        }
        let first = try await add(["a"])
        let second = try await add(["b", "a", "c"])
        var words: [String?] = []
        for gid in first + second { words.append(try await fixture.status(gid)) }
        #expect(words == ["paused", "paused", "error", "paused"])
        #expect(try await fixture.status(second[1], "errorCode") == "13")
    }

    @Test("a known URL is fetched anew with allow-overwrite") func known() async throws {
        let fixture = try await RPCFixture()
        fixture.server.route("/a") { [body] _ in .ok(body) }
        let url = JSON.array([.string(fixture.server.url("/a"))])
        let gid = try #require(try await fixture.call("aria2.addUri", url).string)
        try await fixture.wait(gid, for: "complete")
        let again = try await fixture.call("aria2.addUri", url, .members(["allow-overwrite": "true"]))
        try await fixture.wait(try #require(again.string, "\(again)"), for: "complete")
        #expect(fixture.server.requests("/a").count == 2)
        let names = try FileManager.default.contentsOfDirectory(atPath: fixture.downloads)
        #expect(names == ["a"], "\(names)")
    }

    @Test("a Metalink makes a task for each file") func metalink() async throws {
        let fixture = try await RPCFixture(isActive: false)
        let xml = """
            <?xml version="1.0"?><metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="a.bin"><size>5</size>\
            <url>http://h/a.bin</url></file><file name="s/b.bin"><url>http://h/b.bin</url></file></metalink>
            """
        let gids = try await fixture.call(
            "aria2.addMetalink", .string(Data(xml.utf8).base64EncodedString()), .members(["pause": "true"]))
        #expect(gids.array?.count == 2, "\(gids)")
        #expect(try await fixture.gids("aria2.tellWaiting", 0, 5).count == 2)
        #expect(try await fixture.call("aria2.addMetalink", "x")["code"] == 1)
        #expect(
            try await fixture.call("aria2.addMetalink", .string(Data("http://h/a".utf8).base64EncodedString()))["code"]
                == 1)
        // An entry that leaves the folder is left out, as in every list.
        let out = xml.replacingOccurrences(of: "s/b.bin", with: "../b.bin")
        let rest = try await fixture.call("aria2.addMetalink", .string(Data(out.utf8).base64EncodedString()))
        #expect(rest.array?.count == 1, "\(rest)")
    }

    @Test("notifications come after the right secret only, once for each change") func notifications() async throws {
        let fixture = try await RPCFixture(secret: "s")
        fixture.server.route("/a") { [body] _ in .ok(body) }
        let seen = Observed<[String]>([])
        let strange = Observed<[String]>([])
        let peer = RPCPeer { bytes in
            let json = JSON(parsing: bytes)
            seen.update {
                $0.append("\(json?["method"]?.string ?? "") \(json?["params"]?.array?.first?["gid"]?.string ?? "")")
            }
        }
        let stranger = RPCPeer { bytes in strange.update { $0.append(String(decoding: bytes, as: UTF8.self)) } }
        await fixture.service.connect(peer)
        await fixture.service.connect(stranger)
        _ = try await fixture.call("aria2.getVersion", "token:x", from: stranger)
        _ = try await fixture.call("aria2.getVersion", "token:s", from: peer)
        let gid = try #require(
            try await fixture.call("aria2.addUri", "token:s", [.string(fixture.server.url("/a"))]).string)
        _ = await seen.wait { $0.contains("aria2.onDownloadComplete \(gid)") }
        #expect(seen.value == ["aria2.onDownloadStart \(gid)", "aria2.onDownloadComplete \(gid)"])
        let other = try #require(
            try await fixture.call(
                "aria2.addUri", "token:s", [.string(fixture.server.url("/none"))], .members(["pause": "true"])
            ).string)
        #expect(seen.value.count == 2)
        _ = try await fixture.call("aria2.unpause", "token:s", .string(other))
        _ = await seen.wait { $0.contains("aria2.onDownloadError \(other)") }
        #expect(seen.value.count == 4)
        #expect(strange.value.isEmpty)
        await fixture.service.disconnect(peer)
    }
}
