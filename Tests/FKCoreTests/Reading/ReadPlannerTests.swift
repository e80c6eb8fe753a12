import TestSupport
import Testing

@testable import FKEngine

private let mib: Int64 = 1 << 20

@Suite("What comes first for readers")
struct ReadPlannerTests {
    private func range(_ start: Int64, _ end: Int64?, at position: Int64? = nil) -> SavedRange {
        SavedRange(start: start * mib, end: end.map { $0 * mib }, position: position.map { $0 * mib })
    }

    @Test("the bytes without a gap, and the first that is missing, in ranges of any order")
    func available() {
        let ranges = [range(4, 8, at: 5), range(0, 2, at: 2), range(2, 4, at: 3), range(8, 9, at: 9)]
        #expect(ReadPlanner.availableEnd(ranges, from: 0) == 3 * mib)
        #expect(ReadPlanner.availableEnd(ranges, from: 3 * mib) == 3 * mib)
        #expect(ReadPlanner.availableEnd(ranges, from: 4 * mib + 7) == 5 * mib)
        #expect(ReadPlanner.availableEnd(ranges, from: 8 * mib) == 9 * mib)
        #expect(ReadPlanner.availableEnd([], from: 5) == 5)
        #expect(ReadPlanner.firstMissing(ranges, from: 0)?.byte == 3 * mib)
        #expect(ReadPlanner.firstMissing(ranges, from: 4 * mib)?.index == 0)
        #expect(ReadPlanner.firstMissing(ranges, from: 8 * mib) == nil)
        #expect(ReadPlanner.firstMissing([range(0, nil, at: 1)], from: 0)?.byte == mib)
    }

    @Test("without a window: a reader far ahead gets a range of its own, a near one waits, the nearest comes first")
    func wishes() {
        func step(_ ranges: [SavedRange], _ positions: [Int64], running: [Int] = [], connections: Int = 4)
            -> SegmentPlanner.Step
        {
            ReadPlanner.nextStep(
                ranges, flights: Dictionary(uniqueKeysWithValues: running.map { ($0, Int64?.none) }),
                connections: connections,
                reading: ReadDemand(positions: positions))
        }
        let one = [range(0, 100, at: 10)]
        #expect(step(one, [50 * mib], running: [0]) == .split(0, at: 50 * mib))
        #expect(step(one, [50 * mib + 100], running: [0]) == .split(0, at: 50 * mib))
        #expect(step(one, [50 * mib]) == .split(0, at: 50 * mib))
        #expect(step(one, [10 * mib + 100]) == .fetch(0))
        // Served already: the usual halves.
        #expect(step(one, [10 * mib + 100], running: [0]) == .split(0, at: 55 * mib))
        #expect(step(one, [5 * mib], running: [0]) == .split(0, at: 55 * mib))
        // The second reader is nearer to its missing byte.
        let two = [range(0, 50, at: 10), range(50, 100, at: 60)]
        #expect(step(two, [0, 59 * mib]) == .fetch(1))
        #expect(step(two, [0, 59 * mib], running: [1]) == .fetch(0))
        #expect(step(two, [200 * mib]) == .fetch(0))
        #expect(step(one, [50 * mib], running: [0], connections: 1) == .none)
    }

