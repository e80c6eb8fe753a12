import FKCore
import FKManifests
import FKMiddleware
import Foundation
import Testing

@Suite("Manifests") struct PublicManifestTests {
    private static let digest = String(repeating: "0f", count: 32)

    @Test("An application reads a list, sees what was left out, and writes it in another form") func reading() throws {
        var reading = Manifest.Reading()
        reading.baseURL = "https://example.com/pub/"
        reading.skipsBadEntries = true
        let list = "\(Self.digest)  a.bin\n\(Self.digest)  ../b.bin\n"
        let manifest = try Manifest(parsing: Array(list.utf8), fileName: "SHA256SUMS", reading)
        #expect(manifest.form == .checksums)
        #expect(manifest.entries.map(\.name) == ["a.bin"])
        #expect(manifest.entries[0].sources.map(\.url) == ["https://example.com/pub/a.bin"])
        #expect(manifest.entries[0].checksum?.algorithm == .sha256)
        #expect(manifest.faults.map(\.line) == [2])
        let lock = manifest.written(as: .lock)
        #expect(lock.leftOut.isEmpty)
        #expect(try Manifest(parsing: lock.bytes).entries.map(\.name) == ["a.bin"])
    }

    @Test("An application makes a list of its own") func making() throws {
        var entry = Manifest.Entry(name: "a.bin", sources: [Manifest.Source("https://example.com/a.bin")])
        entry.digests = [try Checksum(.sha256, hex: Self.digest)]
        let written = Manifest(form: .json, entries: [entry]).written(as: .sha256sums)
        #expect(String(decoding: written.bytes, as: UTF8.self) == "\(Self.digest)  a.bin\n")
    }

    @Test("A list in portions is emptied as it comes") func portions() throws {
        var reader = ManifestReader(.urls)
        try reader.take(Array("http://h/a\nhttp://h/b\nhttp://h".utf8))
        #expect(reader.takeEntries().count == 1)
        try reader.take(Array("/c\n".utf8))
        #expect(try reader.finish().entries.count == 2)
    }

    @Test("What is wrong is said with its place") func fault() {
        let error = #expect(throws: ManifestError.self) { try Manifest(parsing: Array("[\n{]".utf8)) }
        #expect(error?.form == .json && error?.line == 2 && error?.column == 2)
    }
}

@Suite("Exports of barrels") struct PublicExportTests {
    @Test(
        "A barrel's list is written to a file, and brings the same tasks again",
        arguments: Manifest.Output.allCases.filter { $0 != .urls })
    func export(as output: Manifest.Output) async throws {
        let bench = try PublicBench()
        for name in ["b", "a"] { bench.files.serve("/\(name)", Array("the file \(name)".utf8)) }
        let barrel = try await bench.downloader.barrel("books")
        for result in try await barrel.add([bench.builder("/b"), bench.builder("/a")]) {
            _ = try await result.get().file
        }
        let file = bench.folder.appendingPathComponent("list")
        #expect(try await barrel.export(as: output, to: file) == [])
        let written = Array(try Data(contentsOf: file))
        var reading = Manifest.Reading()
        reading.baseURL = PublicBench.url("/")
        let manifest = try Manifest(parsing: written, as: output == .sha256sums ? .checksums : nil, reading)
        #expect(manifest.entries.map(\.name) == ["a", "b"])
        #expect(manifest.entries.map { $0.sources.first?.url } == ["a", "b"].map { PublicBench.url("/\($0)") })
        #expect(manifest.entries.allSatisfy { $0.checksum?.algorithm == .sha256 })
        try await barrel.delete()
        let gone = await #expect(throws: DownloadError.self) { try await barrel.export(as: output, to: file) }
        #expect(gone?.code == .notFound)
        #expect(Array(try Data(contentsOf: file)) == written)
        let names = try FileManager.default.contentsOfDirectory(atPath: bench.folder.path)
        #expect(!names.contains { $0.hasPrefix(".list") })
    }
}
