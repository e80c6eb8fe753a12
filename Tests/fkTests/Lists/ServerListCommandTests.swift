import TestSupport
import Testing

@testable import fk

/// Lists from servers, end to end: they name files below their folder, and decide nothing else.
@Suite("Lists from servers, end to end") struct ServerListCommandTests {
    private let server: FaultServer
    private let proxy: FaultServer
    private let sandbox: Sandbox
    private let homeFolder: TemporaryFolder
    private let evil = Array("EVIL\n".utf8)

    init() throws {
        server = try FaultServer()
        proxy = try FaultServer()
        homeFolder = try TemporaryFolder()
        sandbox = try Sandbox(environment: [
            "HOME": homeFolder.path, "FK_DOI_ENDPOINT": server.url("/doi"), "FK_ZENODO_ENDPOINT": server.base,
            "FK_DATACITE_ENDPOINT": server.url("/datacite"), "HF_ENDPOINT": server.base,
        ])
        server.serve("/evil", evil)
        try homeFolder.write(Array("mine".utf8), to: ".bashrc")
        try homeFolder.write(Array("mine".utf8), to: ".ssh/config")
        try homeFolder.write(Array("machine 127.0.0.1 login me password n3trc-secret\n".utf8), to: ".netrc")
    }

    private var home: String { homeFolder.path }

    /// The files of the home folder with their contents.
    private func homeFiles() -> [String: String] {
        let names = FileManager.default.enumerator(atPath: home)?.allObjects as? [String] ?? []
        var files: [String: String] = [:]
        for name in names {
            guard let data = FileManager.default.contents(atPath: "\(home)/\(name)") else { continue }
            files[name] = String(decoding: data, as: UTF8.self)
        }
        return files
    }

    private func answer(_ path: String, _ text: String, type: String = "text/plain") {
        server.route(path) { _ in .ok(Array(text.utf8), headers: ["Content-Type": type]) }
    }

    private func metalink(_ path: String, _ names: [String], digest: String? = nil) {
        let files = names.map { name in
            "<file name=\"\(name)\">" + (digest.map { "<hash type=\"sha-256\">\($0)</hash>" } ?? "")
                + "<url>\(server.url("/evil"))</url></file>"
        }
        answer(
            path, "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\(files.joined())</metalink>",
            type: "application/metalink4+xml")
    }

    @Test("a barrel of 'get -b -i URL' or 'barrel create -i URL' follows its list", arguments: ["get", "create"])
    func followed(command: String) async throws {
        for name in ["one", "two"] { server.serve("/\(name)", Array(name.utf8)) }
        answer("/list", server.url("/one") + "\n")
        if command == "get" {
            try await sandbox.done("get", "-q", "-b", "z", "-i", server.url("/list"))
        } else {
            try await sandbox.done("barrel", "create", "z", "-i", server.url("/list"))
            try await sandbox.done("barrel", "run", "z")
        }
        answer("/list", "\(server.url("/one"))\n\(server.url("/two"))\n")
        let sync = try await sandbox.done("barrel", "sync", "z")
        #expect(sync.output.contains("new two\n") && sync.errors.contains("1 new, 0 changed, 1 same"), "\(sync)")
        #expect(try sandbox.bytes("z/two") == Array("two".utf8) && sandbox.bytes("z/one") == Array("one".utf8))
    }

    @Test("a file where the list's folder would be: one message, and nothing is asked for")
    func fileInTheWay() async throws {
        answer("/two.txt", server.url("/evil") + "\n")
        try sandbox.put("mine", "two.txt")
        let result = try await sandbox.fk("get", "-i", server.url("/two.txt"))
        #expect(result.status == 2 && result.errors.contains("a file has that name. Give another folder with -d"))
        #expect(server.requests.isEmpty, "\(result)")
    }

