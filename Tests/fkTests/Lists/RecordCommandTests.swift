import TestSupport
import Testing

@testable import fk

/// Records of repositories by their names, on servers that answer as those that were recorded.
@Suite("Records, end to end") struct RecordCommandTests {
    private let server: FaultServer
    private let sandbox: Sandbox
    private let body = Bytes.pattern(count: 60_000)

    init() throws {
        server = try FaultServer()
        sandbox = try Sandbox(environment: [
            "FK_DOI_ENDPOINT": server.url("/doi"), "FK_ZENODO_ENDPOINT": server.base,
            "FK_DATACITE_ENDPOINT": server.url("/datacite"),
        ])
    }

    private func json(_ path: String, _ text: String) {
        server.route(path) { _ in .ok(Array(text.utf8), headers: ["Content-Type": "application/json"]) }
    }

    private func resolve(_ doi: String, to url: String) {
        json(
            "/doi/api/handles/\(doi)",
            "{\"responseCode\":1,\"handle\":\"\(doi)\",\"values\":[{\"index\":1,\"type\":\"URL\",\"data\":"
                + "{\"format\":\"string\",\"value\":\"\(url)\"},\"ttl\":86400}]}")
    }

    /// Zenodo's answer with the file of this server.
    private func zenodo(_ id: Int, _ body: [UInt8]) -> String {
        RecordAnswers.zenodo.replacing("https://zenodo.org/api/files", with: server.url("/api/files"))
            .replacing("\"id\": 3763271", with: "\"id\": \(id)").replacing("9190269", with: "\(body.count)")
            .replacing("4abfc39f28bbca394b9201708ae27b4b", with: Bytes.md5(body))
    }

    private static let file = "/api/files/deff9397-dece-4206-9964-963beb518c33/covid19.ttl"

    @Test(
        "A record of Zenodo by number, DOI and URL: size and MD5 are checked",
        arguments: ["zenodo:3763271", "doi:10.5281/zenodo.3763271", "URL"])
    func zenodo(name: String) async throws {
        let name = name == "URL" ? server.url("/records/3763271") : name
        resolve("10.5281/zenodo.3763271", to: server.url("/record/3763271"))
        json("/api/records/3763271", zenodo(3_763_271, body))
        server.serve(Self.file, body)
        try await sandbox.done("barrel", "import", "z", name, "-d", "z")
        try await sandbox.done("barrel", "run", "z")
        #expect(try sandbox.bytes("z/covid19.ttl") == body)
        let shown = try await sandbox.json("barrel", "show", "z")
        #expect(shown.text("origin") == name && shown.text("commit") == "3763271")
        // Other bytes than those of the record get no name.
        server.serve(Self.file, Bytes.pattern(count: 60_000, seed: 5))
        try await sandbox.done("barrel", "import", "bad", name, "-d", "bad")
        let bad = try await sandbox.fk("barrel", "run", "bad")
        #expect(bad.status == 1 && bad.errors.contains("md5 is"), "\(bad)")
    }

    @Test("A version that changes is told at refresh, and refused by import into the same barrel") func version()
        async throws
    {
        json("/api/records/1", zenodo(1, body))
        json("/api/records/1/versions/latest", zenodo(1, body))
        server.serve(Self.file, body)
        try await sandbox.done("get", "-b", "z", "-d", "z", "zenodo:1")
        #expect(try sandbox.bytes("z/covid19.ttl") == body)
        let same = try await sandbox.fk("barrel", "refresh", "z")
        #expect(same.status == 0 && !same.errors.contains("version"), "\(same)")
        json("/api/records/1/versions/latest", zenodo(2, body))
        let newer = try await sandbox.fk("barrel", "refresh", "z")
        #expect(newer.errors.contains("fk: zenodo:1 has another version, 2, and the barrel has 1"), "\(newer)")
        json("/api/records/1", zenodo(2, body))
        let again = try await sandbox.fk("barrel", "import", "z", "zenodo:1", "-d", "z")
        #expect(again.status == 2 && again.errors.contains("at version 1, and the list is of 2"), "\(again)")
    }

    @Test("The token of Zenodo goes to its server alone, and stays nowhere") func token() async throws {
        let storage = try FaultServer()
        storage.serve("/bytes", body)
        let (record, target) = (zenodo(1, body), storage.url("/bytes"))
        server.route("/api/records/1") { request in
            request["Authorization"] == "Bearer z-secret"
                ? .ok(Array(record.utf8), headers: ["Content-Type": "application/json"]) : .status(403)
        }
        server.route(Self.file) { request in
            request["Authorization"] == "Bearer z-secret" ? .redirect(to: target) : .status(403)
        }
        let without = try await sandbox.fk("barrel", "import", "z", "zenodo:1")
        #expect(without.status == 4 && without.errors.contains("no server lists its files"), "\(without)")
        let own = try Sandbox(environment: ["FK_ZENODO_ENDPOINT": server.base, "ZENODO_TOKEN": "z-secret"])
        try await own.done("get", "-b", "z", "zenodo:1")
        #expect(try own.bytes("z/covid19.ttl") == body)
        #expect(!storage.requests.isEmpty && storage.requests.allSatisfy { $0["Authorization"] == nil })
        let names = FileManager.default.enumerator(atPath: own.folder.path)?.allObjects as? [String] ?? []
        for name in names {
            let data = FileManager.default.contents(atPath: "\(own.folder.path)/\(name)") ?? Data()
            #expect([UInt8](data).firstRange(of: Array("z-secret".utf8)) == nil, "\(name)")
        }
    }

