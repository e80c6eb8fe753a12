import FKMiddleware

/// Holds an answer back until the test opens it.
package final class FakeGate: Sendable {
    private struct State {
        var isOpen = false
        var reached = false
        var waiting: [@Sendable () -> Void] = []
        var watchers: [CheckedContinuation<Void, Never>] = []
    }
    private let state = Locked(State())

    package init() {}

    package func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        waiting.forEach { $0() }
    }

    /// Returns once an answer waits here.
    package func reached() async {
        await withCheckedContinuation { continuation in
            let isReached = state.withLock { state in
                if !state.reached { state.watchers.append(continuation) }
                return state.reached
            }
            if isReached { continuation.resume() }
        }
    }

    /// Returns once the gate is open.
    package func passed() async {
        await withCheckedContinuation { continuation in pass { continuation.resume() } }
    }

    func pass(_ goOn: @escaping @Sendable () -> Void) {
        let (isOpen, watchers) = state.withLock { state in
            state.reached = true
            if !state.isOpen { state.waiting.append(goOn) }
            defer { state.watchers = [] }
            return (state.isOpen, state.watchers)
        }
        watchers.forEach { $0.resume() }
        if isOpen { goOn() }
    }
}
