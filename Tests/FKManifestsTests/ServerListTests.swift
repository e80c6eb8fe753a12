import FKCore
import TestSupport
import Testing

@testable import FKManifests

/// What a list from a server may say, whatever its form.
@Suite("Lists from servers") struct ServerListTests {
    private static let hex = SampleDigest.sha256

    /// A list with all orders that its form has, and the keys that are named as left out.
    private static let hostile: [(name: String, text: String, keys: [String])] = [
        (
            "list.txt",
            """
            http://h/evil
              dir=/home/me
              out=a
              allow-overwrite=true
              header=Authorization: x
              header=Cookie: y
              all-proxy=http://proxy:1
              no-netrc=false
              max-download-limit=1
              max-tries=1
              split=1
              gid=0123456789abcdef
              pause=true
              referer=http://r
              user-agent=u
              ftp-user=f
            """,
            [
                "dir", "header", "allow-overwrite", "all-proxy", "no-netrc", "max-download-limit", "max-tries", "split",
                "gid", "pause", "referer", "user-agent", "ftp-user",
            ]
        ),
        (
            "list.json",
            "[{\"url\":\"http://h/evil\",\"directory\":\"/home/me\",\"fileName\":\"a\",\"headers\":[\"X: y\"],"
                + "\"options\":{\"existing\":\"overwrite\"}}]", ["directory"]
        ),
        (
            "list.jsonl",
            "{\"url\":\"http://h/evil\",\"name\":\"a\",\"directory\":\"/home/me\",\"proxy\":\"http://p\"}\n", []
        ),
        ("list.csv", "url,name,directory,proxy\nhttp://h/evil,a,/home/me,http://p\n", []),
        (
            "list.meta4",
            "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"a\"><url>http://h/evil</url></file></metalink>",
            []
        ),
        (
            "list.lock",
            "{\"fk-lock\":1,\"signedBy\":\"RWx\"}\n{\"name\":\"a\",\"url\":\"http://h/evil\",\"directory\":\"/home/me\"}\n",
            []
        ),
    ]

    @Test("give names and addresses; orders are left out and named", arguments: hostile.indices)
    func orders(_ index: Int) throws {
        let sample = Self.hostile[index]
        var reader = ServerList.Reader(fileName: sample.name)
        var tasks: [TaskDescription] = []
        var folders = EntryFolders()
        let list = try reader.read(Array(sample.text.utf8)) { files, form in
            for file in files { tasks.append(try file.task(in: "/d", TaskOptions(), &folders)) }
        }
        #expect(list.leftOutKeys == sample.keys)
        #expect(tasks.count == 1 && reader.count == 1)
        let task = try #require(tasks.first)
        #expect(task.directory == "/d" && task.fileName == "a" && task.options == TaskOptions(), "\(task)")
        #expect(task.attributes.isEmpty && task.startsSuspended != true)
        #expect(list.manifest.facts.signedBy == nil)
        // The same list of the owner gives orders.
        let entry = try #require(try Manifest(sample.text, fileName: sample.name).entries.first)
        #expect(entry.orders.isEmpty == sample.keys.isEmpty)
    }

    @Test("an application takes the orders of a list only if it says so") func builder() throws {
        let entry = try #require(try Manifest(Self.hostile[0].text, fileName: "list.txt").entries.first)
        let folder = URL(fileURLWithPath: "/d")
        #expect(try Builder(entry, in: folder).options == TaskOptions())
        let text = "http://h.example/a\n  all-proxy=http://proxy:1\n"
        let plain = try #require(Manifest(text, fileName: "list.txt").entries.first)
        #expect(try Builder(plain, in: folder, takesOrders: true).options.proxy == "http://proxy:1")
        // With netrc as well, the proxy could read the login.
        #expect(throws: DownloadError.self) { try Builder(entry, in: folder, takesOrders: true) }
    }

