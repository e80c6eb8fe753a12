import TestSupport
import Testing

@testable import FKManifests

@Suite("Writing") struct ManifestWriterTests {
    private static func manifest() -> Manifest {
        var a = Manifest.Entry(
            name: "b/a <&\">\\x\ny.bin",
            sources: [.init("https://h/a?x=1&y=2", priority: 1, location: "de"), .init("http://m/a")])
        a.size = 5
        a.digests = [
            Checksum(listed: .sha256, hex: SampleDigest.sha256)!, Checksum(listed: .md5, hex: SampleDigest.hex(.md5))!,
        ]
        a.pieces = [.init(length: 2, algorithm: .sha256, bytes: [UInt8](repeating: 0xab, count: 96))]
        var b = Manifest.Entry(name: "a ü.bin", sources: [.init("https://h/b")])
        b.digests = [Checksum(listed: .sha256, hex: SampleDigest.hex(.sha256, "c"))!]
        var c = Manifest.Entry(name: "c", sources: [.init("https://h/c")])
        c.digests = [Checksum(listed: .gitBlob, hex: SampleDigest.hex(.gitBlob))!]
        var manifest = Manifest(
            form: .json, entries: [a, b, c, .init(name: "local"), .init(sources: [.init("http://h/unnamed")])])
        manifest.facts.barrel = "m"
        manifest.facts.origin = "hf:o/r"
        manifest.facts.commit = "c0"
        return manifest
    }

    @Test(
        "Every form with sizes or digests is read again to the same members",
        arguments: Manifest.Output.allCases.filter { $0 != .urls && $0 != .aria2 })
    func roundTrip(output: Manifest.Output) throws {
        let written = Self.manifest().written(as: output)
        let text = String(decoding: written.bytes, as: UTF8.self)
        #expect(text.hasSuffix("\n"))
        let read = try Manifest(parsing: written.bytes)
        #expect(read.faults.isEmpty)
        let named = read.entries.filter { $0.name != nil }
        #expect(
            named.map(\.name)
                == (output == .sha256sums
                    ? ["a ü.bin", "b/a <&\">\\x\ny.bin"] : ["a ü.bin", "b/a <&\">\\x\ny.bin", "c"]))
        let a = try #require(named.first { $0.name?.hasPrefix("b/") == true })
        #expect(try a.digests.first == Checksum(.sha256, hex: SampleDigest.sha256))
        if output != .sha256sums {
            #expect(a.sources.map(\.url) == ["https://h/a?x=1&y=2", "http://m/a"] && a.size == 5)
            #expect(a.digests.count == 2 && a.pieces == Self.manifest().entries[0].pieces)
        }
        #expect(read.entries.count + written.leftOut.count == 5)
        // The same again: nothing is lost on the way.
        #expect(read.written(as: output).bytes == written.bytes)
    }

    @Test("An aria2 list has the addresses, names and digests that aria2 can read; the others are left out")
    func aria2() throws {
        let written = Self.manifest().written(as: .aria2)
        let read = try Manifest(parsing: written.bytes)
        #expect(read.form == .aria2 && read.faults.isEmpty)
        #expect(read.entries.map(\.name) == ["a ü.bin", "c", nil])
        #expect(read.entries[0].checksum?.hex == SampleDigest.hex(.sha256, "c"))
        #expect(read.entries[1].digests.isEmpty)
        #expect(written.leftOut.map(\.reason).contains { $0.hasSuffix("an aria2 list cannot hold its name or folder") })
        #expect(written.leftOut.count == 2 && read.written(as: .aria2).bytes == written.bytes)
    }

    @Test("A list of URLs has one for each member") func urls() throws {
        let written = Self.manifest().written(as: .urls)
        let text = String(decoding: written.bytes, as: UTF8.self)
        #expect(text == "https://h/b\nhttps://h/a?x=1&y=2\nhttps://h/c\nhttp://h/unnamed\n")
        #expect(written.leftOut.count == 1)
    }

    @Test("A lock file is sorted by the bytes of names, a line each, whatever the order was") func lock() throws {
        var shuffled = Self.manifest()
        shuffled.entries.reverse()
        let written = Self.manifest().written(as: .lock)
        #expect(shuffled.written(as: .lock).bytes == written.bytes)
        let lines = String(decoding: written.bytes, as: UTF8.self).split(
            separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == 5 && lines.last == "")
        #expect(lines[0] == "{\"fk-lock\":1,\"barrel\":\"m\",\"origin\":\"hf:o/r\",\"commit\":\"c0\"}")
        #expect(
            lines[1]
                == "{\"name\":\"a ü.bin\",\"sha-256\":\"\(SampleDigest.hex(.sha256, "c"))\",\"url\":\"https://h/b\"}")
        #expect(
            written.leftOut.map(\.reason) == [
                "'local' is left out: it has no address", "'http://h/unnamed' is left out: it has no name",
            ])
    }

    @Test("Two entries of one name: the second is left out") func duplicates() {
        let manifest = Manifest(
            form: .json,
            entries: [
                .init(name: "a", sources: [.init("http://h/1")]), .init(name: "a", sources: [.init("http://h/2")]),
            ])
        #expect(
            manifest.written(as: .lock).leftOut.map(\.reason) == ["'a' is left out: another entry has the same name"])
    }

    @Test("sha256sum accepts our sums", .enabled(if: Program.find("sha256sum") != nil, "sha256sum is not installed"))
    func sha256sum() throws {
        let folder = try TemporaryFolder()
        var manifest = Manifest(form: .checksums)
        for name in ["a", "b c", "d\\e", "f\ng", "-h", "*i", "ü", "s/t"] {
            let file = try folder.write(Array("bytes of \(name)".utf8), to: name)
            var entry = Manifest.Entry(name: name)
            entry.digests = [try Checksum(.sha256, hex: Digester.hex(ofFile: file, .sha256))]
            manifest.entries.append(entry)
        }
        try folder.write(manifest.written(as: .sha256sums).bytes, to: "sums.list")
        try Program.run("sha256sum", ["--check", "--strict", "--quiet", "sums.list"], in: folder.url)
    }
}
