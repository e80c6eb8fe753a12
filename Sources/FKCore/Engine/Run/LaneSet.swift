import FKMiddleware

/// Decides about the connections of one file: their number, ranges and sources, and the next step when one ends. `Transfer`
/// sends the requests and updates the record.
///
/// ```text
/// first -> more … -> next (a lane has filled its range) -> ended -> more | surplus | wait | last
/// ```
///
/// Invariants: no two lanes fill the same range. No two claims have the same position. Every missing byte is in a range that a
/// lane fills, or that is free for the next lane. Lanes are objects because each has a transfer; everything else is a value.
struct LaneSet {
    /// What follows once all lanes have ended.
    enum AfterLanes {
        /// The attempt has failed.
        case fail(DownloadError)
        /// The stored bytes or the ranges are of no use. One connection sends this request.
        case restart(RangeAsk)
    }

    /// What follows the end of a lane.
    enum Next {
        /// Others continue, and there may be another one.
        case more
        /// Others continue, but no byte is missing any more.
        case surplus
        /// Others are still ending.
        case wait
        /// It was the last one.
        case last(AfterLanes?)
    }

    /// The place where a claim divides a range.
    struct Place: Equatable {
        /// The range that ends at the claim from now on.
        var index: Int
        /// Its former end.
        var end: Int64
    }

    /// The bytes of all lanes at a time.
    struct Sample {
        /// Nanoseconds of the monotonic clock.
        var time: Int64
        var received: Int64
    }

    /// The maximum size in bytes of a piece from a transport.
    static let largestPiece: Int64 = 512 << 10

    /// The connections, oldest first.
    private(set) var lanes: [Lane] = []
    private var lastNumber = 0
    /// Their permitted number.
    private(set) var growth: LaneGrowth
    /// The mirrors that further connections may use.
    var mirrors = MirrorSources(own: "", plan: [])
    /// True once `mirrors` are those of the attempt.
    private(set) var hasMirrors = false
    /// Pieces of the file that are fetched again, each by a lane of its own (`repair`).
    var holes: [Range<Int64>] = []
    /// What follows once the last lane has ended; nil while none is to end.
    private(set) var afterLanes: AfterLanes?
    /// The number of requests for the whole file in place of a range.
    private var wholeRequests = 0
    /// The last failure of a lane that had a range.
    private var failure: DownloadError?
    /// The start of the present step.
    private var sample: Sample?

    init(limit: ConnectionLimit = .fixed(1)) {
        growth = LaneGrowth(limit: limit)
    }

    /// Further connections may use these mirrors.
    mutating func use(_ mirrors: MirrorSources) {
        self.mirrors = mirrors
        hasMirrors = true
    }

    subscript(number: Int) -> Lane? { lanes.first { $0.number == number } }

    func lane(of receiver: RangeReceiver) -> Lane? { lanes.first { $0.receiver === receiver } }

    // MARK: Beginning

    /// The first lane, for the first missing range; nil if no byte is missing.
    ///
    /// - Parameters:
    ///   - ranges: the file's ranges with their present positions; empty while the file is unknown.
    ///   - reading: the readers of the file; nil, the default, without any. With a window, no byte may be missing in it.
    mutating func first(_ ranges: [SavedRange], _ reading: ReadDemand? = nil) -> Lane? {
        if let reading, !ranges.isEmpty {
            let lane = add()
            // Without another lane, the holes are fetched first of all.
            if claimWork(lane, ranges, reading, sparesHoles: false) { return lane }
            remove(lane)
            return nil
        }
        guard let index = ranges.isEmpty ? 0 : SegmentPlanner.nextRange(in: ranges) else { return nil }
        let lane = add()
        lane.index = index
        return lane
    }

    /// The only lane, which sends this request from the start of the file.
    mutating func restart(_ ask: RangeAsk) -> Lane {
        growth.cap(at: 1)
        let lane = add()
        lane.index = 0
        lane.nextAsk = ask
        return lane
    }

    /// A further lane; nil while none is useful.
    ///
    /// - Parameters:
    ///   - reading: the readers of the file; nil, the default, without any.
    ///   - isOpen: returns true if a source may get another connection; nil is the attempt's own URL.
    mutating func more(_ ranges: [SavedRange], _ reading: ReadDemand? = nil, isOpen: (String?) -> Bool) -> Lane? {
        guard afterLanes == nil, lanes.count < growth.limit,
            let source = mirrors.next(
                limit: growth.limit, connections: { url in lanes.count { $0.mirror == url } }, isOpen: isOpen)
        else { return nil }
        let lane = add()
        lane.mirror = source
        if claimWork(lane, ranges, reading) { return lane }
        remove(lane)
        return nil
    }

