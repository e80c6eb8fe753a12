import TestSupport
import Testing

@testable import FKManifests

@Suite("Tables and JSON Lines") struct ManifestTableTests {
    private static let hex = SampleDigest.sha256

    @Test("A table has URL, name, size and digests by the header's names, in any order and case") func table() throws {
        let manifest = try Manifest(
            "caption,SHA256,URL,File_Name,Size,md5,mirror\r\n"
                + "\"a \"\"cat\"\", asleep\r\nat home\",\(Self.hex),https://h/a.jpg,cats/a.jpg,12,,http://m/a.jpg\r\n"
                + "b,,http://h/b,,,\(SampleDigest.hex(.md5)),\r\n")
        #expect(manifest.form == .csv && manifest.names == ["cats/a.jpg", ""])
        #expect(manifest.urls == [["https://h/a.jpg", "http://m/a.jpg"], ["http://h/b"]])
        #expect(manifest.entries.map(\.size) == [12, nil] && manifest.entries.map(\.line) == [2, 4])
        #expect(try manifest.entries[0].digests == [Checksum(.sha256, hex: Self.hex)])
        #expect(manifest.entries[1].digests.map(\.algorithm) == [.md5])
    }

    @Test(
        "Tabs and semicolons separate fields where the header has them; a column of URLs alone is a table",
        arguments: ["url\tname\nhttp://h/a,b\tx y", "name;url\n\"x y\";http://h/a,b", "url\nhttp://h/a,b\n\n"])
    func separators(text: String) throws {
        let manifest = try Manifest(text)
        #expect(manifest.form == .csv && manifest.urls == [["http://h/a,b"]])
        #expect(manifest.names == (text.contains("x y") ? ["x y"] : [""]))
    }

    @Test(
        "A bad row is left out with line and column",
        arguments: [
            ("ftp://h/a,a,1,", 1, "scheme 'ftp'"), (",a,1,", 1, "it has no URL"),
            ("http://h/a,../a,1,", 12, "its name has '..'"),
            ("http://h/a,a,1,12", 16, "a sha-256 digest has 64"),
            ("http://h/a,a", 12, "2 fields, and the header has 4"),
            ("http://h/?token=***,a,1,", 1, "are shown as ***"), ("s3://b/k,,,", 1, "with --base URL"),
        ])
    func badRow(row: String, column: Int, reason: String) throws {
        let manifest = try Manifest("url,name,size,sha256\nhttp://h/good,,,\n\(row)\nhttp://h/other,,,")
        #expect(manifest.urls == [["http://h/good"], ["http://h/other"]])
        #expect(manifest.faults.map(\.line) == [3] && manifest.faults.map(\.column) == [column], "\(manifest.faults)")
        #expect(manifest.faults.first?.reason.contains(reason) == true, "\(manifest.faults)")
    }

    @Test(
        "A malformed table is refused with line and column",
        arguments: [
            ("url,a\n\"http://h/a\nb", "CSV list, line 2, column 1: the quote has no end"),
            ("url,a\nhttp://h/a,\"b\"c", "CSV list, line 2, column 15: text follows the closing quote"),
            ("url,size,bytes\n", "CSV list, line 1, column 10: two columns of the header have one meaning"),
            (
                "url,a\n\"\(String(repeating: "x\n", count: 600_000))",
                "line 2, column 1: the quote has no end within 1 MiB"
            ),
        ])
    func malformed(text: String, reason: String) {
        let fault = Manifest.fault(in: text)
        #expect(fault.contains(reason), "\(fault)")
    }

