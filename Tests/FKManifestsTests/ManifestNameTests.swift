import Testing

@testable import FKManifests

@Suite("Names") struct ManifestNameTests {
    /// Names that are refused, and why.
    static let refusedNames: [(name: String, reason: String)] = [
        ("", "is empty"), ("/a", "absolute"), ("/", "absolute"), ("..", "'..'"), ("../a", "'..'"), ("a/../b", "'..'"),
        ("a/..", "'..'"), ("..\\a", "'..'"), ("a\\..\\b", "'..'"), ("a/..\\b", "'..'"), ("C:\\a", "drive"),
        ("c:/a", "drive"), ("\\\\h\\s", "network"), ("a\u{0}b", "zero byte"), ("a\u{1b}[2J", "control"),
        ("a\u{7f}", "control"), ("a\u{85}", "control"), ("a/", "slash"), (".", "no file"), ("./", "slash"),
        ("a/.", "no file"), (String(repeating: "x", count: 256), "255 bytes"),
        ("d/\(String(repeating: "ü", count: 128))/a", "255 bytes"),
        (String(repeating: "d/", count: 2_000) + "a", "at most 4000"), (".x.0123456789abcdef.fkpart", "unfinished"),
        ("a/\u{301}b", "no letter"),
    ]

    @Test(
        "names of manifests that lead out or are none are refused by name and line",
        arguments: ManifestNameTests.refusedNames)
    func refused(name: String, reason: String) throws {
        #expect(
            name.listedPathFault?.contains(reason) == true, "\(name.listedPathFault ?? "taken")"
        )
        guard !name.contains("\u{0}"), !name.contains("\u{1b}"), !name.contains("\u{7f}"), !name.contains("\u{85}")
        else { return }
        let escaped = name.replacing("\\", with: "\\\\")
        let manifest = try Manifest("{\"fk-lock\":1}\n{\"name\":\"\(escaped)\",\"url\":\"http://h/a\"}")
        #expect(manifest.entries.isEmpty && manifest.faults.map(\.line) == [2])
        let xml =
            "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\n<file name=\"\(name)\"><url>http://h/a</url></file></metalink>"
        let metalink = try Manifest(xml)
        #expect(metalink.entries.isEmpty && metalink.faults.map(\.line) == [2])
    }

    @Test(
        "a name of a manifest keeps its bytes",
        arguments: [
            "a", "a/b c/d", "a\\b", "a\nb", "a\rb", "a\tb", "..a", "a..", "...", "é", "e\u{301}", "-x", "a:b", "*",
            String(repeating: "x", count: 255),
        ])
    func taken(name: String) throws {
        #expect(name.listedPathFault == nil)
        #expect(name.plainListedPath.isExactly(name))
    }

    @Test(
        "Two spellings of one path are one name",
        arguments: [
            ("./a", "a"), ("a//b", "a/b"), ("a/./b", "a/b"), ("././a", "a"), (".a/b", ".a/b"),
        ])
    func plain(name: String, wanted: String) {
        #expect(name.plainListedPath == wanted)
    }

    @Test("Names are told apart by their bytes; a file is no folder") func book() {
        var book = Manifest.NameBook()
        #expect(book.add("é", line: 1) == nil && book.add("e\u{301}", line: 2) == nil)
        #expect(book.add("é", line: 3) == "line 1 has the same name")
        #expect(book.add("d/e/f", line: 4) == nil && book.add("d/e/g", line: 5) == nil)
        #expect(book.add("d", line: 6) == "line 4 needs a folder of this name")
        #expect(book.add("d/e/f/h", line: 7) == "line 4 is a file where this name needs a folder")
        #expect(book["d/e/f"] == 4 && book["d/e/f/h"] == nil)
        #expect(book.add("s", line: 8, content: 3) == .new && book.add("s", line: 9, content: 3) == .same)
        #expect(book.add("s", line: 10, content: 5) == .conflict(.init(kind: .hasName, line: 8)))
    }
}

