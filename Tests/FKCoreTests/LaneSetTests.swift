import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore

/// The connections of one file against a simple model of a file and a server.
@Suite("Lanes of one file")
struct LaneSetTests {
    private static let mebibyte: Int64 = 1 << 20

    /// A file that lanes fill, with the bytes that each range holds.
    private struct Model {
        var set: LaneSet
        var ranges: [SavedRange]
        let length: Int64
        /// Lanes whose claim the server has not answered, and those that fill a range.
        var asked: [Lane] { set.lanes.filter { $0.claim != nil } }
        var filling: [Lane] { set.lanes.filter { $0.index != nil } }

        init(length: Int64, limit: Int) {
            self.length = length
            ranges = [SavedRange(start: 0, end: length)]
            set = LaneSet(limit: .fixed(limit))
        }

        /// What must hold after every event.
        func check(_ seed: UInt64, _ step: Int) {
            let place: Comment = "seed \(seed), step \(step)"
            let sorted = ranges.sorted { $0.start < $1.start }
            #expect(sorted.first?.start == 0 && sorted.last?.end == length, place)
            for (one, next) in zip(sorted, sorted.dropFirst()) { #expect(one.end == next.start, place) }
            #expect(ranges.allSatisfy { $0.start <= $0.position && $0.position <= $0.end ?? .max }, place)
            let indices = set.lanes.compactMap(\.index)
            #expect(Set(indices).count == indices.count, "\(place): two lanes fill one range")
            #expect(indices.allSatisfy(ranges.indices.contains), place)
            let claims = set.lanes.compactMap(\.claim)
            #expect(Set(claims).count == claims.count, "\(place): two claims are at one place")
            #expect(set.lanes.allSatisfy { ($0.index == nil) != ($0.claim == nil) }, "\(place): a lane without work")
            #expect(Set(set.lanes.map(\.number)).count == set.lanes.count, place)
        }

        /// Bytes come for a lane. Returns true when its range is full then.
        mutating func fill(_ lane: Lane, _ bytes: Int64) -> Bool {
            guard let index = lane.index, let end = ranges[index].end else { return false }
            ranges[index].position = min(end, ranges[index].position + bytes)
            return ranges[index].position == end
        }

        /// A lane has ended: what is left goes on, to the end of the file.
        ///
        /// - Returns: false when nothing is missing and no lane is at work.
        mutating func ended(_ lane: Lane) -> Bool {
            switch set.ended(lane, ranges, isStopped: false) {
            case .wait: return true
            case .more: grow()
            case .surplus: for lane in set.lanes { lane.isUnwanted = true }
            case .last(.restart(let ask)): _ = set.restart(ask)
            case .last(.fail): return false
            case .last(nil): return set.first(ranges) != nil
            }
            return true
        }

        mutating func grow() {
            let limit = max(set.growth.limit, set.lanes.count)
            while set.more(ranges, isOpen: { _ in true }) != nil {}
            #expect(set.lanes.count <= limit, "there are more lanes than allowed")
        }

        /// The server answers a claim; where the place is not free any more, the lane ends.
        mutating func answer(_ lane: Lane) -> Bool {
            guard let place = set.place(of: lane, in: ranges, limit: SegmentPlanner.maxRanges) else {
                lane.claim = nil
                lane.index = nil
                lane.isUnwanted = true
                return ended(lane)
            }
            ranges = set.settle(lane, at: place, ranges)
            #expect(lane.index == ranges.count - 1 && lane.claim == nil)
            #expect(ranges[place.index].end == ranges.last?.start && ranges.last?.end == place.end)
            return true
        }
    }

