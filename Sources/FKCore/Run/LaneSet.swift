import FKMiddleware

/// The connections of one file: who fills what, how many there may be, where they fetch from, and what follows when one
/// ends. It decides; `TaskRun` sends the requests and keeps the record.
///
/// ```text
/// first -> more … -> next (a lane has filled its range) -> ended -> others go on | all is there | last
/// ```
///
/// What always holds: no two lanes fill one range, no two claims are at one place, and every byte that is missing lies in a
/// range that a lane fills or that the next one may take. Lanes are objects with transfers of their own; everything else
/// is a value.
struct LaneSet {
    enum AfterLanes {
        /// The attempt has failed.
        case fail(DownloadError)
        /// The bytes held are of no use, or ranges are not: one connection asks so.
        case restart(RangeAsk)
    }

    /// What follows when a lane has ended.
    enum Next {
        /// Others are at work, and there may be another one.
        case more
        /// Others are at work and have nothing to do: nothing is missing any more.
        case surplus
        /// Others are at work and are being ended.
        case wait
        /// It was the last one.
        case last(AfterLanes?)
    }

    /// Where a claim cuts a range in two.
    struct Place: Equatable {
        /// The range that is shortened to end at the claim.
        var index: Int
        /// The end that it had.
        var end: Int64
    }

    struct Sample {
        /// Nanoseconds of the monotonic clock.
        var time: Int64
        var received: Int64
        /// Lanes through which bytes came.
        var lanes: Int
    }

    /// The largest piece a transport hands over at once, in bytes.
    static let largestPiece: Int64 = 512 << 10

    /// The connections at work; the first one began alone.
    private(set) var lanes: [Lane] = []
    private var lastNumber = 0
    /// How many there may be.
    private(set) var growth: LaneGrowth
    /// Where else several connections may fetch from.
    var mirrors: MirrorSources
    /// What happens once the last lane has ended.
    private(set) var afterLanes: AfterLanes?
    /// The beginning of the step that `growth` measures.
    private var sample: Sample?

    init(limit: ConnectionLimit = .fixed(1), mirrors: MirrorSources = MirrorSources(own: "", plan: [])) {
        growth = LaneGrowth(limit: limit)
        self.mirrors = mirrors
    }

    subscript(number: Int) -> Lane? { lanes.first { $0.number == number } }

    func lane(of receiver: RangeReceiver) -> Lane? { lanes.first { $0.receiver === receiver } }

    // MARK: Beginning

    /// With no lane at work: one for the first range that is missing; nil when nothing is.
    ///
    /// - Parameter ranges: of the file, with the positions of this moment; none while nothing is known of it.
    mutating func first(_ ranges: [SavedRange]) -> Lane? {
        guard let index = ranges.isEmpty ? 0 : SegmentPlanner.nextRange(in: ranges) else { return nil }
        let lane = add()
        lane.index = index
        return lane
    }

    /// One lane that asks in another way, from the beginning of the file; no further one follows.
    mutating func restart(_ ask: RangeAsk) -> Lane {
        growth.cap(at: 1)
        let lane = add()
        lane.index = 0
        lane.nextAsk = ask
        return lane
    }

    /// A further lane with work; nil while none is wanted.
    ///
    /// - Parameter isOpen: whether a source may get another connection; nil stands for the attempt's own URL.
    mutating func more(_ ranges: [SavedRange], isOpen: (String?) -> Bool) -> Lane? {
        guard afterLanes == nil, lanes.count < growth.limit,
            let source = mirrors.next(
                limit: growth.limit, load: { url in lanes.count { $0.mirror == url } }, isOpen: isOpen)
        else { return nil }
        let lane = add()
        lane.mirror = source
        if takeWork(lane, ranges) { return lane }
        remove(lane)
        return nil
    }

    /// A lane that only learns whether a mirror has the same file; nil while there is none to be tried.
    mutating func trial(_ piece: Lane.HeldPiece, isOpen: (String) -> Bool) -> Lane? {
        guard lanes.count < max(2, growth.limit), let url = mirrors.startTrial(isOpen: isOpen) else { return nil }
        let lane = add()
        lane.mirror = url
        lane.trial = piece
        lane.nextAsk = RangeAsk(start: piece.start, end: piece.start + Int64(piece.held.count), usesRange: true)
        return lane
    }

    private mutating func add() -> Lane {
        lastNumber += 1
        let lane = Lane(number: lastNumber)
        lanes.append(lane)
        return lane
    }

    // MARK: Work

