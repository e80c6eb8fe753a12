import Testing

@testable import FKManifests

@Suite("BagIt") struct ManifestBagTests {
    private static let hex = SampleDigest.sha256
    private static let declaration = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"

    private func bag(_ files: [(String, String)], version: String = "1.0") throws(ManifestError) -> Manifest {
        let declaration = Self.declaration.replacing("1.0", with: version)
        return try Manifest.bag([("bagit.txt", Array(declaration.utf8))] + files.map { ($0.0, Array($0.1.utf8)) })
    }

    @Test("fetch.txt says where files are, manifests how to know them") func whole() throws {
        let manifest = try bag([
            (
                "manifest-sha256.txt",
                "\(Self.hex)  data/a.bin\n\(Self.hex) \t data/sub/b c.bin\n\(Self.hex) *data/here\n"
            ),
            (
                "manifest-md5.txt",
                ["a.bin", "sub/b c.bin", "here"].map { "\(SampleDigest.hex(.md5)) data/\($0)\r\n" }.joined()
            ),
            ("fetch.txt", "http://h/a 12 data/a.bin\nhttps://h/b - data/sub/b c.bin\n"),
            ("tagmanifest-md5.txt", "rubbish"), ("bag-info.txt", "Source-Organization: x"),
        ])
        #expect(manifest.names == ["data/a.bin", "data/sub/b c.bin", "data/here"])
        #expect(manifest.entries.map(\.size) == [12, nil, nil])
        #expect(manifest.urls == [["http://h/a"], ["https://h/b"], []])
        #expect(manifest.entries[0].digests.map(\.algorithm) == [.sha256, .md5])
        #expect(manifest.faults.isEmpty)
    }

    @Test(
        "CR, LF and, since 1.0, the percent sign are encoded; nothing else",
        arguments: [
            ("1.0", "data/a%0Ab%0dc%25d%20e", "data/a\nb\rc%d%20e"),
            ("0.97", "data/a%0Ab%25d%20e", "data/a\nb%25d%20e"),
        ])
    func percent(version: String, written: String, name: String) throws {
        let manifest = try bag([("manifest-sha256.txt", "\(Self.hex) \(written)")], version: version)
        #expect(manifest.names == [name])
    }

    @Test(
        "Bad entries are left out with file and line",
        arguments: [
            ("\(hex) data/a\n\(hex) ../b", "", "manifest-sha256.txt, line 2: '../b': its name has '..'"),
            ("\(hex) data/a\n\(hex) b", "", "manifest-sha256.txt, line 2: 'b': a bag's files are below data/"),
            ("\(hex) data/a\n\(hex.dropLast()) data/b", "", "manifest-sha256.txt, line 2: a sha-256 digest has 64"),
            (
                "\(hex) data/a\n\(SampleDigest.hex(.sha256, "b")) data/a", "",
                "manifest-sha256.txt, line 2: 'data/a': line 1 has the same name"
            ),
            ("\(hex) data/a", "http://h/b 1 data/b", "fetch.txt, line 1: 'data/b' is in no manifest"),
            ("\(hex) data/a", "http://h/b x data/a", "fetch.txt, line 1: the length of 'data/a'"),
            ("\(hex) data/a", "http://h/b 1", "fetch.txt, line 1: a line of fetch.txt is"),
            ("\(hex) data/a", "ftp://h/b 1 data/a", "fetch.txt, line 1: 'ftp://h/b': ftp is not supported"),
            (
                "\(hex) data/a", "http://h/b 1 /etc/passwd",
                "fetch.txt, line 1: '/etc/passwd': its name is an absolute path"
            ),
        ])
    func bad(manifest: String, fetch: String, fault: String) throws {
        let result = try bag([("manifest-sha256.txt", manifest), ("fetch.txt", fetch)])
        #expect(result.names == ["data/a"])
        #expect(result.faults.map(\.description).first?.hasPrefix("BagIt, \(fault)") == true, "\(result.faults)")
    }

    @Test("A file that is fetched has to be in every manifest") func everyManifest() throws {
        let manifest = try bag([
            ("manifest-sha256.txt", "\(Self.hex) data/a\n\(Self.hex) data/b"),
            ("manifest-md5.txt", "\(SampleDigest.hex(.md5)) data/a"),
            ("fetch.txt", "http://h/a 1 data/a\nhttp://h/b 1 data/b"),
        ])
        #expect(manifest.names == ["data/a"] && manifest.faults[0].reason.contains("not in every manifest"))
    }

    @Test("What is no bag is refused") func notABag() {
        #expect(throws: ManifestError(form: .bagit, "a folder is a list only if it is a bag, and bagit.txt is missing"))
        {
            try Manifest.bag([("fetch.txt", [])])
        }
        #expect(throws: ManifestError(form: .bagit, "the bag has no manifest-ALG.txt")) { try bag([]) }
        #expect(throws: ManifestError.self) { try bag([("manifest-sha256.txt", "")], version: "2.0") }
        #expect(throws: ManifestError.self) { try bag([("manifest-blake3.txt", "00 data/a")]) }
        #expect(throws: ManifestError.self) {
            try Manifest.bag([("bagit.txt", Array("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-16\n".utf8))])
        }
    }

    @Test("A file of a bag alone is read by its name or content") func alone() throws {
        let fetch = try Manifest("http://h/a 5 data/a\n")
        #expect(fetch.form == .bagit && fetch.urls == [["http://h/a"]] && fetch.entries[0].size == 5)
        let sums = try Manifest("\(Self.hex)  data/a\n", fileName: "bag/manifest-sha256.txt")
        #expect(sums.form == .bagit && sums.names == ["data/a"])
    }
}
