import FKMiddleware

/// A file that is read while it arrives. `ReadPlanner` decides what comes first.
///
/// With a window, connections pause at its end. One that would wait longer than a server's patience is closed, if its range can
/// be requested again; the rest follows when the reader has moved.
extension Transfer {
    /// The seconds after which a connection that waits for a reader is closed. Servers wait for 30 seconds and longer.
    static let readerPatience = 20

    /// The readers for the planner; nil without any, and for a file that the system delivers in pieces.
    var reading: ReadDemand? {
        guard let feed = entry.feed, fetcher.isDivided else { return nil }
        return feed.reading(canSeek: mayDivide, connections: laneSet.growth.limit)
    }

    /// True if the file is a stream: only its reader gets it.
    var isStream: Bool { part.file.ring != nil }

    /// The first lane, for the bytes that come first.
    func firstLane() -> Lane? {
        foldStream()
        return laneSet.first(entry.record.ranges, reading)
    }

    /// The end of a stream, or of its window: the reader takes the bytes, and the transfer waits for it.
    func park() {
        isParked = true
        part.file.ring?.recordBlocked()
        entry.feed?.wake()
    }

    /// Joins complete ranges, so that a long stream has few.
    func foldStream() {
        guard isStream else { return }
        entry.foldCounters()
        entry.record.divide(into: SegmentPlanner.fold(entry.record.ranges, running: Set(lanes.compactMap(\.index))))
    }

    /// Space for more bytes: paused connections continue, and others follow.
    func readersMoved() {
        guard !isEnding else { return }
        lanes.forEach { $0.request.operation?.resume() }
        if isParked {
            isParked = false
            fetchNext()
        } else {
            grow()
        }
    }

    /// A reader waits. If no connection brings its next byte soon, one that brings other bytes makes room.
    func readersWait() {
        guard !isEnding, !isStream, let reading, !lanes.isEmpty else { return }
        entry.foldCounters()
        let ranges = entry.record.ranges
        let running = Set(lanes.compactMap(\.index))
        guard lanes.allSatisfy({ $0.claim == nil }), lanes.allSatisfy({ !$0.isUnwanted && !$0.request.isUnanswered }),
            ReadPlanner.unserved(reading.positions, ranges, running: running) != nil
        else { return }
        if lanes.count < laneSet.growth.limit { return grow() }
        let serving = Set(
            reading.positions.compactMap { position -> Int? in
                guard let (index, byte) = ReadPlanner.firstMissing(ranges, from: position),
                    byte - ranges[index].position < SegmentPlanner.minPiece
                else { return nil }
                return index
            })
        if let lane = lanes.last(where: { $0.index.map { !serving.contains($0) } ?? true && $0.repairs == nil }) {
            unwant(lane)
        }
    }

    /// The first answer has arrived, and its connection begins far before the bytes that are wanted.
    ///
    /// - Returns: true if the connection was ended for one that begins there.
    func seeks(_ lane: Lane) -> Bool {
        guard isStream, lanes.count == 1, lane.claim == nil, let index = lane.index, let reading, reading.canSeek,
            let first = reading.positions.first, entry.record.ranges.indices.contains(index),
            first - entry.record.ranges[index].position >= SegmentPlanner.minPiece
        else { return false }
        unwant(lane)
        return true
    }

    /// The server has refused the range of the only lane, which a reader waits for: the bytes before it are read, too.
    ///
    /// - Returns: false if the failure is another one.
    func readsThrough(_ lane: Lane, _ error: DownloadError) -> Bool {
        guard isStream, lane.claim != nil, lanes.count == 1, error.code == .badRange, let feed = entry.feed,
            feed.mayAskAhead
        else { return false }
        feed.mayAskAhead = false
        return true
    }

    /// Closes connections that wait for the reader too long. To be called once a second.
    func watchReaders() {
        guard isStream, !isEnding, mayDivide else { return }
        for lane in lanes {
            lane.heldTicks = lane.receiver?.isHeld == true ? lane.heldTicks + 1 : 0
            if lane.heldTicks >= Self.readerPatience { unwant(lane) }
        }
    }

    /// A piece that the reader has compared is wrong.
    func readerRefused(piece index: Int) {
        guard isStream, !isEnding else { return }
        try? pieces.open(run)
        let dropped = dropWrong([index])
        if let error = dropped.failure {
            laneSet.end(.fail(error))
            guard !lanes.isEmpty else { return run.fail(error) }
            return cancel()
        }
        startRepairs()
        if isParked {
            isParked = false
            fetchNext()
        } else if !lanes.contains(where: { $0.repairs != nil }) {
            // They may wait for the reader, which waits for this piece.
            lanes.forEach { unwant($0) }
        }
    }
}
