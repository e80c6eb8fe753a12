import FKMiddleware

/// Holds an answer back, or a middleware, until the test opens it.
public final class TestGate: Sendable {
    private struct State {
        var isOpen = false
        var arrivals = 0
        var waiting: [@Sendable () -> Void] = []
        var watchers: [CheckedContinuation<Void, Never>] = []
    }
    private let state = Locked(State())

    /// Creates a closed gate.
    public init() {}

    /// Opens the gate, for good.
    public func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        waiting.forEach { $0() }
    }

    /// The number of callers that have reached the gate, including those that did not have to wait.
    package var arrivals: Int { state.withLock { $0.arrivals } }

    /// Returns once somebody has come to it.
    public func reached() async {
        await withCheckedContinuation { continuation in
            let isReached = state.withLock { state in
                if state.arrivals == 0 { state.watchers.append(continuation) }
                return state.arrivals > 0
            }
            if isReached { continuation.resume() }
        }
    }

    /// Returns once the gate is open.
    public func passed() async {
        await withCheckedContinuation { continuation in pass { continuation.resume() } }
    }

    func pass(_ goOn: @escaping @Sendable () -> Void) {
        let (isOpen, watchers) = state.withLock { state in
            state.arrivals += 1
            if !state.isOpen { state.waiting.append(goOn) }
            defer { state.watchers = [] }
            return (state.isOpen, state.watchers)
        }
        watchers.forEach { $0.resume() }
        if isOpen { goOn() }
    }
}
