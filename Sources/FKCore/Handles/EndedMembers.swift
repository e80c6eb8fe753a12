import FKMiddleware

/// The members of a barrel as they end (`Barrel.ended`).
///
/// The members are read whenever the barrel's sum shows that more have ended, so a member is reported within one report
/// of the sum, and all of them before the sequence ends.
struct EndedMembers: AsyncSequence, Sendable {
    private let barrel: Barrel

    init(of barrel: Barrel) { self.barrel = barrel }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(barrel) }

    struct AsyncIterator: AsyncIteratorProtocol {
        private let barrel: Barrel
        private var sums: AsyncStream<BarrelInfo>.Iterator
        private var ready: ArraySlice<DownloadTask> = []
        private var seen: Set<TaskID> = []
        /// The number of ended members in the last sum.
        private var endedCount = 0
        private var isOver = false

        fileprivate init(_ barrel: Barrel) {
            self.barrel = barrel
            sums = barrel.downloader.messager.barrelInfos(barrel.name).makeAsyncIterator()
        }

        mutating func next() async -> DownloadTask? { await next(isolation: nil) }

        /// The next member; nil at the end, and once the reading Swift task is cancelled.
        mutating func next(isolation: isolated (any Actor)?) async -> DownloadTask? {
            while ready.isEmpty, !isOver {
                if let sum = await sums.next(isolation: isolation) {
                    let count = (sum.states[.complete] ?? 0) + (sum.states[.error] ?? 0)
                    guard count != endedCount else { continue }
                    endedCount = count
                } else {
                    isOver = true
                }
                if Task.isCancelled { break }
                for info in await barrel.memberInfos where [.complete, .error].contains(info.state) {
                    guard seen.insert(info.id).inserted else { continue }
                    ready.append(DownloadTask(info.id, info.url, in: barrel.downloader))
                }
            }
            return ready.popFirst()
        }
    }
}