    @Test("A dataset of Dataverse behind its DOI, page by page, at its latest version") func dataverse() async throws {
        resolve("10.70122/FK2/YAAX1R", to: server.url("/citation") + "?persistentId=doi:10.70122/FK2/YAAX1R")
        json(
            "/api/datasets/:persistentId/versions/:latest-published",
            "{\"status\":\"OK\",\"data\":{\"versionNumber\":3,\"versionMinorNumber\":1}}")
        json(
            "/api/datasets/:persistentId/versions/3.1/files",
            RecordAnswers.dataverse.replacing("9090", with: "\(body.count)")
                .replacing("faeb19ec96a34523e4fd0defea0cebda", with: Bytes.md5(body)))
        server.serve("/api/access/datafile/2067894", body)
        let name = "doi:10.70122/FK2/YAAX1R"
        try await sandbox.done("barrel", "import", "d", name, "-d", "d", "--exclude", "docs/*")
        try await sandbox.done("barrel", "run", "d")
        #expect(try sandbox.bytes("d/Test Data Alpha.dta") == body && !sandbox.exists("d/docs"))
        let asked = server.requests("/api/access/datafile/2067894").map(\.query)
        #expect(asked.allSatisfy { $0 == "format=original" } && !asked.isEmpty)
        #expect(try await sandbox.json("barrel", "show", "d").text("commit") == "3.1")
    }

    @Test("A landing page leads by its links to a crate, a link set or items; JSON-LD and DataCite are asked last")
    func signposting() async throws {
        let crate = RecordAnswers.crate.replacing(
            "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", with: Bytes.sha256(body)
        )
        .replacing("\"contentSize\": \"5\"", with: "\"contentSize\": \"\(body.count)\"")
        json("/meta/ro-crate-metadata.json", crate)
        json("/meta/links", "{\"linkset\":[{\"anchor\":\"x\",\"item\":[{\"href\":\"\(server.url("/f/one"))\"}]}]}")
        for path in ["/f/one", "/f/two", "/meta/sub/data%20a.csv"] { server.serve(path, body) }
        let links = [
            "crate": "</meta/ro-crate-metadata.json>; rel=\"describedby\"; profile=\"https://w3id.org/ro/crate\"",
            "set": "<\(server.url("/meta/links"))>; rel=\"linkset\"; type=\"application/linkset+json\"",
            "items": "<../f/one>; rel=item, </f/two>; rel=\"item\"; type=\"text/plain\"",
        ]
        for (name, field) in links {
            server.route("/page/\(name)") { _ in
                .ok(Array("<html></html>".utf8), headers: ["Content-Type": "text/html; charset=utf-8"]).adding(
                    "Link", field)
            }
        }
        for (name, files) in [("crate", ["sub/data a.csv"]), ("set", ["one"]), ("items", ["one", "two"])] {
            try await sandbox.done(
                "barrel", "import", name, server.url("/page/\(name)"), "-d", name, "--exclude", "r.xml")
            try await sandbox.done("barrel", "run", name)
            for file in files { #expect(try sandbox.bytes("\(name)/\(file)") == body) }
        }
        resolve("10.5061/a", to: server.url("/page/plain"))
        server.route("/page/plain") { request in
            .ok(Array("<html></html>".utf8), headers: ["Content-Type": "text/html"])
        }
        json(
            "/datacite/dois/10.5061%2Fa",
            RecordAnswers.dataCite.replacing("https://example.org/covid19.ttl", with: server.url("/f/two")))
        try await sandbox.done("barrel", "import", "dc", "doi:10.5061/a", "-d", "dc")
        #expect(try await sandbox.fk("barrel", "export", "dc").output == "\(server.url("/f/two"))\n")
    }

    @Test("A list behind a URL is read in its own form; what names no list says what was asked") func lists()
        async throws
    {
        server.serve("/d/a.bin", body)
        server.route("/d/SHA256SUMS") { [body] _ in .ok(Array("\(Bytes.sha256(body))  a.bin\n".utf8)) }
        try await sandbox.done("barrel", "import", "l", server.url("/d/SHA256SUMS"), "-d", "l")
        try await sandbox.done("barrel", "run", "l")
        #expect(try sandbox.bytes("l/a.bin") == body)
        resolve("10.9/none", to: server.url("/gone"))
        let none = try await sandbox.fk("barrel", "import", "n", "doi:10.9/none")
        #expect(none.status == 4 && none.errors.contains("doi:10.9/none: no server lists its files"), "\(none)")
        for place in ["/doi/api/handles/10.9/none", "/gone", "/datacite/dois/10.9%2Fnone"] {
            #expect(none.errors.contains(place), "\(none.errors)")
        }
    }

    @Test(
        "What is wrong on the command line",
        arguments: [
            (["get", "zenodo:1"], "stands for several files: name a barrel for them with -b NAME"),
            (["barrel", "import", "x", "magnet:?xt=urn:btih:0"], "links are for BitTorrent"),
            (["get", "-b", "x", "zenodo:1", "--checksum", "auto"], "--checksum describes a single file"),
            (["get", "gh:o/r", "ia:x"], "gh:o/r stands for several files: name a barrel"),
            (["get", "s3://b/k", "--checksum", "auto"], "--checksum auto is about a URL"),
            (["barrel", "import", "x", "torrent:a"], "links are for BitTorrent"),
            (["barrel", "import", "x", "zenodo:1a"], "is no record: write doi:10.X/Y"),
            (["barrel", "import", "x", "zenodo:1", "--base", "http://h/"], "--base is about a list in a file"),
        ] as [([String], String)])
    func wrong(words: [String], reason: String) async throws {
        let result = try await sandbox.fk(words)
        #expect(result.status == 2 && result.errors.contains(reason), "\(result)")
    }
}