    /// Whatever a server sends, a task lies below the folder and has no options but digests and a size.
    private static func fault(in task: TaskDescription, from list: Set<String>) -> String? {
        let folder = task.directory ?? ""
        guard folder == "/nowhere/d" || folder.hasPrefix("/nowhere/d/"), !"\(folder)/".contains("/../") else {
            return "it is in \(folder)"
        }
        if let name = task.fileName, name.isEmpty || name == ".." || name.utf8.contains(UInt8(ascii: "/")) {
            return "its name is \(name)"
        }
        var options = task.options
        options.checksum = nil
        options.size = nil
        options.pieces = nil
        if options != TaskOptions() { return "it has options: \(options)" }
        if task.startsSuspended == true { return "it is suspended" }
        let others = task.attributes.keys.filter { !$0.hasPrefix("signature") }
        if !others.isEmpty { return "it has attributes: \(others)" }
        for url in [task.url] + task.mirrors where !list.contains(url) { return "it asks \(url)" }
        return nil
    }

    @Test("hostile lists of every form: no task leaves the folder or obeys", arguments: FuzzRun.shards)
    func fuzz(shard: Int) async throws {
        let orders = [
            "\n  dir=/etc", "\n  out=../x", "\n  out=.bashrc", "\n  allow-overwrite=true", "\n  header=Cookie: a=b",
            "\n  all-proxy=http://p:1/", "\n  no-netrc=false", "\n  pause=true", "\n  gid=0123456789abcdef",
            "\"directory\":\"/etc\",", "\"fileName\":\"../x\",", "\"directory\":\"..\",", "\"headers\":[\"a: b\"],",
            "\"path\":\"/etc/x\",", "name=\"../x\"", "<file name=\"/etc/x\">", " data/../../x\n", "  ../../x\n",
        ]
        try await FuzzRun("lists from servers", usual: 20_000)(shard: shard, of: FuzzRun.shards.count) { random in
            let sample = random.pick(FuzzManifestTests.samples + Self.hostile.map { ($0.name, $0.text) })
            var bytes = Array(sample.text.utf8)
            for _ in 0..<random.below(4) {
                if random.oneIn(2) {
                    bytes.insert(contentsOf: random.pick(orders).utf8, at: random.below(bytes.count + 1))
                } else {
                    Mutation.apply(&bytes, with: Array(random.pick(Self.hostile).text.utf8), &random)
                }
            }
            var reading = Manifest.Reading()
            reading.skipsBadEntries = true
            reading.baseURL = "http://base/dir"
            var reader = ServerList.Reader(fileName: sample.name, reading)
            var files: [Manifest.FileFacts] = []
            do { _ = try reader.read(bytes) { part, _ in files += part } } catch is ManifestError { return nil }
            var folders = EntryFolders()
            for file in files {
                guard let task = try? file.task(in: "/nowhere/d", TaskOptions(), &folders) else { continue }
                let urls = Set(file.sources.compactMap { try? $0.url.normalizedURL() })
                if let fault = Self.fault(in: task, from: urls) {
                    return "\(fault): \(String(decoding: bytes, as: UTF8.self).debugDescription)"
                }
            }
            return nil
        }
    }

    // MARK: Names

