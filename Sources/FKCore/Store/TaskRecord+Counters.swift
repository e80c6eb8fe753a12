extension TaskRecord {
    /// The received bytes, with the live counters of a running task.
    package func received(counters: LiveCounters?) -> Int64 { Self.received(ranges, counters: counters) }

    /// The received bytes. Static, because the record of a task in memory would be copied for a call.
    package static func received(_ ranges: [SavedRange], counters: LiveCounters?) -> Int64 {
        var sum: Int64 = 0
        for (index, range) in ranges.enumerated() {
            sum += (counters.map { range.clamped($0.value(index)) } ?? range.position) - range.start
        }
        return sum
    }

    /// Stores the positions of the connections.
    package mutating func fold(_ counters: LiveCounters) {
        for index in ranges.indices { move(index, to: counters.value(index)) }
    }
}
