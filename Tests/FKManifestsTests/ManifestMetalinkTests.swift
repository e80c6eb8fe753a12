import Testing

@testable import FKManifests

@Suite("Metalink") struct ManifestMetalinkTests {
    private static let hex = SampleDigest.sha256
    private static let sha1 = SampleDigest.hex(.sha1)

    private static func metalink4(_ inner: String) -> String {
        "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\n\(inner)\n</metalink>"
    }

    @Test("Version 4: several files with sizes, digests, pieces, mirrors and a signature") func version4() throws {
        let manifest = try Manifest(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <metalink xmlns="urn:ietf:params:xml:ns:metalink" xmlns:x="urn:x">
              <generator>maker/1</generator><published>2026-01-02T03:04:05Z</published>
              <origin dynamic="true">http://h/list.meta4</origin>
              <file name="one/a &amp; b.iso">
                <size> 5 </size><version>1.0</version><language>en</language><description>An <![CDATA[<image>]]></description>
                <hash type="md5">\(SampleDigest.hex(.md5))</hash>
                <hash type="SHA-256">
                  \(Self.hex.uppercased())
                </hash>
                <hash type="tiger">00</hash>
                <x:hash type="sha-512">of something else</x:hash>
                <pieces length="2" type="sha-1"><hash>\(Self.sha1)</hash><hash>\(SampleDigest.hex(.sha1, "b"))</hash>
                  <hash>\(Self.sha1)</hash></pieces>
                <url location="DE" priority="20">http://de/a.iso</url>
                <url priority="1">https://first/a.iso</url>
                <url>http://last/a.iso</url>
                <url priority="5">ftp://f/a.iso</url><url>rsync://r/a.iso</url>
                <metaurl mediatype="torrent" priority="1">http://t/a.torrent</metaurl>
                <signature mediatype="application/pgp-signature">-----BEGIN</signature>
              </file>
              <file name="two"><url>http://h/two?a=1&#38;b=2</url></file>
            </metalink>
            """)
        #expect(manifest.form == .metalink4)
        #expect(manifest.names == ["one/a & b.iso", "two"])
        #expect(manifest.faults.isEmpty)
        #expect(manifest.passedOver == ["ftp": 1, "rsync": 1, "torrent": 1, "hash tiger": 1])
        #expect(manifest.facts.generator == "maker/1" && manifest.facts.origin == "http://h/list.meta4")
        #expect(manifest.facts.published == "2026-01-02T03:04:05Z")
        let entry = manifest.entries[0]
        #expect(entry.line == 5 && entry.size == 5)
        #expect(entry.digests.map(\.description) == ["sha-256=\(Self.hex)", "md5=\(SampleDigest.hex(.md5))"])
        #expect(
            entry.sources == [
                .init("https://first/a.iso", priority: 1), .init("http://de/a.iso", priority: 20, location: "de"),
                .init("http://last/a.iso"),
            ])
        #expect(entry.pieces.map(\.count) == [3] && entry.pieces[0].length == 2 && entry.pieces[0][1].first == 0xbb)
        #expect(entry.signature == .init(mediaType: "application/pgp-signature", text: "-----BEGIN"))
        #expect(entry.attributes == ["version": "1.0", "language": "en", "description": "An <image>"])
        #expect(manifest.urls[1] == ["http://h/two?a=1&b=2"])
    }

    @Test("Version 3: preferences, verification, numbered pieces and torrents") func version3() throws {
        let manifest = try Manifest(
            """
            <metalink version="3.0" xmlns="http://www.metalinker.org/" generator="maker" origin="http://h/m" pubdate="now">
              <publisher><name>n</name><url>http://publisher/</url></publisher>
              <files><file name="a.iso"><size>3</size>
                <verification>
                  <signature type="pgp" file="a.asc">sig</signature><hash type="sha1">\(Self.sha1)</hash>
                  <pieces length="2" type="sha1"><hash piece="1">\(SampleDigest.hex(.sha1, "b"))</hash>
                    <hash piece="0">\(Self.sha1)</hash></pieces>
                </verification>
                <resources maxconnections="1">
                  <url type="ftp" preference="100">ftp://f/a.iso</url>
                  <url type="http" location="us" preference="10">http://us/a.iso</url>
                  <url type="http" preference="90">http://best/a.iso</url>
                  <url type="bittorrent" preference="100">http://t/a.torrent</url>
                </resources></file>
              </files>
            </metalink>
            """)
        #expect(manifest.form == .metalink3)
        #expect(manifest.facts.generator == "maker" && manifest.facts.published == "now")
        let entry = try #require(manifest.entries.first)
        #expect(entry.sources.map(\.url) == ["http://best/a.iso", "http://us/a.iso"])
        #expect(entry.sources.map(\.priority) == [11, 91])
        #expect(entry.digests.map(\.algorithm) == [.sha1])
        #expect(entry.pieces[0][0].first == 0xaa && entry.pieces[0][1].first == 0xbb)
        #expect(entry.signature == .init(mediaType: "application/pgp-signature", text: "sig"))
        #expect(manifest.passedOver == ["ftp": 1, "torrent": 1])
    }

    @Test(
        "A digest inside of anything but the file is not the file's",
        arguments: [
            "<metaurl mediatype=\"torrent\"><hash type=\"sha-256\">\(hex)</hash></metaurl>",
            "<alternate><hash type=\"sha-256\">\(hex)</hash><size>1</size></alternate>",
            "<url>http://h/b<hash type=\"sha-256\">\(hex)</hash></url>",
            "<verification><hash type=\"sha-256\">\(hex)</hash></verification>",
            "<file name=\"b\"><hash type=\"sha-256\">\(hex)</hash></file>",
            "<x:file xmlns:x=\"urn:x\"><hash type=\"sha-256\">\(hex)</hash></x:file>",
        ])
    func nested(inner: String) throws {
        let manifest = try Manifest(Self.metalink4("<file name=\"a\">\(inner)<url>http://h/a</url></file>"))
        #expect(manifest.names == ["a"] && manifest.entries[0].digests.isEmpty && manifest.entries[0].size == nil)
    }

    @Test(
        "A bad file is left out by its name, line and column; the others are taken",
        arguments: [
            ("<hash type=\"sha-256\">\(hex.dropLast())</hash>", "a sha-256 digest has 64 hexadecimal digits"),
            ("<hash type=\"md5\">\(hex)</hash>", "a md5 digest has 32"),
            (
                "<hash type=\"sha-256\">\(hex)</hash><hash type=\"sha-256\">\(SampleDigest.hex(.sha256, "b"))</hash>",
                "two different"
            ),
            ("<size>-1</size>", "the size '-1'"), ("<size>99999999999999999999</size>", "the size"),
            ("<size/>", "the size ''"),
            ("<size>1</size><size>2</size>", "two sizes"),
            ("<pieces length=\"0\" type=\"sha-1\"/>", "the length of its pieces, '0'"),
            ("<pieces length=\"2\" type=\"sha-1\"><hash>12</hash></pieces>", "piece: a sha-1 digest"),
            (
                "<size>5</size><pieces length=\"2\" type=\"sha-1\"><hash>\(sha1)</hash></pieces>",
                "its 5 bytes are 3 pieces of 2"
            ),
            ("<pieces length=\"2\" type=\"sha-1\"/>", "no digests of pieces"),
        ])
    func bad(inner: String, reason: String) throws {
        let files =
            "<file name=\"bad\">\(inner)<url>http://h/bad</url></file>\n<file name=\"good\"><url>http://h/g</url></file>"
        let manifest = try Manifest(Self.metalink4(files))
        #expect(manifest.names == ["good"])
        let fault = try #require(manifest.faults.first)
        #expect(manifest.faultCount == 1 && fault.line == 2 && fault.column > 0)
        #expect(fault.reason.hasPrefix("'bad': ") && fault.reason.contains(reason), "\(fault)")
    }

    @Test(
        "A file without an address that can be fetched is left out",
        arguments: [
            ("", "no address"), ("<url>ftp://h/a</url><url>rsync://h/a</url>", "only 2 of other kinds"),
            ("<metaurl mediatype=\"torrent\">http://h/a.torrent</metaurl>", "no address"),
        ])
    func noAddress(inner: String, reason: String) throws {
        let manifest = try Manifest(Self.metalink4("<file name=\"a\">\(inner)</file>"))
        #expect(manifest.entries.isEmpty && manifest.faults[0].reason.contains(reason))
    }

    @Test("A bad address is left out; the file keeps the others") func badAddress() throws {
        let text = Self.metalink4("<file name=\"a\">\n<url>http:///x</url><url>a.iso</url><url>http://h/a</url></file>")
        let manifest = try Manifest(text)
        #expect(manifest.urls == [["http://h/a"]])
        #expect(manifest.faults.map(\.line) == [3, 3])
        #expect(try Manifest(text, base: "http://b/dir").urls == [["http://b/dir/a.iso", "http://h/a"]])
    }

    @Test("Priorities outside of their range count as none", arguments: ["0", "", "1000000", "x"])
    func priorities(text: String) throws {
        let manifest = try Manifest(
            Self.metalink4("<file name=\"a\"><url priority=\"\(text)\">http://h/a</url></file>"))
        #expect(manifest.entries[0].sources[0].priority == Manifest.Source.lowestPriority)
    }

    @Test(
        "A malformed document is refused as a whole, with line and column",
        arguments: [
            ("<file name=\"a\"><url>http://h/a</url>", "line 3, column 1: </metalink> stands where </file> should be"),
            ("<file name=\"a\"><url>http://h/&x;</url></file>", "line 2, column 30: the entity &x; is not one"),
            ("<file name=\"a\" name=\"b\"/>", "line 2, column 16: the attribute name is given twice"),
            ("\u{1}", "line 2, column 1: the document holds a control character"),
        ])
    func malformed(inner: String, reason: String) {
        let fault = Manifest.fault(in: Self.metalink4(inner))
        #expect(fault.hasPrefix("Metalink 4, \(reason)"), "\(fault)")
    }

    @Test("A document that is cut anywhere is an error") func truncated() throws {
        let text = Array(Self.metalink4("<file name=\"a\"><size>1</size><url>http://h/a</url></file>").utf8)
        for count in 0..<text.count - 1 {
            #expect(throws: ManifestError.self, "\(count)") {
                try Manifest(parsing: Array(text[..<count]), as: .metalink4)
            }
        }
    }

    @Test(
        "Document types are refused: no entity is expanded, none is loaded",
        arguments: [
            "<!DOCTYPE metalink [<!ENTITY a \"b\">]>",
            "<!DOCTYPE metalink SYSTEM \"file:///etc/passwd\">",
            "<!DOCTYPE metalink [<!ENTITY % x SYSTEM \"http://127.0.0.1/x\"> %x;]>",
        ])
    func documentTypes(type: String) {
        let fault = Manifest.fault(in: "<?xml version=\"1.0\"?>\n\(type)\n" + Self.metalink4(""))
        #expect(fault.hasPrefix("Metalink 4, line 2, column 1: the document has a document type"), "\(fault)")
    }

    @Test(
        "Another document is no Metalink",
        arguments: [
            "<html/>", "<metalink xmlns=\"urn:other\"/>",
            "<metalink xmlns=\"urn:ietf:params:xml:ns:metalinks\"/>",
        ])
    func other(text: String) {
        #expect(Manifest.Form.recognize(Array(text.utf8)) == nil)
        #expect(
            Manifest.fault(in: text).contains(
                text.contains("html") ? "web page (HTML)" : "the Metalink has the namespace"))
        #expect(Manifest.fault(in: text, as: .metalink4).contains("is not that of a Metalink"))
    }

    @Test("10,000 files with pieces: the work grows with the number") func many() throws {
        let pieces = String(repeating: "<hash>\(Self.sha1)</hash>", count: 10)
        let files = (0..<10_000).map {
            "<file name=\"d/\($0)\"><size>10</size><hash type=\"sha-256\">\(Self.hex)</hash>"
                + "<pieces length=\"1\" type=\"sha-1\">\(pieces)</pieces><url>http://h/\($0)</url></file>\n"
        }
        let manifest = try Manifest(Self.metalink4(files.joined()))
        #expect(manifest.entries.count == 10_000 && manifest.entries.last?.line == 10_001)
    }
}
