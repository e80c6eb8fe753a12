import TestSupport
import Testing

@Suite("Builder")
struct BuilderTests {
    @Test("a URL is encoded once, and is the task's identity together with its destination")
    func identity() throws {
        var one = try Builder("https://example.com/图片 1.png")
        let two = try Builder("https://example.com/%E5%9B%BE%E7%89%87%201.png")
        #expect(one.url == two.url && one.description.given == "https://example.com/图片 1.png")
        var given = one.description
        given.given = nil
        #expect(given == two.description)
        #expect(one.description.id == two.description.id)
        one.directory = "/tmp/x"
        #expect(one.description.id != two.description.id)
        let inFolder = one.description.id
        try one.setFileName("a")
        #expect(one.description.id != inFolder)
    }

    @Test(
        "what is no URL is an error",
        arguments: ["", "example.com", "ftp://example.com/a", "http://", "http:///a", "://"])
    func noURL(_ text: String) {
        #expect { try Builder(text) } throws: {
            [.invalidURL, .unsupportedScheme].contains(($0 as? DownloadError)?.code)
        }
    }

    @Test(
        "a file name is one plain name",
        arguments: [
            "", ".", "..", "a/b", "/a", "a\nb", "a\u{0}b", String(repeating: "x", count: 201),
        ])
    func badName(_ name: String) throws {
        var builder = try Builder("https://example.com/a")
        try builder.setFileName("before")
        #expect { try builder.setFileName(name) } throws: { ($0 as? DownloadError)?.code == .invalidArgument }
        #expect(builder.fileName == "before")
        try builder.setFileName(nil)
        #expect(builder.fileName == nil)
    }

    @Test("mirrors are normalized, and one that is none changes nothing")
    func mirrors() throws {
        var builder = try Builder("https://example.com/a")
        try builder.setMirrors(["https://b.example/é"])
        #expect(builder.mirrors == ["https://b.example/%C3%A9"])
        #expect(throws: DownloadError.self) { try builder.setMirrors(["https://c.example/a", "nonsense"]) }
        #expect(builder.mirrors == ["https://b.example/%C3%A9"])
    }

    @Test(
        "a folder becomes absolute, and is the same folder however it is spelled",
        arguments: [
            ("/tmp/a/../b/", "/tmp/b"), ("/tmp/./b", "/tmp/b"), ("/tmp//b", "/tmp/b"),
        ])
    func folder(_ given: String, _ expected: String) throws {
        var builder = try Builder("https://example.com/a")
        builder.directory = given
        #expect(builder.directory == expected)
        builder.directory = "relative"
        #expect(builder.directory == FileManager.default.currentDirectoryPath + "/relative")
        builder.directory = nil
        #expect(builder.directory == nil)
    }

    @Test("preparing twice is one task; many at once give one result each, in a barrel")
    func prepare() async throws {
        let bench = try await Bench(isActive: false) { request, _ in .file([1], to: request) }
        var builder = try Builder("http://h.example/a")
        builder.directory = bench.out
        builder.priority = 3
        builder.attributes = ["k": "v"]
        builder.downloadType = .foreground
        builder.options.maxSize = 10
        let id = try await builder.prepare(in: bench.downloader)
        #expect(try await builder.prepare(in: bench.downloader) == id)
        // How the words meet a known task is no part of the record.
        var task = builder.description
        task.words = []
        #expect(try bench.stored(id).task == task)
        let builders = try (0..<5).map { try Builder("http://h.example/\($0)") }
        let results = try await Builder.prepare(builders, barrel: "b", in: bench.downloader)
        #expect(try results.map { try $0.get() } == builders.map(\.description.id))
        #expect(try await bench.messager.urls(inBarrel: "b") == builders.map(\.url))
        #expect(await bench.messager.all().count == 6)
        // Each has an info file, a number in the order of submission, and a place in the queue.
        let records = try ([id] + builders.map(\.description.id)).map(bench.stored)
        #expect(records.allSatisfy { $0.state == .idle })
        #expect(zip(records, records.dropFirst()).allSatisfy { $0.number < $1.number })
        #expect(bench.transport.requests.isEmpty)
        bench.downloader.activateQueue()
        await bench.engine.waitUntilDrained()
        #expect(bench.asked == ["a", "0", "1", "2", "3", "4"] && bench.names == ["a"])
        let infos = await bench.messager.all()
        #expect(infos.allSatisfy { $0.state == .complete })
        for info in infos where info.id != id {
            #expect(info.path?.hasPrefix(bench.workPath.filesFolder + "/") == true)
        }
    }

    @Test("a task whose info file cannot be written is an error of its own; the others are made")
    func unwritable() async throws {
        let bench = try await Bench(isActive: false) { request, _ in .file([1], to: request) }
        let bad = try Builder("http://h.example/bad")
        let good = try Builder("http://h.example/good")
        // A file stands where the folder of its info file would be.
        let folder = (bench.workPath.infoPath(bad.description.id) as NSString).deletingLastPathComponent
        try write([], folder)
        let results = try await Builder.prepare([bad, good], in: bench.downloader)
        #expect(throws: DownloadError.self) { try results[0].get() }
        #expect(try results[1].get() == good.description.id)
        #expect(await bench.messager.all().map(\.id) == [good.description.id])
    }
}
