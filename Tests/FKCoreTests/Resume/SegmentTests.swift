import TestSupport
import Testing

private let mib: Int64 = 1 << 20

private func range(_ start: Int64, _ end: Int64?, _ position: Int64? = nil, synced: Int64? = nil) -> SavedRange {
    SavedRange(start: start, end: end, position: position, synced: synced)
}

@Suite("Segments")
struct SegmentTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        var ranges: [SavedRange]
        var expected: Int64?
        var result: [SavedRange]
        var testDescription: String { name }
    }

    static let rows: [Row] = [
        Row(name: "nothing, length unknown", ranges: [], expected: nil, result: [range(0, nil)]),
        Row(name: "nothing, length known", ranges: [], expected: 100, result: [range(0, 100)]),
        Row(name: "an empty file", ranges: [], expected: 0, result: [range(0, 0)]),
        Row(
            name: "the length becomes known", ranges: [range(0, nil, 40, synced: 30)], expected: 100,
            result: [range(0, 100, 40, synced: 30)]),
        Row(
            name: "the length stays unknown", ranges: [range(0, nil, 40, synced: 30)], expected: nil,
            result: [range(0, nil, 40, synced: 30)]),
        Row(
            name: "already normal", ranges: [range(0, 50, 20), range(50, 100, 60)], expected: 100,
            result: [range(0, 50, 20), range(50, 100, 60)]),
        Row(
            name: "not sorted", ranges: [range(50, 100, 60), range(0, 50, 20)], expected: 100,
            result: [range(0, 50, 20), range(50, 100, 60)]),
        Row(
            name: "finished neighbours", ranges: [range(0, 50, 50, synced: 50), range(50, 100, 100, synced: 70)],
            expected: 100,
            result: [range(0, 100, 100, synced: 70)]),
        Row(
            name: "finished neighbours, the first not synced",
            ranges: [range(0, 50, 50, synced: 10), range(50, 100, 100, synced: 100)],
            expected: 100, result: [range(0, 100, 100, synced: 10)]),
        Row(
            name: "finished, then begun", ranges: [range(0, 50, 50, synced: 50), range(50, 100, 60, synced: 55)],
            expected: 100,
            result: [range(0, 100, 60, synced: 55)]),
        Row(
            name: "begun, then not begun", ranges: [range(0, 50, 20), range(50, 100)], expected: 100,
            result: [range(0, 100, 20)]),
        Row(
            name: "all together",
            ranges: [range(0, 10, 10), range(10, 20, 15), range(20, 30), range(30, 40, 35), range(40, 50)],
            expected: 50, result: [range(0, 30, 15, synced: 0), range(30, 50, 35)]),
        Row(
            name: "a hole", ranges: [range(0, 20, 10), range(50, 100, 60)], expected: 100,
            result: [range(0, 50, 10), range(50, 100, 60)]),
        Row(
            name: "a hole at the start", ranges: [range(50, 100, 60)], expected: 100,
            result: [range(0, 50), range(50, 100, 60)]),
        Row(
            name: "a hole at the end", ranges: [range(0, 50, 50)], expected: 100, result: [range(0, 100, 50, synced: 0)]
        ),
        Row(
            name: "an open range before another", ranges: [range(0, nil, 20), range(50, 100, 60)], expected: 100,
            result: [range(0, 50, 20), range(50, 100, 60)]),
        Row(
            name: "overlap", ranges: [range(0, 60, 20), range(50, 100, 70)], expected: 100,
            result: [range(0, 60, 20), range(60, 100, 70, synced: 60)]),
        Row(
            name: "twice the same", ranges: [range(0, 100, 30), range(0, 100, 30)], expected: 100,
            result: [range(0, 100, 30)]),
        Row(
            name: "beyond the end", ranges: [range(0, 50, 20), range(50, 300, 60), range(300, 400)], expected: 100,
            result: [range(0, 50, 20), range(50, 100, 60)]),
        Row(
            name: "marks out of order", ranges: [range(0, 100, -5, synced: 900)], expected: 100, result: [range(0, 100)]
        ),
        Row(name: "turned round", ranges: [range(90, 10)], expected: 100, result: [range(0, 100)]),
    ]

    @Test("the normal list says the same in short", arguments: rows)
    func normalize(row: Row) {
        let result = SegmentPlanner.normalize(row.ranges, expected: row.expected)
        #expect(result == row.result)
        #expect(SegmentPlanner.normalize(result, expected: row.expected) == result, "and is its own normal list")
    }

    @Test("a normal list covers the file and never claims a byte that was not written", arguments: UInt64(0)..<40)
    func random(seed: UInt64) {
        var generator = SeededRandom(seed: seed)
        for _ in 0..<100 {
            let ranges = (0..<Int.random(in: 0...6, using: &generator)).map { _ in
                let start = Int64.random(in: 0...40, using: &generator)
                let end = start + Int64.random(in: 0...20, using: &generator)
                let position = Int64.random(in: start...end, using: &generator)
                return range(start, end, position, synced: Int64.random(in: start...position, using: &generator))
            }
            let result = SegmentPlanner.normalize(ranges, expected: 50)
            #expect(result.first?.start == 0 && result.last?.end == 50)
            for (left, right) in zip(result, result.dropFirst()) { #expect(left.end == right.start) }
            for one in result {
                #expect(one.start <= one.synced && one.synced <= one.position && one.position <= one.end ?? -1)
            }
            let written = Set(ranges.flatMap { $0.start..<$0.position })
            let synced = Set(ranges.flatMap { $0.start..<$0.synced })
            #expect(written.isSuperset(of: result.flatMap { $0.start..<$0.position }))
            #expect(synced.isSuperset(of: result.flatMap { $0.start..<$0.synced }))
            #expect(SegmentPlanner.normalize(result, expected: 50) == result)
        }
    }

    @Test(
        "the next range is the first unfinished one that nobody fills",
        arguments: [
            ([range(0, 10, 10), range(10, 20, 15), range(20, 30)], [], 1),
            ([range(0, 10, 10), range(10, 20, 15), range(20, 30)], [1], 2),
            ([range(20, 30), range(0, 20, 3)], [], 1), ([range(0, 10, 10)], [], nil), ([range(0, nil, 10)], [], 0),
            ([range(0, 0)], [], nil), ([], [], nil), ([range(0, 10)], [0], nil),
        ] as [([SavedRange], Set<Int>, Int?)])
    func next(ranges: [SavedRange], running: Set<Int>, expected: Int?) {
        #expect(SegmentPlanner.nextRange(in: ranges, running: running) == expected)
    }

    @Test(
        "one more connection",
        arguments: [
            // (ranges, running, connections, step)
            ([range(0, 100 * mib)], [], 1, .fetch(0)), ([range(0, 100 * mib)], [0], 1, .none),
            ([range(0, 100 * mib)], [0], 2, .split(0, at: 50 * mib)),
            ([range(0, 100 * mib, 50 * mib)], [0], 2, .split(0, at: 75 * mib)),
            ([range(0, 100 * mib, 100 * mib)], [0], 2, .none), ([range(0, nil)], [0], 2, .none),
            ([range(0, 2 * mib)], [0], 2, .split(0, at: mib)), ([range(0, 2 * mib - 1)], [0], 2, .none),
            ([range(0, 10 * mib), range(10 * mib, 100 * mib)], [0, 1], 3, .split(1, at: 55 * mib)),
            ([range(0, 10 * mib), range(10 * mib, 100 * mib)], [0], 3, .fetch(1)),
            ([range(0, 10 * mib), range(10 * mib, 20 * mib)], [0, 1], 3, .split(0, at: 5 * mib)),
            ([range(0, 10 * mib + 1, 3)], [0], 2, .split(0, at: 5 * mib + 65_536)),
            ([range(0, nil), range(5, 5)], [0, 7], 3, .none),
        ] as [([SavedRange], Set<Int>, Int, SegmentPlanner.Step)])
    func step(ranges: [SavedRange], running: Set<Int>, connections: Int, expected: SegmentPlanner.Step) {
        #expect(SegmentPlanner.nextStep(ranges, running: running, connections: connections) == expected)
    }

    @Test("splitting goes on to 64 ranges, keeps every number and covers the file")
    func splitting() {
        var ranges = [range(0, 1000 * mib, 7)]
        var running: Set<Int> = [0]
        while case .split(let index, let at) = SegmentPlanner.nextStep(ranges, running: running, connections: 256) {
            let before = ranges
            ranges = SegmentPlanner.split(ranges, index, at: at)
            #expect(ranges.count == before.count + 1)
            #expect(zip(before, ranges).allSatisfy { $0.start == $1.start && $0.position == $1.position })
            #expect(SegmentPlanner.nextStep(ranges, running: running, connections: 256) == .fetch(ranges.count - 1))
            running.insert(ranges.count - 1)
        }
        #expect(ranges.count == 64)
        #expect(ranges.allSatisfy { SegmentPlanner.remaining($0) ?? 0 >= mib })
        #expect(SegmentPlanner.normalize(ranges, expected: 1000 * mib) == [range(0, 1000 * mib, 7, synced: 0)])
    }

    @Test("a split at an impossible place changes nothing", arguments: [Int64(-1), 0, 50, 100, 101])
    func impossible(at: Int64) {
        let ranges = [range(0, 100, 50)]
        #expect(SegmentPlanner.split(ranges, 0, at: at) == ranges)
        #expect(SegmentPlanner.split(ranges, 1, at: 70) == ranges)
        #expect(SegmentPlanner.split([range(0, nil)], 0, at: 70) == [range(0, nil)])
    }
}
