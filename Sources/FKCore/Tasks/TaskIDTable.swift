/// Assigns small numbers to task ids, so that the data of a hundred thousand tasks can be stored in arrays.
///
/// A dictionary with task ids as keys takes about 95 bytes for each at that size; this table takes 42. The ids are in
/// a list, and the hash table has 4 bytes for each place, of which at most a quarter is free when it grows. A number
/// stays the same until its id is removed; the next new id then gets it. All operations are O(1), iteration is
/// O(capacity). A value type without locks.
package struct TaskIDTable: Sendable {
    private var ids: [TaskID] = []
    private var freeNumbers: [Int32] = []
    private let reusesNumbers: Bool
    /// The number of ids.
    package private(set) var count = 0
    /// The numbers, placed by the hashes of their ids, or in the next free place (linear probing). -1 means free.
    private var places: [Int32] = []

    /// A random factor. Lists may come from others, and ids are computed from URLs, so collisions must not be
    /// predictable.
    private static let factor = UInt64.random(in: 0 ... .max) | 1

    /// Creates an empty table.
    ///
    /// - Parameter reusesNumbers: false gives every new id the next number, so that numbers are in the order of insertion.
    ///   The default is true.
    package init(reusesNumbers: Bool = true) { self.reusesNumbers = reusesNumbers }

    /// Makes room for ids.
    package mutating func reserveCapacity(_ count: Int) {
        ids.reserveCapacity(count)
        while 4 * (count + 1) > 3 * places.count { grow() }
    }

    /// True if there are no ids.
    package var isEmpty: Bool { count == 0 }

    /// The ids and their numbers, in no order.
    package var all: some Sequence<(id: TaskID, number: Int32)> {
        places.lazy.filter { $0 >= 0 }.map { (ids[Int($0)], $0) }
    }

    /// True if the table contains the id.
    package func contains(_ id: TaskID) -> Bool { number(of: id) != nil }

    /// The number of an id; nil if the table does not contain it.
    package func number(of id: TaskID) -> Int32? {
        guard !places.isEmpty else { return nil }
        let found = places[place(of: id)]
        return found < 0 ? nil : found
    }

    /// The id of a number. The number must be in use.
    package func id(of number: Int32) -> TaskID { ids[Int(number)] }

    /// Adds an id and returns its number. A present id keeps its number. A new id gets that of a removed one, else
    /// the next.
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
        count += 1
        return number
    }

    /// Removes an id and returns its number; nil if the table does not contain it.
    @discardableResult
    package mutating func remove(_ id: TaskID) -> Int32? {
        guard !places.isEmpty else { return nil }
        var hole = place(of: id)
        let number = places[hole]
        guard number >= 0 else { return nil }
        if reusesNumbers { freeNumbers.append(number) }
        count -= 1
        // Entries behind the hole that were displaced by it move up, because a search ends at the first free place.
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

    /// The place of the id, or the free place for it.
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

/// A dictionary with task ids as keys that takes less memory (`TaskIDTable`).
package struct TaskMap<Value> {
    private var table = TaskIDTable()
    private var slots: [Value?] = []

    /// An empty map.
    package init() {}

    /// The number of keys.
    package var count: Int { table.count }
    /// The ids, in no order.
    package var keys: some Sequence<TaskID> { table.all.map(\.id) }
    /// The values, in no order.
    package var values: some Sequence<Value> { table.all.lazy.compactMap { slots[Int($0.number)] } }

    /// The value of an id; nil if there is none. Setting nil removes it.
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