    @Test("the place of a list: a file URL is a path, and other schemes are refused") func places() async throws {
        try sandbox.put("\(server.url("/evil"))\n", "a list")
        let path = "\(sandbox.files)/a list".replacing(" ", with: "%20")
        try await sandbox.done("get", "-q", "-i", "file://\(path)", "-d", "got")
        #expect(try sandbox.bytes("got/evil") == evil)
        for place in ["s3://b/list.txt", "ftp://h.example/list"] {
            let result = try await sandbox.fk("get", "-i", place)
            #expect(result.status == 2 && result.errors.contains("an http, https or file URL"), "\(result)")
        }
        let named = try await sandbox.fk("get", "-i", server.url("/list"), "-o", "x")
        #expect(named.status == 2 && named.errors.contains("-o describes a single file, and -i is a list of files"))
    }

    /// Lists that try to steer the program, by form.
    private var hostile: [(name: String, text: String)] {
        let url = server.url("/evil")
        let orders = """
              allow-overwrite=true
              header=X-List: yes
              header=Cookie: a=b
              all-proxy=\(proxy.base)
              no-netrc=false
              pause=true
              max-tries=1
            """
        return [
            ("l1.txt", "\(url)\n  dir=\(home)\n  out=.bashrc\n\(orders)\n"),
            ("l2.txt", "\(url)\n  dir=\(home)/.ssh\n  out=config\n\(orders)\n"),
            ("l3.txt", "\(url)\n  out=../../home/.bashrc\n"),
            (
                "l4.json",
                "[{\"url\":\"\(url)\",\"directory\":\"\(home)\",\"fileName\":\".bashrc\",\"headers\":[\"X-List: y\"]}]"
            ),
            (
                "l5.json",
                "{\"name\":\"b\",\"members\":[{\"url\":\"\(url)\",\"directory\":\"\(home)/.ssh\",\"fileName\":\"config\"}]}"
            ),
            ("l6.jsonl", "{\"url\":\"\(url)\",\"name\":\"\(home)/.bashrc\"}\n"),
            (
                "l7.jsonl",
                "{\"url\":\"\(url)\",\"name\":\".bashrc\",\"directory\":\"\(home)\",\"proxy\":\"\(proxy.base)\"}\n"
            ),
            ("l8.csv", "url,name,directory,proxy\n\(url),.ssh/config,\(home),\(proxy.base)\n"),
            (
                "l9.meta4",
                "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"\(home)/.bashrc\"><url>\(url)</url></file>"
                    + "<file name=\".bashrc\"><url>\(url)</url></file></metalink>"
            ),
            ("l10.lock", "{\"fk-lock\":1}\n{\"name\":\".ssh/config\",\"url\":\"\(url)\",\"directory\":\"\(home)\"}\n"),
            ("SHA256SUMS", "\(Bytes.sha256(evil))  ../evil\n\(Bytes.sha256(evil))  evil\n"),
            ("l11.tsv", "url\tname\n\(url)\t../../../../\(home)/.bashrc\n\(url)\t.netrc\n"),
        ]
    }

    @Test(
        "no list of any form changes a file outside of its folder, sets a header, a proxy or a login, or stops its tasks"
    )
    func everyForm() async throws {
        let before = homeFiles()
        for (index, list) in hostile.enumerated() {
            answer("/lists/\(list.name)", list.text)
            answer("/api/records/\(index)", list.text)
            answer(
                "/doi/api/handles/10.1/\(index)",
                "{\"values\":[{\"type\":\"URL\",\"data\":{\"value\":\"\(server.url("/lists/\(list.name)"))\"}}]}")
            for (kind, name) in [server.url("/lists/\(list.name)"), "doi:10.1/\(index)", "zenodo:\(index)"].enumerated()
            {
                let barrel = "b\(index)-\(kind)"
                _ = try await sandbox.fk("barrel", "import", barrel, name, "-d", "d/\(barrel)")
                _ = try await sandbox.fk("barrel", "run", barrel)
            }
        }
        #expect(homeFiles() == before)
        #expect(proxy.requests.isEmpty)
        for request in server.requests {
            for name in ["Authorization", "Cookie", "X-List", "Proxy-Authorization"] {
                #expect(request[name] == nil, "\(request.target): \(name)")
            }
        }
        #expect(try sandbox.names() == ["d"])
        #expect(try sandbox.bytes("d/b0-0/.bashrc") == evil, "the name counts below the folder, and nothing was paused")
    }

