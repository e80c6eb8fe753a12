import FKMiddleware

extension SavedRange {
    /// The position, clamped to the range.
    package func clamped(_ position: Int64) -> Int64 { min(max(position, start), end ?? .max) }

    /// The range with its position advanced to `counter`. A counter behind the position or beyond the end is ignored,
    /// because only the record is reliable.
    package func advanced(to counter: Int64) -> SavedRange {
        guard counter > position, counter >= start, counter <= end ?? .max else { return self }
        var range = self
        range.position = counter
        return range
    }
}

extension TaskRecord {
    /// The record with the real positions of its ranges.
    ///
    /// - In the boot of the record, counters are as reliable as the part file, because the page cache survives the
    ///   process. Each position is advanced to its counter if that is within the range.
    /// - In another boot, the page cache is lost. Each position falls back to the synced one.
    ///
    /// A complete record is returned unchanged, because its bytes are not in a part file any more.
    package func applyingLiveCounters(_ counters: [Int64], bootID current: String = BootID.current) -> TaskRecord {
        guard state != .complete else { return self }
        var record = self
        record.ranges = ranges.enumerated().map { index, range in
            if bootID == current { return index < counters.count ? range.advanced(to: counters[index]) : range }
            var range = range
            range.position = max(range.start, min(range.position, range.synced))
            return range
        }
        // The file's own time may be lost with the page cache. The positions above count only synced bytes.
        if bootID != current {
            record.partTime = nil
            record.pieces = nil
        }
        return record
    }
}
