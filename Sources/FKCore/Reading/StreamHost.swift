import FKMiddleware
import Foundation

/// The streams of a downloader: tasks of engines with work paths of their own (`StreamFolder`), which go with their last stream. A
/// second one is needed only for a second stream of the same URL at the same time.
actor StreamHost {
    private final class Hosted: Sendable {
        let engine: Engine
        let downloader: Downloader

        init(_ engine: Engine) {
            self.engine = engine
            downloader = Downloader(engine: engine)
            downloader.activateQueue()
        }
    }

    private let outer: WorkPath
    private let chains: MiddlewareChains
    private let transport: (any Transport)?
    private var hosts: [(hosted: Hosted, ids: Set<TaskID>)] = []
    private var isClosed = false
    /// Engines that are closing.
    private var releases: [ObjectIdentifier: Task<Void, Never>] = [:]

    /// - Parameters:
    ///   - chains: the middlewares.
    ///   - transport: that of the application; nil for the one of the settings.
    init(_ outer: WorkPath, _ chains: MiddlewareChains, _ transport: (any Transport)?) {
        (self.outer, self.chains, self.transport) = (outer, chains, transport)
    }

    /// Begins a stream.
    ///
    /// - Parameter runsPrograms: true if the chains do not have the middleware programs of the work path.
    /// - Throws: the errors of `Downloader.stream`.
    func open(
        _ builder: Builder, window: Int64, start: Int64, end: Int64?, _ configure: Configure, runsPrograms: Bool
    ) async throws(DownloadError) -> any ByteSource {
        if isClosed { throw DownloadError(.cancelled, "The downloader is closed.") }
        var builder = builder
        builder.folder = nil
        builder.description.fileName = nil
        if builder.description.hasOptions {
            builder.description.options.reuse = nil
            builder.description.options.existing = nil
            guard builder.description.options.signature == nil else {
                throw DownloadError(
                    .invalidArgument,
                    "A signature is compared with the whole file: a stream has none. Download the file, and read it then."
                )
            }
        }
        let piece = builder.description.hasOptions ? builder.description.options.pieces?.length ?? 0 : 0
        let ring = ByteRing(window: max(window, 2 * piece), start: piece > 0 ? start - start % piece : start)
        let (hosted, id) = try host(builder.description, configure, runsPrograms: runsPrograms)
        let engine = hosted.engine
        let reader = await engine.openStream(id, ring, end: end)
        do throws(DownloadError) {
            try await builder.prepare(in: hosted.downloader, queued: true)
        } catch {
            await engine.closeReader(id, reader)
            await leave(hosted, id)
            throw error
        }
        return EngineSource(engine, id, number: reader, ring: ring) { [weak self] in
            Task { await self?.ended(hosted, id) }
        }
    }

    /// An engine that does not have this task, which has it from now on.
    private func host(
        _ task: TaskDescription, _ settings: Configure, runsPrograms: Bool
    ) throws(DownloadError) -> (Hosted, TaskID) {
        for index in hosts.indices {
            let id = hosts[index].hosted.engine.workPath.places.id(of: task)
            if hosts[index].ids.insert(id).inserted { return (hosts[index].hosted, id) }
        }
        let made = try typedNow {
            try StreamFolder.make(in: outer) { inner in
                var configure = settings
                configure.workPath = URL(fileURLWithPath: inner.root, isDirectory: true)
                configure.bases = [:]
                configure.isPaused = false
                configure.partsFolder = nil
                configure.diskBudget = nil
                configure.transport.sessionPath = outer.ofShards.sessionsPath
                configure.background = nil
                configure.maxAction = 256
                configure.syncsFiles = false
                configure.runsMiddlewarePrograms = runsPrograms && configure.runsMiddlewarePrograms
                let transport: any Transport =
                    if let transport { SharedTransport(transport) } else { try configure.makeTransport() }
                return Hosted(try Engine(configure: configure, scope: .all, transport: transport, chains: chains))
            }
        }
        let id = made.engine.workPath.places.id(of: task)
        hosts.append((made, [id]))
        return (made, id)
    }

    private func ended(_ hosted: Hosted, _ id: TaskID) async {
        _ = try? await hosted.downloader.control.trash(.id(id))
        await leave(hosted, id)
    }

    private func leave(_ hosted: Hosted, _ id: TaskID) async {
        guard let index = hosts.firstIndex(where: { $0.hosted === hosted }) else { return }
        hosts[index].ids.remove(id)
        guard hosts[index].ids.isEmpty else { return }
        hosts.remove(at: index)
        await release(hosted).value
        releases[ObjectIdentifier(hosted)] = nil
    }

    private func release(_ hosted: Hosted) -> Task<Void, Never> {
        let task = Task { [outer] in
            await hosted.downloader.close()
            StreamFolder.remove(hosted.engine.workPath, in: outer)
        }
        releases[ObjectIdentifier(hosted)] = task
        return task
    }

    /// Ends all streams and removes what they have on the disk.
    func close() async {
        isClosed = true
        for hosted in hosts.map(\.hosted) { _ = release(hosted) }
        hosts = []
        for task in releases.values { await task.value }
        releases = [:]
    }
}

