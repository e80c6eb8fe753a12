import FKRPC
import TestSupport
import Testing

@Suite("RPC options, addresses and sessions")
struct RPCOptionTests {
    @Test("a limit that a running download gets is shown at once") func liveLimit() async throws {
        let fixture = try await RPCFixture()
        let gate = Gate()
        fixture.server.route("/x") { _ in
            .raw([.text("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nab"), .stall(gate), .close])
        }
        let options = JSON.members(["max-download-limit": "10000"])
        let gid = try await fixture.call("aria2.addUri", [.string(fixture.server.url("/x"))], options)
        try await fixture.wait(try #require(gid.string), for: "active")
        #expect(try await fixture.call("aria2.getOption", gid)["max-download-limit"] == "10000")
        for limit in ["20000", "30000"] {
            let change = JSON.members(["max-download-limit": .string(limit)])
            #expect(try await fixture.call("aria2.changeOption", gid, change) == "OK")
            #expect(try await fixture.call("aria2.getOption", gid)["max-download-limit"] == .string(limit))
        }
        gate.open()
    }

    @Test("the path of a file is empty until its name is known") func unknownPath() async throws {
        let fixture = try await RPCFixture()
        func path(_ gid: String) async throws -> String? {
            try await fixture.call("aria2.getFiles", .string(gid)).array?.first?["path"]?.string
        }
        #expect(try await path(fixture.addPaused("x")) == "")
        let named = try await fixture.addPaused("y", .init("out", "z"))
        #expect(try await path(named) == "\(fixture.downloads)/z")
    }

    @Test(
        "dir and out stay in the folders that were named",
        arguments: [
            ("dir", "/etc"), ("dir", "../x"), ("dir", "/"), ("dir", "DOWNLOADS/../../x"), ("dir", "link"),
            ("out", "../x"), ("out", "/etc/x"), ("out", "link/x"), ("out", "a\u{0}b"),
        ]) func confinement(name: String, value: String) async throws
    {
        let fixture = try await RPCFixture()
        try FileManager.default.createSymbolicLink(
            atPath: fixture.downloads + "/link", withDestinationPath: NSTemporaryDirectory())
        let text = value.replacingOccurrences(of: "DOWNLOADS", with: fixture.downloads)
        let result = try await fixture.call(
            "aria2.addUri", ["http://h/a"], .object([.init(name, .string(text)), .init("pause", "true")]))
        #expect(result["code"] == 1, "\(result)")
        #expect(try await fixture.call("aria2.tellWaiting", 0, 10) == [])
        if name == "dir" {
            #expect(try await fixture.call("aria2.changeGlobalOption", .members(["dir": .string(text)]))["code"] == 1)
            #expect(
                try await fixture.call("fk.add", .members(["urls": ["http://h/a"], "dir": .string(text)])).array?
                    .first?["error"] != .null)
        }
    }

    @Test("subfolders of the named folder are allowed, relative and absolute") func subfolders() async throws {
        let fixture = try await RPCFixture()
        for dir in ["sub", "\(fixture.downloads)/sub", "\(fixture.downloads)/./sub/"] {
            let gid = try await fixture.addPaused(
                "f\(dir.count)", .init("dir", .string(dir)), .init("out", "deep/name"))
            #expect(try await fixture.status(gid, "dir") == "\(fixture.downloads)/sub")
        }
    }

    @Test("out is a path below dir, and each changes alone") func outBelowDir() async throws {
        let fixture = try await RPCFixture()
        let gid = JSON.string(try await fixture.addPaused("x", .init("out", "s/x.iso")))
        func place() async throws -> [String?] {
            let shown = try await fixture.call("aria2.getOption", gid)
            let path = try await fixture.call("aria2.getFiles", gid).array?.first?["path"]?.string
            return [shown["dir"]?.string, shown["out"]?.string, path]
        }
        let folder = fixture.downloads
        #expect(try await place() == [folder, "s/x.iso", "\(folder)/s/x.iso"])
        #expect(try await fixture.call("aria2.changeOption", gid, .members(["dir": "other"])) == "OK")
        #expect(try await place() == ["\(folder)/other", "s/x.iso", "\(folder)/other/s/x.iso"])
        #expect(try await fixture.call("aria2.changeOption", gid, .members(["out": "y.iso"])) == "OK")
        #expect(try await place() == ["\(folder)/other", "y.iso", "\(folder)/other/y.iso"])
    }

