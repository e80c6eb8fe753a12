import FKMiddleware

extension SavedRange {
    /// A position within the range.
    package func clamped(_ position: Int64) -> Int64 { min(max(position, start), end ?? .max) }

    /// The range with its position moved forward to `counter`; anything behind the position or beyond the end changes
    /// nothing: a counter is a hint, the record is the promise.
    package func advanced(to counter: Int64) -> SavedRange {
        guard counter > position, counter >= start, counter <= end ?? .max else { return self }
        var range = self
        range.position = counter
        return range
    }
}

extension TaskRecord {
    /// The record with the positions its ranges really have.
    ///
    /// - In the boot the record was written in, counters are as good as the part file itself: the page cache outlives
    ///   the process. Each position moves forward to its counter where that lies within the range.
    /// - In another boot the page cache is gone: each position falls back to what is known to be on the disk.
    ///
    /// A record that is complete is returned as it is: its bytes are no longer in a part file.
    package func applyingLiveCounters(_ counters: [Int64], bootID current: String = BootID.current) -> TaskRecord {
        guard state != .complete else { return self }
        var record = self
        record.ranges = ranges.enumerated().map { index, range in
            if bootID == current { return index < counters.count ? range.advanced(to: counters[index]) : range }
            var range = range
            range.position = max(range.start, min(range.position, range.synced))
            return range
        }
        // The file's own time may be lost with the page cache; the positions above count only what was synced.
        if bootID != current {
            record.partTime = nil
            record.pieces = nil
        }
        return record
    }
}
