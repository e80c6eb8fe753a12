import FKEngine
import FKMiddleware
import Foundation

/// Adds up all tasks of a work path for one listener. It reads the tasks once, then takes their changes of state and the progress of
/// those that run, whichever process runs them.
private actor TotalSum {
    private weak var engine: (any EngineAccess)?
    private let listener: Observers.BarrelListener
    private let changes: Locked<TotalChanges>
    private var shares = TaskMap<TaskTotals.Share>()
    private var running: Set<TaskID> = []
    private var sum = TaskSum()

    init(
        _ engine: any EngineAccess, _ changes: Locked<TotalChanges>,
        _ callback: @escaping @Sendable (BarrelInfo) -> Void
    ) {
        self.engine = engine
        self.changes = changes
        listener = Observers.BarrelListener(number: 0, name: "", callback: callback)
    }

    /// Tells the listener at every interval until it is removed or the downloader closes, and then the last sum.
    func run() async {
        while !Task.isCancelled, let interval = await look() { try? await Task.sleep(for: interval) }
        tell()
    }

    private func look() async -> Duration? {
        guard let engine, !engine.isClosed else { return nil }
        if changes.withLock({ $0.drainMissed() }), let infos = try? await engine.snapshot({ try $0.infos(.all) }) {
            shares = TaskMap()
            for info in infos { shares[info.id] = TaskTotals.Share(info) }
            running = Set(infos.lazy.filter { $0.state == .action }.map(\.id))
            sum.count(shares.values)
        }
        let ids = Array(running)
        for info in (try? await engine.snapshot({ try $0.infos(ids) })) ?? [] { absorb(info) }
        tell()
        return await engine.currentConfigure.progressInterval
    }

    private func tell() {
        for info in changes.withLock({ $0.drainInfos() }) { absorb(info) }
        listener.tell(sum.info("", total: shares.count, now: Int64(DispatchTime.now().uptimeNanoseconds)))
    }

    private func absorb(_ info: DownloadInfo) {
        let old = shares[info.id]
        let new = info.state == .unknown ? TaskTotals.Share() : TaskTotals.Share(info)
        if old == nil { sum.joined() }
        if info.state == .action { running.insert(info.id) } else { running.remove(info.id) }
        sum.replace(old ?? TaskTotals.Share(), by: new)
        shares[info.id] = info.state == .unknown ? nil : new
    }
}

/// The changes of state since the last look.
private struct TotalChanges {
    var infos: [DownloadInfo] = []
    var hasMissed = true

    /// True if all tasks have to be read. Changes before that do not count then.
    mutating func drainMissed() -> Bool {
        defer { hasMissed = false }
        if hasMissed { infos = [] }
        return hasMissed
    }

    mutating func drainInfos() -> [DownloadInfo] {
        defer { infos = [] }
        return infos
    }
}

/// Ends the work of a listener when the engine releases the listener.
private final class TotalLoop: Sendable {
    private let task = Locked<Task<Void, Never>?>(nil)
    func begin(_ body: Task<Void, Never>) { task.withLock { $0 = body } }
    deinit { task.withLock { $0 }?.cancel() }
}

extension EngineAccess {
    /// Calls `callback` with the sum over all tasks, now and at every `progressInterval` in which it has changed.
    ///
    /// - Parameter end: for a sequence; called once after the last sum, when the downloader closes.
    /// - Returns: the number that `stopObserving(_:)` takes.
    func observeTotal(
        end: (@Sendable () -> Void)? = nil, _ callback: @escaping @Sendable (BarrelInfo) -> Void
    ) async throws -> UInt64 {
        guard !isClosed else { throw DownloadError(.cancelled, "The downloader is closed.") }
        let changes = Locked(TotalChanges())
        let loop = TotalLoop()
        let number = await observeStates(missed: { changes.withLock { $0.hasMissed = true } }) { [loop] info in
            withExtendedLifetime(loop) { changes.withLock { $0.infos.append(info) } }
        }
        let sum = TotalSum(self, changes, callback)
        loop.begin(
            Task {
                await sum.run()
                end?()
            })
        return number
    }
}

extension Messager {
    /// Registers a polled callback for the sum over all tasks of the work path, as `addInfo`. It is called once at the beginning. The
    /// name in the sum is empty.
    ///
    /// - Parameter queue: same as for `addInfo`.
    /// - Throws: `.cancelled` for a closed downloader.
    public func addTotalInfo(
        on queue: DispatchQueue? = nil, _ callback: @escaping @Sendable (BarrelInfo) -> Void
    ) async throws(DownloadError) -> Registration {
        try await register(on: queue) { try await engine.observeTotal($0.calling(callback)) }
    }
}