    /// A lane has filled its range: gives it the next one, or half of another one's. False when there is no work for it.
    ///
    /// - Parameter mayDivide: the file's ranges may come over several connections.
    mutating func next(for lane: Lane, _ ranges: [SavedRange], mayDivide: Bool) -> Bool {
        lanes.count <= growth.limit && (lanes.count == 1 || mayDivide) && takeWork(lane, ranges)
    }

    /// Gives a lane the range that nobody fills, or a claim to half of the largest one; false when there is no work.
    private func takeWork(_ lane: Lane, _ ranges: [SavedRange]) -> Bool {
        lane.index = nil
        lane.claim = nil
        lane.asksAgain = 0
        var ranges = ranges
        var running = Set(lanes.compactMap(\.index))
        for claim in lanes.compactMap(\.claim).sorted() {
            guard let index = Self.index(of: claim, in: ranges) else { continue }
            ranges = SegmentPlanner.split(ranges, index, at: claim)
            running.insert(ranges.count - 1)
        }
        switch SegmentPlanner.nextStep(ranges, running: running, connections: growth.limit) {
        case .fetch(let index): lane.index = index
        case .split(_, let at): lane.claim = at
        case .none: return false
        }
        return true
    }

    private static func index(of claim: Int64, in ranges: [SavedRange]) -> Int? {
        ranges.firstIndex { $0.position < claim && claim < $0.end ?? .max }
    }

    /// The server has answered a lane's claim: where it cuts a range; nil when that place is not free any more.
    ///
    /// - Parameter limit: the file may have so many ranges.
    func place(of lane: Lane, in ranges: [SavedRange], limit: Int) -> Place? {
        guard let claim = lane.claim, ranges.count < limit, let index = Self.index(of: claim, in: ranges),
            let end = ranges[index].end
        else { return nil }
        return Place(index: index, end: end)
    }

    /// The lane that fills this range.
    func lane(filling index: Int) -> Lane? { lanes.first { $0.index == index } }

    /// The claim holds: the range behind it, the last of the list, is the lane's.
    ///
    /// - Returns: the ranges of the file as they are then.
    func settle(_ lane: Lane, at place: Place, _ ranges: [SavedRange]) -> [SavedRange] {
        guard let claim = lane.claim else { return ranges }
        lane.claim = nil
        lane.index = ranges.count
        return SegmentPlanner.split(ranges, place.index, at: claim)
    }

    // MARK: Fewer lanes

    /// Fewer connections from now on; those that are too many end when they have filled their ranges.
    mutating func cap(at limit: Int) { growth.cap(at: limit) }

    /// Another number of connections is asked for.
    mutating func setLimit(_ limit: ConnectionLimit) { growth = LaneGrowth(limit: limit) }

    /// It has been decided that all lanes end, and what happens then.
    mutating func end(_ next: AfterLanes) { afterLanes = next }

    /// A lane is no more.
    ///
    /// - Parameter isStopped: all lanes are being ended from outside.
    mutating func ended(_ lane: Lane, _ ranges: [SavedRange], isStopped: Bool) -> Next {
        remove(lane)
        if lanes.isEmpty { return .last(afterLanes.take()) }
        if isStopped || afterLanes != nil { return .wait }
        return SegmentPlanner.nextRange(in: ranges) == nil ? .surplus : .more
    }

    /// A lane that never began.
    mutating func remove(_ lane: Lane) { lanes.removeAll { $0 === lane } }

    /// Lanes that are not being ended.
    var wanted: Int { lanes.count { !$0.isUnwanted } }

    /// The lane to that host that costs least to end: one that waits for an answer yet, else the newest. Nil where the file
    /// would be left without any.
    func laneToYield(of host: String) -> Lane? {
        guard afterLanes == nil, wanted > 1 else { return nil }
        let lanes = lanes.filter { !$0.isUnwanted && $0.permitHost == host }
        return lanes.last { $0.index == nil } ?? lanes.last
    }

    // MARK: Measuring

    /// What the connections have brought so far, at the end of a step.
    mutating func measure(received: Int64, now: Int64) {
        let sample = Sample(
            time: now, received: received, lanes: lanes.count { $0.index != nil && $0.receiver?.isAnswered == true })
        // Connections that came within the step would count for less than they bring.
        if let last = self.sample, last.lanes == sample.lanes {
            growth.measured(
                bytes: sample.received - last.received, seconds: Double(now - last.time) / 1e9, lanes: sample.lanes)
        } else {
            self.sample = sample
        }
    }
}
