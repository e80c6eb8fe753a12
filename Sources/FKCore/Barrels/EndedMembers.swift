import FKEngine
import FKMiddleware

/// The members of a barrel as they end (`Barrel.ended`).
///
/// Changes of state bring them, a few milliseconds after the event. The sums show the end, and members that joined when they were
/// complete already.
struct EndedMembers: AsyncSequence, Sendable {
    private let barrel: Barrel

    init(of barrel: Barrel) { self.barrel = barrel }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(barrel) }

    struct AsyncIterator: AsyncIteratorProtocol {
        private let barrel: Barrel
        private var feed: EndedFeed?
        private var arrivals: AsyncStream<Void>.Iterator?
        private var ready: ArraySlice<DownloadTask> = []
        private var seen: Set<TaskID> = []

        fileprivate init(_ barrel: Barrel) { self.barrel = barrel }

        mutating func next() async -> DownloadTask? { await next(isolation: nil) }

        /// The next member; nil at the end, and once the reading Swift task is cancelled.
        mutating func next(isolation: isolated (any Actor)?) async -> DownloadTask? {
            if feed == nil {
                let made = EndedFeed(barrel)
                await made.begin()
                feed = made
                arrivals = made.changes.arrivals.makeAsyncIterator()
            }
            while ready.isEmpty, let feed {
                if Task.isCancelled { return nil }
                // Read before the changes: what ends after this is in the next ones.
                let isOver = feed.isOver.withLock(\.self)
                let infos = feed.changes.drain()
                if feed.changes.drainMiss() || isOver { append(await barrel.memberInfos) } else { append(infos) }
                if !ready.isEmpty { break }
                if isOver { return nil }
                if await arrivals?.next(isolation: isolation) == nil { return nil }
            }
            return ready.popFirst()
        }

        private mutating func append(_ infos: [DownloadInfo]) {
            for info in infos where info.state == .complete || info.state == .error {
                guard seen.insert(info.id).inserted else { continue }
                ready.append(DownloadTask(info.id, info.url, in: barrel.downloader))
            }
        }
    }
}

/// What the members of a barrel do, until the barrel's sums end or the feed is released.
private final class EndedFeed: Sendable {
    /// The ends of members.
    let changes = TaskChanges()
    /// True when no further member can end.
    let isOver = Locked(false)
    private let barrel: Barrel
    private let sums = Locked<Task<Void, Never>?>(nil)

    init(_ barrel: Barrel) { self.barrel = barrel }

    func begin() async {
        let (isOver, barrel) = (isOver, barrel)
        await changes.follow(barrel.downloader.engine) { info in
            (info.state == .complete || info.state == .error) && info.barrels.containsExactly(barrel.name)
        }
        let task = Task { [weak changes] in
            var count = 0
            for await sum in barrel.downloader.messager.barrelInfos(barrel.name) {
                let ended = (sum.states[.complete] ?? 0) + (sum.states[.error] ?? 0)
                if ended != count { changes?.miss() }
                count = ended
            }
            isOver.withLock { $0 = true }
            changes?.miss()
        }
        sums.withLock { $0 = task }
    }

    deinit { sums.withLock(\.self)?.cancel() }
}
