import TestSupport
import Testing

@testable import fk

/// `fk get -r` and `fk barrel import` of the folders of web servers.
@Suite("Folders, end to end") struct FolderCommandTests {
    /// Names that listings and URLs write in their own ways.
    static let names = [
        "plain.txt", "with blank.txt", "hash#tag.txt", "ques?tion.txt", "per%cent.txt", "plus+sum.txt",
        "semi;colon.txt",
        "quote\"double.txt", "quote'single.txt", "br[ack]et(s).txt", "umläut-ö.txt", "ampers&and.txt", "lt<gt>.txt",
        "col:on.txt",
        "%41lready.txt", String(repeating: "a", count: 251) + ".txt", "日本語.txt", "tilde~x.txt", "back\\slash.txt",
        "eq=ual@at,comma!.txt", String(repeating: "ü", count: 120) + ".bin",
        "a-name-that-listings-shorten-because-it-has-more-than-fifty-characters.tar.gz", "&amp;.txt", "a%2fb.txt",
        "sub/deep er/x.txt", "sub#2/ques?tion.txt", "umläut/ü.txt", "sub/plain.txt",
    ]

    /// All files below a folder with their bytes.
    static func tree(_ folder: String) throws -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for name in FileManager.default.enumerator(atPath: folder)?.allObjects as? [String] ?? [] {
            var isFolder: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: "\(folder)/\(name)", isDirectory: &isFolder)
            if !isFolder.boolValue {
                files[name] = [UInt8](try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name)")))
            }
        }
        return files
    }

    static func fill(_ folder: TemporaryFolder, _ names: [String] = names) throws {
        for (number, name) in names.enumerated() {
            try folder.write(Bytes.pattern(count: 10 + number, seed: UInt64(number)), to: "pub/\(name)")
        }
    }

    @Test("a saved folder is what the folders of lists are in") func savedFolder() async throws {
        let (server, sandbox) = (try FaultServer(), try Sandbox())
        for name in ["a", "b", "c"] {
            server.route("/\(name)/") { _ in
                .ok(Self.page(["f"]), headers: ["Content-Type": "text/html"])
            }
            server.serve("/\(name)/f", Array(name.utf8))
        }
        server.route("/list.txt") { [base = server.base] _ in .ok(Array("\(base)/a/f\n".utf8)) }
        try await sandbox.done("config", "set", "directory", "base")
        for name in ["a", "b"] { try await sandbox.done("get", "-r", server.url("/\(name)/")) }
        try await sandbox.done("barrel", "import", "pub", server.url("/c/"))
        try await sandbox.done("barrel", "run", "pub")
        try await sandbox.done("get", "-i", server.url("/list.txt"))
        #expect(try sandbox.names() == ["base"])
        for (place, text) in [("a/f", "a"), ("b/f", "b"), ("pub/f", "c"), ("list.txt/f", "a")] {
            #expect(try sandbox.bytes("base/\(place)") == Array(text.utf8))
        }
    }

    @Test(
        "the same files as on the server, with odd names, from every server",
        arguments: FolderServer.Kind.allCases.filter(\.isHere))
    func servers(kind: FolderServer.Kind) async throws {
        let folder = try TemporaryFolder()
        try Self.fill(folder)
        let server = try await FolderServer(kind, root: folder.path)
        let sandbox = try Sandbox()
        // A name with an encoded slash could be read in two ways: it is refused by name, and the others are taken.
        let first = try await sandbox.fk("get", "-r", server.base + "pub/", "-q")
        var expected = try Self.tree("\(folder.path)/pub")
        expected["a%2fb.txt"] = nil
        var found = try Self.tree("\(sandbox.files)/pub")
        found["a%2fb.txt"] = nil
        #expect(found == expected, "\(first.errors)")
        // The same command finds nothing to do.
        let again = try await sandbox.fk("get", "-r", server.base + "pub/", "--dry-run")
        #expect(
            again.output.contains("0 new, 0 changed, \(try Self.tree("\(sandbox.files)/pub").count) same"),
            "\(again.output)")
    }

    @Test("with --no-private a listing is not followed to another private server") func noPrivate() async throws {
        let inner = try server(["pub/": ["x"]])
        let outer = try FaultServer()
        outer.routeOthers { request in
            request.method == "OPTIONS" ? .status(405) : .redirect(to: inner.url(request.path))
        }
        for words in [
            ["get", "-r", outer.url("/pub/"), "--dry-run"], ["barrel", "import", "-r", "pub", outer.url("/pub/")],
        ] {
            let sandbox = try Sandbox()
            let refused = try await sandbox.fk(words + ["--no-private"])
            #expect(refused.status == 1 && inner.requests.isEmpty, "\(words): \(refused.errors)")
            #expect(refused.errors.contains("private"), "\(refused.errors)")
        }
        // The files of the barrel keep it.
        let sandbox = try Sandbox()
        try await sandbox.done("barrel", "import", "-r", "pub", inner.url("/pub/"), "--no-private")
        let record = try #require(try sandbox.reader.records(url: inner.url("/pub/x")).first)
        #expect(record.task.options.noPrivate == true)
    }

    /// A server whose folders have these links.
    private func server(_ folders: [String: [String]]) throws -> FaultServer {
        let server = try FaultServer()
        for (folder, links) in folders {
            server.route("/" + folder) { request in
                request.method == "OPTIONS"
                    ? .status(405) : .ok(Self.page(links), headers: ["Content-Type": "text/html"])
            }
        }
        server.routeOthers { request in
            request.path.hasSuffix("/") || request.path.contains("missing")
                ? .status(404, "Not Found")
                : .ranged(Array(request.path.utf8), for: request, etag: "\"\(request.path)\"")
        }
        return server
    }

    private static func page(_ links: [String]) -> [UInt8] {
        let rows = links.map { "<a href=\"\($0)\">\($0)</a>  26-Nov-2026 18:44  1\n" }.joined()
        return Array("<html><title>Index of /</title><pre><a href=\"../\">../</a>\n\(rows)</pre></html>".utf8)
    }

    @Test("a folder gets its place, its barrel, and both by name")
    func places() async throws {
        let server = try server(["pub/": ["a", "s/"], "pub/s/": ["b"]])
        let sandbox = try Sandbox()
        try await sandbox.done("get", "-r", server.url("/pub/"))
        #expect(try Self.tree(sandbox.files).keys.sorted() == ["pub/a", "pub/s/b"])
        #expect(try await sandbox.json("barrel", "show", "pub").text("origin") == server.url("/pub/"))
        try await sandbox.done("get", "-r", server.url("/pub"), "-d", "other", "-b", "mine", "--exclude", "s/*")
        #expect(try Self.tree("\(sandbox.files)/other").keys.sorted() == ["a"])
        // Two places do not mix in one barrel.
        let other = try self.server(["pub/": ["c"]])
        let refused = try await sandbox.fk("get", "-r", other.url("/pub/"))
        #expect(refused.status == 2 && refused.errors.contains("The barrel pub has the files of"))
        #expect(!sandbox.exists("pub/c"))
        // Import takes the same, and starts nothing.
        try await sandbox.done("barrel", "import", "later", server.url("/pub/"), "--depth", "1")
        #expect(!sandbox.exists("later/a"))
        try await sandbox.done("barrel", "run", "later")
        #expect(try Self.tree("\(sandbox.files)/later").keys.sorted() == ["a"])
        let elsewhere = try await sandbox.fk(
            "barrel", "import", "later", server.url("/pub/"), "--depth", "1", "-d", "zz")
        #expect(elsewhere.errors.contains("The barrel later follows"), "\(elsewhere)")
        #expect(!elsewhere.errors.contains("not in the list any more"), "\(elsewhere)")
    }

    @Test("--dry-run prints a line for each file, and makes nothing")
    func dryRun() async throws {
        let server = try server(["pub/": ["a", "s/"], "pub/s/": ["b b"]])
        let sandbox = try Sandbox()
        let all = try await sandbox.done("get", "-r", server.url("/pub/"), "--dry-run")
        #expect(all.output == "new - a\nnew - s/b b\n2 new, 0 changed, 0 same, 0 gone\n")
        #expect(try sandbox.names() == [] && !FileManager.default.fileExists(atPath: sandbox.workPath + "/barrels"))
        let lines = try await sandbox.done("get", "-r", server.url("/pub/"), "--dry-run", "--include", "a", "--json")
        #expect(lines.output == "{\"name\":\"a\",\"result\":\"new\",\"url\":\"\(server.url("/pub/a"))\"}\n")
        #expect(server.requests.allSatisfy { $0.path.hasSuffix("/") })
    }

    @Test("hostile listings write nothing outside of the folder and ask no other server")
    func hostile() async throws {
        let other = try FaultServer()
        let links = [
            "ok", "../secret", "/etc/passwd", "%2e%2e/x", "..%2fy", "%2e%2e%2f%2e%2e%2fz", other.url("/pub/q"),
            "//127.0.0.1:\(other.port)/pub/r",
            "..\\..\\w", "a%00b", "sub%2f..%2f..%2fv",
        ]
        let server = try server(["pub/": links])
        let sandbox = try Sandbox()
        let result = try await sandbox.fk("get", "-r", server.url("/pub/"))
        #expect(result.status == 1)
        #expect(try Self.tree(sandbox.files).keys.sorted() == ["pub/ok"])
        #expect(other.requests.isEmpty)
        #expect(try FileManager.default.contentsOfDirectory(atPath: sandbox.folder.path).sorted() == ["files", "work"])
        for name in ["%2e%2e/x", "..%2fy", "'..\\..\\w'"] { #expect(result.errors.contains(name), "\(result.errors)") }
    }

    @Test("in a home folder, names that begin with a dot are left out and told")
    func hidden() async throws {
        let server = try server(["pub/": [".bashrc", "a"]])
        let folder = try TemporaryFolder()
        let sandbox = try Sandbox(environment: ["HOME": folder.path])
        let result = try await sandbox.fk("get", "-r", server.url("/pub/"), "-d", folder.path)
        #expect(try Self.tree(folder.path).keys.sorted() == ["a"], "\(result.errors)")
        #expect(result.errors.contains(".bashrc") && result.errors.contains("--hidden"))
        try await sandbox.done("get", "-r", server.url("/pub/"), "-d", folder.path, "--hidden")
        #expect(try Self.tree(folder.path).keys.sorted() == [".bashrc", "a"])
    }

    @Test("a folder that cannot be listed is named, and the rest is fetched")
    func failing() async throws {
        let server = try server(["pub/": ["a", "no/", "s/"], "pub/s/": ["b"]])
        server.route("/pub/cut/") { _ in
            .ok(Array(Self.page(["x", "y"]).dropLast(30)), headers: ["Content-Type": "text/html"])
        }
        let sandbox = try Sandbox()
        let result = try await sandbox.fk("get", "-r", server.url("/pub/"))
        #expect(result.status == 1 && result.errors.contains("'no/'"))
        #expect(try Self.tree("\(sandbox.files)/pub").keys.sorted() == ["a", "s/b"])
        let cut = try await sandbox.fk("get", "-r", server.url("/pub/cut/"))
        #expect(cut.status == 1 && cut.errors.contains("cut off"), "\(cut.errors)")
        #expect(try sandbox.names() == ["pub"])
    }

    @Test("a loop ends at 20 levels, and says so; --depth chooses")
    func loop() async throws {
        let server = try FaultServer()
        server.routeOthers { request in
            request.method == "OPTIONS"
                ? .status(405)
                : request.path.hasSuffix("/")
                    ? .ok(Self.page(["l/", "f"]), headers: ["Content-Type": "text/html"]) : .ok([1])
        }
        let sandbox = try Sandbox()
        let result = try await sandbox.fk("get", "-r", server.url("/pub/"))
        #expect(result.status == 1 && result.errors.contains("deeper than the 20 levels"))
        #expect(try Self.tree("\(sandbox.files)/pub").count == 20)
        try await sandbox.done("get", "-r", server.url("/pub/"), "--depth", "2", "-b", "two", "-d", "two")
        #expect(try Self.tree("\(sandbox.files)/two").keys.sorted() == ["f", "l/f"])
    }

    @Test(
        "errors of the place are said as what they are",
        arguments: [(401, "login"), (403, "does not allow"), (404, "no such folder"), (200, "web page")])
    func errors(status: Int, text: String) async throws {
        let server = try FaultServer()
        server.route("/pub/") { _ in
            status == 200
                ? .ok(Array("<html><title>Hello</title><p>Hi</p></html>".utf8), headers: ["Content-Type": "text/html"])
                : .status(status)
        }
        let sandbox = try Sandbox()
        let result = try await sandbox.fk("get", "-r", server.url("/pub/"), "--retry", "0")
        #expect(result.status == 1 && result.errors.contains(text), "\(result.errors)")
        #expect(try sandbox.names() == [])
    }

    @Test("a wrong login is refused, and not missing") func wrongLogin() async throws {
        let server = try FaultServer()
        server.route("/pub/") { _ in .status(401, headers: ["WWW-Authenticate": "Basic realm=x"]) }
        let sandbox = try Sandbox()
        let result = try await sandbox.fk("get", "-r", server.url("/pub/"), "--user", "u:wrong")
        #expect(result.status == 1 && result.errors.contains("it refuses the login"), "\(result.errors)")
    }

    @Test("a login goes with the listings and the files of its server")
    func login() async throws {
        let server = try FaultServer()
        server.routeOthers { request in
            guard request["Authorization"] == "Basic dTpw" else {
                return .status(401, headers: ["WWW-Authenticate": "Basic realm=x"])
            }
            if request.method == "OPTIONS" { return .status(405) }
            return request.path.hasSuffix("/")
                ? .ok(Self.page(["a"]), headers: ["Content-Type": "text/html"]) : .ok([7])
        }
        let sandbox = try Sandbox()
        #expect(try await sandbox.fk("get", "-r", server.url("/pub/")).status == 1)
        try await sandbox.done("get", "-r", server.url("/pub/"), "--user", "u:p")
        #expect(try sandbox.bytes("pub/a") == [7])
        // A login in the URL is for all of the place, too, and is not shown.
        let inURL = try Sandbox()
        let url = server.url("/pub/").replacing("://", with: "://u:p@")
        let shown = try await inURL.done("get", "-r", url)
        #expect(try inURL.bytes("pub/a") == [7] && !shown.errors.contains("u:p@"), "\(shown.errors)")
        #expect(try await !inURL.done("barrel", "sync", "pub").errors.contains("u:p@"))
        // The barrel keeps the login for the next time, and for its source alone.
        try await sandbox.done("barrel", "sync", "pub")
        let other = try FaultServer()
        other.route("/x") { _ in .ok([1]) }
        try await sandbox.done("barrel", "add", "pub", other.url("/x"))
        try await sandbox.done("barrel", "run", "pub")
        #expect(!other.requests.isEmpty && other.requests.allSatisfy { $0["Authorization"] == nil })
    }

    @Test("a URL whose answer is a listing is saved, and the message names -r")
    func saysListing() async throws {
        let server = try server(["pub/": ["a"]])
        let sandbox = try Sandbox()
        let result = try await sandbox.done("get", server.url("/pub/"))
        #expect(sandbox.exists("pub") && result.errors.contains("fk get -r \(server.url("/pub/"))"), "\(result.errors)")
        // What it offers works, although the list has the folder's name.
        #expect(result.errors.contains("fk trash -y \(server.url("/pub/"))"))
        try await sandbox.done("trash", "-y", server.url("/pub/"))
        try await sandbox.done("get", "-r", server.url("/pub/"))
        #expect(sandbox.exists("pub/a"))
        server.route("/page/") { _ in
            .ok(Array("<html><title>Hello</title></html>".utf8), headers: ["Content-Type": "text/html"])
        }
        #expect(!(try await sandbox.done("get", server.url("/page/"))).errors.contains("-r"))
    }

    @Test("lists of digests bind the files of their folders")
    func digests() async throws {
        let digest = Digester(.sha256)
        Array("/pub/a".utf8).withUnsafeBytes { digest.update($0) }
        let list = "\(digest.hex())  a\n\(String(repeating: "0", count: 64))  b\n"
        let server = try server(["pub/": ["a", "b", "c", "SHA256SUMS"]])
        server.route("/pub/SHA256SUMS") { _ in .ok(Array(list.utf8)) }
        let sandbox = try Sandbox()
        let result = try await sandbox.fk("get", "-r", server.url("/pub/"), "--checksum", "auto")
        #expect(result.status == 1 && result.errors.contains("SHA256SUMS has the digests of 2 files"))
        #expect(sandbox.exists("pub/a") && !sandbox.exists("pub/b") && sandbox.exists("pub/c"))
        let wrong = try await sandbox.fk(
            "get", "-r", server.url("/pub/"), "--checksum", String(repeating: "0", count: 64))
        #expect(wrong.status == 2)
    }

    @Test("--remote-time gives files the server's time, and they are still the task's own")
    func remoteTime() async throws {
        let server = try FaultServer()
        server.route("/a") { _ in .ok([1, 2, 3], headers: ["Last-Modified": "Tue, 05 May 2020 05:05:05 GMT"]) }
        server.route("/b") { _ in .ok([1, 2, 3]) }
        let sandbox = try Sandbox()
        try await sandbox.done("get", server.url("/a"), server.url("/b"), "--remote-time")
        func time(_ name: String) throws -> Double? {
            (try FileManager.default.attributesOfItem(atPath: "\(sandbox.files)/\(name)")[.modificationDate] as? Date)?
                .timeIntervalSince1970
        }
        #expect(try time("a") == 1_588_655_105)
        #expect(try time("b") ?? 0 > 1_700_000_000)
        try await sandbox.done("verify", "a")
        try await sandbox.done("trash", "--all", "--yes")
        #expect(!sandbox.exists("a") && !sandbox.exists("b"))
    }

    @Test(
        "wrong command lines",
        arguments: [
            ["get", "-r"], ["get", "-r", "http://h/a/", "http://h/b/"], ["get", "-r", "nope:x"], ["get", "-r", "/tmp"],
            ["get", "http://h/a", "--depth", "2"],
            ["get", "http://h/a", "--dry-run"], ["get", "-r", "http://h/a/", "--depth", "0"],
            ["get", "-r", "http://h/a/", "-o", "x"],
            ["get", "-r", "http://h/a/?x=1"], ["barrel", "sync", "x", "--max-delete", "1"],
            ["barrel", "sync", "x", "--delete", "--max-delete", "101%"],
            ["barrel", "import", "x", "nope:y"],
        ])
    func wrong(words: [String]) async throws {
        let result = try await Sandbox().fk(words)
        #expect(result.status == 2, "\(words): \(result.errors)")
        if words.contains("nope:x") || words.contains("nope:y") {
            #expect(result.errors.contains("https"), "\(result.errors)")
        }
    }

    @Test("A scheme that nobody has is named with those that there are; a host with its port is no scheme")
    func unknownScheme() async throws {
        let sandbox = try Sandbox()
        for words in [["get", "foo:bar"], ["get", "-r", "foo:bar"]] {
            let result = try await sandbox.fk(words)
            #expect(result.status == 2 && result.errors.contains("'foo:'") && result.errors.contains("ollama"))
        }
        let host = try await sandbox.fk(["get", "localhost:8080/a"])
        #expect(host.status == 2 && host.errors.contains("http"), "\(host.errors)")
        let magnet = try await sandbox.fk(["get", "magnet:?xt=a"])
        #expect(magnet.status == 2 && magnet.errors.contains("BitTorrent"))
    }
}
