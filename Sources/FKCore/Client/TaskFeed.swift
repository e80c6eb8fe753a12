import FKEngine
import FKMiddleware
import Foundation

/// All tasks of a work path as they change, whichever process runs them. `Downloader.feed(every:)` makes it.
///
/// ```swift
/// for await event in downloader.feed() {
///     switch event {
///     case .all(let infos): rows = Dictionary(uniqueKeysWithValues: infos.map { ($0.id, $0) })
///     case .changed(let infos): for info in infos { rows[info.id] = info.state == .unknown ? nil : info }
///     case .progress(let infos): for info in infos { rows[info.id] = info }
///     }
/// }
/// ```
///
/// Nothing is missed between two elements, and no change is older than what was reported before. Each reader has a feed of its own, which
/// holds a few dozen bytes for each task; `.all` has a kilobyte for each. It ends when the downloader closes, and when the reading Swift
/// task is cancelled.
public struct TaskFeed: AsyncSequence, Sendable {
    /// A report.
    public enum Element: Sendable {
        /// Every task, in the order of submission. It comes first, and again where changes may have been missed, for example after
        /// another process has taken over.
        case all([DownloadInfo])
        /// Tasks with a new state, in the order of the changes. `.unknown` is a task that was forgotten; it has no URL if nobody saw that.
        case changed([DownloadInfo])
        /// The running tasks with their bytes and speeds, at every interval; empty while nothing runs. `.all` or `.changed` has named each.
        case progress([DownloadInfo])
    }

    private let source: FeedSource
    private let interval: Duration?

    /// - Parameter interval: the time between two reports of progress; nil for `Configure.progressInterval`.
    init(of engine: any EngineAccess, every interval: Duration? = nil) {
        source = FeedSource(engine)
        self.interval = interval
    }

    /// Creates an iterator, which begins to listen with its first element.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source, interval) }

    /// The reader of a feed.
    public struct AsyncIterator: AsyncIteratorProtocol {
        /// What was reported of a task last.
        private struct Heard {
            var state: DownloadState
            var order: ChangeOrder
        }

        private let source: FeedSource
        private let interval: Duration?
        private var listener: FeedListener?
        private var arrivals: AsyncStream<Void>.Iterator?
        private var heard: [TaskID: Heard] = [:]
        /// Changes that were drained before all tasks were read.
        private var pending: [DownloadInfo] = []
        /// The tasks that went unseen before all tasks were read.
        private var gone: [DownloadInfo] = []

        init(_ source: FeedSource, _ interval: Duration?) {
            self.source = source
            self.interval = interval
        }

        /// The next report; nil at the end.
        public mutating func next() async -> Element? { await next(isolation: nil) }

        /// The next report; nil at the end.
        public mutating func next(isolation: isolated (any Actor)?) async -> Element? {
            if listener == nil {
                let made = FeedListener(source, every: interval)
                await made.begin()
                listener = made
                arrivals = made.changes.arrivals.makeAsyncIterator()
            }
            while let listener, !Task.isCancelled {
                if let report = await report(listener, isolation: isolation) { return report }
                if await arrivals?.next(isolation: isolation) == nil { break }
            }
            if Task.isCancelled { return nil }
            // The last changes before the end.
            let last = listener.map { new(pending + $0.changes.drain()) } ?? []
            pending = []
            return last.isEmpty ? nil : .changed(last)
        }

        /// Adds changes that the engine does not report: those of info files.
        func add(_ infos: [DownloadInfo]) { for info in infos { listener?.changes.add(info) } }

        /// Reports all tasks again, because changes may be missing.
        func miss() { listener?.changes.miss() }

        /// What is there to report now; nil if there is nothing.
        private mutating func report(_ listener: FeedListener, isolation: isolated (any Actor)?) async -> Element? {
            guard let engine = source.engine, !engine.isClosed else { return nil }
            let changes = listener.changes
            if changes.drainMiss() {
                pending += changes.drain()
                guard let infos = try? await engine.snapshot({ try $0.infos(.all) }) else {
                    // The next tick tries again.
                    changes.miss(wakes: false)
                    return nil
                }
                let former = heard
                heard = Dictionary(infos.map { ($0.id, Heard(state: $0.state, order: $0.order)) }) { first, _ in first }
                gone = former.keys.filter { heard[$0] == nil }.map { DownloadInfo(id: $0, url: "", state: .unknown) }
                return .all(infos)
            }
            let news = gone + new(pending + changes.drain())
            (pending, gone) = ([], [])
            if !news.isEmpty { return .changed(news) }
            guard listener.isDue() else { return nil }
            // A task that has begun or ended meanwhile is in the next changes.
            let running = await engine.snapshot { $0.runningInfos() }
            return .progress(running.filter { heard[$0.id]?.state == .action })
        }

        /// The changes that say more than what was reported before.
        private mutating func new(_ infos: [DownloadInfo]) -> [DownloadInfo] {
            infos.filter { info in
                let last = heard[info.id]
                // The info file was read after this change, and said more.
                if let last, info.order.isBefore(last.order) { return false }
                heard[info.id] = info.state == .unknown ? nil : Heard(state: info.state, order: info.order)
                return (last?.state ?? .unknown) != info.state
            }
        }
    }
}

/// The engine of a feed. A feed does not keep it in memory.
final class FeedSource: Sendable {
    private let reference: Locked<WeakEngine>

    private struct WeakEngine { weak var engine: (any EngineAccess)? }

    init(_ engine: any EngineAccess) { reference = Locked(WeakEngine(engine: engine)) }

    /// The engine; nil once it is gone.
    var engine: (any EngineAccess)? { reference.withLock(\.engine) }

    /// The time between two reports of progress; nil once the engine is gone or closed.
    func interval(_ given: Duration?) async -> Duration? {
        guard let engine, !engine.isClosed else { return nil }
        if let given { return given }
        return await engine.currentConfigure.progressInterval
    }
}

/// The listener and the ticks of a feed, until it is released.
private final class FeedListener: Sendable {
    let changes = TaskChanges()
    private let source: FeedSource
    private let interval: Duration?
    private let ticks = Locked<Task<Void, Never>?>(nil)
    /// Removes the listener to the end of the engine.
    private let stop = Locked<(@Sendable () -> Void)?>(nil)
    /// True if progress is to be reported.
    private let due = Locked(true)

    init(_ source: FeedSource, every interval: Duration?) {
        self.source = source
        self.interval = interval
    }

    deinit {
        ticks.withLock(\.self)?.cancel()
        stop.withLock(\.self)?()
    }

    /// True once for each tick.
    func isDue() -> Bool {
        due.withLock { due in
            defer { due = false }
            return due
        }
    }

    /// Listens until it is released, and ends `arrivals` once the engine has closed.
    func begin() async {
        if let engine = source.engine {
            await changes.follow(engine)
            let number = await engine.observeOwner(end: { [weak changes] in changes?.finish() }) { _ in }
            stop.withLock { stop in
                stop = { [weak engine] in if let engine { Task { await engine.stopObserving(number) } } }
            }
        }
        let task = Task { [weak changes, source, interval, due] in
            while !Task.isCancelled, let pause = await source.interval(interval) {
                try? await Task.sleep(for: pause)
                due.withLock { $0 = true }
                changes?.wake()
            }
            changes?.finish()
        }
        ticks.withLock { $0 = task }
    }
}
