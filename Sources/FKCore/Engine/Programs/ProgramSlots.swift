import FKMiddleware

/// A number of slots. Callers that find none wait in order, without a thread.
final class ProgramSlots: Sendable {
    private struct State {
        var free: Int
        /// The number of the next caller that waits, and of the next one that gets a slot.
        var last: UInt64 = 0
        var next: UInt64 = 0
        var waiting: [UInt64: CheckedContinuation<Bool, Never>] = [:]

        /// Removes the first that waits.
        mutating func popFirst() -> CheckedContinuation<Bool, Never>? {
            while !waiting.isEmpty {
                defer { next += 1 }
                if let first = waiting.removeValue(forKey: next) { return first }
            }
            next = last
            return nil
        }
    }

    private let state: Locked<State>

    /// Creates slots, all of them free.
    init(_ count: Int) { state = Locked(State(free: count)) }

    /// Waits for a slot.
    ///
    /// - Throws: `CancellationError` if the Swift task is cancelled. It has no slot then.
    func acquire() async throws {
        let number = Locked<UInt64?>(nil)
        let isAcquired = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer: Bool? = state.withLock { state in
                    // Set before the handler below runs. So either this or the handler sees the other one's work.
                    if Task.isCancelled { return false }
                    if state.free > 0 {
                        state.free -= 1
                        return true
                    }
                    state.waiting[state.last] = continuation
                    number.withLock { $0 = state.last }
                    state.last += 1
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let waiting = state.withLock { state in
                number.withLock(\.self).flatMap { state.waiting.removeValue(forKey: $0) }
            }
            waiting?.resume(returning: false)
        }
        guard isAcquired else { throw CancellationError() }
    }

    func release() {
        let next = state.withLock { state in
            let next = state.popFirst()
            if next == nil { state.free += 1 }
            return next
        }
        next?.resume(returning: true)
    }
}
