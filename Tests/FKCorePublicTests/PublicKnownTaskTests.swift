import FKCompatibility
import FKCore
import FKMiddleware
import FKTesting
import Foundation
import Testing

/// What an application said about a task stays until it says something else about the same thing.
@Suite("Tasks that an application asks for again")
struct PublicKnownTaskTests {
    private let bench: PublicBench
    private let content = PublicBench.pattern(400_000)
    private var downloader: Downloader { bench.downloader }
    private var folder: URL { bench.folder.appendingPathComponent("files") }
    private let wrong = try? Checksum(.sha256, hex: String(repeating: "0", count: 64))
    private let other = try? Checksum(.sha256, hex: String(repeating: "1", count: 64))

    init() throws {
        bench = try PublicBench { $0.distributeSpeed = 1 }
        bench.files.serve("/a.bin", content)
        bench.files.serve("/held", content, hold: 100_000)
    }

    private func code(_ body: () async throws(DownloadError) -> some Any) async -> DownloadError.Code? {
        do throws(DownloadError) {
            _ = try await body()
            return nil
        } catch {
            return error.code
        }
    }

    /// A task that was suspended at its beginning.
    private func suspended() async throws -> DownloadTask {
        var builder = try bench.builder("/held")
        builder.options.headers = [HeaderField("X-Key", "1")]
        builder.options.checksum = wrong
        builder.priority = 5
        try builder.setMirrors([PublicBench.url("/a.bin")])
        let task = try await downloader.add(builder)
        for await progress in task.progress where progress.count.received > 0 { break }
        try await task.suspend()
        return task
    }

    private func fields(_ name: String) -> [String] {
        bench.transport.requests.compactMap { $0.urlRequest.value(forHTTPHeaderField: name) }
    }

    @Test("a second download without options keeps checksum, header fields, priority and mirrors")
    func again() async throws {
        let task = try await suspended()
        bench.files.release("/held")
        let (url, folder) = (task.url, folder)
        #expect(
            await code { () async throws(DownloadError) in try await downloader.download(url, to: folder) }
                == .checksumMismatch)
        // The mirror has the task's origin.
        #expect(fields("X-Key") == [String](repeating: "1", count: bench.transport.requests.count))
        // Another digest is refused, and what the call names is taken.
        #expect(
            await code { () async throws(DownloadError) in
                try await downloader.download(url, to: folder, checksum: other)
            }
                == .checksumMismatch)
        var named = try bench.builder("/held")
        named.options.headers = [HeaderField("X-Key", "2")]
        try await named.prepare(in: downloader)
        #expect(await downloader.messager.record(task.id)?.priority == 5)
        // The orders are replaced where that is asked for; the digest stays.
        let before = fields("X-Key").count
        #expect(
            await code { () async throws(DownloadError) in
                try await downloader.download(url, to: folder, replacing: .orders)
            } == .checksumMismatch)
        #expect(fields("X-Key").count == before)
    }

    @Test("prepare loads a task and keeps its state; queued: true starts it", arguments: [true, false])
    func prepare(isCancelled: Bool) async throws {
        let task = try await suspended()
        if isCancelled { try await task.cancel() }
        let state: DownloadState = isCancelled ? .cancel : .suspend
        let builder = try bench.builder("/held")
        #expect(try await builder.prepare(in: downloader) == task.id)
        #expect(await task.info?.state == state)
        for result in try await Builder.prepare([builder], barrel: "b", in: downloader) { _ = try result.get() }
        #expect(await task.info?.state == state)
        #expect(await downloader.messager.record(task.id)?.priority == 5)
        try await builder.prepare(in: downloader, queued: true)
        #expect(await task.info?.state != state)
        bench.files.release("/held")
    }

    @Test("a file that is gone: its task throws, its barrel is not complete, and a download fetches it again")
    func lost() async throws {
        let barrel = try await downloader.barrel("b")
        let task = try #require(try await barrel.add([PublicBench.url("/a.bin")], to: folder).first).get()
        let file = try await task.file
        #expect(try await barrel.info.isComplete)
        #expect(await barrel.files == [file])
        try FileManager.default.removeItem(at: file)
        #expect(await code { () async throws(DownloadError) in try await task.file } == .notFound)
        #expect(try await !barrel.info.isComplete)
        var last: BarrelInfo?
        for await sum in barrel.progress { last = sum }
        #expect(last?.isComplete == false)
        #expect(await barrel.files.isEmpty)
        #expect(try await downloader.download(task.url, to: folder) == file)
        #expect(try await barrel.info.isComplete)
    }

    @Test("ended: a member comes when it ends, not with the next report") func ended() async throws {
        let slow = try PublicBench { $0.progressInterval = .seconds(2) }
        slow.files.serve("/a", content)
        slow.files.serve("/held", content, hold: 1_000)
        let barrel = try await slow.downloader.barrel("b")
        let reader = Task {
            var ends: [(TaskID, ContinuousClock.Instant)] = []
            for await task in barrel.ended { ends.append((task.id, .now)) }
            return ends
        }
        let held = try await slow.downloader.add(slow.builder("/held"))
        try await slow.downloader.messager.add(held, toBarrel: "b")
        let task = try #require(try await barrel.add([slow.builder("/a")]).first).get()
        _ = try await task.file
        let time = ContinuousClock.now
        slow.files.release("/held")
        _ = try await held.file
        let ends = await reader.value
        // The first reader may have come before there was a member.
        if let end = ends.first(where: { $0.0 == task.id }) { #expect(end.1 - time < .seconds(1)) }
        let again = barrel.ended
        var count = 0
        for await _ in again { count += 1 }
        #expect(count == 2)
    }
}
