import FKCore
import FKEngine
import FKMiddleware
import Foundation

/// Runs middlewares for scripted answers, without a network and without waiting: the time of a retry comes at once.
///
/// ```swift
/// let harness = try MiddlewareHarness { request, number in
///     number == 1 ? .status(503) : .file([1, 2, 3], to: request)
/// }
/// harness.middlewares.onFailure("again") { _ in .retry(after: .seconds(60)) }
/// let outcome = try await harness.run()
/// #expect(outcome.info.state == .complete && outcome.requests.count == 2)
/// ```
///
/// Each harness has a work path of its own, which is removed with it. Several runs at once are allowed: each outcome has
/// the states and requests of its own task. They share the clock, so the retry of one moves the time of the others.
public final class MiddlewareHarness: Sendable {
    /// What has happened to a task.
    public struct Outcome: Sendable {
        /// The task at its end.
        public let info: DownloadInfo
        /// The states it was in, in order.
        public let states: [DownloadState]
        /// The requests of this task since the run began, after all middlewares.
        public let requests: [TransportRequest]
        /// The bytes of the finished file; nil unless the task is complete.
        public let bytes: [UInt8]?
    }

    /// The downloader. Its middlewares are `middlewares`.
    public let downloader: Downloader
    /// The transport, with all requests so far.
    public let transport: ScriptedTransport
    /// The time. It passes only for retries, and by hand.
    public let clock: ManualClock
    private let folder: URL

    /// The chains for the middlewares to test.
    public var middlewares: MiddlewareChains { downloader.middlewares }

    /// Creates a harness.
    ///
    /// - Parameters:
    ///   - configure: changes the settings; the default ones have no jitter.
    ///   - answer: called for each request with its number, from 1.
    /// - Throws: the errors of `Downloader.init`, and of a temporary folder that cannot be created.
    public init(
        _ configure: (inout Configure) -> Void = { _ in },
        answer: @escaping @Sendable (TransportRequest, Int) -> ScriptedTransport.Answer
    ) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("fk-harness-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        var settings = Configure(workPath: folder.appendingPathComponent("work"))
        settings.retry.jitter = 0
        configure(&settings)
        clock = ManualClock()
        transport = ScriptedTransport(clock: clock, answer)
        downloader = try Downloader(settings, scripted: transport, clock: clock)
        downloader.activateQueue()
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// Downloads a file and waits until the task is complete, failed or cancelled.
    ///
    /// - Parameters:
    ///   - url: the task's URL.
    ///   - change: changes the task before it is added.
    /// - Throws: the errors of `Builder`, and `.notFound` if a middleware has trashed the task.
    public func run(
        _ url: String = "https://example.com/file.bin", _ change: (inout Builder) throws -> Void = { _ in }
    ) async throws -> Outcome {
        let before = transport.requests.count
        var builder = try Builder(url)
        builder.folder = folder.appendingPathComponent("files")
        try change(&builder)
        let states = Locked<[DownloadState]>([])
        let id = builder.id
        let registration = await downloader.messager.addChanges { info in
            if info.id == id { states.withLock { $0.append(info.state) } }
        }
        let task = try await downloader.add(builder)
        for await info in task.progress {
            // A millisecond more: dates are exact to one.
            if let until = info.waitingUntil { clock.advance(seconds: until.timeIntervalSince(clock.date) + 0.001) }
        }
        await downloader.messager.waitForReports()
        registration.cancel()
        guard let info = await task.info else { throw DownloadError(.notFound, "The task was trashed.") }
        return Outcome(
            info: info, states: states.withLock(\.self),
            requests: transport.requests[before...].filter { $0.task == id },
            bytes: try info.fileURL.map { try [UInt8](Data(contentsOf: $0)) })
    }

    /// Closes the downloader.
    public func close() async { await downloader.close() }
}
