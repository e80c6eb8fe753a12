/// One contiguous part of the file. One connection at a time fills it from its start.
package struct SavedRange: Codable, Sendable, Hashable {
    package var start: Int64
    /// The offset after its last byte; nil while the length is unknown.
    package var end: Int64?
    /// Bytes `start..<position` are in the part file. While the task runs, the live counter with the same index is
    /// newer.
    package var position: Int64
    /// Bytes `start..<synced` are synced.
    package var synced: Int64

    /// Creates a range; by default it is empty, and `synced` equals `start`.
    package init(start: Int64, end: Int64?, position: Int64? = nil, synced: Int64? = nil) {
        self.start = start
        self.end = end
        self.position = position ?? start
        self.synced = synced ?? start
    }
}

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
