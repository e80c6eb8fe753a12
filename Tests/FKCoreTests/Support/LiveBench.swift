import TestSupport
import Testing

/// A downloader with libcurl and the system's clock, whose retries come at once.
final class LiveBench: Sendable {
    let folder: TemporaryFolder
    let downloader: Downloader
    let engine: Engine
    var out: String { folder.path + "/out" }

    /// - Parameter folder: of an earlier bench, to go on with its tasks; a new one by default.
    init(in folder: TemporaryFolder? = nil, _ settings: (inout Configure) -> Void = { _ in }) throws {
        self.folder = try folder ?? TemporaryFolder()
        var configure = Configure(workPath: self.folder.file("work"))
        configure.retry = RetryPolicy(maxAttempts: 3, baseDelay: .seconds(0.01), jitter: 0)
        configure.distributeSpeed = 1
        configure.transport.proxy = ""
        // A machine that stands still for a minute would look like a silent server, and cause another request.
        configure.transport.stallTimeout = .seconds(600)
        settings(&configure)
        engine = try Engine(configure: configure, scope: .all, transport: configure.transportKind.makeTransport())
        downloader = Downloader(engine: engine)
        downloader.activateQueue()
    }

    func add(
        _ url: String, mirrors: [String] = [], _ change: (inout TaskOptions) -> Void = { _ in }
    ) async throws -> TaskID {
        var builder = try Builder(url)
        try builder.setMirrors(mirrors)
        builder.directory = out
        change(&builder.options)
        return try await builder.prepare(in: downloader, queued: true)
    }

    func fetch(
        _ url: String, mirrors: [String] = [], _ change: (inout TaskOptions) -> Void = { _ in }
    ) async throws -> DownloadInfo {
        let id = try await add(url, mirrors: mirrors, change)
        return try #require(await downloader.messager.finished(id))
    }

    /// Returns once the task has that many bytes.
    func received(_ count: Int64, of id: TaskID) async throws {
        var received: Int64 = 0
        for await info in downloader.messager.infos(.id(id)) {
            received = info.count.received
            if received >= count { return }
        }
        try #require(received >= count, "the task ended before")
    }

    func out(_ name: String) throws -> [UInt8] { try folder.read("out/\(name)") }

    var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: out))?.sorted() ?? [] }
}
