import FKCompatibility
import FKCore
import FKMiddleware
import FKTesting
import Foundation
import Testing

@Suite("Handles of a client, whose tasks another downloader runs")
struct PublicClientHandleTests {
    private let bench: PublicBench
    private let content = PublicBench.pattern(400_000)
    private var folder: URL { bench.folder.appendingPathComponent("files") }

    init() throws {
        bench = try PublicBench { $0.distributeSpeed = 1 }
        bench.files.serve("/a.bin", content)
        bench.files.serve("/held", content, hold: 100_000)
    }

    private func withClient<Value: Sendable>(_ body: (Downloader) async throws -> Value) async throws -> Value {
        let configure = await bench.downloader.configure
        let value = try await withDownloader(
            configure, role: .client, transport: ScriptedTransport { _, _ in .status(404) }, body)
        await bench.downloader.close()
        return value
    }

    @Test("cancelling the call suspends the owner's task")
    func cancel() async throws {
        try await withClient { client in
            let task = try await client.add(PublicBench.url("/held"), to: folder)
            for await progress in task.progress where progress.count.received >= 100_000 { break }
            let call = Task { try await client.download(PublicBench.url("/held"), to: folder) }
            call.cancel()
            await #expect { _ = try await call.value } throws: { ($0 as? DownloadError)?.code == .cancelled }
            // A call that was cancelled before it began has added nothing and stops nothing.
            let state = await task.info?.state
            #expect(state == .suspend || state == .action)
        }
    }

    @Test("a handle: progress with its first and last value, verbs, file, and forget")
    func handle() async throws {
        try await withClient { client in
            let task = try await client.add(PublicBench.url("/held"), to: folder)
            for await progress in task.progress where progress.count.received >= 100_000 { break }
            #expect(try await task.suspend().after == .suspend)
            bench.files.release("/held")
            #expect(try await task.resume().after == .idle)
            var last: DownloadInfo?
            for await progress in task.progress { last = progress }
            #expect(last?.state == .complete && last?.fraction == 1)
            #expect(try await task.file.lastPathComponent == "held")
            #expect(try await task.forget().applied)
            #expect(await task.info == nil)
        }
        #expect(try bench.bytes("held") == content)
    }
}
