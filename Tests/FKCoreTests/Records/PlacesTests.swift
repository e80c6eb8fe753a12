import TestSupport
import Testing

@testable import FKModel

@Suite("Stored places")
struct PlacesTests {
    private static let bases = Places([
        .init(name: "work", root: "/w", first: "/w"), .init(name: "dl", root: "/a/b", first: "/a/b"),
        .init(name: "deep", root: "/a/b/c", first: "/a/b/c"), .init(name: "same", root: "/a/b/c", first: "/a/b/c"),
        .init(name: "moved", root: "/new", first: "/old"), .init(name: "umlaut", root: "/\u{E9}", first: "/\u{E9}"),
    ])

    @Test(
        "the stored form, and back",
        arguments: [
            ("/w/files/ab/x", "work:files/ab/x"), ("/w", "work:"), ("/a/b", "dl:"), ("/a/b/x", "dl:x"),
            // The nearest base; of two with one root, the first by name.
            ("/a/b/c/x", "deep:x"), ("/a/b/c", "deep:"),
            // A longer name, a shorter one, other case.
            ("/a/bc", "/a/bc"), ("/a/bc/x", "/a/bc/x"), ("/a", "/a"), ("/", "/"), ("/A/b/x", "/A/b/x"),
            // What leads out of a base, or would lose a slash, is outside.
            ("/a/b/../x", "/a/b/../x"), ("/a/b/..", "/a/b/.."), ("/a/b/", "/a/b/"), ("/a/b/c/../x", "/a/b/c/../x"),
            // Names that look like it.
            ("/a/b/..x", "dl:..x"), ("/a/b/x..", "dl:x.."), ("/a/b/./x", "dl:./x"), ("/a/b//x", "dl:/x"),
            ("/a/b/x:y", "dl:x:y"), ("/x:y", "/x:y"),
            // Names are compared by their bytes: one é is not the other.
            ("/\u{E9}/x", "umlaut:x"), ("/e\u{301}/x", "/e\u{301}/x"), ("/a/b/e\u{301}", "dl:e\u{301}"),
            // A base that has moved, and where it was.
            ("/new/x", "moved:x"), ("/old/x", ":/old/x"), ("/old", ":/old"), ("/older", "/older"),
            // Files of options may be relative.
            ("ca.pem", "ca.pem"), ("a:b", ":a:b"),
        ])
    func form(_ place: String, _ stored: String) throws {
        let text = Self.bases.stored(place) ?? place
        #expect(text.isExactly(stored))
        #expect(try (Self.bases.resolved(text) ?? text).isExactly(place))
    }