    @Test("A table without a column of URLs names its columns, and a list of URLs may be named .csv") func header()
        throws
    {
        #expect(
            Manifest.fault(in: "a,b\n1,2\n", fileName: "list.csv").hasPrefix(
                "CSV list, line 1: the first line is the header and has no column 'url', but 'a', 'b'"))
        #expect(
            Manifest.fault(in: "run_accession\tfastq_ftp\nERR1\th/a;h/b\n", fileName: "report.tsv").hasSuffix(
                "line 1: the list is a file report of ENA: fk get -r ena:ACCESSION fetches its files"))
        #expect(try Manifest("http://h/a\n", fileName: "x/list.CSV").form == .urls)
    }

    @Test("Malformed lines are skipped where bad entries are") func skipped() throws {
        let table = try Manifest("url,a\nhttp://h/a,\"b\"c\nhttp://h/b,\n", skips: true)
        #expect(table.urls == [["http://h/b"]] && table.faults.map(\.column) == [15])
        let lines = try Manifest("{\"url\":\"http://h/a\"}\n{\n{\"url\":\"http://h/b\"}", skips: true)
        #expect(lines.urls == [["http://h/a"], ["http://h/b"]] && lines.faults.map(\.line) == [2])
    }

    @Test("JSON Lines have the same names; a URL may be an array") func lines() throws {
        let manifest = try Manifest(
            """
            {"url":["http://h/a","http://m/a"],"fileName":"d/a","size":3,"sha256":"\(Self.hex)","caption":null}

            {"url":"http://h/b","bytes":"4","checksum":"md5:\(SampleDigest.hex(.md5))","other":{"url":"x"}}
            """)
        #expect(manifest.form == .jsonLines && manifest.names == ["d/a", ""])
        #expect(manifest.urls == [["http://h/a", "http://m/a"], ["http://h/b"]])
        #expect(manifest.entries.map(\.size) == [3, 4] && manifest.entries.map(\.line) == [1, 3])
        #expect(manifest.entries[1].digests.map(\.algorithm) == [.md5])
    }

    @Test(
        "What is wrong with a line of JSON",
        arguments: [
            ("{\"url\":1}", "its 'url' is no text"), ("{\"url\":{}}", "its 'url' is no text"),
            ("{\"size\":1}", "it has no URL"),
            ("{\"url\":\"http://h/a\",\"checksum\":\"x\"}", "is not ALG=HEX"),
        ])
    func badLine(line: String, reason: String) throws {
        let manifest = try Manifest("{\"url\":\"http://h/a\"}\n\(line)")
        #expect(manifest.entries.count == 1 && manifest.faults.map(\.line) == [2])
        #expect(manifest.faults.first?.reason.contains(reason) == true, "\(manifest.faults)")
        #expect(
            Manifest.fault(in: "{\"url\":\"http://h/a\"}\n{\"a\" 1}").hasPrefix("JSON Lines, line 2, column 6: ':'"))
    }

    @Test("A size that is none is said, and the file is taken without it") func noSize() throws {
        let rows = ["-1", "unknown", "12.5", "1e6", "TBD", "60 Bytes"].map { "http://h/\($0),\($0)\n" }.joined()
        let table = try Manifest("url,size\n" + rows)
        #expect(table.entries.map(\.size) == [nil, nil, nil, nil, nil, 60] && table.faults.isEmpty)
        #expect(table.passedOver == ["size that is no number of bytes": 5])
        #expect(table.passedOverLines == ["size that is no number of bytes": 2])
        let line = try Manifest("{\"url\":\"http://h/a\",\"size\":false}")
        #expect(line.urls == [["http://h/a"]] && line.passedOver.count == 1)
        // The length of a video.
        #expect(try Manifest("url,length\nhttp://h/a,213\n").entries.map(\.size) == [nil])
    }

    @Test("Words for a missing value are no name, and a path beside a file's name is its folder") func names() throws {
        let missing = try Manifest("url,name,folder\nhttp://h/a,NA,-\nhttp://h/b,nan,null\nhttp://h/c,c,d\n")
        #expect(missing.names == ["", "", "d/c"] && missing.faults.isEmpty)
        let folders = try Manifest(
            "path,filename,url\nv1.0,a.bin,http://h/a\nv1.0,b.bin,http://h/b\nd/c.bin,c.bin,http://h/c\n"
                + "d/0f.bin,e.bin,http://h/e\n")
        #expect(folders.names == ["v1.0/a.bin", "v1.0/b.bin", "d/c.bin", "d/0f.bin"])
    }

    @Test(
        "Columns with units and other words for digests have the same meaning",
        arguments: [
            ("URL,File Size (bytes),Checksum (MD5)", "12,\(SampleDigest.hex(.md5))", Checksum.Algorithm.md5),
            ("url,size,checksumValue,checksumAlgorithm", "12,\(SampleDigest.hex(.md5)),MD5", .md5),
            ("url,size [bytes],shasum", "12,\(hex)", .sha256),
            ("url,size,shasum", "12,\(SampleDigest.hex(.sha1))", .sha1),
            ("url,size,sha", "12,\(hex)", .sha256), ("url,size,sum", "12,\(hex)", .sha256),
        ])
    func words(header: String, row: String, algorithm: Checksum.Algorithm) throws {
        let entry = try #require(try Manifest("\(header)\nhttp://h/a,\(row)\n").entries.first)
        #expect(entry.size == 12 && entry.digests.map(\.algorithm) == [algorithm])
        // The commit of git that a `sha` may be.
        #expect(try Manifest("url,sha\nhttp://h/a,\(SampleDigest.hex(.sha1))\n").entries[0].digests.isEmpty)
    }

    @Test("A base is the address of one bucket: a key of another one is a fault that names both") func buckets() throws
    {
        for text in [
            "url\ns3://one/x/k.bin\ns3://two/x/k.bin\n",
            "{\"url\":\"s3://one/x/k.bin\"}\n\n{\"url\":\"s3://two/x/k.bin\"}\n",
            "[{\"url\":\"s3://one/x/k.bin\"},\n\n{\"url\":\"s3://two/x/k.bin\"}]",
        ] {
            let list = try Manifest(text, base: "https://one.example/")
            #expect(list.urls == [["https://one.example/x/k.bin"]] && list.faults.map(\.line) == [3])
            #expect(list.faults.first?.reason.hasPrefix("'s3://two/' is another bucket than 's3://one/' on") == true)
        }
    }

    @Test("The list of s5cmd gets the addresses of the bucket, and relative URLs those of the base") func base() throws
    {
        let listed = try Manifest(
            """
            {"key":"s3://bucket/d/a ü.bin","etag":"x","type":"file","size":4}
            {"key":"s3://bucket/d/","type":"directory"}
            """, base: "https://bucket.s3.amazonaws.com/")
        #expect(listed.urls == [["https://bucket.s3.amazonaws.com/d/a%20%C3%BC.bin"]] && listed.names == ["d/a ü.bin"])
        #expect(try Manifest("url\nd/a\n", base: "http://h/x").urls == [["http://h/x/d/a"]])
    }
}
