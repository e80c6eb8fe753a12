import FKCompatibility
import FKCore
import FKMiddleware
import FKTesting
import Foundation
import Testing

@Suite("Handles of tasks")
struct PublicHandleTests {
    private let bench: PublicBench
    private let content = PublicBench.pattern(400_000)
    private var downloader: Downloader { bench.downloader }
    private var folder: URL { bench.folder.appendingPathComponent("files") }

    init() throws {
        bench = try PublicBench { $0.distributeSpeed = 1 }
        bench.files.serve("/a.bin", content)
        bench.files.serve("/held", content, hold: 100_000)
    }

    private func held() async throws -> DownloadTask {
        let task = try await downloader.add(PublicBench.url("/held"), to: folder)
        for await progress in task.progress where progress.count.received >= 100_000 { break }
        return task
    }

    private func code(_ body: () async throws(DownloadError) -> some Any) async -> DownloadError.Code? {
        do throws(DownloadError) {
            _ = try await body()
            return nil
        } catch {
            return error.code
        }
    }

    @Test("progress: the first value and the last are delivered, and it ends with the task")
    func progress() async throws {
        let task = try await held()
        let first = Heard<Void>()
        let reading = Task { [task] in
            var values: [DownloadInfo] = []
            for await progress in task.progress {
                values.append(progress)
                first.add(())
            }
            return values
        }
        _ = await first.until { true }
        bench.files.release("/held")
        let values = await reading.value
        #expect(values.first?.state == .action && values.first?.count.received == 100_000)
        #expect(values.first?.count.expected == 400_000 && values.first?.fraction == 0.25)
        #expect(values.last?.state == .complete && values.last?.fraction == 1)
        #expect(values.last?.estimatedTimeRemaining == nil)
    }

    @Test("progress ends for a task that fails, is cancelled, trashed or forgotten, and when the downloader closes")
    func ends() async throws {
        let missing = try await downloader.add(PublicBench.url("/missing"), to: folder)
        var last: DownloadInfo?
        for await progress in missing.progress { last = progress }
        #expect(last?.state == .error)
        for verb in ["cancel", "trash", "forget"] {
            let task = try await held()
            let reading = Task { await task.progress.reduce(into: []) { $0.append($1.state) } }
            _ = try await verb == "cancel" ? task.cancel() : verb == "trash" ? task.trash() : task.forget()
            let states: [DownloadState] = await reading.value
            #expect(states.isEmpty || states.last == (verb == "cancel" ? .cancel : .unknown))
            if verb == "cancel" { try await task.trash() }
        }
        let task = try await held()
        let reading = Task { for await _ in task.progress {} }
        await downloader.close()
        await reading.value
    }

    @Test("a task that is gone: progress is empty, file throws not-found, verbs too, info is nil")
    func gone() async throws {
        let task = try await downloader.add(PublicBench.url("/a.bin"), to: folder)
        _ = try await task.file
        try await task.trash()
        for await _ in task.progress { Issue.record("there is nothing to follow") }
        #expect(await task.info == nil)
        #expect(await code { () throws(DownloadError) in try await task.file } == .notFound)
        #expect(await code { () throws(DownloadError) in try await task.suspend() } == .notFound)
        #expect(await downloader.task(task.id) == nil)
        #expect(await downloader.task("no url") == nil)
    }

    @Test("file waits through a suspension; cancelling the waiter stops waiting and nothing else")
    func file() async throws {
        let task = try await held()
        let waiter = Task { try await task.file }
        let other = Task { try await task.file }
        other.cancel()
        await #expect { _ = try await other.value } throws: { ($0 as? DownloadError)?.code == .cancelled }
        #expect(await task.info?.state == .action)
        try await task.suspend()
        bench.files.release("/held")
        #expect(await task.info?.state == .suspend)
        try await task.resume()
        #expect(try await waiter.value == folder.appendingPathComponent("held"))
        #expect(try await task.file == folder.appendingPathComponent("held"))
    }