    @Test(
        "what earlier versions have stored follows its folder",
        arguments: [("/old/x/y", "/new/x/y"), ("/old", "/new"), ("/q", nil)])
    func former(_ text: String, _ place: String?) throws { #expect(try Self.bases.resolved(text) == place) }

    @Test("texts that are never stored", arguments: ["dl:..", "dl:../x", "dl:x/../../y", "d l:x", "http://h/x", "é:x"])
    func impossible(_ text: String) {
        let error = #expect(throws: DownloadError.self) { try Self.bases.resolved(text) }
        #expect(error?.code == (text.hasPrefix("http") ? .destination : .corruptInfo))
    }

    @Test("a base without a folder is an error with a remedy")
    func unnamed() throws {
        let error = #expect(throws: DownloadError.self) { try Self.bases.resolved("gone:x") }
        #expect(error?.code == .destination && error?.remedy == .nameBase)
        #expect(error?.message.contains("\"gone\"") == true)
    }

    @Test(
        "ids are those of the first root",
        arguments: [
            ("/new/x", "/old/x"), ("/new", "/old"), ("/a/b/x", "/a/b/x"), ("/q", "/q"), ("/old/x", ":/old/x"),
        ])
    func ids(_ directory: String, _ former: String) {
        var task = TaskDescription(url: "http://h/a")
        task.directory = directory
        #expect(Self.bases.id(of: task) == TaskID(url: task.url, destination: former + "/"))
        task.fileName = "n"
        #expect(Self.bases.id(of: task) == TaskID(url: task.url, destination: former + "/n"))
        #expect(Places.none.id(of: task) == task.id)
    }

    /// A base inside of another one; one of them has moved, or both, or another base has its former place.
    private static let nested: [[Places.Base]] = [
        [.init(name: "A", root: "/d", first: "/d"), .init(name: "B", root: "/x/sub", first: "/d/sub")],
        [.init(name: "A", root: "/x", first: "/d"), .init(name: "B", root: "/d/sub", first: "/d/sub")],
        [.init(name: "A", root: "/x", first: "/d"), .init(name: "B", root: "/y", first: "/d/sub")],
        [.init(name: "A", root: "/x", first: "/d"), .init(name: "B", root: "/x/sub", first: "/d/sub")],
        [.init(name: "A", root: "/d/sub", first: "/d"), .init(name: "B", root: "/d", first: "/d/sub")],
        [.init(name: "A", root: "/d", first: "/d"), .init(name: "B", root: "/x", first: "/d")],
        [.init(name: "B", root: "/d", first: "/d"), .init(name: "A", root: "/x", first: "/d")],
        [.init(name: "work", root: "/d/sub", first: "/y"), .init(name: "A", root: "/x", first: "/d")],
    ]

    @Test("bases one inside the other: no two places have one id or one stored form", arguments: nested)
    func apart(_ bases: [Places.Base]) throws {
        let places = Places(bases)
        let all = ["/d", "/x", "/y"].flatMap { root in ["", "/f", "/sub", "/sub/f", "/sub/sub"].map { root + $0 } }
        var ids: Set<TaskID> = []
        var forms: Set<String> = []
        for place in all {
            var task = TaskDescription(url: "http://h/a")
            task.directory = place
            #expect(ids.insert(places.id(of: task)).inserted, "\(place)")
            let form = places.stored(place) ?? place
            #expect(forms.insert(form).inserted, "\(place)")
            #expect(try (places.resolved(form) ?? form).isExactly(place))
        }
    }

    @Test("a base inside of one that has moved keeps what was stored without bases")
    func inner() throws {
        let places = Places(Self.nested[1])
        #expect(try places.resolved("/d/sub/f") == nil && places.resolved("/d/f") == "/x/f")
        #expect(places.former("/d/sub/f") == nil && places.former("/x/sub/f") == ":A:sub/f")
    }

    @Test(
        "names and folders of bases",
        arguments: [
            ("dl", "/a", true), ("A-b_9", "/a/b", true), ("", "/a", false), ("work", "/a", false), ("a.b", "/a", false),
            ("a b", "/a", false), (String(repeating: "a", count: 64), "/a", true),
            (String(repeating: "a", count: 65), "/a", false), ("dl", "", false), ("dl", "/", false), ("dl", "a", false),
            ("dl", "/a/", false), ("dl", "/a/../b", false), ("dl", "/a\0", false),
        ])
    func faults(_ name: String, _ path: String, _ isRight: Bool) {
        #expect((Places.fault(name, path) == nil) == isRight)
    }

    @Test("every place of a record is stored in its base, and comes back")
    func record() throws {
        var record = TaskRecord.full()
        record.task.directory = "/a/b/c"
        record.task.options.caPath = "/a/b/ca"
        record.task.options.cookiePath = "/w/cookies"
        let file = FileIdentity(inode: 1, length: 2, time: 3)
        let aside = ".p.\(record.id.leadingDigits(16)).fkrejected"
        record.edit {
            $0.path = "/new/x"
            $0.partFolder = "/a/b/parts"
            $0.setAside = [SetAsideFile(path: "/a/b/\(aside)", written: file)]
            $0.former = FormerFile(path: "/a/b/f")
            $0.leftBehind = ["/a/b/l", "/data/l"]
        }
        let text = try record.jsonText(places: Self.bases).bytes
        let json = String(decoding: text, as: UTF8.self)
        for place in [
            "\"directory\":\"deep:\"", "\"caFile\":\"dl:ca\"", "\"cookieFile\":\"work:cookies\"",
            "\"path\":\"moved:x\"", "\"partFolder\":\"dl:parts\"",
            "\"path\":\"dl:\(aside)\"", "\"path\":\"dl:f\"", "\"leftBehind\":[\"dl:l\",\"/data/l\"]",
        ] { #expect(json.contains(place), "\(place)") }
        #expect(try text.withUnsafeBytes { try TaskRecord.read($0, places: Self.bases) } == record)
        // As text that another program has arranged.
        let other = try JSONSerialization.data(withJSONObject: JSONSerialization.jsonObject(with: Data(text)))
        #expect(try other.withUnsafeBytes { try TaskRecord.read($0, places: Self.bases) } == record)
        #expect(throws: DownloadError.self) { try text.withUnsafeBytes { try TaskRecord.read($0) } }
    }

    @Test("an info file with a base that has no folder keeps its newest slot")
    func newestSlot() throws {
        let scratch = try ScratchWorkPath()
        var record = TaskRecord.sample(directory: "/data")
        let path = scratch.path.infoPath(record.id)
        var handle = try InfoFile.create(at: path, record: record, places: .none)
        record.task.directory = "/a/b"
        try InfoFile.update(path, record: &record, places: Self.bases, handle: &handle)
        let error = #expect(throws: DownloadError.self) { try InfoFile.read(path, places: .none) }
        #expect(error?.remedy == .nameBase)
        #expect(try InfoFile.read(path, places: Self.bases).record == record)
        #expect(InfoFile.number(in: path, places: .none) == 1)
    }
}

@Suite("Bases of a work path")
struct BasesTests {
    private func root(_ path: WorkPath, _ name: String) -> Places.Base? { path.places.bases.first { $0.name == name } }

    @Test("a work path without named bases has no file of them")
    func noFile() throws {
        let scratch = try ScratchWorkPath()
        try scratch.path.recordBases()
        #expect(!FileManager.default.fileExists(atPath: scratch.path.root + "/bases"))
        #expect(scratch.path.places.stored(scratch.path.root + "/files/x") == "work:files/x")
    }

    @Test("a reader without settings has the roots of the last engine, and the first roots stay")
    func recorded() throws {
        let scratch = try ScratchWorkPath()
        let root = scratch.path.root
        try WorkPath(root, bases: ["dl": "/a"]).recordBases()
        #expect(self.root(WorkPath(root), "dl") == .init(name: "dl", root: "/a", first: "/a"))
        #expect(try mode(root + "/bases") == 0o600)
        try WorkPath(root, bases: ["dl": "/b"]).recordBases()
        #expect(self.root(WorkPath(root), "dl") == .init(name: "dl", root: "/b", first: "/a"))
        // Given roots have precedence.
        #expect(self.root(WorkPath(root, bases: ["dl": "/c"]), "dl") == .init(name: "dl", root: "/c", first: "/a"))
        // A base inside another one that has moved: its tasks have had ids already.
        try WorkPath(root, bases: ["dl": "/b", "in": "/b/in"]).recordBases()
        #expect(self.root(WorkPath(root), "in") == .init(name: "in", root: "/b/in", first: "/a/in"))
        // An engine without the base: nobody knows where it is now, but its first root is kept.
        try WorkPath(root, bases: ["in": "/b/in"]).recordBases()
        #expect(self.root(WorkPath(root), "dl") == nil)
        try WorkPath(root, bases: ["dl": "/d"]).recordBases()
        #expect(self.root(WorkPath(root), "dl") == .init(name: "dl", root: "/d", first: "/a"))
    }

    @Test("shards have the bases of their work path")
    func shards() throws {
        let scratch = try ScratchWorkPath()
        let shard = try #require(Shard(2, of: 3))
        try WorkPath(scratch.path.root, bases: ["dl": "/a"]).recordBases()
        let own = WorkPath(scratch.path.shard(shard).root, bases: ["dl": "/b"])
        try own.open(create: true)
        try own.recordBases()
        #expect(root(own, "dl") == .init(name: "dl", root: "/b", first: "/a"))
        #expect(own.places.stored(own.root + "/files/x") == "work:files/x")
        #expect(!FileManager.default.fileExists(atPath: own.root + "/bases"))
        #expect(root(own.ofShards, "dl")?.root == "/b")
    }

    @Test("an engine makes the layout of a former version the present one and notes where the work path was")
    func formerLayout() throws {
        let scratch = try ScratchWorkPath()
        let root = scratch.path.root
        try write(Array("1\n".utf8), scratch.path.layoutPath)
        try scratch.path.open(create: true)
        #expect(try bytes(scratch.path.layoutPath) == Array("1\n".utf8))
        try scratch.path.recordBases()
        #expect(try bytes(scratch.path.layoutPath) == Array("2\n".utf8))
        let moved = root + "-moved"
        try FileManager.default.moveItem(atPath: root, toPath: moved)
        defer { try? FileManager.default.removeItem(atPath: moved) }
        #expect(try WorkPath(moved).places.resolved(root + "/files/x") == moved + "/files/x")
        #expect(
            try WorkPath(moved + "/shards/1-of-2").places.resolved(root + "/shards/1-of-2/files/x") == moved
                + "/shards/1-of-2/files/x")
    }

    @Test(
        "a file that cannot be understood stops an engine, not a reader",
        arguments: ["", "x", "{}", #"{"format":9,"bases":[]}"#])
    func damaged(_ text: String) throws {
        let scratch = try ScratchWorkPath()
        try write(Array(text.utf8), scratch.path.root + "/bases")
        let error = #expect(throws: DownloadError.self) { try WorkPath(scratch.path.root).recordBases() }
        #expect(error?.code == (text.contains("9") ? .laterVersion : .workPathUnusable))
        #expect(WorkPath(scratch.path.root).places.bases.map(\.name).contains("work"))
        #expect(try bytes(scratch.path.root + "/bases") == Array(text.utf8))
    }

    @Test("impossible bases are refused", arguments: [("a b", "/x"), ("work", "/x"), ("dl", "/")])
    func refused(_ name: String, _ path: String) {
        var configure = Configure()
        configure.bases = [name: URL(fileURLWithPath: path)]
        #expect(throws: DownloadError.self) { try configure.validate() }
        configure.bases = [name: URL(string: "https://h/x")!]
        #expect(throws: DownloadError.self) { try configure.validate() }
    }
}
