import Dispatch
import FKMiddleware
import Foundation

/// Sessions without a transfer, and the connections they keep open. The next transfer to the same origin reuses one.
final class URLSessionPool: Sendable {
    private struct Idle {
        var origin: URLOrigin
        var line: URLSessionLine
        var since: DispatchTime
    }

    private struct State {
        var idle: [Idle] = []
        var isSweeping = false
        var isClosed = false
    }

    private static let maxIdle = 32
    private static let idleSeconds = 60.0

    private let state = Locked(State())
    private let networks: Networks
    private let queue: DispatchQueue

    /// Creates an empty pool.
    ///
    /// - Parameter queue: where sessions are used and closed. It is never the queue of a callback.
    init(networks: Networks, queue: DispatchQueue) {
        self.networks = networks
        self.queue = queue
    }

    /// The session that was used last for the URL's origin, or a new one. nil if the URL has no origin, or if this
    /// Foundation's sessions cannot be held back.
    func acquire(for url: String) -> URLSessionLine? {
        guard let origin = URLOrigin(url) else { return nil }
        let idle = state.withLock { state in
            state.idle.lastIndex { $0.origin == origin }.map { state.idle.remove(at: $0) }
        }
        return idle?.line ?? URLSessionLine(origin: origin, networks: networks, commands: queue)
    }

    func give(_ line: URLSessionLine) {
        let (surplus, sweeps) = state.withLock { state -> (URLSessionLine?, Bool) in
            if state.isClosed { return (line, false) }
            state.idle.append(Idle(origin: line.origin, line: line, since: .now()))
            let surplus = state.idle.count > Self.maxIdle ? state.idle.removeFirst().line : nil
            defer { state.isSweeping = true }
            return (surplus, !state.isSweeping)
        }
        if let surplus { queue.async { surplus.close() } }
        if sweeps { sweep() }
    }

    func close() {
        let lines = state.withLock { state in
            state.isClosed = true
            defer { state.idle.removeAll() }
            return state.idle.map(\.line)
        }
        queue.async { for line in lines { line.close() } }
    }

    /// Closes sessions that were idle for a while, as long as there are any.
    private func sweep() {
        queue.asyncAfter(deadline: .now() + Self.idleSeconds) { [weak self] in
            guard let self else { return }
            let limit = DispatchTime.now() - Self.idleSeconds
            let (old, goesOn) = state.withLock { state in
                let old = state.idle.prefix { $0.since <= limit }.map(\.line)
                state.idle.removeFirst(old.count)
                state.isSweeping = !state.idle.isEmpty
                return (old, state.isSweeping)
            }
            for line in old { line.close() }
            if goesOn { sweep() }
        }
    }
}
