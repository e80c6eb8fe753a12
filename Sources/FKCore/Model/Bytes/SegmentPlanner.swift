/// Chooses the byte range that a connection fills next, and keeps the list of ranges short and valid.
///
/// A list is *normal* if it is sorted, has no overlaps, and covers the file from 0 to its end. `normalize` may
/// renumber ranges, so it is for tasks that are not running. `split` only appends, so running ranges keep their
/// numbers and their live counters.
package enum SegmentPlanner {
    /// The minimum size of a piece that is split off: 1 MiB.
    package static let minPiece: Int64 = 1 << 20
    package static let maxRanges = 64
    /// Pieces start at multiples of this, so that two connections never write to one page.
    package static let alignment: Int64 = 64 << 10

    /// What one more connection should do.
    package enum Step: Sendable, Hashable {
        /// Fill this range from its position on.
        case fetch(Int)
        /// Shorten this range, which is being filled, to end at `at`. A new range starts there.
        case split(Int, at: Int64)
        /// There is no work for another connection.
        case none
    }

    /// True if the range is complete. A range of unknown length never is.
    package static func isFinished(_ range: SavedRange) -> Bool { range.end.map { range.position >= $0 } ?? false }

    /// The missing bytes of a range; nil while its end is unknown.
    package static func remaining(_ range: SavedRange) -> Int64? { range.end.map { max(0, $0 - range.position) } }

    /// The first incomplete range without a connection; nil if there is none.
    package static func nextRange(in ranges: [SavedRange], running: Set<Int> = []) -> Int? {
        ranges.indices.filter { !running.contains($0) && !isFinished(ranges[$0]) }
            .min { ranges[$0].start < ranges[$1].start }
    }

    /// What one more connection should do.
    ///
    /// - Parameters:
    ///   - ranges: with their current positions.
    ///   - running: the indexes of the ranges that connections fill now.
    ///   - connections: the number of connections the file may use.
    ///   - reserved: the indexes of ranges that it must not fetch or split; the default is none.
    package static func nextStep(
        _ ranges: [SavedRange], running: Set<Int>, connections: Int, reserved: Set<Int> = []
    ) -> Step {
        guard running.count < connections else { return .none }
        if let free = nextRange(in: ranges, running: running.union(reserved)) { return .fetch(free) }
        guard ranges.count < maxRanges,
            let largest = running.filter({ ranges.indices.contains($0) && !reserved.contains($0) })
                .max(by: { (remaining(ranges[$0]) ?? 0, $1) < (remaining(ranges[$1]) ?? 0, $0) }),
            let rest = remaining(ranges[largest]), let end = ranges[largest].end
        else { return .none }
        let middle = end - rest / 2
        let at = middle + (alignment - middle % alignment) % alignment
        guard at - ranges[largest].position >= minPiece, end - at >= minPiece else { return .none }
        return .split(largest, at: at)
    }

    /// Splits the range at `index`: it ends at `at`, and a new range, the last of the list, starts there.
    ///
    /// The list stays unchanged unless `at` is between the range's position and its end.
    package static func split(_ ranges: [SavedRange], _ index: Int, at: Int64) -> [SavedRange] {
        guard ranges.indices.contains(index), let end = ranges[index].end, at > ranges[index].position, at < end else {
            return ranges
        }
        var result = ranges
        result[index].end = at
        result.append(SavedRange(start: at, end: end))
        return result
    }

    /// The ranges with the received bytes of `hole` marked as missing. A range that continues after the hole keeps its number
    /// for that part, so that its connection can continue. The other parts are added to the list.
    package static func reopen(_ ranges: [SavedRange], _ hole: Range<Int64>) -> [SavedRange] {
        var result = ranges
        for (index, range) in ranges.enumerated() {
            let start = max(range.start, hole.lowerBound)
            let end = min(range.end ?? .max, hole.upperBound)
            guard start < end, range.position > start else { continue }
            var parts: [SavedRange] = []
            if end < range.end ?? .max {
                parts.append(
                    SavedRange(
                        start: end, end: range.end, position: max(end, range.position), synced: max(end, range.synced)))
            }
            if range.start < start {
                parts.append(
                    SavedRange(start: range.start, end: start, position: start, synced: min(start, range.synced)))
            }
            parts.append(SavedRange(start: start, end: end))
            result[index] = parts[0]
            result += parts.dropFirst()
        }
        return result
    }

    /// The shortest equivalent normal list: complete neighbours are merged, a range without bytes is merged into the
    /// previous one, holes become ranges, and overlaps and bytes beyond the end are cut off.
    ///
    /// - Parameter expected: the length of the file; nil while unknown. The last range is then open.
    package static func normalize(_ ranges: [SavedRange], expected: Int64?) -> [SavedRange] {
        var result: [SavedRange] = []
        var covered: Int64 = 0
        for range in ranges.sorted(by: { $0.start < $1.start }) {
            guard var range = repaired(range, from: covered, to: expected) else { continue }
            if range.start > covered { append(SavedRange(start: covered, end: range.start), to: &result) }
            covered = range.end ?? range.position
            // An open range ends where the next one starts. If there is none, the end is set below.
            range.end = covered
            if range.start < covered { append(range, to: &result) }
        }
        if covered < expected ?? .max { append(SavedRange(start: covered, end: expected), to: &result) }
        return result.isEmpty ? [SavedRange(start: 0, end: expected)] : result
    }

    /// The part of a range within `from..<to`, with its positions clamped to it; nil if nothing is left.
    private static func repaired(_ range: SavedRange, from: Int64, to: Int64?) -> SavedRange? {
        var result = range
        result.start = max(range.start, from)
        let limit = min(range.end ?? .max, to ?? .max)
        if limit <= result.start { return nil }
        // An open range stays open, because another one may follow in the part that it could still fill.
        if range.end != nil { result.end = limit }
        result.position = min(max(range.position, result.start), limit)
        result.synced = min(max(range.synced, result.start), result.position)
        return result
    }

    private static func append(_ range: SavedRange, to result: inout [SavedRange]) {
        guard let last = result.indices.last, result[last].end == range.start else {
            result.append(range)
            return
        }
        if isFinished(result[last]) {
            let left = result[last]
            result[last].end = range.end
            result[last].position = range.position
            result[last].synced = left.synced == range.start ? range.synced : left.synced
        } else if range.position == range.start {
            result[last].end = range.end
        } else {
            result.append(range)
        }
    }
}
