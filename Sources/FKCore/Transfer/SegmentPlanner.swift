/// Which byte range a connection should fill next, and how the list of ranges stays short and true.
///
/// A list is *normal* when it is sorted, without overlap, and covers the file from 0 to its end. `normalize` may
/// renumber ranges and is for a task that is not running; `split` only appends, so that the numbers of running ranges
/// and their live counters stay.
package enum SegmentPlanner {
    /// No piece that is split off is smaller: 1 MiB.
    package static let minPiece: Int64 = 1 << 20
    /// A list has at most so many ranges.
    package static let maxRanges = 64
    /// Pieces begin at multiples of it, so that two connections never write one page.
    static let alignment: Int64 = 64 << 10

    package enum Step: Sendable, Hashable {
        /// Connect to fill this range from its position on.
        case fetch(Int)
        /// Shorten this range, which is being filled, to end at `at`; a new range takes over there.
        case split(Int, at: Int64)
        /// Nothing another connection could do.
        case none
    }

    /// Whether a range wants nothing more. One of unknown length always does.
    package static func isFinished(_ range: SavedRange) -> Bool { range.end.map { range.position >= $0 } ?? false }

    /// Bytes of a range still to come; nil while its end is unknown.
    package static func remaining(_ range: SavedRange) -> Int64? { range.end.map { max(0, $0 - range.position) } }

    /// The first unfinished range that no connection fills; nil when there is none.
    package static func nextRange(in ranges: [SavedRange], running: Set<Int> = []) -> Int? {
        ranges.indices.filter { !running.contains($0) && !isFinished(ranges[$0]) }
            .min { ranges[$0].start < ranges[$1].start }
    }

    /// What one more connection should do.
    ///
    /// - Parameters:
    ///   - ranges: with the positions of this moment.
    ///   - running: indexes of the ranges that connections fill now.
    ///   - connections: how many connections the file may use.
    package static func nextStep(_ ranges: [SavedRange], running: Set<Int>, connections: Int) -> Step {
        guard running.count < connections else { return .none }
        if let free = nextRange(in: ranges, running: running) { return .fetch(free) }
        guard ranges.count < maxRanges,
            let largest = running.filter({ ranges.indices.contains($0) })
                .max(by: { (remaining(ranges[$0]) ?? 0, $1) < (remaining(ranges[$1]) ?? 0, $0) }),
            let rest = remaining(ranges[largest]), let end = ranges[largest].end
        else { return .none }
        let middle = end - rest / 2
        let at = middle + (alignment - middle % alignment) % alignment
        guard at - ranges[largest].position >= minPiece, end - at >= minPiece else { return .none }
        return .split(largest, at: at)
    }

    /// Carries a split out: the range at `index` ends at `at`, and a new one, the last of the list, begins there.
    ///
    /// Nothing changes when `at` does not lie between the range's position and its end.
    package static func split(_ ranges: [SavedRange], _ index: Int, at: Int64) -> [SavedRange] {
        guard ranges.indices.contains(index), let end = ranges[index].end, at > ranges[index].position, at < end else {
            return ranges
        }
        var result = ranges
        result[index].end = at
        result.append(SavedRange(start: at, end: end))
        return result
    }

    /// The normal list that says the same, as short as can be: finished neighbours become one, a range that nobody
    /// began joins the one before it, holes become ranges, overlaps and what lies beyond the end are cut off.
    ///
    /// - Parameter expected: the length of the file; nil while it is unknown, and the last range is then open.
    package static func normalize(_ ranges: [SavedRange], expected: Int64?) -> [SavedRange] {
        var result: [SavedRange] = []
        var covered: Int64 = 0
        for range in ranges.sorted(by: { $0.start < $1.start }) {
            guard var range = repaired(range, from: covered, to: expected) else { continue }
            if range.start > covered { append(SavedRange(start: covered, end: range.start), to: &result) }
            covered = range.end ?? range.position
            // An open range ends where the next begins; where none does, the end is set below.
            range.end = covered
            if range.start < covered { append(range, to: &result) }
        }
        if covered < expected ?? .max { append(SavedRange(start: covered, end: expected), to: &result) }
        return result.isEmpty ? [SavedRange(start: 0, end: expected)] : result
    }

    /// The part of a range within `from..<to`, its marks put back into it; nil when nothing is left.
    private static func repaired(_ range: SavedRange, from: Int64, to: Int64?) -> SavedRange? {
        var result = range
        result.start = max(range.start, from)
        let limit = min(range.end ?? .max, to ?? .max)
        if limit <= result.start { return nil }
        // An open range stays open: another one may follow in what it could still have filled.
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
