/// The sums over rows.
struct RowSums: Sendable, Hashable {
    private(set) var count = 0
    private(set) var received: Int64 = 0
    private(set) var expected: Int64 = 0
    private(set) var bytesPerSecond: Int64 = 0
    private var unknown = 0

    /// True if the length of each file is known.
    var isExpectedKnown: Bool { unknown == 0 }

    mutating func add(_ row: TaskRow) { count(row, 1) }
    mutating func remove(_ row: TaskRow) { count(row, -1) }

    mutating func add(_ other: RowSums) {
        count += other.count
        received &+= other.received
        expected &+= other.expected
        bytesPerSecond &+= other.bytesPerSecond
        unknown += other.unknown
    }

    private mutating func count(_ row: TaskRow, _ sign: Int) {
        count += sign
        received &+= row.received &* Int64(sign)
        bytesPerSecond &+= row.bytesPerSecond &* Int64(sign)
        if let length = row.expected { expected &+= length &* Int64(sign) } else { unknown += sign }
    }
}
