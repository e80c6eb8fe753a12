import FKMiddleware

/// Assigns small numbers to task ids, so that the data of a million tasks can be stored in arrays.
///
/// It takes 8 bytes for each id, and `TaskIDPool` 42 for each id of the process; a dictionary with task ids as keys takes about 95.
/// A number stays the same until its id is removed; the next new id then gets it. All operations are O(1) on average, iteration is
/// O(capacity). A value type without locks of its own: it is changed by one thread at a time.
package struct TaskIDTable: @unchecked Sendable {
    // Sendable because the storage is changed only where this is its only reference.
    private var storage = Storage()
    private let reusesNumbers: Bool

    /// The numbers of the ids in the pool, and the way back.
    private final class Storage {
        /// The pool's numbers, at the numbers of this table; -1 for a free number.
        var held: [Int32] = []
        var freeNumbers: [Int32] = []
        var count = 0
        /// The numbers of this table, at those of the pool, in pages; -1 for an id that is not in the table. A page without ids
        /// is nil.
        private var pages: [UnsafeMutablePointer<Int32>?] = []

        private static let pageBits = 10
        private static let pageSize = 1 << pageBits

        init() {}

        init(copying other: Storage) {
            held = other.held
            freeNumbers = other.freeNumbers
            count = other.count
            TaskIDPool.shared.hold(held.lazy.filter { $0 >= 0 })
            for (number, pooled) in held.enumerated() where pooled >= 0 { set(pooled, Int32(number)) }
        }

        deinit {
            for page in pages { page?.deallocate() }
            TaskIDPool.shared.release(held.lazy.filter { $0 >= 0 })
        }

        func number(ofPooled pooled: Int32) -> Int32 {
            let page = Int(pooled) >> Self.pageBits
            guard page < pages.count, let numbers = pages[page] else { return -1 }
            return numbers[Int(pooled) & (Self.pageSize - 1)]
        }

        func set(_ pooled: Int32, _ number: Int32) {
            let page = Int(pooled) >> Self.pageBits
            while page >= pages.count { pages.append(nil) }
            if pages[page] == nil {
                let numbers = UnsafeMutablePointer<Int32>.allocate(capacity: Self.pageSize)
                numbers.initialize(repeating: -1, count: Self.pageSize)
                pages[page] = numbers
            }
            pages[page]?[Int(pooled) & (Self.pageSize - 1)] = number
        }
    }

    /// Creates an empty table.
    ///
    /// - Parameter reusesNumbers: false gives every new id the next number, so that numbers are in the order of insertion.
    ///   The default is true.
    package init(reusesNumbers: Bool = true) { self.reusesNumbers = reusesNumbers }

    /// Makes room for ids.
    package mutating func reserveCapacity(_ count: Int) {
        own()
        storage.held.reserveCapacity(count)
        TaskIDPool.shared.reserve(count)
    }

    package var count: Int { storage.count }
    package var isEmpty: Bool { count == 0 }

    /// The ids and their numbers, in the order of the numbers.
    package var all: some Sequence<(id: TaskID, number: Int32)> {
        // The storage is retained, so that a change of the table during the iteration copies it.
        let storage = storage
        return (0..<Int32(storage.held.count)).lazy.filter { storage.held[Int($0)] >= 0 }
            .map { (id: TaskIDPool.shared.id(of: storage.held[Int($0)]), number: $0) }
    }

    package func contains(_ id: TaskID) -> Bool { number(of: id) != nil }

    /// The number of an id; nil if the table does not contain it.
    package func number(of id: TaskID) -> Int32? {
        guard count > 0, let pooled = TaskIDPool.shared.number(of: id) else { return nil }
        let number = storage.number(ofPooled: pooled)
        return number < 0 ? nil : number
    }

    /// The id of a number. The number must be in use.
    package func id(of number: Int32) -> TaskID { TaskIDPool.shared.id(of: storage.held[Int(number)]) }

    /// Adds an id and returns its number. A present id keeps its number. A new id gets that of a removed one, else
    /// the next.
    @discardableResult
    package mutating func insert(_ id: TaskID) -> Int32 {
        own()
        let (pooled, isNew) = TaskIDPool.shared.hold(id) { storage.number(ofPooled: $0) >= 0 }
        guard isNew else { return storage.number(ofPooled: pooled) }
        let number: Int32
        if let free = storage.freeNumbers.popLast() {
            number = free
            storage.held[Int(free)] = pooled
        } else {
            number = Int32(storage.held.count)
            storage.held.append(pooled)
        }
        storage.set(pooled, number)
        storage.count += 1
        return number
    }

    /// Removes an id and returns its number; nil if the table does not contain it.
    @discardableResult
    package mutating func remove(_ id: TaskID) -> Int32? {
        guard let number = number(of: id) else { return nil }
        own()
        let pooled = storage.held[Int(number)]
        storage.set(pooled, -1)
        storage.held[Int(number)] = -1
        storage.count -= 1
        if storage.count == 0, reusesNumbers {
            // A long list leaves no room behind.
            storage = Storage()
        } else if reusesNumbers {
            storage.freeNumbers.append(number)
        }
        TaskIDPool.shared.release(pooled)
        return number
    }

    /// Copies the storage if another table has it as well.
    private mutating func own() {
        if !isKnownUniquelyReferenced(&storage) { storage = Storage(copying: storage) }
    }
}

/// A dictionary with task ids as keys that takes less memory (`TaskIDTable`).
package struct TaskMap<Value> {
    private var table = TaskIDTable()
    private var slots: [Value?] = []

    package init() {}

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