    @Test("file throws the task's own error, and `cancelled` for a task that somebody stops for good")
    func fileErrors() async throws {
        let missing = try await downloader.add(PublicBench.url("/missing"), to: folder)
        #expect(await code { () throws(DownloadError) in try await missing.file } == .httpStatus)
        for verb in ["cancel", "trash", "forget"] {
            let task = try await held()
            let waiter = Task { await code { () throws(DownloadError) in try await task.file } }
            let progress = Task { for await _ in task.progress {} }
            _ = try await verb == "cancel" ? task.cancel() : verb == "trash" ? task.trash() : task.forget()
            await progress.value
            // A wait that begins behind a trash finds no task.
            let thrown = await waiter.value
            #expect(thrown == .cancelled || thrown == .notFound && verb != "cancel")
            if verb == "cancel" { try await task.trash() }
        }
    }

    @Test("every verb, with the table's answer")
    func verbs() async throws {
        let task = try await held()
        #expect(try await task.resume().applied == false)
        #expect(try await task.suspend().after == .suspend)
        #expect(try await task.toggle().after == .idle)
        #expect(try await task.cancel().after == .cancel)
        bench.files.release("/held")
        #expect(try await task.retry().after == .idle)
        _ = try await task.file
        #expect(try await task.cancel().applied == false)
        let forgotten = try await task.forget()
        #expect(forgotten.applied && forgotten.after == .unknown)
        #expect(try bench.bytes("held") == content)
        #expect(await task.info == nil)
    }

    @Test("the same URL added twice is one task; handles of it are equal")
    func equal() async throws {
        let one = try await downloader.add(PublicBench.url("/a.bin"), to: folder)
        let two = try await downloader.add(bench.builder("/a.bin"))
        let inside = try await downloader.add(PublicBench.url("/a.bin"))
        #expect(one == two && one.id == two.id && one != inside && Set([one, two, inside]).count == 2)
        #expect(await downloader.task(one.id) == one)
        #expect(await downloader.task(PublicBench.url("/a.bin")) == one)
    }

    @Test("a handle outlives its downloader's end: questions are answered, verbs refused")
    func closed() async throws {
        let task = try await downloader.add(PublicBench.url("/a.bin"), to: folder)
        let file = try await task.file
        await downloader.close()
        #expect(await task.info?.state == .complete)
        #expect(try await task.file == file)
        for await _ in task.progress { Issue.record("a closed downloader reports nothing") }
        #expect(await code { () throws(DownloadError) in try await task.suspend() } == .cancelled)
        #expect(await code { () throws(DownloadError) in try await downloader.add("http://h/b") } == .cancelled)
    }

    @Test("withDownloader: active inside, closed at the end, also after an error and a cancellation")
    func scoped() async throws {
        await downloader.close()
        let configure = Configure(workPath: bench.folder.appendingPathComponent("scoped"))
        let transport = ScriptedTransport { [content] request, _ in .file(content, to: request) }
        let file = try await withDownloader(configure, transport: transport) { downloader in
            try await downloader.download(PublicBench.url("/a.bin"), to: folder)
        }
        #expect(FileManager.default.fileExists(atPath: file.path))
        struct Stop: Error {}
        await #expect(throws: Stop.self) {
            try await withDownloader(configure, transport: transport) { _ in throw Stop() }
        }
        await #expect(throws: Stop.self) {
            try await withDownloader(
                configure, transport: transport, middlewares: { _ in throw Stop() }, { _ in })
        }
        let cancelled = Task {
            try await withDownloader(configure, transport: transport) { downloader in
                withUnsafeCurrentTask { $0?.cancel() }
                return try await downloader.download("http://h/never")
            }
        }
        await #expect(throws: DownloadError.self) { _ = try await cancelled.value }
        // Each one has released the work path.
        try await withDownloader(configure, transport: transport) { downloader in
            #expect(await downloader.messager.all().map(\.state) == [.complete])
        }
    }
}
