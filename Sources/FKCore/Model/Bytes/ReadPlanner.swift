/// The readers of a file that is being fetched, as far as the planner needs to know them.
package struct ReadDemand: Sendable, Hashable {
    /// The next byte of each reader.
    package var positions: [Int64]
    /// The offset after the last byte that may be fetched now; nil without a window.
    package var horizon: Int64?
    /// The maximum number of bytes of a request with a window, a multiple of `SegmentPlanner.alignment`.
    package var portion: Int64
    /// True if the server serves any range of the file.
    package var canSeek: Bool

    /// Creates a value, by default without a window.
    package init(
        positions: [Int64], horizon: Int64? = nil, portion: Int64 = SegmentPlanner.minPiece, canSeek: Bool = true
    ) {
        self.positions = positions
        self.horizon = horizon
        self.portion = portion
        self.canSeek = canSeek
    }

    /// The portion for a window and a number of connections: half of the window is requested, the other half has arrived and
    /// waits for the reader.
    package static func portion(window: Int64, connections: Int) -> Int64 {
        let share = window / Int64(2 * max(1, connections))
        return max(SegmentPlanner.minPiece, share - share % SegmentPlanner.alignment)
    }
}

/// Chooses ranges for readers: what they wait for comes first. Pure, like `SegmentPlanner`, whose lists it takes.
package enum ReadPlanner {
    /// The end of the bytes that are there from `offset` on without a gap; `offset` if that byte is missing.
    package static func availableEnd(_ ranges: [SavedRange], from offset: Int64) -> Int64 {
        var end = offset
        while let range = ranges.first(where: { $0.start <= end && end < $0.position }) { end = range.position }
        return end
    }

    /// The range that has the first missing byte at or after `offset`, and that byte; nil if none is missing.
    package static func firstMissing(_ ranges: [SavedRange], from offset: Int64) -> (index: Int, byte: Int64)? {
        var best: (index: Int, byte: Int64)?
        for (index, range) in ranges.enumerated() where !SegmentPlanner.isFinished(range) {
            let byte = max(offset, range.position)
            guard byte < range.end ?? .max, byte < best?.byte ?? .max else { continue }
            best = (index, byte)
        }
        return best
    }

    /// The missing byte that a reader waits for and no connection will bring soon; nil if there is none. The reader that is
    /// nearest to its missing byte comes first.
    ///
    /// - Parameter running: the indexes of the ranges that connections fill now.
    package static func unserved(_ positions: [Int64], _ ranges: [SavedRange], running: Set<Int>) -> (
        index: Int, byte: Int64
    )? {
        var best: (index: Int, byte: Int64, distance: Int64)?
        for position in positions {
            guard let (index, byte) = firstMissing(ranges, from: position),
                !(running.contains(index) && byte - ranges[index].position < SegmentPlanner.minPiece)
            else { continue }
            if byte - position < best?.distance ?? .max { best = (index, byte, byte - position) }
        }
        return best.map { ($0.index, $0.byte) }
    }

    /// What one more connection should do for the readers; `.none` if there is nothing for it to do now.
    ///
    /// - Parameters:
    ///   - ranges: with their current positions.
    ///   - flights: by the indexes of the ranges that connections fill now, the end of the bytes that each has requested; nil
    ///     for all of the range.
    ///   - connections: the number of connections that the file may use.
    ///   - reserved: the indexes of ranges that it must not fetch or split.
    package static func nextStep(
        _ ranges: [SavedRange], flights: [Int: Int64?], connections: Int, reserved: Set<Int> = [], reading: ReadDemand
    ) -> SegmentPlanner.Step {
        let running = Set(flights.keys)
        guard running.count < connections else { return .none }
        guard let horizon = reading.horizon else {
            if reading.canSeek, let (index, byte) = unserved(reading.positions, ranges, running: running),
                !reserved.contains(index)
            {
                return step(to: byte, in: index, ranges, isRunning: running.contains(index))
            }
            return SegmentPlanner.nextStep(ranges, running: running, connections: connections, reserved: reserved)
        }
        let start = reading.positions.min() ?? 0
        guard reading.canSeek else {
            guard running.isEmpty, let free = SegmentPlanner.nextRange(in: ranges, running: reserved),
                ranges[free].position < horizon
            else { return .none }
            return .fetch(free)
        }
        let ends = flights.reduce(into: [Int: Int64]()) { ends, flight in
            guard ranges.indices.contains(flight.key) else { return }
            let range = ranges[flight.key]
            let usual = connections > 1 ? range.position + reading.portion : .max
            ends[flight.key] = min(flight.value ?? usual, range.end ?? .max)
        }
        var byte = start
        while let (index, missing) = firstMissing(ranges, from: byte), missing < horizon {
            let range = ranges[index]
            if reserved.contains(index) {
                byte = range.end ?? .max
            } else if let end = ends[index], missing < end {
                byte = end
            } else if running.contains(index) {
                // The end of the file is unknown: one connection fetches it.
                guard let last = range.end else { break }
                let at = min(aligned(missing), last)
                guard at < min(horizon, last) else {
                    byte = at
                    continue
                }
                return .split(index, at: at)
            } else {
                return step(to: missing, in: index, ranges, isRunning: false)
            }
        }
        return stolen(from: start, ranges, ends: ends, horizon: horizon, reserved: reserved)
    }

    /// Half of the largest rest that a connection still has within the window.
    private static func stolen(
        from start: Int64, _ ranges: [SavedRange], ends: [Int: Int64], horizon: Int64, reserved: Set<Int>
    ) -> SegmentPlanner.Step {
        func remaining(_ index: Int) -> Int64 { min(ends[index] ?? 0, horizon) - max(ranges[index].position, start) }
        guard ranges.count < SegmentPlanner.maxRanges || ranges.contains(where: SegmentPlanner.isEmpty),
            let largest = ends.keys.filter({ !reserved.contains($0) }).max(by: {
                (remaining($0), $1) < (remaining($1), $0)
            })
        else { return .none }
        let position = ranges[largest].position
        let at = aligned(position + remaining(largest) / 2)
        guard ranges[largest].end != nil, at - position >= SegmentPlanner.minPiece,
            position + remaining(largest) - at >= SegmentPlanner.minPiece
        else { return .none }
        return .split(largest, at: at)
    }

    /// The step that brings this missing byte of a range.
    private static func step(
        to byte: Int64, in index: Int, _ ranges: [SavedRange], isRunning: Bool
    ) -> SegmentPlanner.Step {
        let range = ranges[index]
        // An open range cannot be divided, and a near byte comes with those before it.
        guard range.end != nil, isRunning || byte - range.position >= SegmentPlanner.minPiece else {
            return isRunning ? .none : .fetch(index)
        }
        let at = max(range.position + 1, byte - byte % SegmentPlanner.alignment)
        return .split(index, at: at)
    }

    private static func aligned(_ offset: Int64) -> Int64 {
        offset + (SegmentPlanner.alignment - offset % SegmentPlanner.alignment) % SegmentPlanner.alignment
    }
}

