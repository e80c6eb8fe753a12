import FKMiddleware
import Synchronization

/// The readers of one task's bytes. Confined to the engine.
///
/// A reader says where it is (`Engine.nextBytes`), and waits here until there are bytes, or until the task changes. The planner
/// fetches first what readers wait for.
package final class ReadFeed {
    /// The number of times that received bytes were dropped, for a reader that has just read some. It changes before the part file
    /// is truncated.
    package final class Token: Sendable {
        private let count = Atomic<Int>(0)
        package var generation: Int { count.load(ordering: .sequentiallyConsistent) }
        fileprivate func advance() { count.add(1, ordering: .sequentiallyConsistent) }
    }

    private struct Reader {
        var position: Int64
        /// True from the beginning of a wait until the reader has its bytes.
        var isWaiting = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    /// The window of a stream, which is never published; nil for a task whose file is kept.
    let ring: ByteRing?
    /// The offset after the last byte that the reader of a stream wants; nil for the end of the file.
    let end: Int64?
    private var readers: [Int: Reader] = [:]
    private var lastReader = 0
    let token = Token()
    /// The number of times that received bytes were dropped.
    var generation: Int { token.generation }
    /// The last generation that nothing proves to be the same file as the one before.
    private(set) var lostAt = 0
    /// Why the file of that generation is not known to be the same.
    private(set) var dropReason: DownloadError?
    /// False once the server has refused a range that a reader waits for.
    var mayAskAhead = true

    init(ring: ByteRing? = nil, end: Int64? = nil) {
        self.ring = ring
        self.end = end
    }

    var isEmpty: Bool { readers.isEmpty }

    // MARK: Readers

    func add(at position: Int64) -> Int {
        lastReader += 1
        readers[lastReader] = Reader(position: position)
        return lastReader
    }

    func move(_ number: Int, to position: Int64) { readers[number]?.position = position }

    /// A reader has what it waited for.
    func ended(_ number: Int) { readers[number]?.isWaiting = false }

    /// Releases a reader that waits, and forgets it.
    func remove(_ number: Int) { readers.removeValue(forKey: number)?.waiter?.resume() }

    /// A reader waits until the next call of `wake`.
    func wait(_ number: Int, _ waiter: CheckedContinuation<Void, Never>) {
        guard readers[number] != nil else { return waiter.resume() }
        readers[number]?.waiter?.resume()
        readers[number]?.waiter = waiter
        readers[number]?.isWaiting = true
    }

    /// Releases one reader, or all of them, which look again.
    func wake(_ number: Int? = nil) {
        for key in number.map({ [$0] }) ?? Array(readers.keys) { readers[key]?.waiter.take()?.resume() }
    }

    /// Received bytes are dropped.
    ///
    /// - Parameter reason: the error for readers that have read some of them; nil if the same bytes come again.
    func dropped(because reason: DownloadError?) {
        token.advance()
        if let reason { (lostAt, dropReason) = (generation, reason) }
        wake()
    }

    // MARK: The planner

    /// The readers for the planner; nil if none says what comes first.
    ///
    /// - Parameters:
    ///   - canSeek: true if the server serves any range.
    ///   - connections: the number of connections that the file may use.
    func reading(canSeek: Bool, connections: Int) -> ReadDemand? {
        if let ring {
            return ReadDemand(
                positions: [ring.readerPosition], horizon: min(ring.horizon, end ?? .max),
                portion: ReadDemand.portion(window: ring.window, connections: connections),
                canSeek: canSeek && mayAskAhead)
        }
        guard canSeek, mayAskAhead else { return nil }
        let waiting = readers.filter { $0.value.isWaiting }.sorted { $0.key < $1.key }.map(\.value.position)
        return waiting.isEmpty ? nil : ReadDemand(positions: waiting)
    }
}

/// The readers of an engine's tasks. Confined to the engine.
final class Readers {
    private var feeds: [TaskID: ReadFeed] = [:]

    var isEmpty: Bool { feeds.isEmpty }

    subscript(id: TaskID) -> ReadFeed? { feeds.isEmpty ? nil : feeds[id] }

    /// The readers of a task, which may be none so far.
    func feed(of id: TaskID, _ make: () -> ReadFeed) -> ReadFeed {
        if let feed = feeds[id] { return feed }
        let feed = make()
        feeds[id] = feed
        return feed
    }

    /// Forgets the readers of a task.
    func remove(_ id: TaskID) { feeds.removeValue(forKey: id)?.wake() }

    /// Releases all readers of a closing engine.
    func finish() {
        let all = feeds.values
        feeds = [:]
        all.forEach { $0.wake() }
    }
}