    @Test(
        "two entries of one name are told with both lines; the same entry twice is one; another folder is no twin",
        arguments: [
            ("x.csv", "url,name\nhttp://h/1,cat\nhttp://h/2,cat\n", ["cat"], "line 2 has the same name"),
            ("x.csv", "url,name\nhttp://h/1,cat\nhttp://h/1,cat\n", ["cat"], ""),
            ("x.csv", "url,name\nhttp://h/1,a/cat\nhttp://h/2,b/cat\n", ["a/cat", "b/cat"], ""),
            ("x.csv", "url,name,md5\nhttp://h/1,cat,\(SampleDigest.hex(.md5))\nhttp://h/1,cat,\n", ["cat"], "line 2"),
            (
                "x.jsonl", "{\"url\":\"http://h/1\",\"name\":\"c\"}\n{\"url\":\"http://h/2\",\"name\":\"./c\"}\n",
                ["c"],
                "line 1 has the same name"
            ),
            (
                "x.json", "[{\"url\":\"http://h/1\",\"fileName\":\"c\"},\n{\"url\":\"http://h/2\",\"fileName\":\"c\"}]",
                ["c"], "line 1"
            ),
            (
                "x.json",
                "[{\"url\":\"http://h/1\",\"fileName\":\"c\",\"directory\":\"/a\"},\n{\"url\":\"http://h/2\",\"fileName\":\"c\",\"directory\":\"/b\"}]",
                ["c", "c"], ""
            ),
            ("x", "http://h/1\n  out=c\nhttp://h/2\n  out=c\n  dir=e\n", ["c", "c"], ""),
            ("x", "http://h/1\nhttp://h/2\nhttp://h/1\n", ["", "", ""], ""),
            (
                "x.lock",
                "{\"fk-lock\":1}\n{\"name\":\"c\",\"url\":\"http://h/1\"}\n{\"name\":\"c\",\"url\":\"http://h/1\"}\n",
                ["c"], ""
            ),
        ])
    func twins(name: String, text: String, names: [String], fault: String) throws {
        let manifest = try Manifest(text, fileName: name)
        #expect(manifest.names == names)
        #expect(manifest.faultCount == (fault.isEmpty ? 0 : 1))
        if !fault.isEmpty { #expect(manifest.faults.first?.reason.contains(fault) == true, "\(manifest.faults)") }
    }

    @Test("a list whose bad lines refuse it is refused for a name that it has twice, unless files are renamed")
    func refused() throws {
        let list = "http://h/1\n  out=c\nhttp://h/2\n  out=c\n"
        #expect(Manifest.fault(in: list) == "aria2 list, line 3: 'c': line 1 has the same name")
        var reading = Manifest.Reading()
        reading.allowsTwins = true
        #expect(try Manifest(parsing: Array(list.utf8), reading).names == ["c", "c"])
    }

    @Test("pages: a file that says the same again is one, another of its name is a fault") func pages() async throws {
        func page(_ url: String, _ name: String) -> [UInt8] {
            Array("{\"url\":\"\(url)\",\"name\":\"\(name)\"}\n".utf8)
        }
        struct Pages: Source {
            let pages: [[UInt8]]
            var schemes: [String] { ["pages"] }
            var form: String { "pages:X" }
            func place(of reference: SourceReference, in environment: [String: String]) -> SourcePlace {
                SourcePlace(reference, folderName: "x", address: nil)
            }
            func pages(of place: SourcePlace, _ client: SourceClient) -> AsyncThrowingStream<SourcePage, any Error> {
                client.pages { send in
                    for page in pages { _ = try await send.list(page, ServerList.Reader(.jsonLines)) }
                }
            }
        }
        let source = Pages(pages: [
            page("http://h/1", "a"), page("http://h/1", "a") + page("http://h/2", "a") + page("http://h/3", "b"),
            page("http://h/3", "b"),
        ])
        let place = source.place(of: try #require(SourceReference("pages:x")), in: [:])
        let transport = ScriptedTransport { _, _ in .init([]) }
        defer { transport.shutdown() }
        var (names, faults) = ([String](), [SourceFault]())
        let error = await #expect(throws: DownloadError.self) {
            for try await page in SourceListing(source, place, SourceChoice(), TaskOptions(), [:], over: transport)
                .pages
            {
                names += page.files.map { $0.name ?? "" }
                faults += page.faults
            }
        }
        #expect(names == ["a", "b"])
        #expect(faults.count == 1 && faults.first?.reason.hasPrefix("'a': ") == true, "\(faults)")
        #expect(faults.first?.error?.line == 2)
        #expect(error?.message.contains("page 3 names only files of earlier pages") == true)
    }

    // MARK: Bounds

    @Test("a value of more parts than any entry has is refused, and members without a meaning are skipped")
    func values() throws {
        let zeros = String(repeating: "0,", count: JSONReader.maxValues) + "0"
        let skipped = try Manifest(
            "{\"x\":[\(zeros)],\"members\":[{\"url\":\"http://h/a\"}],\"y\":{\"z\":[{}]}}", as: .json)
        #expect(skipped.urls == [["http://h/a"]])
        let fault = Manifest.fault(in: "[{\"url\":\"http://h/a\",\"x\":[\(zeros)]}]", as: .json)
        #expect(fault.contains("more than 500000 values in one entry or member"), "\(fault)")
        #expect(Manifest.fault(in: "{\"x\":[1,}],\"members\":[]}", as: .json).contains("a value is expected here"))
    }
}
