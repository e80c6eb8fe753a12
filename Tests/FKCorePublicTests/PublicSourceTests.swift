import FKCore
import FKManifests
import FKMiddleware
import FKTesting
import Foundation
import Testing

/// A source of an application, with what an application sees.
@Suite("Sources of an application")
struct PublicSourceTests {
    private struct Shelf: Source {
        var schemes: [String] { ["shelf"] }
        var form: String { "shelf:NAME" }

        func place(
            of reference: SourceReference, in environment: [String: String]
        ) throws(DownloadError) -> SourcePlace {
            guard !reference.rest.contains("/") else { throw reference.fault("a name has no slash", form) }
            return SourcePlace(reference, folderName: reference.rest, address: PublicBench.url("/"))
        }

        func pages(of place: SourcePlace, _ client: SourceClient) -> AsyncThrowingStream<SourcePage, any Error> {
            client.pages { send in
                let files = ["a.bin", "sub/b.bin"].map {
                    Manifest.FileFacts(name: $0, sources: [.init(PublicBench.url("/a.bin"))])
                }
                try await send(SourcePage(files, version: "1"))
            }
        }
    }

    @Test("it is registered, lists its files, and they are fetched")
    func registered() async throws {
        let bench = try PublicBench()
        let content = PublicBench.pattern(1_000)
        bench.files.serve("/a.bin", content)
        let downloader = bench.downloader
        try downloader.sources.register(Shelf())
        #expect(downloader.sources.schemes.contains("shelf"))
        let folder = bench.folder.appendingPathComponent("files")
        let listing = try await downloader.listing(of: "shelf:top", SourceChoice(include: ["*b.bin"]))
        #expect(listing.place.folderName == "top")
        var versions: [String?] = []
        for try await page in listing.pages {
            versions.append(page.version)
            for file in page.files {
                _ = try await downloader.download(try Builder(Manifest.Entry(file), in: folder))
            }
        }
        #expect(versions == ["1"])
        #expect(try [UInt8](Data(contentsOf: folder.appendingPathComponent("sub/b.bin"))) == content)
        await #expect(throws: DownloadError.self) { _ = try await downloader.listing(of: "shelf:a/b") }
        await #expect(throws: DownloadError.self) { _ = try await downloader.listing(of: "none:a") }
        await #expect(throws: DownloadError.self) { _ = try await downloader.listing(of: "/tmp") }
    }
}
