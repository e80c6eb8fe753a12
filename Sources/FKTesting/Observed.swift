import FKMiddleware

/// A value under a lock whose changes can be awaited, so that no test has to sleep.
package final class Observed<Value: Sendable>: Sendable {
    private struct Waiter: Sendable {
        var id: Int
        var isMet: @Sendable (Value) -> Bool
        var continuation: CheckedContinuation<Value, Never>
    }

    private struct State {
        var value: Value
        var waiters: [Waiter] = []
        var lastID = 0
    }

    private let state: Locked<State>

    package init(_ value: Value) {
        state = Locked(State(value: value))
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

    /// Returns the first value for which the condition holds; the present one when the task is cancelled, as a test is
    /// whose time limit has passed.
    package func wait(until isMet: @escaping @Sendable (Value) -> Bool) async -> Value {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let met = state.withLock { state -> Value? in
                    if isMet(state.value) || Task.isCancelled { return state.value }
                    state.waiters.append(Waiter(id: id, isMet: isMet, continuation: continuation))
                    return nil
                }
                if let met { continuation.resume(returning: met) }
            }
        } onCancel: {
            let (waiter, value) = state.withLock { state in
                let index = state.waiters.firstIndex { $0.id == id }
                return (index.map { state.waiters.remove(at: $0) }, state.value)
            }
            waiter?.continuation.resume(returning: value)
        }
    }
}