    @Test("whatever happens in whichever order, each byte is fetched by one lane and the file gets whole", arguments: 0..<60)
    func random(_ number: Int) {
        let seed = UInt64(number)
        var random = SeededRandom(seed: seed)
        let limit = Int.random(in: 1...16, using: &random)
        var model = Model(length: Int64.random(in: 1...200, using: &random) * Self.mebibyte / 3, limit: limit)
        var runs = model.set.first(model.ranges) != nil
        var step = 0
        while runs, step < 20_000 {
            step += 1
            model.check(seed, step)
            guard let lane = model.set.lanes.randomElement(using: &random) else { break }
            switch Int.random(in: 0..<20, using: &random) {
            case 0: model.grow()
            case 1: model.set.cap(at: Int.random(in: 1...limit, using: &random))
            case 2: model.set.setLimit(.fixed(Int.random(in: 1...limit, using: &random)))
            case 3 where model.set.lanes.count > 1, 4 where lane.isUnwanted:
                // The connection is lost, or ends because it was told to.
                runs = model.ended(lane)
            case 5: lane.isUnwanted = model.set.lanes.count > 1
            default:
                if lane.isUnwanted {
                    runs = model.ended(lane)
                } else if lane.claim != nil {
                    runs = model.answer(lane)
                } else if model.fill(lane, Int64.random(in: 1...(2 * Self.mebibyte), using: &random)),
                    !model.set.next(for: lane, model.ranges, mayDivide: true)
                {
                    runs = model.ended(lane)
                }
            }
        }
        #expect(step < 20_000, "seed \(seed): the file never gets whole")
        #expect(SegmentPlanner.nextRange(in: model.ranges) == nil && model.set.lanes.isEmpty)
        #expect(model.ranges.reduce(0) { $0 + $1.position - $1.start } == model.length)
    }

    @Test("a claim in a range that was filled meanwhile has no place")
    func filledMeanwhile() throws {
        var model = Model(length: 8 * Self.mebibyte, limit: 2)
        let first = try #require(model.set.first(model.ranges))
        let second = try #require(model.set.more(model.ranges, isOpen: { _ in true }))
        #expect(second.claim == 4 * Self.mebibyte && second.index == nil)
        #expect(model.set.more(model.ranges, isOpen: { _ in true }) == nil, "two are allowed")
        _ = model.fill(first, 4 * Self.mebibyte)
        #expect(model.set.place(of: second, in: model.ranges, limit: 64) == nil)
    }

    @Test("a file has no more ranges than there are counters")
    func countersAreLimited() throws {
        var model = Model(length: 8 * Self.mebibyte, limit: 2)
        _ = model.set.first(model.ranges)
        let second = try #require(model.set.more(model.ranges, isOpen: { _ in true }))
        #expect(model.set.place(of: second, in: model.ranges, limit: 1) == nil)
        #expect(model.set.place(of: second, in: model.ranges, limit: 2) == .init(index: 0, end: 8 * Self.mebibyte))
    }

    @Test("what was decided for the end comes once, behind the last lane, and nothing is added before")
    func end() throws {
        var model = Model(length: 64 * Self.mebibyte, limit: 4)
        _ = model.set.first(model.ranges)
        model.grow()
        #expect(model.set.lanes.count == 4)
        model.set.end(.fail(DownloadError(.connectionLost, "lost", isRetryable: true)))
        #expect(model.set.more(model.ranges, isOpen: { _ in true }) == nil)
        for lane in model.set.lanes.dropLast() {
            guard case .wait = model.set.ended(lane, model.ranges, isStopped: false) else {
                Issue.record("the others are still at work")
                return
            }
        }
        let last = try #require(model.set.lanes.first)
        guard case .last(.fail(let error)) = model.set.ended(last, model.ranges, isStopped: false) else {
            Issue.record("the attempt has failed")
            return
        }
        #expect(error.code == .connectionLost && model.set.afterLanes == nil)
    }

    @Test("a lane is ended for another task only where the file keeps one")
    func yielding() throws {
        var budget = HostBudget(limit: 8)
        var model = Model(length: 64 * Self.mebibyte, limit: 2)
        let first = try #require(model.set.first(model.ranges))
        first.permit = budget.acquire("http://a.example", now: 0)
        #expect(model.set.laneToYield(of: "http://a.example") == nil, "the only one")
        let second = try #require(model.set.more(model.ranges, isOpen: { _ in true }))
        second.permit = budget.acquire("http://a.example", now: 0)
        #expect(model.set.laneToYield(of: "http://a.example") === second, "the one that waits for an answer")
        #expect(model.set.laneToYield(of: "http://b.example") == nil)
        second.isUnwanted = true
        #expect(model.set.laneToYield(of: "http://a.example") == nil, "one is on its way out")
    }

    @Test("the same file over one connection at a time: one that ends goes on where it was")
    func single() throws {
        var model = Model(length: 3 * Self.mebibyte, limit: 1)
        let first = try #require(model.set.first(model.ranges))
        #expect(first.index == 0 && model.set.more(model.ranges, isOpen: { _ in true }) == nil)
        _ = model.fill(first, Self.mebibyte)
        guard case .last(nil) = model.set.ended(first, model.ranges, isStopped: false) else {
            Issue.record("it was the last one")
            return
        }
        #expect(model.set.first(model.ranges)?.index == 0)
    }
}
