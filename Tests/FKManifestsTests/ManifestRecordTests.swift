import TestSupport
import Testing

@testable import FKManifests

/// Records of repositories, read as they answer.
@Suite("Records") struct ManifestRecordTests {
    private static func read(_ text: String, base: String? = "https://h/d/") throws -> Manifest {
        let manifest = try Manifest(text, base: base)
        #expect(manifest.form == .record)
        return manifest
    }

    @Test("Zenodo: names, sizes, MD5 and the record's number") func zenodo() throws {
        let old = try Self.read(RecordAnswers.zenodo)
        #expect(old.names == ["covid19.ttl"] && old.entries[0].size == 9_190_269 && old.facts.commit == "3763271")
        #expect(old.entries[0].digests.map(\.description) == ["md5=4abfc39f28bbca394b9201708ae27b4b"])
        #expect(
            old.urls == [["https://zenodo.org/api/files/deff9397-dece-4206-9964-963beb518c33/covid19.ttl"]])
        let new = try Self.read(RecordAnswers.zenodoNew)
        #expect(new.entries.map(\.size) == [2_021_666_549, 2_213_092_805] && new.facts.commit == "15052218")
        #expect(new.urls[1][0].hasSuffix("/files/emissions-hourly-2017-q3.csv/content"))
    }

    @Test("Dataverse: a table as it was uploaded, which has the digest; folders; the server from the base")
    func dataverse() throws {
        let manifest = try Self.read(RecordAnswers.dataverse, base: "https://demo.dataverse.org/api/x/")
        #expect(manifest.names == ["Test Data Alpha.dta", "docs/Test Document 1.pdf"])
        #expect(
            manifest.urls.map { $0[0] } == [
                "https://demo.dataverse.org/api/access/datafile/2067894?format=original",
                "https://demo.dataverse.org/api/access/datafile/2067893",
            ])
        #expect(manifest.entries.map(\.size) == [9_090, 40_226])
        #expect(manifest.entries[1].checksum?.hex == "4b2680b30fda5d346d6876b4a11986a2")
        #expect(try Self.read(RecordAnswers.dataverse, base: nil).faults.count == 2)
    }

    @Test("RO-Crate: files below the crate and on the web, with sizes in bytes and digests") func crate() throws {
        let manifest = try Self.read(RecordAnswers.crate)
        #expect(manifest.names == ["sub/data a.csv", ""])
        #expect(manifest.urls == [["https://h/d/sub/data%20a.csv"], ["https://example.org/r.xml"]])
        #expect(manifest.entries.map(\.size) == [5, nil] && manifest.entries[0].checksum != nil)
        #expect(try Self.read(RecordAnswers.crate, base: nil).faults.map(\.line) == [16])
    }

    @Test("Croissant: file objects; git repositories and files in archives are counted") func croissant() throws {
        let manifest = try Self.read(RecordAnswers.croissant)
        #expect(
            manifest.names == ["passengers.csv", "genders.csv"] && manifest.entries.map(\.size) == [117_743, 117_743])
        #expect(manifest.urls[1] == ["https://h/d/data/genders.csv"] && manifest.faults.isEmpty)
        #expect(
            manifest.passedOver == ["git repository": 1, "file in an archive": 1] && manifest.facts.commit == "1.0.0")
    }

    @Test("Link sets: the items of all contexts") func linkset() throws {
        let manifest = try Self.read(RecordAnswers.linkset)
        #expect(manifest.urls == [["https://example.org/file/7507/1"], ["https://h/d/file/2"]])
    }

    @Test(
        "Bad files are left out with line and column",
        arguments: [
            ("{\"key\":\"../x\",\"links\":{\"self\":\"http://h/x\"}}", "its name has '..'"),
            ("{\"key\":\"x\"}", "'x' has no address"), ("{\"size\":1}", "the file has no address"),
            ("{\"key\":\"x\",\"links\":{\"self\":\"ftp://h/x\"}}", "scheme 'ftp'"),
            ("{\"key\":\"x\",\"checksum\":\"md5:12\",\"links\":{\"self\":\"http://h/x\"}}", "is not ALG=HEX"),
            ("{\"key\":\"good\",\"links\":{\"self\":\"http://h/x\"}}", "line 2 has the same name"),
        ])
    func bad(file: String, reason: String) throws {
        let manifest = try Self.read(
            "{\"files\":[\n{\"key\":\"good\",\"links\":{\"self\":\"http://h/a\"}},\n  \(file)]}")
        #expect(manifest.names == ["good"])
        #expect(manifest.faults.first?.line == 3 && manifest.faults.first?.column == 3)
        #expect(manifest.faults.first?.reason.contains(reason) == true, "\(manifest.faults)")
    }

    @Test("A digest that is none is a fault in a crate; a malformed record is refused with its place") func malformed()
        throws
    {
        let crate = try Self.read(
            "{\"@graph\":[{\"@id\":\"http://h/a\",\"@type\":\"File\",\"sha256\":\"12\"}]}")
        #expect(crate.faults.first?.reason.contains("a sha-256 digest has 64") == true)
        #expect(Manifest.fault(in: "{\"files\":[{}").hasPrefix("record, line 1, column 13: the document ends"))
        #expect(
            Manifest.fault(in: "{\"files\":{}}", as: .record).contains(
                "the object has no array of files with addresses, but 'files'"))
    }

    @Test(
        "Names of records",
        arguments: [
            ("doi:10.5281/zenodo.1", "doi:10.5281/zenodo.1"), ("DOI:10.1/a(b)<c>", "doi:10.1/a(b)<c>"),
            ("zenodo:123", "zenodo:123"), ("https://zenodo.org/records/1", "https://zenodo.org/records/1"),
            ("doi:11.5/x", nil), ("doi:10.5", nil), ("doi:10.5/", nil), ("zenodo:1a", nil), ("zenodo:", nil),
            ("https://", nil), ("doi:10.5/a b", nil),
        ] as [(String, String?)])
    func names(text: String, title: String?) {
        let reference = SourceReference(text)
        #expect((try? reference.map { try Records().place(of: $0, in: [:]) })?.title == title)
    }
}
