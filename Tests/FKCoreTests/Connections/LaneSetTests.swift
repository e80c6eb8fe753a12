import TestSupport
import Testing

@testable import FKEngine

/// The connections of one file against a simple model of a file and a server.
@Suite("Lanes of one file")
struct LaneSetTests {
    private static let mebibyte: Int64 = 1 << 20

    /// A file that lanes fill, with the bytes that each range holds.
    private struct Model {
        var laneSet: LaneSet
        var ranges: [SavedRange]
        let length: Int64
        /// Lanes whose claim the server has not answered, and those that fill a range.
        var asked: [Lane] { laneSet.lanes.filter { $0.claim != nil } }
        var filling: [Lane] { laneSet.lanes.filter { $0.index != nil } }

        init(length: Int64, limit: Int) {
            self.length = length
            ranges = [SavedRange(start: 0, end: length)]
            laneSet = LaneSet(limit: .fixed(limit))
        }

        mutating func begin() throws -> Lane {
            let lane = laneSet.first(ranges)
            return try #require(lane)
        }

        mutating func another() throws -> Lane {
            let lane = laneSet.more(ranges, isOpen: { _ in true })
            return try #require(lane)
        }

        /// What must hold after every event.
        func check(_ seed: UInt64, _ step: Int) {
            let place: Comment = "seed \(seed), step \(step)"
            let sorted = ranges.sorted { $0.start < $1.start }
            #expect(sorted.first?.start == 0 && sorted.last?.end == length, place)
            for (one, next) in zip(sorted, sorted.dropFirst()) { #expect(one.end == next.start, place) }
            #expect(ranges.allSatisfy { $0.start <= $0.position && $0.position <= $0.end ?? .max }, place)
            let indices = laneSet.lanes.compactMap(\.index)
            #expect(Set(indices).count == indices.count, "\(place): two lanes fill one range")
            #expect(indices.allSatisfy(ranges.indices.contains), place)
            let claims = laneSet.lanes.compactMap(\.claim)
            #expect(Set(claims).count == claims.count, "\(place): two claims are at one place")
            #expect(
                laneSet.lanes.allSatisfy { ($0.index == nil) != ($0.claim == nil) }, "\(place): a lane without work")
            #expect(Set(laneSet.lanes.map(\.number)).count == laneSet.lanes.count, place)
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
            switch laneSet.ended(lane, ranges, isStopped: false) {
            case .wait: return true
            case .more: grow()
            case .surplus: for lane in laneSet.lanes { lane.isUnwanted = true }
            case .last(.restart(let ask)): _ = laneSet.restart(ask)
            case .last(.fail): return false
            case .last(nil): return laneSet.first(ranges) != nil
            }
            return true
        }

        mutating func grow() {
            let limit = max(laneSet.growth.limit, laneSet.lanes.count)
            while laneSet.more(ranges, isOpen: { _ in true }) != nil {}
            #expect(laneSet.lanes.count <= limit, "there are more lanes than allowed")
        }

        /// The server answers a claim; where the place is not free any more, the lane ends.
        mutating func answer(_ lane: Lane) -> Bool {
            guard let place = laneSet.place(of: lane, in: ranges, limit: SegmentPlanner.maxRanges) else {
                lane.claim = nil
                lane.index = nil
                lane.isUnwanted = true
                return ended(lane)
            }
            ranges = laneSet.settle(lane, at: place, ranges)
            #expect(lane.index == ranges.count - 1 && lane.claim == nil)
            #expect(ranges[place.index].end == ranges.last?.start && ranges.last?.end == place.end)
            return true
        }
    }

    @Test(
        "whatever happens in whichever order, each byte is fetched by one lane and the file gets whole",
        arguments: 0..<60)
    func random(_ number: Int) {
        let seed = UInt64(number)
        var random = SeededRandom(seed: seed)
        let limit = Int.random(in: 1...16, using: &random)
        var model = Model(length: Int64.random(in: 1...200, using: &random) * Self.mebibyte / 3, limit: limit)
        var runs = model.laneSet.first(model.ranges) != nil
        var step = 0
        while runs, step < 20_000 {
            step += 1
            model.check(seed, step)
            guard let lane = model.laneSet.lanes.randomElement(using: &random) else { break }
            switch Int.random(in: 0..<20, using: &random) {
            case 0: model.grow()
            case 1: model.laneSet.cap(at: Int.random(in: 1...limit, using: &random))
            case 2: model.laneSet.setLimit(.fixed(Int.random(in: 1...limit, using: &random)))
            case 3 where model.laneSet.lanes.count > 1, 4 where lane.isUnwanted:
                // The connection is lost, or ends because it was told to.
                runs = model.ended(lane)
            case 5: lane.isUnwanted = model.laneSet.lanes.count > 1
            default:
                if lane.isUnwanted {
                    runs = model.ended(lane)
                } else if lane.claim != nil {
                    runs = model.answer(lane)
                } else if model.fill(lane, Int64.random(in: 1...(2 * Self.mebibyte), using: &random)),
                    !model.laneSet.next(for: lane, model.ranges, mayDivide: true)
                {
                    runs = model.ended(lane)
                }
            }
        }
        #expect(step < 20_000, "seed \(seed): the file never gets whole")
        #expect(SegmentPlanner.nextRange(in: model.ranges) == nil && model.laneSet.lanes.isEmpty)
        #expect(model.ranges.reduce(0) { $0 + $1.position - $1.start } == model.length)
    }

