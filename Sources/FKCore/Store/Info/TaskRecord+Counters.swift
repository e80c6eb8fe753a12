extension TaskRecord {
    /// The received bytes, with the live counters of a running task.
    package func received(counters: LiveCounters?) -> Int64 {
        guard let counters else { return received }
        return zip(ranges.indices, ranges).reduce(0) { $0 + $1.1.clamped(counters.value($1.0)) - $1.1.start }
    }

    /// Stores the positions of the connections.
    package mutating func fold(_ counters: LiveCounters) {
        for index in ranges.indices { move(index, to: counters.value(index)) }
    }
}
