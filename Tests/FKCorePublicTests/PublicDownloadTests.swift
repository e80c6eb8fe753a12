import FKCore
import FKMiddleware
import Foundation
import Testing

@Suite("One call for a file")
struct PublicDownloadTests {
    private let bench: PublicBench
    private let content = PublicBench.pattern(400_000)
    private var downloader: Downloader { bench.downloader }
    private var folder: URL { bench.folder.appendingPathComponent("files") }

    init() throws {
        bench = try PublicBench()
        bench.files.serve("/a.bin", content)
        bench.files.serve("/held", content, hold: 100_000)
    }

    /// Calls `begin`, and returns its task once the held body has come to its hold.
    private func held<Value>(_ begin: () async throws -> Value) async throws -> (DownloadTask, Value) {
        let counts = Heard<Int64>()
        let url = PublicBench.url("/held")
        let registration = try await downloader.messager.addInfo(url) { info in
            if info.state == .action { counts.add(info.count.received) }
        }
        let value = try await begin()
        _ = await counts.until { $0 >= 100_000 }
        registration.cancel()
        return (try #require(await downloader.task(url)), value)
    }

    private func call(
        onCancel: CancelledDownload = .suspend, attributes: [String: String] = [:]
    ) -> Task<URL, any Error> {
        Task {
            var builder = try bench.builder("/held")
            builder.attributes = attributes
            return try await downloader.download(builder, onCancel: onCancel)
        }
    }

    /// Waits until a call with this attribute waits for the task.
    private func joined(_ key: String, _ task: DownloadTask) async throws {
        var query = RecordQuery()
        query.attributes = [key: "1"]
        while try await downloader.messager.records(query).records.isEmpty { await Task.yield() }
    }

    @Test("the file's URL comes back, for a text, a URL and a builder; a second call finds the file there")
    func file() async throws {
        let file = try await downloader.download(PublicBench.url("/a.bin"), to: folder)
        #expect(file == folder.appendingPathComponent("a.bin") && file.isFileURL)
        #expect(try bench.bytes("a.bin") == content)
        let url = try #require(URL(string: PublicBench.url("/a.bin")))
        #expect(try await downloader.download(url, to: folder) == file)
        #expect(try await downloader.download(bench.builder("/a.bin")) == file)
        #expect(bench.transport.requests.count == 1)
    }

    @Test("name and checksum are options of the call; without a folder the file is inside the work path")
    func options() async throws {
        let digester = Digester(.sha256)
        content.withUnsafeBytes { digester.update($0) }
        let checksum = try Checksum(.sha256, hex: digester.hex())
        let file = try await downloader.download(
            PublicBench.url("/a.bin"), to: folder, named: "b.bin", checksum: checksum)
        #expect(file.lastPathComponent == "b.bin")
        let inside = try await downloader.download(PublicBench.url("/a.bin"))
        #expect(inside.path.hasPrefix(bench.folder.appendingPathComponent("work").path))
        let wrong = try Checksum(.sha256, hex: String(repeating: "0", count: 64))
        await #expect {
            _ = try await downloader.download(PublicBench.url("/a.bin"), to: folder, checksum: wrong)
        } throws: {
            ($0 as? DownloadError)?.code == .checksumMismatch
        }
    }

