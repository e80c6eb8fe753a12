import FKMiddleware

/// A finished file to fetch again: its damaged ranges, or all of it.
package struct Renewal: Codable, Sendable, Hashable {
    /// Bytes of a file.
    package struct Damage: Codable, Sendable, Hashable {
        /// The offset of the first damaged byte.
        package var start: Int64
        /// The offset after the last damaged byte.
        package var end: Int64
    }

    package var id: TaskID
    /// The damaged bytes, in order; empty for the whole file.
    package var damaged: [Damage]
    /// True if the finished file is right, so that a refresh or repair that has not ended is not needed any more.
    package var isRestored: Bool?
    /// The finished file that was found damaged. Another one has been fetched meanwhile if the record has another; nil if that
    /// does not matter.
    package var seen: FileIdentity?

    /// Describes a renewal.
    ///
    /// - Parameter damaged: in order and without overlaps; empty, the default, for the whole file.
    package init(_ id: TaskID, damaged: [Range<Int64>] = []) {
        self.id = id
        self.damaged = damaged.map { Damage(start: $0.lowerBound, end: $0.upperBound) }
    }

    /// The finished file of a refresh or repair that has not ended counts again.
    package static func restoring(_ id: TaskID) -> Renewal {
        var renewal = Renewal(id)
        renewal.isRestored = true
        return renewal
    }

    /// The ranges of a part file that has all bytes but the damaged ones; nil if they do not fit the file. Many holes are
    /// joined, because a file has at most `SegmentPlanner.maxRanges` ranges.
    package func ranges(length: Int64) -> [SavedRange]? {
        var holes: [Range<Int64>] = []
        for damage in damaged {
            let last = holes.last?.upperBound ?? 0
            guard damage.start >= last, damage.start < damage.end, damage.end <= length else { return nil }
            holes.append(damage.start..<damage.end)
        }
        guard !holes.isEmpty else { return nil }
        // The bytes between two holes are fetched with them, the shortest first.
        while holes.count > SegmentPlanner.maxRanges / 2 {
            let index = (1..<holes.count).min { gap(holes, $0) < gap(holes, $1) } ?? 1
            holes[index - 1] = holes[index - 1].lowerBound..<holes[index].upperBound
            holes.remove(at: index)
        }
        var ranges: [SavedRange] = []
        for (index, hole) in holes.enumerated() {
            // A range has its bytes first. The bytes before the first hole need a range of their own.
            let start = index == 0 ? 0 : hole.lowerBound
            let end = index + 1 < holes.count ? holes[index + 1].lowerBound : length
            if start < hole.lowerBound {
                ranges.append(SavedRange(start: start, end: hole.lowerBound, position: hole.lowerBound))
            }
            ranges.append(SavedRange(start: hole.lowerBound, end: hole.upperBound))
            if hole.upperBound < end {
                ranges.append(SavedRange(start: hole.upperBound, end: end, position: end))
            }
        }
        return ranges
    }

    private func gap(_ holes: [Range<Int64>], _ index: Int) -> Int64 {
        holes[index].lowerBound - holes[index - 1].upperBound
    }
}
