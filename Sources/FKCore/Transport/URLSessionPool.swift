import Dispatch
import FKMiddleware
import Foundation

/// Sessions that have no transfer at the moment, with the connections they hold open: the next transfer to the same
/// origin takes one over.
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
    private let networks: URLSessionTransport.Networks
    private let queue: DispatchQueue

    /// - Parameter queue: where sessions are used and closed: never in a callback.
    init(networks: URLSessionTransport.Networks, queue: DispatchQueue) {
        self.networks = networks
        self.queue = queue
    }

    /// The session that was used last for the URL's origin, or a new one. Nil when the URL has no origin, or when this
    /// Foundation's sessions cannot be held back.
    func take(for url: String) -> URLSessionLine? {
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

    /// Closes what nobody has used for a while, as long as there is something to close.
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