    @Test("with a window: nothing behind its end, one portion after the other, then half of the largest rest")
    func window() {
        func step(
            _ ranges: [SavedRange], at position: Int64 = 0, flights: [Int: Int64?] = [:], connections: Int = 4,
            canSeek: Bool = true,
            reserved: Set<Int> = []
        ) -> SegmentPlanner.Step {
            ReadPlanner.nextStep(
                ranges, flights: flights, connections: connections, reserved: reserved,
                reading: ReadDemand(
                    positions: [position * mib], horizon: (position + 16) * mib, portion: 2 * mib, canSeek: canSeek))
        }
        #expect(step([range(0, 100)]) == .fetch(0))
        // The first connection has asked for all of the file: it keeps a portion, and the others follow.
        #expect(step([range(0, 100)], flights: [0: nil]) == .split(0, at: 2 * mib))
        #expect(step([range(0, 2), range(2, 100)], flights: [0: nil, 1: 4 * mib]) == .split(1, at: 4 * mib))
        #expect(step([range(0, 100, at: 16)]) == .none, "the window is full")
        #expect(step([range(0, 100, at: 16)], at: 1) == .fetch(0))
        #expect(step([range(0, 100, at: 3)], at: 40) == .split(0, at: 40 * mib), "the reader begins in the middle")
        #expect(step([range(0, 100, at: 3)], at: 40, canSeek: false) == .fetch(0), "what is in between is read, too")
        #expect(step([range(0, 100, at: 39)], at: 40, canSeek: false) == .fetch(0))
        #expect(step([range(0, nil, at: 3)], at: 0) == .fetch(0))
        #expect(step([range(0, nil, at: 3)], at: 0, flights: [0: nil]) == .none)
        #expect(step([range(0, 100, at: 3)], flights: [0: 16 * mib], connections: 1) == .none)
        // All of the window is on its way.
        #expect(
            step([range(0, 8), range(8, 100)], flights: [0: nil, 1: 16 * mib], connections: 4) == .split(0, at: 2 * mib)
        )
        #expect(
            step([range(0, 8), range(8, 100)], flights: [0: 8 * mib, 1: 16 * mib], connections: 4)
                == .split(0, at: 4 * mib))
        #expect(step([range(0, 1), range(1, 16, at: 16), range(16, 100)], flights: [0: mib]) == .none)
        // A hole has a connection of its own.
        #expect(step([range(0, 1), range(1, 100, at: 2)], reserved: [0]) == .fetch(1))
    }

    @Test("complete neighbours are joined, and their numbers are used again")
    func fold() throws {
        let ranges = [range(0, 2, at: 2), range(2, 4, at: 3), range(6, 100), range(4, 6, at: 6)]
        let folded = SegmentPlanner.fold(ranges, running: [1, 2])
        #expect(folded[1].start == 0 && folded[1].end == 4 * mib && folded[1].position == 3 * mib)
        #expect(folded[2].start == 4 * mib && folded[2].position == 6 * mib)
        #expect(SegmentPlanner.isEmpty(folded[0]) && SegmentPlanner.isEmpty(folded[3]))
        #expect(SegmentPlanner.fold(ranges, running: [0, 1, 2, 3]) == ranges)
        let divided = try #require(SegmentPlanner.divide(folded, 2, at: 50 * mib))
        #expect(divided.new == 0 && divided.ranges.count == 4)
        #expect(divided.ranges[0] == SavedRange(start: 50 * mib, end: 100 * mib) && divided.ranges[2].end == 50 * mib)
        #expect(SegmentPlanner.divide(folded, 2, at: 5 * mib) == nil)
        #expect(SegmentPlanner.normalize(folded, expected: 100 * mib).count == 2)
    }
}

