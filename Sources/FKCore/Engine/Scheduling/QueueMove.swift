import FKMiddleware

/// Finds the priorities that give a waiting task another place in the queue. A queue is ordered by priority, highest first,
/// and then by submission number.
package enum QueueMove {
    /// A waiting task.
    package struct Element: Sendable, Hashable {
        package var id: TaskID
        package var priority: Int
        package var number: UInt64
        package init(id: TaskID, priority: Int, number: UInt64) {
            self.id = id
            self.priority = priority
            self.number = number
        }
    }

    /// The distance that is left between two priorities, so that later moves find a place between them.
    static let gap = 1 << 20

    /// The new priorities after a move. Few tasks change: usually the moved one alone, at most those before it or those
    /// behind it, whichever are fewer.
    ///
    /// - Parameters:
    ///   - queue: the queue in its order.
    ///   - from: the place of the task.
    ///   - to: its new place in the queue without it, 0 to `queue.count - 1`.
    /// - Returns: the tasks that get another priority.
    package static func priorities(_ queue: [Element], from: Int, to: Int) -> [TaskID: Int] {
        guard from != to else { return [:] }
        var rest = queue
        let moved = rest.remove(at: from)
        let before = to > 0 ? rest[to - 1] : nil
        let after = to < rest.count ? rest[to] : nil
        if let priority = between(before, after, moved.number) { return [moved.id: priority] }
        // The neighbours have no place between them: one side makes room.
        guard let before, let after else { return [:] }
        var changed: [TaskID: Int] = [:]
        if to <= rest.count - to {
            for element in rest[..<to] { changed[element.id] = element.priority + 2 * gap }
            changed[moved.id] = before.priority + gap
        } else {
            for element in rest[to...] { changed[element.id] = element.priority - 2 * gap }
            changed[moved.id] = after.priority - gap
        }
        return changed
    }

    /// A priority between those of two neighbours; nil if there is none.
    private static func between(_ before: Element?, _ after: Element?, _ number: UInt64) -> Int? {
        switch (before, after) {
        case (nil, nil): return nil
        case (nil, let after?): return number < after.number ? after.priority : after.priority + gap
        case (let before?, nil): return number > before.number ? before.priority : before.priority - gap
        case (let before?, let after?):
            if before.priority - after.priority > 1 { return after.priority + (before.priority - after.priority) / 2 }
            if number > before.number, before.priority > after.priority || number < after.number {
                return before.priority
            }
            return number < after.number && before.priority > after.priority ? after.priority : nil
        }
    }
}
