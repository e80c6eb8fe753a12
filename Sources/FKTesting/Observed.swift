import FKMiddleware

/// A value under a lock whose changes can be awaited, so that no test has to sleep.
package final class Observed<Value: Sendable>: Sendable {
    private struct Waiter: Sendable {
        var isMet: @Sendable (Value) -> Bool
        var continuation: CheckedContinuation<Value, Never>
    }

    private let state: Locked<(value: Value, waiters: [Waiter])>

    package init(_ value: Value) {
        state = Locked((value, []))
    }

    package var value: Value { state.withLock { $0.value } }

    /// Changes the value, then resumes the callers that wait for the new one.
    package func update<Result>(_ change: (inout Value) throws -> Result) rethrows -> Result {
        var due: [Waiter] = []
        let (result, value) = try state.withLock { state in
            let result = try change(&state.value)
            if !state.waiters.isEmpty {
                due = state.waiters.filter { $0.isMet(state.value) }
                if !due.isEmpty { state.waiters.removeAll { $0.isMet(state.value) } }
            }
            return (result, due.isEmpty ? nil : state.value)
        }
        if let value {
            for waiter in due { waiter.continuation.resume(returning: value) }
        }
        return result
    }

    /// Returns the first value for which the condition holds. Waits for ever when there is none: the suites have a time
    /// limit.
    package func wait(until isMet: @escaping @Sendable (Value) -> Bool) async -> Value {
        await withCheckedContinuation { continuation in
            let met = state.withLock { state -> Value? in
                if isMet(state.value) { return state.value }
                state.waiters.append(Waiter(isMet: isMet, continuation: continuation))
                return nil
            }
            if let met { continuation.resume(returning: met) }
        }
    }
}