    @Test("a failure is thrown; the same call later queues the task again")
    func failure() async throws {
        let error = await #expect(throws: DownloadError.self) {
            try await downloader.download(PublicBench.url("/later"), to: folder)
        }
        #expect(error?.code == .httpStatus && error?.status == 404)
        bench.files.serve("/later", [1, 2, 3])
        _ = try await downloader.download(PublicBench.url("/later"), to: folder)
        #expect(try bench.bytes("later") == [1, 2, 3])
    }

    @Test("suspended and cancelled tasks are queued again by the call", arguments: [false, true])
    func again(isCancelled: Bool) async throws {
        let task = try await downloader.add(PublicBench.url("/held"), to: folder)
        for await progress in task.progress where progress.count.received >= 100_000 { break }
        _ = try await isCancelled ? task.cancel() : task.suspend()
        bench.files.release("/held")
        _ = try await downloader.download(PublicBench.url("/held"), to: folder)
        #expect(try bench.bytes("held") == content)
    }

    @Test("bad input throws at once", arguments: ["", "no url", "ftp://h/a", "http://"])
    func badURL(_ url: String) async throws {
        await #expect(throws: DownloadError.self) { _ = try await downloader.download(url, to: folder) }
        #expect(await downloader.messager.all().isEmpty)
    }

    @Test("a folder that is not a file URL is refused")
    func badFolder() async throws {
        let remote = try #require(URL(string: "https://h.example/folder"))
        await #expect { _ = try await downloader.download(PublicBench.url("/a.bin"), to: remote) } throws: {
            ($0 as? DownloadError)?.code == .invalidArgument
        }
    }

    @Test("a file that is waited for is queued, whatever its builder says")
    func startsSuspended() async throws {
        var builder = try bench.builder("/a.bin")
        builder.startsSuspended = true
        #expect(try await downloader.download(builder).lastPathComponent == "a.bin")
    }

    @Test("the call starts a queue that nobody has started")
    func activates() async throws {
        let configure = Configure(workPath: bench.folder.appendingPathComponent("other"))
        let idle = try Downloader(configure, transport: bench.transport)
        _ = try await idle.download(PublicBench.url("/a.bin"), to: folder)
        await idle.close()
    }

    @Test(
        "cancelling the Swift task stops the download and throws",
        arguments: [CancelledDownload.suspend, .cancel, .forget])
    func cancel(onCancel: CancelledDownload) async throws {
        let (task, call) = try await held { self.call(onCancel: onCancel) }
        call.cancel()
        let fate = [.suspend: "is suspended", .cancel: "was cancelled", .forget: "was forgotten"][onCancel] ?? "-"
        await #expect { _ = try await call.value } throws: {
            let error = $0 as? DownloadError
            return error?.code == .cancelled && error?.message.contains("The download \(fate)") == true
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        guard onCancel != .forget else {
            #expect(await task.info == nil)
            #expect(try await downloader.messager.records().records.isEmpty)
            #expect(names == [])
            return
        }
        let info = try #require(await task.info)
        #expect(info.state == (onCancel == .cancel ? .cancel : .suspend))
        #expect(info.count.received == (onCancel == .cancel ? 0 : 100_000))
        #expect(names.count == (onCancel == .cancel ? 0 : 1))
    }

    @Test("a call in a cancelled Swift task adds nothing")
    func cancelledBefore() async throws {
        let call = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await downloader.download(PublicBench.url("/a.bin"), to: folder)
        }
        await #expect { _ = try await call.value } throws: { ($0 as? DownloadError)?.code == .cancelled }
        #expect(await downloader.messager.all().isEmpty)
    }

    @Test("of two calls for one URL, cancelling one leaves the download to the other; the last one stops it")
    func twoCalls() async throws {
        let (task, first) = try await held { self.call(onCancel: .cancel) }
        let second = call(attributes: ["second": "1"])
        try await joined("second", task)
        first.cancel()
        await #expect { _ = try await first.value } throws: { ($0 as? DownloadError)?.code == .cancelled }
        #expect(await task.info?.state == .action)
        second.cancel()
        await #expect { _ = try await second.value } throws: { ($0 as? DownloadError)?.code == .cancelled }
        #expect(await task.info?.state == .suspend)
        #expect(await task.info?.count.received == 100_000)
    }

    @Test("a call that comes while another one's cancellation stops the task fetches the file")
    func cancelThenCall() async throws {
        for _ in 0..<8 {
            let (task, call) = try await held { self.call(onCancel: .cancel) }
            call.cancel()
            bench.files.release("/held")
            let file = try await downloader.download(PublicBench.url("/held"), to: folder)
            #expect(try Data(contentsOf: file).count == content.count)
            _ = try? await call.value
            try await task.trash()
            bench.files.serve("/held", content, hold: 100_000)
        }
    }

    @Test("somebody else's verbs: suspended, the call waits on; cancelled or trashed, it throws")
    func verbs() async throws {
        let (task, call) = try await held { self.call() }
        try await task.suspend()
        bench.files.release("/held")
        try await task.resume()
        #expect(try await call.value.lastPathComponent == "held")
        try await task.trash()
        for isTrash in [false, true] {
            bench.files.serve("/held", content, hold: 100_000)
            let (task, call) = try await held { self.call() }
            _ = try await isTrash ? task.trash() : task.cancel()
            // A wait that begins behind a trash finds no task.
            await #expect { _ = try await call.value } throws: {
                let code = ($0 as? DownloadError)?.code
                return code == .cancelled || code == .notFound && isTrash
            }
            if !isTrash { try await task.trash() }
        }
    }

    @Test("closing ends the wait, and a closed downloader refuses")
    func closed() async throws {
        let (_, call) = try await held { self.call() }
        await downloader.close()
        await #expect { _ = try await call.value } throws: { ($0 as? DownloadError)?.code == .cancelled }
        await #expect { _ = try await downloader.download(PublicBench.url("/b"), to: folder) } throws: {
            ($0 as? DownloadError)?.code == .cancelled
        }
    }

    @Test("2,000 calls from as many Swift tasks, each URL twice")
    func many() async throws {
        for index in 0..<1_000 { bench.files.serve("/\(index)", [UInt8](repeating: 1, count: 10)) }
        let files = try await withThrowingTaskGroup(of: URL.self) { group in
            for index in 0..<2_000 {
                group.addTask {
                    try await self.downloader.download(PublicBench.url("/\(index % 1_000)"), to: self.folder)
                }
            }
            return try await group.reduce(into: Set<URL>()) { $0.insert($1) }
        }
        #expect(files.count == 1_000 && bench.transport.requests.count == 1_000)
    }
}