    @Test("options of a task: as texts, lists of headers, unknown ones ignored, bad ones refused") func options()
        async throws
    {
        let fixture = try await RPCFixture()
        let gid = try await fixture.addPaused(
            "a", .init("header", ["X-A: 1", "X-B: 2"]), .init("split", "4"), .init("nope", "x"), .init("out", "n.bin"),
            .init("user-agent", "me"), .init("max-download-limit", "10K"), .init("bt-max-peers", 5))
        var shown = try await fixture.call("aria2.getOption", .string(gid))
        #expect(shown["header"] == "X-A: 1\nX-B: 2" && shown["split"] == "4" && shown["out"] == "n.bin")
        #expect(shown["user-agent"] == "me" && shown["max-download-limit"] == "10240" && shown["pause"] == "true")
        let bad = try await fixture.call("aria2.addUri", ["http://h/a"], .members(["split": "abc"]))
        #expect(bad["message"] == "We encountered a problem while processing the option '--split'.")
        #expect(
            try await fixture.call(
                "aria2.changeOption", .string(gid), .members(["max-download-limit": "1M", "header": "X-C: 3"]))
                == "OK")
        shown = try await fixture.call("aria2.getOption", .string(gid))
        #expect(shown["max-download-limit"] == "1048576" && shown["header"] == "X-C: 3" && shown["user-agent"] == "me")
        #expect(try await fixture.status(gid) == "paused")
        #expect(try await fixture.call("aria2.changeOption", .string(gid), .members(["out": "other.bin"])) == "OK")
        #expect(try await fixture.status(gid) == "paused")
        #expect(
            try await fixture.call("aria2.getFiles", .string(gid)).array?.first?["path"]?.string
                == "\(fixture.downloads)/other.bin")
        #expect(try await fixture.call("aria2.changeOption", "00ff", .object([]))["code"] == 1)
    }

    @Test("folder and name cannot change after the first byte") func lateName() async throws {
        let fixture = try await RPCFixture()
        let gate = Gate()
        fixture.server.route("/x") { _ in
            .raw([
                .text("HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n"),
                .send([UInt8](repeating: 1, count: 400_000)), .stall(gate), .close,
            ])
        }
        let gid = try #require(
            try await fixture.call("aria2.addUri", [.string(fixture.server.url("/x"))]).string)
        let received = try await eventually {
            try await fixture.status(gid, "completedLength").flatMap { Int($0) ?? 0 > 0 ? true : nil }
        }
        #expect(received == true)
        let result = try await fixture.call("aria2.changeOption", .string(gid), .members(["out": "y"]))
        #expect(result["code"] == 1 && result["message"]?.string?.contains("bytes have arrived") == true)
        #expect(try await fixture.status(gid) == "active")
        gate.open()
    }

    @Test("addresses are added and removed, the first one too") func addresses() async throws {
        let fixture = try await RPCFixture()
        let gid = try await fixture.addPaused("a")
        let url = fixture.server.url("/a")
        #expect(
            try await fixture.call("aria2.changeUri", .string(gid), 1, [], ["http://m/1", "http://m/2"]) == [0, 2])
        #expect(
            try await fixture.call("aria2.changeUri", .string(gid), 1, [.string(url), "http://m/9"], []) == [1, 0])
        let uris = try await fixture.call("aria2.getUris", .string(gid)).array?.compactMap { $0["uri"]?.string }
        #expect(uris == ["http://m/1", "http://m/2"])
        #expect(try await fixture.status(gid) == "paused")
        #expect(try await fixture.call("aria2.changeUri", .string(gid), 0, [], [])["code"] == 1)
        #expect(
            try await fixture.call("aria2.changeUri", .string(gid), 2, [], [])["message"] == "fileIndex is out of range"
        )
        #expect(
            try await fixture.call("aria2.changeUri", .string(gid), 1, ["http://m/1", "http://m/2"], [])["code"] == 1)
    }

    @Test("changeUri removes each address once, in a list of thousands too")
    func manyAddresses() async throws {
        let fixture = try await RPCFixture(isActive: false)
        let urls = (0..<3_000).map { JSON.string("http://h/\($0)") }
        let options = JSON.members(["pause": "true"])
        let gid = try await fixture.call("aria2.addUri", .array(urls + ["http://h/5", "http://h/5"]), options)
        let removed = urls.dropFirst() + ["http://h/5", "http://nobody/"]
        #expect(try await fixture.call("aria2.changeUri", gid, 1, .array(Array(removed)), []) == [3_000, 0])
        let uris = try await fixture.call("aria2.getUris", gid)
        #expect(Set(uris.array?.compactMap { $0["uri"]?.string } ?? []) == ["http://h/0", "http://h/5"])
    }

    @Test("global options act on later tasks, and limits at once") func globalOptions() async throws {
        let fixture = try await RPCFixture()
        let options: JSON = .members([
            "max-overall-download-limit": "1M", "max-concurrent-downloads": "7", "split": "3", "dir": "later",
            "nope": "1",
        ])
        #expect(try await fixture.call("aria2.changeGlobalOption", options) == "OK")
        let shown = try await fixture.call("aria2.getGlobalOption")
        #expect(shown["max-overall-download-limit"] == "1048576" && shown["max-concurrent-downloads"] == "7")
        #expect(shown["split"] == "3" && shown["nope"] == nil)
        #expect(try await fixture.downloader.control.rateLimit() == 1 << 20)
        #expect(await fixture.downloader.configure.maxAction == 7)
        let gid = try await fixture.addPaused("a")
        #expect(try await fixture.status(gid, "dir") == "\(fixture.downloads)/later")
        #expect(try await fixture.call("aria2.getOption", .string(gid))["split"] == "3")
        #expect(
            try await fixture.call("aria2.changeGlobalOption", .members(["max-concurrent-downloads": "x"]))["code"] == 1
        )
        #expect(
            try await fixture.call("aria2.changeGlobalOption", .members(["max-overall-download-limit": "0"])) == "OK")
        #expect(try await fixture.downloader.control.rateLimit() == nil)
    }

    @Test("no two downloads have one gid, and it stays") func uniqueGIDs() async throws {
        let fixture = try await RPCFixture(isActive: false)
        let first = try await fixture.addPaused("a")
        _ = try await fixture.call("aria2.changeOption", .string(first), .members(["out": "other.bin"]))
        let second = try await fixture.addPaused("a")
        #expect(first != second)
        #expect(try await fixture.call("aria2.remove", .string(second)) == .string(second))
        #expect(try await fixture.status(first) == "paused")
        _ = try await fixture.call("aria2.changeGlobalOption", .members(["save-session": "session.txt"]))
        let third = try await fixture.addPaused("a", .init("out", "third.bin"))
        #expect(Set([first, second, third]).count == 3)
        _ = try await fixture.call("aria2.saveSession")
        let text = String(decoding: try fixture.folder.read("downloads/session.txt"), as: UTF8.self)
        for gid in [first, third] { #expect(text.contains("  gid=\(gid)\n")) }
    }

    @Test("a session has the proxy, the time-out and the tries of a task") func sessionOptions() async throws {
        let fixture = try await RPCFixture(isActive: false)
        _ = try await fixture.addPaused(
            "a", .init("all-proxy", "http://u:p@127.0.0.1:9"), .init("timeout", "5"), .init("max-tries", "1"))
        _ = try await fixture.call("aria2.changeGlobalOption", .members(["save-session": "session.txt"]))
        #expect(try await fixture.call("aria2.saveSession") == "OK")
        let text = String(decoding: try fixture.folder.read("downloads/session.txt"), as: UTF8.self)
        for line in ["all-proxy=http://u:p@127.0.0.1:9", "timeout=5", "max-tries=1"] {
            #expect(text.contains("  \(line)\n"), "\(text)")
        }
    }

    @Test("a session is written as a list that brings tasks, gids and pauses back") func session() async throws {
        let fixture = try await RPCFixture(isActive: false)
        let gid = try await fixture.addPaused("a", .init("header", "X-A: 1"), .init("out", "n"))
        #expect(try await fixture.call("aria2.saveSession") == "OK")
        #expect(try await fixture.call("aria2.changeGlobalOption", .members(["save-session": "/etc/x"]))["code"] == 1)
        _ = try await fixture.call("aria2.changeGlobalOption", .members(["save-session": "session.txt"]))
        #expect(try await fixture.call("aria2.saveSession") == "OK")
        let text = String(decoding: try fixture.folder.read("downloads/session.txt"), as: UTF8.self)
        await fixture.close()
        let other = try await RPCFixture(isActive: false)
        let added = try await other.call(
            "fk.import",
            .members(["text": .string(text.replacingOccurrences(of: fixture.downloads, with: other.downloads))]))
        #expect(added["faults"] == [] && added["added"]?.array?.first?["gid"]?.string == gid, "\(added)")
        #expect(try await other.status(gid) == "paused")
        #expect(try await other.call("aria2.getOption", .string(gid))["header"] == "X-A: 1")
    }

    @Test("a name with line ends brings no option into the session, and its task is reported") func sessionNames()
        async throws
    {
        let fixture = try await RPCFixture(isActive: false)
        _ = try await fixture.addPaused("a", .init("out", "x\n dir=/tmp\n out=y"))
        _ = try await fixture.addPaused("b", .init("dir", "z\n dir=/tmp"))
        let gid = try await fixture.addPaused("c", .init("out", "good"))
        _ = try await fixture.call("aria2.changeGlobalOption", .members(["save-session": "session.txt"]))
        #expect(try await fixture.call("aria2.saveSession") == "OK")
        let lines = String(decoding: try fixture.folder.read("downloads/session.txt"), as: UTF8.self)
            .split(separator: "\n")
        #expect(lines.filter { $0.hasPrefix("http") }.count == 1 && lines.contains("  gid=\(gid)"), "\(lines)")
        #expect(!lines.contains { $0.contains("/tmp") && !$0.contains(fixture.downloads) })
        #expect(fixture.log.withLock { $0.count } == 2)
    }

    @Test("the session replaces a session, and no other file; what lies beside it stays")
    func sessionPlaces() async throws {
        let fixture = try await RPCFixture(isActive: false)
        _ = try await fixture.addPaused("a", .init("out", "n"))
        func set(_ name: String) async throws -> JSON {
            try await fixture.call("aria2.changeGlobalOption", .members(["save-session": .string(name)]))
        }
        let photo: [UInt8] = [0xff, 0xd8, 0xff, 0xe0] + Bytes.pattern(count: 2_000_000)
        let others: [(String, [UInt8])] = [
            ("photo.jpg", photo), ("notes.txt", Array("hello\nworld\n".utf8)), ("#", Array("# only this\n".utf8)),
            ("urls.txt", Array("http://h/a\nhttp://h/b\n".utf8)), ("x", Array("  gid=0123456789abcdef\n".utf8)),
        ]
        for (name, content) in others {
            _ = try fixture.folder.write(content, to: "downloads/\(name)")
            #expect(try await set(name)["message"]?.string?.contains("no session list") == true, "\(name)")
            #expect(try fixture.folder.read("downloads/\(name)") == content)
        }
        #expect(mkfifo(fixture.folder.file("downloads/fifo").path, 0o600) == 0)
        #expect(try await set("fifo")["code"] == 1)
        _ = try fixture.folder.write([1], to: "downloads/s.new")
        _ = try fixture.folder.write([], to: "downloads/s")
        #expect(try await set("s") == "OK")
        for _ in 0..<2 { #expect(try await fixture.call("aria2.saveSession") == "OK") }
        #expect(try fixture.folder.read("downloads/s.new") == [1])
        _ = try fixture.folder.write(photo, to: "downloads/s")
        #expect(try await fixture.call("aria2.saveSession")["code"] == 1)
        #expect(try fixture.folder.read("downloads/s") == photo)
    }

    @Test("options for all tasks are shown without passwords") func hidden() async throws {
        let fixture = try await RPCFixture(isActive: false)
        let secrets = JSON.members([
            "all-proxy": "http://me:geheim@p.example:1", "https-proxy": "http://me:geheim@p.example:1",
            "http-user": "me",
            "http-passwd": "geheim", "referer": "http://me:geheim@h/",
            "header": ["Authorization: geheim", "X-Api-Key: geheim", "Cookie: geheim", "X-A: 1"],
        ])
        #expect(try await fixture.call("aria2.changeGlobalOption", secrets) == "OK")
        let gid = try await fixture.addPaused("a")
        for shown in [
            try await fixture.call("aria2.getGlobalOption"), try await fixture.call("aria2.getOption", .string(gid)),
        ] {
            #expect(!String(decoding: shown.bytes, as: UTF8.self).contains("geheim"), "\(shown)")
            #expect(shown["all-proxy"]?.string?.contains("p.example") == true && shown["header"] == "X-A: 1")
        }
    }

    @Test("the logins of ~/.netrc are not for a proxy that a client names") func netrc() async throws {
        let fixture = try await RPCFixture(isActive: false)
        let url = JSON.array([.string(fixture.server.url("/a"))])
        let proxy = JSON.Member("all-proxy", "http://p.example:1")
        let both = try await fixture.call("aria2.addUri", url, .object([proxy, .init("no-netrc", "false")]))
        #expect(both["message"]?.string?.contains("~/.netrc") == true, "\(both)")
        let gid = try await fixture.addPaused("b", .init("no-netrc", "false"))
        #expect(try await fixture.call("aria2.changeOption", .string(gid), .object([proxy]))["code"] == 1)
        #expect(try await fixture.call("aria2.changeGlobalOption", .object([proxy])) == "OK")
        #expect(try await fixture.call("aria2.addUri", url, .members(["no-netrc": "false"]))["code"] == 1)
    }

    @Test("a partial file is continued by each way to add, if it is below an allowed folder") func adopt() async throws
    {
        let fixture = try await RPCFixture(isActive: false)
        let folder = fixture.downloads
        let url = fixture.server.url("/a")
        let outside = try fixture.folder.write([1], to: "outside.part").path
        #expect(symlink(outside, "\(folder)/link") == 0)
        func ways(_ path: String, _ name: String) async throws -> [JSON] {
            let options = JSON.members(["adopt": .string(path), "out": .string(name), "pause": "true"])
            return [
                try await fixture.call("aria2.addUri", .array([.string(url)]), options),
                try await fixture.call(
                    "fk.add",
                    .members([
                        "urls": [.string(url)], "adopt": .string(path), "out": .string("\(name)2"), "paused": true,
                    ])),
                try await fixture.call(
                    "fk.import",
                    .members(["text": .string("\(url)\n  out=\(name)3\n  adopt=\(path)\n"), "paused": true])),
            ]
        }
        for (path, reason) in [
            (outside, "is not allowed"), ("link", "is not allowed"), ("../outside.part", "is not allowed"),
            ("none", "There is no partial file"), (folder, "There is no partial file"),
        ] {
            for answer in try await ways(path, "x") { #expect("\(answer)".contains(reason), "\(path): \(answer)") }
        }
        _ = try fixture.folder.write([1], to: "downloads/a.part")
        for answer in try await ways("a.part", "y") { #expect(!"\(answer)".contains("partial file"), "\(answer)") }
        let records = try StoreReader(WorkPath(fixture.folder.file("work").path)).records(url: url)
        #expect(records.map { $0.task.options.adopts?.path } == Array(repeating: "\(folder)/a.part", count: 3))
        // It is about one download, and so no option for all new ones.
        _ = try await fixture.call("aria2.changeGlobalOption", .members(["adopt": .string(outside)]))
        let later = try await fixture.call(
            "aria2.addUri", .array([.string(url)]), .members(["out": "z", "pause": "true"]))
        #expect(later.string != nil, "\(later)")
    }

    @Test("a file of certificates is a regular file with certificates below an allowed folder") func caFile()
        async throws
    {
        let fixture = try await RPCFixture(isActive: false)
        func add(_ path: String) async throws -> JSON {
            try await fixture.call(
                "fk.add",
                .members(["urls": [.string(fixture.server.url("/a"))], "caFile": .string(path), "paused": true]))
        }
        let pem = Array("-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n".utf8)
        let outside = try fixture.folder.write(pem, to: "outside.pem").path
        let folder = fixture.downloads
        #expect(mkfifo("\(folder)/fifo", 0o600) == 0 && symlink(outside, "\(folder)/link") == 0)
        _ = try fixture.folder.write([1], to: "downloads/text")
        for (path, reason) in [
            ("\(folder)/fifo", "is not a file"), (folder, "is not a file"), ("\(folder)/none", "cannot be read"),
            ("\(folder)/text", "no certificate"), (outside, "is not allowed"), ("\(folder)/link", "is not allowed"),
            ("\(folder)/../outside.pem", "is not allowed"), ("/dev/zero", "is not allowed"), ("x.pem", "absolute path"),
        ] {
            let answer = try await add(path)
            #expect(answer["message"]?.string?.contains(reason) == true, "\(path): \(answer)")
        }
        _ = try fixture.folder.write(pem, to: "downloads/ca.pem")
        #expect(try await add("\(folder)/ca.pem").array?.count == 1)
    }
}
