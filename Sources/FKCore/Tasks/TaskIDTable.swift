/// Gives task ids small numbers, so that what is kept for a hundred thousand tasks can be kept in arrays.
///
/// A dictionary with a task id for its key takes some 95 bytes for each at that size, this one 42: the ids stand in a
/// list, and of 4 bytes for each place of the hash table at most a quarter is empty when it grows. A number stays the
/// same until its id is removed; then the next new id gets it. All operations are O(1), iterating is O(capacity).
/// A value type without locks.
package struct TaskIDTable: Sendable {
    private var ids: [TaskID] = []
    private var freeNumbers: [Int32] = []
    /// Numbers where their ids' hashes put them, or in the first free place behind (linear probing); -1: free.
    private var places: [Int32] = []

    /// Lists of tasks may come from others, and ids are computed from URLs: nobody can foresee who meets whom here.
    private static let factor = UInt64.random(in: 0 ... .max) | 1

    package init() {}

    package var count: Int { ids.count - freeNumbers.count }
    package var isEmpty: Bool { count == 0 }

    /// The ids that are in it, in no order.
    package var all: some Sequence<(id: TaskID, number: Int32)> {
        places.lazy.filter { $0 >= 0 }.map { (ids[Int($0)], $0) }
    }

    package func contains(_ id: TaskID) -> Bool { number(of: id) != nil }

    /// The number of an id; nil when it is not there.
    package func number(of id: TaskID) -> Int32? {
        guard !places.isEmpty else { return nil }
        let found = places[place(of: id)]
        return found < 0 ? nil : found
    }

    /// The id of a number that has not been removed.
    package func id(of number: Int32) -> TaskID { ids[Int(number)] }

    /// The number the id has already, or a new one: that of an id removed before, else the next.
    @discardableResult
    package mutating func insert(_ id: TaskID) -> Int32 {
        if 4 * (count + 1) > 3 * places.count { grow() }
        let place = place(of: id)
        if places[place] >= 0 { return places[place] }
        let number: Int32
        if let free = freeNumbers.popLast() {
            number = free
            ids[Int(free)] = id
        } else {
            number = Int32(ids.count)
            ids.append(id)
        }
        places[place] = number
        return number
    }

    /// Removes an id and returns the number it had; nil when it was not there.
    @discardableResult
    package mutating func remove(_ id: TaskID) -> Int32? {
        guard !places.isEmpty else { return nil }
        var hole = place(of: id)
        let number = places[hole]
        guard number >= 0 else { return nil }
        freeNumbers.append(number)
        // Whoever stands behind the hole because it was taken moves up: a search ends at the first free place.
        var next = hole
        while true {
            next = (next + 1) & (places.count - 1)
            let other = places[next]
            guard other >= 0 else { break }
            let wanted = home(of: ids[Int(other)])
            if (next &- wanted) & (places.count - 1) >= (next &- hole) & (places.count - 1) {
                places[hole] = other
                hole = next
            }
        }
        places[hole] = -1
        return number
    }

    private func home(of id: TaskID) -> Int {
        // The upper bits of the product, as many as the table has (Dietzfelbinger's multiply-shift).
        Int(truncatingIfNeeded: (id.leadingWord &* Self.factor) >> UInt64(1 + places.count.leadingZeroBitCount))
    }

    /// Where the id stands, or the free place where it would.
    private func place(of id: TaskID) -> Int {
        var place = home(of: id)
        while places[place] >= 0, ids[Int(places[place])] != id { place = (place + 1) & (places.count - 1) }
        return place
    }

    private mutating func grow() {
        let old = places
        places = Array(repeating: -1, count: max(16, 2 * old.count))
        for number in old where number >= 0 { places[place(of: ids[Int(number)])] = number }
    }
}

/// A dictionary by task id in less room (`TaskIDTable`).
package struct TaskMap<Value> {
    private var table = TaskIDTable()
    private var slots: [Value?] = []

    package init() {}

    package var count: Int { table.count }
    package var keys: some Sequence<TaskID> { table.all.map(\.id) }
    package var values: some Sequence<Value> { table.all.lazy.compactMap { slots[Int($0.number)] } }

    package subscript(id: TaskID) -> Value? {
        get { table.number(of: id).flatMap { slots[Int($0)] } }
        set {
            guard let newValue else {
                if let number = table.remove(id) { slots[Int(number)] = nil }
                return
            }
            let number = Int(table.insert(id))
            if number == slots.count { slots.append(newValue) } else { slots[number] = newValue }
        }
    }
}

extension TaskMap: Sendable where Value: Sendable {}