    /// A lane that only checks whether a mirror has the same file; nil if there is no mirror to check.
    mutating func trial(_ piece: Lane.HeldPiece, isOpen: (String) -> Bool) -> Lane? {
        guard lanes.count < max(2, growth.limit), let url = mirrors.startTrial(isOpen: isOpen) else { return nil }
        let lane = add()
        lane.mirror = url
        lane.trial = piece
        lane.nextAsk = RangeAsk(start: piece.start, end: piece.start + Int64(piece.held.count), usesRange: true)
        return lane
    }

    /// A lane that fetches a wrong piece again, from a source that needs no trial.
    ///
    /// - Parameter mirror: nil for the attempt's own URL.
    mutating func repair(_ index: Int, at offset: Int64, from mirror: String?) -> Lane {
        let lane = add()
        lane.index = index
        lane.mirror = mirror
        lane.repairs = offset
        return lane
    }

    /// True for an unfinished range whose missing bytes are of pieces that are fetched again.
    func isHole(_ range: SavedRange) -> Bool {
        guard !SegmentPlanner.isFinished(range), let end = range.end else { return false }
        return holes.contains { $0.contains(range.position) } && holes.contains { $0.contains(end - 1) }
    }

    private mutating func add() -> Lane {
        lastNumber += 1
        let lane = Lane(number: lastNumber)
        lanes.append(lane)
        return lane
    }

    // MARK: Work

    /// Gives the next range, or half of another lane's range, to a lane that has filled its own. Returns false if there is no
    /// work for it.
    ///
    /// - Parameters:
    ///   - reading: the readers of the file; nil, the default, without any.
    ///   - mayDivide: true if several connections may fill the file.
    mutating func next(
        for lane: Lane, _ ranges: [SavedRange], _ reading: ReadDemand? = nil, mayDivide: @autoclosure () -> Bool
    ) -> Bool {
        lanes.count <= growth.limit && (lanes.count == 1 || mayDivide()) && claimWork(lane, ranges, reading)
    }

    /// Gives a lane a free range, a claim to half of the largest one, or what readers need first. Returns false if there is no
    /// work.
    private func claimWork(
        _ lane: Lane, _ ranges: [SavedRange], _ reading: ReadDemand?, sparesHoles: Bool = true
    ) -> Bool {
        lane.index = nil
        lane.claim = nil
        lane.asksAgain = 0
        // Nothing is left of a small file.
        if SegmentPlanner.nextRange(in: ranges) == nil { return false }
        var ranges = ranges
        var flights: [Int: Int64?] = [:]
        for other in lanes where other.trial == nil {
            if let index = other.index { flights.updateValue(other.request.ask.end, forKey: index) }
        }
        for other in lanes.filter({ $0.claim != nil }).sorted(by: { $0.claim ?? 0 < $1.claim ?? 0 }) {
            guard let claim = other.claim, let index = Self.index(of: claim, in: ranges),
                let divided = SegmentPlanner.divide(ranges, index, at: claim)
            else { continue }
            ranges = divided.ranges
            flights.updateValue(other.request.ask.end, forKey: divided.new)
        }
        let reserved = Set(holes.isEmpty || !sparesHoles ? [] : ranges.indices.filter { isHole(ranges[$0]) })
        let step =
            if let reading {
                ReadPlanner.nextStep(
                    ranges, flights: flights, connections: growth.limit, reserved: reserved, reading: reading)
            } else {
                SegmentPlanner.nextStep(
                    ranges, running: Set(flights.keys), connections: growth.limit, reserved: reserved)
            }
        switch step {
        case .fetch(let index): lane.index = index
        case .split(_, let at): lane.claim = at
        case .none: return false
        }
        return true
    }

    private static func index(of claim: Int64, in ranges: [SavedRange]) -> Int? {
        ranges.firstIndex { $0.position < claim && claim < $0.end ?? .max }
    }

    /// The place where a lane's claim divides a range, once the server has answered; nil if it is no longer free.
    ///
    /// - Parameter limit: the maximum number of ranges.
    func place(of lane: Lane, in ranges: [SavedRange], limit: Int) -> Place? {
        guard let claim = lane.claim, ranges.count < limit || ranges.contains(where: SegmentPlanner.isEmpty),
            let index = Self.index(of: claim, in: ranges), let end = ranges[index].end
        else { return nil }
        return Place(index: index, end: end)
    }

