import FKMiddleware

/// Puts tasks into the order of a query, with 12 bytes for each in the order of submission. A value type without disk.
package struct RecordOrder {
    private let query: RecordQuery
    /// True if every task matches, in the order of submission.
    private let isPlain: Bool
    private var found: [Int32] = []
    private var numbers: [UInt64] = []
    /// The values to sort by; empty in the order of submission.
    private var keys: [RecordQuery.SortKey?] = []

    package init(_ query: RecordQuery) {
        self.query = query
        isPlain = query.isUnconditional
    }

    /// Adds a task if it matches.
    ///
    /// - Returns: false if it does not.
    package mutating func add(_ record: TaskRecord, at place: Int32) -> Bool {
        if isPlain {
            add(number: record.number, at: place)
            return true
        }
        let shown = DownloadRecord(record)
        guard query.matches(shown) else { return false }
        if query.sort != .number { keys.append(query.key(of: shown)) }
        add(number: record.number, at: place)
        return true
    }

    package mutating func add(number: UInt64, at place: Int32) {
        found.append(place)
        numbers.append(number)
    }

    /// The places of the tasks in order, within the limits of the query. Call it once.
    package mutating func places() -> [Int32] {
        var order = (0..<Int32(found.count)).map(\.self)
        if keys.isEmpty {
            let isAscending = query.ascending
            order.sort { isAscending ? numbers[Int($0)] < numbers[Int($1)] : numbers[Int($0)] > numbers[Int($1)] }
        } else {
            order.sort { one, other in
                query.isOrdered(
                    keys[Int(one)], numbers[Int(one)], before: keys[Int(other)], numbers[Int(other)])
            }
        }
        numbers = []
        keys = []
        let rest = order.dropFirst(query.offset)
        return (query.limit.map { rest.prefix($0) } ?? rest).map { found[Int($0)] }
    }
}