/// The connections of a stream against a simple model of a file, a server and a reader.
@Suite("Lanes of a stream")
struct StreamCourseTests {
    @Test(
        "whatever happens in whichever order, each byte comes once, within the window, in few ranges, and nothing stops",
        arguments: 0..<60)
    func random(_ number: Int) throws {
        var random = SeededRandom(seed: UInt64(number))
        let limit = Int.random(in: 1...16, using: &random)
        let length = Int64.random(in: 1...300, using: &random) * mib / 3
        let window = Int64.random(in: 1...24, using: &random) * mib
        let canSeek = limit > 1 || Bool.random(using: &random)
        var lanes = LaneSet(limit: .fixed(limit))
        var ranges = [SavedRange(start: 0, end: length)]
        var reader: Int64 = 0
        var written = 0 as Int64
        func reading() -> ReadDemand {
            ReadDemand(
                positions: [reader], horizon: reader + window,
                portion: ReadDemand.portion(window: window, connections: limit),
                canSeek: canSeek)
        }
        func fold() { ranges = SegmentPlanner.fold(ranges, running: Set(lanes.lanes.compactMap(\.index))) }
        func ask(_ lane: Lane) {
            let start = lane.claim ?? lane.index.map { ranges[$0].position } ?? 0
            lane.request.ask = RangeAsk(
                start: start, end: limit > 1 && start > 0 ? min(length, start + reading().portion) : nil,
                usesRange: start > 0)
        }
        func grow() {
            fold()
            while let lane = lanes.more(ranges, reading(), isOpen: { _ in true }) { ask(lane) }
        }
        func begin() {
            fold()
            if lanes.lanes.isEmpty, let lane = lanes.first(ranges, reading()) { ask(lane) }
            grow()
        }
        begin()
        var step = 0
        while reader < length, step < 200_000 {
            step += 1
            let sorted = ranges.filter { !SegmentPlanner.isEmpty($0) }.sorted { $0.start < $1.start }
            #expect(sorted.first?.start == 0 && sorted.last?.end == length)
            for (one, next) in zip(sorted, sorted.dropFirst()) { try #require(one.end == next.start, "seed \(number)") }
            try #require(ranges.count <= SegmentPlanner.maxRanges)
            if Int.random(in: 0..<3, using: &random) == 0 {
                let end = ReadPlanner.availableEnd(ranges, from: reader)
                try #require(end <= reader + window)
                reader += Int64.random(in: 0...end - reader, using: &random)
                if Bool.random(using: &random) { reader = end }
                begin()
                continue
            }
            guard let lane = lanes.lanes.randomElement(using: &random) else {
                try #require(ReadPlanner.availableEnd(ranges, from: reader) > reader, "seed \(number): nothing comes")
                continue
            }
            if Int.random(in: 0..<40, using: &random) == 0 {
                _ = lanes.ended(lane, ranges, isStopped: false)
                begin()
            } else if lane.claim != nil {
                if let place = lanes.place(of: lane, in: ranges, limit: SegmentPlanner.maxRanges) {
                    ranges = lanes.settle(lane, at: place, ranges)
                } else {
                    _ = lanes.ended(lane, ranges, isStopped: false)
                    begin()
                }
            } else if let index = lane.index {
                let end = min(lane.request.ask.end ?? .max, ranges[index].end ?? .max)
                let room = min(end, reader + window) - ranges[index].position
                let bytes = room > 0 ? Int64.random(in: 1...room, using: &random) : 0
                ranges[index].position += bytes
                written += bytes
                guard ranges[index].position >= end else { continue }
                fold()
                if lanes.next(for: lane, ranges, reading(), mayDivide: true) {
                    ask(lane)
                } else {
                    _ = lanes.ended(lane, ranges, isStopped: false)
                    begin()
                }
            }
        }
        #expect(reader == length && written == length, "seed \(number)")
    }
}

@Suite("The window of a stream in its part file")
struct ByteRingTests {
    @Test("each byte has one place, a range at most two, and what is behind the reader is not written")
    func places() {
        let ring = ByteRing(window: 1 << 20)
        #expect(ring.size == (1 << 20) + (64 << 10))
        #expect(ring.pieces(of: 0..<10) == [.init(offset: 0, place: 0, count: 10)])
        let end = ring.size
        #expect(
            ring.pieces(of: end - 3..<end + 4)
                == [.init(offset: end - 3, place: end - 3, count: 3), .init(offset: end, place: 0, count: 4)])
        #expect(ring.pieces(of: 5..<5).isEmpty)
        ring.advance(to: 500_000)
        let floor = 500_000 - (64 << 10) as Int64
        #expect(ring.floor == floor)
        #expect(ring.needed(floor - 10, 20) == floor..<floor + 10)
        #expect(ring.needed(0, 20) == 20..<20)
        #expect(ring.needed(floor, 20) == floor..<floor + 20)
        #expect(ByteRing(window: 1).window == ByteRing.minWindow)
    }

    @Test("a connection without room is told once the reader has taken an eighth of the window")
    func room() {
        let ring = ByteRing(window: 8 << 20)
        let calls = Locked(0)
        ring.whenRoom { calls.withLock { $0 += 1 } }
        ring.advance(to: 4 << 20)
        #expect(calls.withLock(\.self) == 0, "nobody waits")
        #expect(ring.room(at: 12 << 20) == 0 && ring.room(at: 11 << 20) == 1 << 20)
        ring.advance(to: (4 << 20) + 1)
        #expect(calls.withLock(\.self) == 1)
        #expect(ring.room(at: (12 << 20) + 1) == 0)
        ring.advance(to: (4 << 20) + 500_000)
        #expect(calls.withLock(\.self) == 1, "it would be stopped again at once")
        ring.advance(to: 6 << 20)
        #expect(calls.withLock(\.self) == 2)
    }
}