    @Test("orders of a server's list are named once; the same list on this machine is obeyed") func told() async throws
    {
        let list =
            "\(server.url("/evil"))\n  dir=elsewhere\n  header=X-List: yes\n  split=1\n\(server.url("/evil2"))\n  split=2\n"
        answer("/list.txt", list)
        server.serve("/evil2", evil)
        let told = try await sandbox.done("barrel", "import", "b", server.url("/list.txt"))
        #expect(
            told.errors.contains("a list from a server only names files. Left out: dir, header, split. To obey"),
            "\(told.errors)")
        try await sandbox.done("barrel", "run", "b")
        #expect(try sandbox.bytes("b/evil") == evil && sandbox.bytes("b/evil2") == evil && !sandbox.exists("elsewhere"))
        try sandbox.put(list, "list.txt")
        let own = try await sandbox.done("barrel", "import", "own", "list.txt", "-d", "own")
        #expect(!own.errors.contains("Left out"))
        try await sandbox.done("barrel", "run", "own")
        #expect(try sandbox.bytes("elsewhere/evil") == evil)
        #expect(server.requests("/evil").contains { $0["X-List"] == "yes" })
    }

    @Test("in a home folder, names that begin with a dot are left out and told; --hidden takes them")
    func hidden() async throws {
        let url = server.url("/evil")
        answer("/list.csv", "url,name\n\(url),.profile\n\(url),.config/a/b\n\(url),plain\n\(url),sub/.inner\n")
        let told = try await sandbox.fk("barrel", "import", "b", server.url("/list.csv"), "-d", home)
        #expect(told.status == 1, "\(told)")
        #expect(
            told.errors.contains(
                "names that begin with a dot are left out in a home folder: .profile, .config/a/b. --hidden takes them."
            ),
            "\(told.errors)")
        try await sandbox.done("barrel", "run", "b")
        #expect(Set(homeFiles().keys).isSuperset(of: ["plain", "sub/.inner"]))
        #expect(homeFiles()[".profile"] == nil && homeFiles()[".config/a/b"] == nil)
        // From above, and through a link.
        let name = URL(fileURLWithPath: home).lastPathComponent
        try FileManager.default.createSymbolicLink(atPath: "\(home)/down", withDestinationPath: "\(home)/.ssh")
        answer("/above.csv", "url,name\n\(url),\(name)/.profile\n\(url),ok\n")
        answer("/link.csv", "url,name\n\(url),down/keys\n\(url),ok\n")
        let above = URL(fileURLWithPath: home).deletingLastPathComponent().path
        for (list, folder) in [("/above.csv", above), ("/link.csv", home)] {
            let result = try await sandbox.fk(
                "barrel", "import", "c" + list.dropFirst(), server.url(list), "-d", folder)
            #expect(result.status == 1 && result.errors.contains("left out in a home folder: "), "\(result)")
        }
        try await sandbox.done("barrel", "import", "h", server.url("/list.csv"), "-d", home, "--hidden")
        try await sandbox.done("barrel", "run", "h")
        #expect(homeFiles()[".profile"] == "EVIL\n" && homeFiles()[".bashrc"] == "mine")
        // Elsewhere they are files like others.
        try await sandbox.done("barrel", "import", "e", server.url("/list.csv"), "-d", "e")
    }

    @Test("without -d, the files of a server's list get a folder of their own") func folder() async throws {
        answer("/list.txt", server.url("/evil") + "\n  out=Makefile\n")
        answer("/api/records/7", server.url("/evil") + "\n  out=Makefile\n")
        try await sandbox.done("barrel", "import", "one", server.url("/list.txt"))
        try await sandbox.done("barrel", "run", "one")
        try await sandbox.done("get", "-b", "two", "zenodo:7")
        metalink("/x.meta4", ["a", "b"])
        try await sandbox.done("get", "--metalink", server.url("/x.meta4"))
        try await sandbox.done("get", "--metalink", "-b", "three", server.url("/x.meta4"))
        #expect(try sandbox.names() == ["one", "three", "two", "x"])
        for file in ["one/Makefile", "two/Makefile", "x/a", "x/b", "three/a"] {
            #expect(try sandbox.bytes(file) == evil, "\(file)")
        }
        // The same command again is the same download.
        #expect(try await sandbox.done("barrel", "import", "one", server.url("/list.txt")).output.contains("1 known"))
    }

    @Test("--metalink: -o names the only file and is refused for several; --overwrite is for the command's names")
    func metalinks() async throws {
        try sandbox.put("mine", "there")
        metalink("/one.meta4", ["there"])
        metalink("/two.meta4", ["a", "there"])
        let kept = try await sandbox.fk(
            "get", "--metalink", "--overwrite", "--retry", "0", "-d", ".", server.url("/one.meta4"))
        #expect(kept.status == 1 && kept.errors.contains("--overwrite is for files that the command names"), "\(kept)")
        #expect(try sandbox.bytes("there") == Array("mine".utf8))
        try await sandbox.done("get", "--metalink", "-o", "named", server.url("/one.meta4"))
        #expect(try sandbox.bytes("named") == evil)
        try sandbox.put("old", "mine")
        try await sandbox.done("get", "--metalink", "--overwrite", "-o", "mine", server.url("/one.meta4"))
        #expect(try sandbox.bytes("mine") == evil)
        let url = server.url("/two.meta4")
        for (option, value) in [("-o", "x"), ("--checksum", Bytes.sha256(evil)), ("--mirror", server.url("/evil"))] {
            let several = try await sandbox.fk("get", "--metalink", option, value, "-d", "s", url)
            #expect(
                several.status == 2 && several.errors.contains("\(option) describes a single file, and the Metalink"),
                "\(several)")
        }
        // The command's digest binds, whatever the Metalink says.
        metalink("/digest.meta4", ["d"], digest: Bytes.sha256(evil))
        let wrong = try await sandbox.fk(
            "get", "--metalink", "--retry", "0", "--checksum", String(repeating: "0", count: 64), "-d", "w",
            server.url("/digest.meta4"))
        #expect(wrong.status == 1 && !sandbox.exists("w/d"), "\(wrong)")
        metalink("/hidden.meta4", [".hidden", ".ssh/keys", "seen"])
        let hidden = try await sandbox.fk("get", "--metalink", "-d", "h", server.url("/hidden.meta4"))
        #expect(hidden.status == 1 && hidden.errors.contains("left out: .hidden, .ssh/keys. --hidden"), "\(hidden)")
        #expect(try sandbox.bytes("h/seen") == evil && !sandbox.exists("h/.hidden"))
        try await sandbox.done("get", "--metalink", "--hidden", "-d", "all", server.url("/hidden.meta4"))
        #expect(try sandbox.bytes("all/.ssh/keys") == evil)
    }

    @Test("two entries of one name from a server are told with status 1, or refuse the list") func twins() async throws
    {
        let (one, other) = (server.url("/evil"), server.url("/other"))
        answer("/list.csv", "url,name\n\(one),cat\n\(other),cat\n\(one),cat\n")
        let told = try await sandbox.fk("barrel", "import", "b", server.url("/list.csv"))
        #expect(told.status == 1 && told.errors.contains(":3: 'cat': line 2 has the same name"), "\(told)")
        answer("/list.txt", "\(one)\n  out=cat\n\(other)\n  out=cat\n")
        let refused = try await sandbox.fk("barrel", "import", "c", server.url("/list.txt"))
        #expect(refused.status != 0 && refused.errors.contains("'cat': line 1 has the same name"), "\(refused)")
        #expect(try await sandbox.fk("barrel", "show", "c").status == 4)
        // A list on this machine as well, before anything starts; with --rename both files are wanted.
        try sandbox.put("\(one)\n  out=cat\n\(other)\n  out=cat\n", "list.txt")
        server.serve("/other", Array("OTHER".utf8))
        let own = try await sandbox.fk("get", "-i", "list.txt", "-d", "own")
        #expect(own.status == 2 && own.errors.contains("list.txt:3: 'cat': line 1 has the same name"), "\(own)")
        #expect(!sandbox.exists("own"))
        try await sandbox.done("get", "-i", "list.txt", "-d", "own", "--rename", "-j", "1")
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(sandbox.files)/own").count == 2)
    }

    @Test("a dataset whose pages repeat ends after two, and one that breaks off is an error") func pages() async throws
    {
        let files = (0..<1_000).map { index in
            "{\"label\":\"f\(index)\",\"dataFile\":{\"id\":\(index),\"filename\":\"f\",\"filesize\":1}}"
        }
        let page = "{\"status\":\"OK\",\"data\":[\(files.joined(separator: ","))]}"
        let versions = "/api/datasets/:persistentId/versions"
        answer(
            "\(versions)/:latest-published", "{\"data\":{\"versionNumber\":1,\"versionMinorNumber\":0}}",
            type: "application/json")
        server.route("\(versions)/1.0/files") { _ in
            .ok(Array(page.utf8), headers: ["Content-Type": "application/json"])
        }
        let name = server.url("/dataset.xhtml") + "?persistentId=doi:10.1/x"
        let endless = try await sandbox.fk("barrel", "import", "d", name)
        #expect(
            endless.status == 1 && endless.errors.contains("page 2 names only files of earlier pages"), "\(endless)")
        #expect(server.requests("\(versions)/1.0/files").count == 2)
        #expect(try await sandbox.fk("barrel", "show", "d").status == 4)
        server.route("\(versions)/1.0/files") { request in
            request.query.hasSuffix("offset=0")
                ? .ok(Array(page.utf8), headers: ["Content-Type": "application/json"]) : .status(404)
        }
        let cut = try await sandbox.fk("barrel", "import", "d", name)
        #expect(cut.status == 1 && cut.errors.contains("breaks off after 1000 files"), "\(cut)")
    }

    @Test(
        "which names are hidden",
        arguments: [
            (HiddenNames.Rule.notAtHome, "/nowhere/me", ".bashrc", true), (.notAtHome, "/nowhere/me", ".a/b", true),
            (.notAtHome, "/nowhere/me", "a/.b", false), (.notAtHome, "/nowhere/me", "a", false),
            (.notAtHome, "/nowhere", "me/.bashrc", true), (.notAtHome, "/nowhere", ".x", true),
            (.notAtHome, "/nowhere", "other/.x", false), (.notAtHome, "/", "nowhere/me/.x", true),
            (.notAtHome, "/nowhere/me/data", ".x", false), (.notAtHome, "/nowhere/me2", ".x", false),
            (.never, "/nowhere/me2", ".x", true), (.never, "/nowhere/me2", "a/.x", false),
            (.taken, "/nowhere/me", ".bashrc", false),
        ])
    func names(rule: HiddenNames.Rule, folder: String, name: String, isLeftOut: Bool) {
        let hidden = HiddenNames(rule, in: folder, homes: ["/nowhere/me"])
        let place = Paths.split(name).folder.map { folder == "/" ? "/\($0)" : "\(folder)/\($0)" }
        #expect(hidden.leavesOut(name, in: place) == isLeftOut)
    }
}
