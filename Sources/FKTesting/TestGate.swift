import FKMiddleware

/// Holds an answer back, or a middleware, until the test opens it.
public final class TestGate: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [@Sendable () -> Void] = []
    }
    private let state = Locked(State())
    private let arrived = Observed(0)

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
    package var arrivals: Int { arrived.value }

    /// Returns once somebody has come to it, or when the task is cancelled.
    public func reached() async {
        _ = await arrived.wait { $0 > 0 }
    }

    /// Returns once the gate is open.
    public func passed() async {
        await withCheckedContinuation { continuation in pass { continuation.resume() } }
    }

    func pass(_ goOn: @escaping @Sendable () -> Void) {
        let isOpen = state.withLock { state in
            if !state.isOpen { state.waiting.append(goOn) }
            return state.isOpen
        }
        arrived.update { $0 += 1 }
        if isOpen { goOn() }
    }
}
