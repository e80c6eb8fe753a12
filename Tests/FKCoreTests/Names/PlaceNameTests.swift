import TestSupport
import Testing

/// A name that a list gives stays below its folder, and a path that is not
/// text is refused.
@Suite("Names that lead elsewhere")
struct PlaceNameTests {
    @Test(
        "names of a list that are refused",
        arguments: [
            "../x", "../../etc/x", "a/../../x", "a/../x", "a/..", "..", "/etc/x", "//x", "a\0b", "a/b\0/c", "", ".",
            "a/", "a/.", "/", "\(String(repeating: "a", count: 256))/x", "x.fkpart", "..\u{301}/../x",
        ])
    func refused(name: String) {
        #expect(FileNameRules.fault(inListed: name) != nil)
    }

    @Test(
        "names of a list that are taken as they are",
        arguments: [
            ("x", nil, "x"), ("a/x", "a", "x"), ("./a//b/./x", "a/b", "x"), ("a\\..\\x", nil, "a\\..\\x"),
            ("...", nil, "..."), ("..a/..b", "..a", "..b"), ("~/x", "~", "x"), ("a/\u{301}x", "a", "\u{301}x"),
        ] as [(String, String?, String)])
    func taken(name: String, folder: String?, file: String) {
        // A name of its own that begins with a mark is refused for another reason.
        #expect((FileNameRules.fault(inListed: name) == nil) == !FileNameRules.joinsSlash(file))
        #expect(
            FileNameRules.splitListed(name).folder == folder && FileNameRules.splitListed(name).name.isExactly(file))
    }

    @Test("the library refuses a folder with a zero byte, and uses none in its place")
    func zeroByte() async throws {
        let bench = try await Bench(content: [1, 2, 3])
        for folder in ["\(bench.out)/a\0b", "a\0b"] {
            var builder = try Builder("http://h.example/x")
            builder.directory = folder
            await #expect { try await builder.prepare(in: bench.downloader) } throws: {
                ($0 as? DownloadError)?.code == .invalidArgument
            }
        }
        #expect(bench.names == [] && bench.transport.requests.isEmpty)
    }

    @Test("a work path without a path in UTF-8 is refused; the current folder is not used in its place")
    func workPath() throws {
        for path in [WorkPath(try #require(URL(string: "file:///tmp/alt%FC"))), WorkPath("a\0b"), WorkPath("\0")] {
            #expect(path.root == "")
            #expect { try path.open(create: true) } throws: { ($0 as? DownloadError)?.code == .workPathUnusable }
        }
        #expect(WorkPath(WorkPath("\0").url).root == "")
    }

    @Test("paths of any text stay the bytes they are")
    func absolute() throws {
        for path in ["/a/caf\u{e9}", "/a/cafe\u{301}", "/a/\u{301}b", "/a/%FC", "/a/b c?d#e"] {
            #expect(try #require(ProcessInfo.absolute(path)).isExactly(path))
        }
        #expect(ProcessInfo.absolute("/a/../b//c/./d/") == "/b/c/d")
    }
}
