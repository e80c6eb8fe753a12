import FKEngine
import FKMiddleware
import Foundation

/// Adds up all tasks of a work path for one listener.
private actor TotalSum {
    private let listener: Observers.BarrelListener
    private var shares = TaskMap<TaskTotals.Share>()
    private var sum = TaskSum()

    init(_ callback: @escaping @Sendable (BarrelInfo) -> Void) {
        listener = Observers.BarrelListener(number: 0, name: "", callback: callback)
    }

    /// Tells the listener at every interval until the feed ends, and then the last sum.
    func run(_ feed: TaskFeed) async {
        for await report in feed {
            switch report {
            case .all(let infos):
                shares = TaskMap()
                for info in infos { shares[info.id] = TaskTotals.Share(info) }
                sum.count(shares.values)
            case .changed(let infos): for info in infos { absorb(info) }
            case .progress(let infos):
                for info in infos { absorb(info) }
                tell()
            }
        }
        tell()
    }

    private func tell() {
        listener.tell(sum.info("", total: shares.count, now: Int64(DispatchTime.now().uptimeNanoseconds)))
    }

    private func absorb(_ info: DownloadInfo) {
        let old = shares[info.id]
        let new = info.state == .unknown ? TaskTotals.Share() : TaskTotals.Share(info)
        if old == nil { sum.joined() }
        sum.replace(old ?? TaskTotals.Share(), by: new)
        shares[info.id] = info.state == .unknown ? nil : new
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
        let loop = TotalLoop()
        // The engine holds the loop until the listener is removed.
        let number = await observeStates(missed: {}) { [loop] _ in withExtendedLifetime(loop) {} }
        let (sum, feed) = (TotalSum(callback), TaskFeed(of: self))
        loop.begin(
            Task {
                await sum.run(feed)
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
