import FKMiddleware
import Foundation

extension TaskRecord {
    /// Forgets the received bytes and everything known about the file, except the digest that its server has announced. The
    /// caller sets the state.
    package mutating func dropBytes() {
        own.ranges = []
        own.expected = nil
        own.validator = nil
        own.source = nil
        forgetPart()
        own.partTime = nil
        own.pieces = nil
        own.path = nil
        own.written = nil
        own.changed = nil
        own.lengthVerified = nil
        own.needsDigest = nil
        own.offered = nil
        own.trace = nil
        own.disown()
    }

    /// Another file is asked for: what the server of the one before said is forgotten.
    package mutating func forgetAnswer() {
        own.announced = nil
        own.response = nil
    }

    /// The part file is missing or empty. What is known about the file stays.
    package mutating func dropRanges() {
        own.ranges = []
        own.needsDigest = nil
        own.disown()
    }

    /// The server sends the file from its beginning.
    package mutating func startOver(length: Int64?) {
        own.ranges = [SavedRange(start: 0, end: length)]
        own.pieces = nil
        own.validator = nil
        own.expected = length
        own.needsDigest = nil
        own.disown()
    }

    /// Stores the length of the file that a server reported; nil keeps the known one.
    package mutating func adopt(length: Int64?) {
        if ranges.isEmpty { own.ranges = [SavedRange(start: 0, end: length)] }
        own.expected = length ?? expected
        if ranges.count == 1, ranges[0].end == nil { own.ranges[0].end = length }
    }

    /// The body of a whole file without a known end has ended, or that of its rest, so its end is the end of the file.
    package mutating func closeRange(_ index: Int, at position: Int64) {
        own.ranges[index].end = position
        own.expected = position
    }

    /// All bytes of the file are there.
    package mutating func fill(_ length: Int64) {
        own.expected = length
        own.ranges = [SavedRange(start: 0, end: length, position: length)]
    }

    /// The end of the last received byte. Ranges without bytes may lie behind it, and behind the end of the part file.
    package var heldEnd: Int64 { ranges.lazy.filter { $0.position > $0.start }.map(\.position).max() ?? 0 }

    /// The part file has no bytes of the range from `position` on.
    package mutating func shorten(_ index: Int, to position: Int64) {
        own.ranges[index].position = max(ranges[index].start, position)
        own.pieces = nil
    }

    /// Sorts and joins the ranges. Returns false if nothing changed.
    package mutating func normalize() -> Bool {
        let normal = SegmentPlanner.normalize(ranges, expected: expected)
        defer { own.ranges = normal }
        return normal != ranges
    }

    /// Divides the file into these ranges, one for each connection.
    package mutating func divide(into ranges: [SavedRange]) { own.ranges = ranges }

    /// The bytes of a piece are wrong and count as missing. All other ranges keep their numbers.
    package mutating func reopen(_ piece: Range<Int64>) {
        own.ranges = SegmentPlanner.reopen(ranges, piece)
        own.pieces = nil
    }

    /// Stores the position of a connection, clamped to its range.
    package mutating func move(_ index: Int, to position: Int64) {
        own.ranges[index].position = ranges[index].clamped(position)
    }

    package mutating func add(_ piece: PieceChecksum) { own.pieces = (pieces ?? []) + [piece] }

    /// A body has ended.
    ///
    /// - Parameter isVerified: true if a length or last chunk confirmed the end.
    package mutating func recordEnd(isVerified: Bool) { own.lengthVerified = isVerified ? nil : false }

    /// The record with the real positions of its ranges.
    ///
    /// - In the boot of the record, counters are as reliable as the part file, because the page cache survives the
    ///   process. Each position is advanced to its counter if that is within the range.
    /// - In another boot, the page cache is lost. Each position falls back to the synced one.
    ///
    /// A complete record is returned unchanged, because its bytes are not in a part file any more.
    package func applyingLiveCounters(_ counters: [Int64], bootID current: String = BootID.current) -> TaskRecord {
        var record = self
        record.apply(counters, bootID: current)
        return record
    }

    /// The same in place.
    package mutating func apply(_ counters: [Int64], bootID current: String = BootID.current) {
        guard state != .complete else { return }
        let isOfThisBoot = bootID == current
        for (index, range) in ranges.enumerated() {
            if !isOfThisBoot {
                own.ranges[index].position = max(range.start, min(range.position, range.synced))
            } else if index < counters.count {
                own.ranges[index] = range.advanced(to: counters[index])
            }
        }
        // The file's own time may be lost with the page cache. The positions above count only synced bytes.
        if !isOfThisBoot {
            own.partTime = nil
            own.pieces = nil
        }
    }
}