    /// The lane that fills this range.
    func lane(filling index: Int) -> Lane? { lanes.first { $0.index == index } }

    /// Divides the range at the claim. The lane fills the new range (`Lane.index`), which is the last of the list unless a number
    /// is free.
    ///
    /// - Returns: the new ranges of the file.
    func settle(_ lane: Lane, at place: Place, _ ranges: [SavedRange]) -> [SavedRange] {
        guard let claim = lane.claim, let divided = SegmentPlanner.divide(ranges, place.index, at: claim) else {
            return ranges
        }
        lane.claim = nil
        lane.index = divided.new
        return divided.ranges
    }

    // MARK: Fewer lanes

    /// Lowers the number of connections. Surplus lanes end when they have filled their ranges.
    mutating func cap(at limit: Int) { growth.cap(at: limit) }

    /// Counts a request for a lane's bytes in another way.
    ///
    /// The file gets a single connection if the server's ranges are unreliable, and after the second request for the whole file.
    /// Otherwise it would be divided again, and could end at the same range without end.
    ///
    /// - Returns: false after three for one range, or three for the whole file in an attempt.
    mutating func mayAsk(_ again: ResumeRules.Again, with lane: Lane) -> Bool {
        lane.asksAgain += 1
        if again != .plainRange { wholeRequests += 1 }
        if again == .oneStream || wholeRequests > 1 { growth.cap(at: 1) }
        return lane.asksAgain <= 3 && wholeRequests <= 3
    }

    /// Sets another number of connections.
    mutating func setLimit(_ limit: ConnectionLimit) {
        growth = LaneGrowth(limit: limit, interval: growth.interval)
        sample = nil
    }

    /// Remembers the failure of a lane, which the others outlive.
    mutating func recordFailure(of lane: Lane, _ error: DownloadError) {
        if lane.claim == nil { failure = error }
    }

    /// The failure of the attempt after that of its last lane. A refused claim proves nothing about the file: the failure of
    /// the lane before it counts, and the next attempt requests the rest without a claim.
    func failure(of last: Lane, _ error: DownloadError) -> DownloadError {
        guard last.claim != nil else { return error }
        if let failure { return failure }
        var error = error
        error.isRetryable = true
        return error
    }

    /// All lanes are to end, and `next` follows.
    mutating func end(_ next: AfterLanes) { afterLanes = next }

    /// Removes a lane that has ended.
    ///
    /// - Parameter isStopped: true if the run stops.
    mutating func ended(_ lane: Lane, _ ranges: [SavedRange], isStopped: Bool) -> Next {
        remove(lane)
        if lanes.isEmpty { return .last(afterLanes.take()) }
        if isStopped || afterLanes != nil { return .wait }
        return SegmentPlanner.nextRange(in: ranges) == nil ? .surplus : .more
    }

    /// Removes a lane that sent no request.
    mutating func remove(_ lane: Lane) { lanes.removeAll { $0 === lane } }

    /// The number of lanes that are not ending.
    var wanted: Int { lanes.count { !$0.isUnwanted } }

    /// The lane to a host that costs least to end: one without an answer, otherwise the newest; nil if it is the file's only
    /// lane.
    func laneToYield(of host: String) -> Lane? {
        guard afterLanes == nil, wanted > 1 else { return nil }
        let lanes = lanes.filter { !$0.isUnwanted && $0.permitHost == host }
        return lanes.last { $0.index == nil } ?? lanes.last
    }

    // MARK: Measuring

    /// Starts the first measurement. Call it when a lane was answered.
    mutating func answered(_ lane: Lane, received: Int64, now: Int64) {
        guard sample == nil else { return }
        growth.answered(after: Double(now - lane.request.sent) / 1e9)
        sample = Sample(time: now, received: received)
    }

    /// Measures the lanes at the end of a step. A step begins with its requests, so that a server which sends the first bytes
    /// of all new connections at once does not seem to stop afterwards.
    ///
    /// - Parameter rest: the missing bytes.
    mutating func measure(received: Int64, rest: Int64, now: Int64) {
        let limit = growth.limit
        if let sample {
            growth.measured(
                bytes: received - sample.received, seconds: Double(now - sample.time) / 1e9, lanes: receivingCount,
                rest: rest)
        }
        if sample == nil || growth.limit != limit { sample = Sample(time: now, received: received) }
    }

    /// The lanes that receive bytes.
    private var receivingCount: Int { lanes.count { $0.index != nil && $0.receiver?.isAnswered == true } }
}
