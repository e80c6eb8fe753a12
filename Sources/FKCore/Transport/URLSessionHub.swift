import Dispatch
import FKMiddleware
import Foundation

/// The state that all transfers of one `URLSessionTransport` share: the queue on which they start and are cancelled,
/// the clock, the pool of idle sessions, and the shutdown.
///
/// Foundation waits for its own queue when a task is created or cancelled. In a callback that would be a deadlock, so
/// both happen on `queue`.
final class URLSessionHub: Sendable {
    let queue = DispatchQueue(label: "fk.urlsession")
    /// For work that must happen on time. It never blocks.
    let clock = DispatchQueue(label: "fk.urlsession.clock")
    private let pool: URLSessionPool
    private let state = Locked(State())
    private let running = DispatchGroup()

    private struct State {
        var transfers: [ObjectIdentifier: URLSessionTransfer] = [:]
        var isStopped = false
        var isWatching = false
    }

    init(networks: Networks) {
        pool = URLSessionPool(networks: networks, queue: queue)
    }

    // MARK: Any thread

    func start(_ transfer: URLSessionTransfer) {
        let isAccepted = state.withLock { state in
            if state.isStopped { return false }
            state.transfers[ObjectIdentifier(transfer)] = transfer
            running.enter()
            return true
        }
        guard isAccepted else {
            DispatchQueue.global().async { transfer.refuse() }
            return
        }
        queue.async { transfer.launch() }
        watch()
    }

    func acquire(for url: String) -> URLSessionLine? { pool.acquire(for: url) }

    func give(_ line: URLSessionLine) { pool.give(line) }

    func ended(_ transfer: URLSessionTransfer) {
        let isLast = state.withLock { state in
            state.transfers.removeValue(forKey: ObjectIdentifier(transfer))
            return state.isStopped && state.transfers.isEmpty
        }
        if isLast { pool.close() }
        running.leave()
    }

    func stop() {
        let transfers = state.withLock { state in
            state.isStopped = true
            return Array(state.transfers.values)
        }
        for transfer in transfers { transfer.cancel() }
        if transfers.isEmpty { pool.close() }
    }

    func wait() {
        if !CallbackThreads.isInside { running.wait() }
    }

    // MARK: Time

    private static let watchInterval = 0.25

    /// Watches for silent servers while a transfer runs.
    private func watch() {
        let isFirst = state.withLock { state in
            defer { state.isWatching = true }
            return !state.isWatching
        }
        if isFirst { watchAgain() }
    }

    /// A check first passes through Foundation's queue. While that queue is busy with other sessions, nothing reads
    /// this server's bytes, so that time counts only little as silence.
    private func watchAgain(since last: DispatchTime = .now()) {
        clock.asyncAfter(deadline: .now() + Self.watchInterval) { [weak self] in
            guard let self else { return }
            for transfer in state.withLock({ Array($0.transfers.values) }) { transfer.giveTurn() }
            URLSessionLine.afterOthers { [clock] in clock.async { self.check(since: last) } }
        }
    }

    private func check(since last: DispatchTime) {
        let now = DispatchTime.now()
        var seconds = Double(now.uptimeNanoseconds - last.uptimeNanoseconds) / 1e9
        if seconds > Self.watchInterval * 1.5 { seconds = Self.watchInterval * 0.2 }
        let transfers = state.withLock { state in
            state.isWatching = !state.transfers.isEmpty
            return Array(state.transfers.values)
        }
        for transfer in transfers { transfer.checkSilence(seconds) }
        if !transfers.isEmpty { watchAgain(since: now) }
    }
}

/// The threads that are inside a handler's callback. Waiting there for the end of transfers would be a deadlock, also
/// from another transport, because all sessions share a queue on Linux.
enum CallbackThreads {
    private static let threads = Locked<Set<ObjectIdentifier>>([])

    static var isInside: Bool {
        let thread = ObjectIdentifier(Thread.current)
        return threads.withLock { $0.contains(thread) }
    }

    static func run<Result>(_ body: () -> Result) -> Result {
        let thread = ObjectIdentifier(Thread.current)
        let isOutermost = threads.withLock { $0.insert(thread).inserted }
        defer { if isOutermost { _ = threads.withLock { $0.remove(thread) } } }
        return body()
    }
}