extension Downloader {
    /// Streams a file that nobody keeps: it gets no name, its bytes are given in order while they arrive, and nothing of it stays.
    ///
    /// ```swift
    /// for try await chunk in try await downloader.stream(url, checksum: digest) { unpacker.feed(chunk) }
    /// ```
    ///
    /// Lost connections are resumed, and several connections are used as for any file (`Configure.connections`), within a window: at
    /// most `window` bytes and 64 KiB are on the disk, ahead of the reader. A reader that does not read pauses the server.
    ///
    /// A stream is no task of this downloader: it has no slot in the queue, and `Configure.rateLimit` counts for the streams by
    /// themselves. Request and download middlewares see it; response middlewares do not, because there is no finished file.
    ///
    /// - Parameters:
    ///   - checksum: the digest that the whole file must have; nil, the default, takes the one that the server announces. A wrong
    ///     one throws `.checksumMismatch` after the last byte.
    ///   - window: bytes on the disk, at least 1 MiB; the default is 64 MiB.
    /// - Returns: the bytes, for one iteration. Its end, or the end of the iteration, ends the stream.
    /// - Throws: `.invalidURL` or `.unsupportedScheme`; `.cancelled` for a closed downloader; `.workPathUnusable`, `.noSpace` or `.disk` if
    ///   the work path cannot be used. The errors of the file are thrown by the iteration.
    public func stream(
        _ url: String, checksum: Checksum? = nil, window: Int64 = DownloadedBytes.defaultWindow
    ) async throws(DownloadError) -> DownloadedBytes {
        try await stream(Builder(adding: url, to: nil, named: nil, checksum: checksum), window: window)
    }

    /// Streams the file that a builder describes; otherwise like `stream(_:checksum:window:)`. Folder, name and existing-file policy of
    /// the builder do not count.
    ///
    /// - Parameter range: the bytes to stream; the default is all of them. An end behind that of the file is the end of the file. A part of
    ///   the file is not compared with a digest of the whole.
    /// - Throws: also `.invalidArgument` for a signature, and for a range that is empty or begins below 0.
    public func stream(
        _ builder: Builder, range: Range<Int64>? = nil, window: Int64 = DownloadedBytes.defaultWindow
    ) async throws(DownloadError) -> DownloadedBytes {
        if let range, range.lowerBound < 0 || range.isEmpty {
            throw DownloadError(.invalidArgument, "A range begins at 0 at the earliest, and has bytes.")
        }
        let end = range.flatMap { $0.upperBound == .max ? nil : $0.upperBound }
        let start = range?.lowerBound ?? 0
        let source = try await streams.open(
            builder, window: window, start: start, end: end, configure, runsPrograms: owned == nil)
        let unread = Locked<(any ByteSource)?>(source)
        return DownloadedBytes(from: start, to: end) { () async throws(DownloadError) in
            if let source = unread.withLock({ $0.take() }) { return source }
            throw DownloadError(.invalidArgument, "A stream can be read once: begin another one.")
        }
    }
}

extension DownloadedBytes {
    /// The usual window of a stream: 64 MiB.
    public static let defaultWindow: Int64 = 64 << 20
}