    @Test("the whole file is requested at most three times in place of a range, whichever lane asks, and soon alone")
    func wholeRequests() throws {
        var model = Model(length: 64 * Self.mebibyte, limit: 4)
        let lanes = [try model.begin(), try model.another(), try model.another(), try model.another()]
        let mayAskPlainly = model.laneSet.mayAsk(.plainRange, with: lanes[0])
        #expect(mayAskPlainly && model.laneSet.growth.limit == 4)
        var limits: [Int] = []
        let answers = lanes.map { lane in
            defer { limits.append(model.laneSet.growth.limit) }
            return model.laneSet.mayAsk(.withoutRange, with: lane)
        }
        #expect(answers == [true, true, true, false])
        #expect(limits == [4, 1, 1, 1])
        var other = Model(length: 64 * Self.mebibyte, limit: 4)
        let lane = try other.begin()
        let mayAsk = other.laneSet.mayAsk(.oneStream, with: lane)
        #expect(mayAsk && other.laneSet.growth.limit == 1, "its ranges are unreliable")
    }

    @Test("a claim in a range that was filled meanwhile has no place")
    func filledMeanwhile() throws {
        var model = Model(length: 8 * Self.mebibyte, limit: 2)
        let first = try model.begin()
        let second = try model.another()
        #expect(second.claim == 4 * Self.mebibyte && second.index == nil)
        let third = model.laneSet.more(model.ranges, isOpen: { _ in true })
        #expect(third == nil, "two are allowed")
        _ = model.fill(first, 4 * Self.mebibyte)
        #expect(model.laneSet.place(of: second, in: model.ranges, limit: 64) == nil)
    }

    @Test("a file has no more ranges than there are counters")
    func countersAreLimited() throws {
        var model = Model(length: 8 * Self.mebibyte, limit: 2)
        _ = try model.begin()
        let second = try model.another()
        #expect(model.laneSet.place(of: second, in: model.ranges, limit: 1) == nil)
        #expect(model.laneSet.place(of: second, in: model.ranges, limit: 2) == .init(index: 0, end: 8 * Self.mebibyte))
    }

    @Test("what was decided for the end comes once, behind the last lane, and nothing is added before")
    func end() throws {
        var model = Model(length: 64 * Self.mebibyte, limit: 4)
        _ = try model.begin()
        model.grow()
        #expect(model.laneSet.lanes.count == 4)
        model.laneSet.end(.fail(DownloadError(.connectionLost, "lost", isRetryable: true)))
        let more = model.laneSet.more(model.ranges, isOpen: { _ in true })
        #expect(more == nil)
        for lane in model.laneSet.lanes.dropLast() {
            guard case .wait = model.laneSet.ended(lane, model.ranges, isStopped: false) else {
                return unexpected("the others are still at work")
            }
        }
        let last = try #require(model.laneSet.lanes.first)
        guard case .last(.fail(let error)) = model.laneSet.ended(last, model.ranges, isStopped: false) else {
            return unexpected("the attempt has failed")
        }
        #expect(error.code == .connectionLost && model.laneSet.afterLanes == nil)
    }

    @Test("a lane is ended for another task only where the file keeps one")
    func yielding() throws {
        var budget = HostBudget(limit: 8)
        var model = Model(length: 64 * Self.mebibyte, limit: 2)
        let first = try model.begin()
        first.permit = budget.acquire("http://a.example", now: 0)
        #expect(model.laneSet.laneToYield(of: "http://a.example") == nil, "the only one")
        let second = try model.another()
        second.permit = budget.acquire("http://a.example", now: 0)
        #expect(model.laneSet.laneToYield(of: "http://a.example") === second, "the one that waits for an answer")
        #expect(model.laneSet.laneToYield(of: "http://b.example") == nil)
        second.isUnwanted = true
        #expect(model.laneSet.laneToYield(of: "http://a.example") == nil, "one is on its way out")
    }

    @Test("the same file over one connection at a time: one that ends goes on where it was")
    func single() throws {
        var model = Model(length: 3 * Self.mebibyte, limit: 1)
        let first = try model.begin()
        let second = model.laneSet.more(model.ranges, isOpen: { _ in true })
        #expect(first.index == 0 && second == nil)
        _ = model.fill(first, Self.mebibyte)
        guard case .last(nil) = model.laneSet.ended(first, model.ranges, isStopped: false) else {
            return unexpected("it was the last one")
        }
        let next = try model.begin()
        #expect(next.index == 0)
    }
}
