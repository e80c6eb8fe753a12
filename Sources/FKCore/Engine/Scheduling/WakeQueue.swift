/// The times at which tasks are due: retries, host pauses, waits for disk space.
///
/// Times are nanoseconds of a monotonic clock. `push` and `remove` are O(log n). A value type without locks.
package struct WakeQueue: Sendable {
    private struct Entry {
        var due: Int64
        var id: TaskID
    }

    private var heap: [Entry] = []
    private var places: [TaskID: Int32] = [:]

    package init() {}

    package var count: Int { heap.count }
    package var isEmpty: Bool { heap.isEmpty }
    /// The time at which the first task is due; nil if there is none.
    package var nextDue: Int64? { heap.first?.due }
    /// Waiting tasks, at most `limit`. The first one is the next to be due; the others are in no order.
    package func first(_ limit: Int) -> [TaskID] { heap.prefix(limit).map(\.id) }
    /// All waiting tasks, earliest first. O(n log n).
    package func sorted() -> [TaskID] {
        heap.sorted { ($0.due, $0.id) < ($1.due, $1.id) }.map(\.id)
    }
    /// The time at which a task is due; nil if it does not wait.
    package func due(of id: TaskID) -> Int64? { places[id].map { heap[Int($0)].due } }

    /// Sets the time at which a task is due. A task has one such time.
    package mutating func push(_ id: TaskID, due: Int64) {
        if let place = places[id] {
            heap[Int(place)].due = due
            settle(Int(place), in: ())
        } else {
            heap.append(Entry(due: due, id: id))
            places[id] = Int32(heap.count - 1)
            settle(heap.count - 1, in: ())
        }
    }

    /// Removes a task. Returns false if it does not wait.
    @discardableResult
    package mutating func remove(_ id: TaskID) -> Bool {
        guard let place = places.removeValue(forKey: id).map(Int.init) else { return false }
        let last = heap.removeLast()
        if place < heap.count {
            heap[place] = last
            places[last.id] = Int32(place)
            settle(place, in: ())
        }
        return true
    }

    /// Removes and returns the tasks that are due at `now`, earliest first.
    package mutating func popDue(_ now: Int64) -> [TaskID] {
        var result: [TaskID] = []
        while let first = heap.first, first.due <= now {
            remove(first.id)
            result.append(first.id)
        }
        return result
    }
}

extension WakeQueue: Heaps {
    func count(of heap: Void) -> Int { self.heap.count }

    func isBefore(_ a: Int, _ b: Int, in _: Void) -> Bool {
        heap[a].due != heap[b].due ? heap[a].due < heap[b].due : heap[a].id < heap[b].id
    }

    mutating func swap(_ a: Int, _ b: Int, in _: Void) {
        heap.swapAt(a, b)
        places[heap[a].id] = Int32(a)
        places[heap[b].id] = Int32(b)
    }
}