extension SegmentPlanner {
    /// True for a range without a byte, whose number is free (`fold`).
    package static func isEmpty(_ range: SavedRange) -> Bool { range.end == range.start }

    /// Splits a range as `split` does, but takes a free number of the list if there is one.
    ///
    /// - Returns: the ranges and the number of the new one; nil if `at` is not between the range's position and its end.
    package static func divide(_ ranges: [SavedRange], _ index: Int, at: Int64) -> (ranges: [SavedRange], new: Int)? {
        guard ranges.indices.contains(index), let end = ranges[index].end, at > ranges[index].position, at < end else {
            return nil
        }
        guard let free = ranges.indices.first(where: { $0 != index && isEmpty(ranges[$0]) }) else {
            return (split(ranges, index, at: at), ranges.count)
        }
        var result = ranges
        result[index].end = at
        result[free] = SavedRange(start: at, end: end)
        return (result, free)
    }

    /// Joins each complete range with the one that follows it. All others keep their numbers, and the number of a joined range
    /// becomes free: a stream over many connections needs few.
    ///
    /// - Parameter running: the indexes of the ranges that connections fill now. They are joined with those before them only.
    package static func fold(_ ranges: [SavedRange], running: Set<Int>) -> [SavedRange] {
        var result = ranges
        let sorted = ranges.indices.filter { !isEmpty(ranges[$0]) }.sorted { ranges[$0].start < ranges[$1].start }
        for (one, next) in zip(sorted, sorted.dropFirst())
        where !running.contains(one) && isFinished(result[one]) && result[one].end == result[next].start {
            result[next].start = result[one].start
            result[next].synced = max(result[next].start, min(result[next].synced, result[next].position))
            let end = result[next].start
            result[one] = SavedRange(start: end, end: end, position: end)
        }
        return result
    }
}
