import FKMiddleware

/// The callers that wait until all of their tasks have settled, or until no task can run any more.
package struct TaskWaits {
    private struct Wait {
        let number: UInt64
        /// The tasks that have not settled; nil for a wait until no task can run.
        var open: Set<TaskID>?
        let continuation: CheckedContinuation<Void, Never>
    }

    private var waits: [Wait] = []
    /// The callers that wait for one task, by their numbers. An application may have one for each task, and looking each of them
    /// up must not be slow.
    private var waitsForOne: [TaskID: [UInt64: CheckedContinuation<Void, Never>]] = [:]
    private var tasksOfWaits: [UInt64: TaskID] = [:]

    /// The number of callers that wait.
    var count: Int { waits.count + tasksOfWaits.count }

    /// The tasks that callers wait for.
    package var ids: Set<TaskID> { waits.reduce(into: Set(waitsForOne.keys)) { $0.formUnion($1.open ?? []) } }

    /// Adds a waiting caller.
    ///
    /// - Parameters:
    ///   - ids: at least one task; nil waits until no task can run any more.
    ///   - number: the number for `end`.
    package mutating func add(_ ids: [TaskID]?, _ number: UInt64, _ continuation: CheckedContinuation<Void, Never>) {
        if let ids, let id = ids.first, ids.count == 1 {
            waitsForOne[id, default: [:]][number] = continuation
            tasksOfWaits[number] = id
        } else {
            waits.append(Wait(number: number, open: ids.map { Set($0) }, continuation: continuation))
        }
    }

    /// Ends the wait of a caller.
    package mutating func end(_ number: UInt64) {
        guard let id = tasksOfWaits.removeValue(forKey: number) else { return end { $0.number == number } }
        waitsForOne[id]?.removeValue(forKey: number)?.resume()
        if waitsForOne[id]?.isEmpty == true { waitsForOne[id] = nil }
    }

    package mutating func settled(_ id: TaskID) {
        for (number, continuation) in waitsForOne.removeValue(forKey: id) ?? [:] {
            tasksOfWaits[number] = nil
            continuation.resume()
        }
        guard !waits.isEmpty else { return }
        for index in waits.indices { waits[index].open?.remove(id) }
        end { $0.open?.isEmpty == true }
    }

    /// Ends the waits for an empty queue.
    package mutating func endDrained() { end { $0.open == nil } }

    /// Ends all waits. Those that waited ask again.
    package mutating func endAll() {
        waits.forEach { $0.continuation.resume() }
        waitsForOne.values.forEach { $0.values.forEach { $0.resume() } }
        self = TaskWaits()
    }

    private mutating func end(where isOver: (Wait) -> Bool) {
        guard waits.contains(where: isOver) else { return }
        for wait in waits where isOver(wait) { wait.continuation.resume() }
        waits.removeAll(where: isOver)
    }
}
