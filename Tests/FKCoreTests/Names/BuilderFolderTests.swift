import TestSupport
import Testing

@Suite("The folder of a builder")
struct BuilderFolderTests {
    @Test("a relative folder is made absolute when it is set, and ~ is the home folder")
    func folders() throws {
        var builder = try Builder("https://h.example/a")
        let current = FileManager.default.currentDirectoryPath
        let home = FileManager.default.homeDirectoryForCurrentUser.path
        for (path, absolute) in [
            ("x/y", "\(current)/x/y"), ("./x", "\(current)/x"), (".", current), ("x/../y/", "\(current)/y"),
            ("./~", "\(current)/~"), ("~", home), ("~/x", "\(home)/x"), ("/tmp//x/", "/tmp/x"),
            ("/tmp/caf\u{e9}", "/tmp/caf\u{e9}"), ("/tmp/a://b", "/tmp/a://b".replacing("//", with: "/")),
        ] {
            builder.directory = path
            #expect(builder.directory == absolute)
            #expect(builder.folder?.path == absolute)
        }
        builder.folder = URL(fileURLWithPath: "/tmp/x y", isDirectory: true)
        #expect(builder.directory == "/tmp/x y")
        builder.folder = nil
        #expect(builder.directory == nil)
    }

    @Test(
        "a folder that cannot be is refused by name, and nothing is made",
        arguments: ["", "~no-such-user-\(getpid())/x", "/tmp/a\0b", "file:///tmp/x", "https://h.example/x"])
    func impossible(_ path: String) async throws {
        let bench = try await Bench(content: [])
        var builder = try Builder("https://h.example/a")
        builder.directory = path
        let refused = builder
        let error = await #expect(throws: DownloadError.self) { try await refused.prepare(in: bench.downloader) }
        #expect(error?.code == .invalidArgument)
        #expect(await bench.messager.all().isEmpty)
    }
}