@Suite("Recognition") struct ManifestFormTests {
    private static let hex = SampleDigest.sha256

    @Test(
        "A list is recognised by its content",
        arguments: [
            ("http://h/a", nil, Manifest.Form.urls), ("# c\n\nhttp://h/a\n out=x", nil, .urls), ("", nil, .urls),
            ("\u{feff}", nil, .urls), ("\(hex)  a", nil, .checksums), ("# c\n\(hex) *a", nil, .checksums),
            ("\\\(hex)  a\\nb", nil, .checksums), (hex, nil, .checksums), ("SHA256 (a) = \(hex)", nil, .checksums),
            ("BLAKE2b (a) = 00", nil, .checksums), ("-----BEGIN PGP SIGNED MESSAGE-----\n", nil, .checksums),
            ("\(hex)  data/a", "manifest-sha256.txt", .bagit), ("\(hex)  data/a", "SHA256SUMS", .checksums),
            ("", "manifest-md5.txt", .bagit), ("BagIt-Version: 1.0", nil, .bagit), ("http://h/a 1 data/a", nil, .bagit),
            ("http://h/a b", nil, .urls), ("[{\"url\":\"http://h\"}]", nil, .json), ("  {\"members\":[]}", nil, .json),
            ("[]", nil, .json), ("{\"fk-lock\":1}", nil, .lock), ("{\"url\":\"http://h\"}", nil, .jsonLines),
            ("{\"a\":1,\"url\":\"http://h\"}\n{", nil, .jsonLines), ("{\"url\":1,\"members\":[]}", nil, .json),
            ("{\n\"url\":\"http://h\"}", nil, .json), ("\u{feff}# c\n\"key\",\"URL\"\n", nil, .csv),
            ("a,b", "x.csv", .csv), ("http://h/a,b", "x.tsv", .csv), ("http://h/a,b", nil, .urls),
            ("[{\"type\":\"file\",\"oid\":\"0\",\"path\":\"a\"}]", nil, .hubTree),
            ("<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">", nil, .metalink4),
            (
                "\u{feff}<?xml version=\"1.0\"?>\n<!-- c -->\n<m:metalink xmlns:m=\"urn:ietf:params:xml:ns:metalink\"/>",
                nil, .metalink4
            ),
            ("<metalink version=\"3.0\" xmlns=\"http://www.metalinker.org/\">", nil, .metalink3),
            ("<metalink version=\"3.0\">", nil, .metalink3),
        ])
    func recognized(text: String, name: String?, form: Manifest.Form) {
        #expect(Manifest.Form.recognize(Array(text.utf8), fileName: name) == form)
    }

    @Test(
        "What is no list says what it is",
        arguments: [
            ([0x1f, 0x8b, 8, 0], "compressed with gzip"),
            ([0x3c, 0, 0x6d, 0], "UTF-16"), (Array("PAR1\u{15}\u{4}".utf8), "duckdb -c"),
            (Array("<html></html>".utf8), "web page (HTML)"), (Array("<x/>".utf8), "no Metalink"),
            ([0x7f, 0x45, 0x4c, 0x46, 0], "is a program"), ([0x41, 0x00], "is not recognised"),
        ])
    func others(bytes: [UInt8], reason: String) {
        #expect(Manifest.Form.recognize(bytes) == nil)
        let error = #expect(throws: ManifestError.self) { try Manifest(parsing: bytes) }
        #expect(error?.reason.contains(reason) == true)
    }

    @Test("A list that comes in portions is recognised as well") func portions() throws {
        let text = (0..<10_000).map { "\(Self.hex)  f\($0)\n" }.joined()
        var reader = ManifestReader()
        let bytes = Array(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: 10_000) {
            try reader.take(Array(bytes[start..<min(start + 10_000, bytes.count)]))
        }
        let manifest = try reader.finish()
        #expect(manifest.form == .checksums && manifest.entries.count == 10_000)
    }
}
