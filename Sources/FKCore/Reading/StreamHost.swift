import FKEngine
import FKMiddleware
import Foundation

/// The streams of a downloader: tasks of engines with work paths of their own (`StreamFolder`), which go with their last stream. A
/// second one is needed only for a second stream of the same URL at the same time.
actor StreamHost {
    private final class Hosted: Sendable {
        let engine: Engine

        init(_ engine: Engine) {
            self.engine = engine
            engine.start()
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
        _ task: TaskDescription, window: Int64, start: Int64, end: Int64?, _ configure: Configure, runsPrograms: Bool
    ) async throws(DownloadError) -> any ByteSource {
        if isClosed { throw DownloadError(.cancelled, "The downloader is closed.") }
        var task = task
        task.directory = nil
        task.fileName = nil
        if task.hasOptions {
            task.options.reuse = nil
            task.options.existing = nil
            guard task.options.signature == nil else {
                throw DownloadError(
                    .invalidArgument,
                    "A signature is compared with the whole file: a stream has none. Download the file, and read it then."
                )
            }
        }
        let piece = task.hasOptions ? task.options.pieces?.length ?? 0 : 0
        let ring = ByteRing(window: max(window, 2 * piece), start: piece > 0 ? start - start % piece : start)
        let (hosted, id) = try host(task, configure, runsPrograms: runsPrograms)
        let engine = hosted.engine
        let reader = await engine.openStream(id, ring, end: end)
        do throws(DownloadError) {
            let added = try await engine.perform(.add(tasks: [task], barrel: nil, run: true))
            if let error = added[0].error { throw error }
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
        _ = try? await hosted.engine.perform(.verb(.trash, .id(id)))
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
            await hosted.engine.closeAndDrain()
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
