import FKMiddleware

/// Several mirrors at once for one file: each one's trial, and what follows from it.
///
/// `MirrorSources` says which mirror gets a connection, `MirrorTrial` whether its file is the same.
extension Engine {
    /// Puts the mirrors of a file on trial that several connections fill, as soon as there are bytes to compare.
    func tryMirrors(_ entry: TaskEntry, _ attempt: Attempt) {
        guard attempt.growth.limit > 1, attempt.mirrors.isUndecided, mayDivide(entry, attempt), isWorthLanes(entry),
            let piece = heldPiece(entry, attempt)
        else { return }
        while attempt.lanes.count < max(2, attempt.growth.limit),
            let url = attempt.mirrors.startTrial(isOpen: { hosts.isOpen(HostName.site($0), now: clock.now) })
        {
            let lane = attempt.addLane()
            lane.mirror = url
            lane.trial = piece
            lane.nextAsk = RangeAsk(
                start: piece.start, end: piece.start + Int64(piece.held.count), usesRange: true)
            // It was open when the trial began.
            _ = acquirePermit(for: lane, entry)
            ask(with: lane, entry, attempt)
        }
    }

    /// The newest bytes of the range that has the most: far from the file's beginning, which many files share.
    private func heldPiece(_ entry: TaskEntry, _ attempt: Attempt) -> Lane.HeldPiece? {
        foldCounters(entry, attempt)
        let count = ResumeRules.maxOverlap
        guard let range = entry.record.ranges.max(by: { $0.position - $0.start < $1.position - $1.start }),
            range.position - range.start >= count,
            let held = try? attempt.part.bytes(at: range.position - count, count: Int(count)), held.count == Int(count)
        else { return nil }
        return Lane.HeldPiece(start: range.position - count, held: held)
    }

    func trialEnded(_ lane: Lane, _ trial: MirrorTrial, _ entry: TaskEntry, _ attempt: Attempt) {
        lane.operation = nil
        lane.trial = nil
        guard !attempt.isEnding, !lane.isUnwanted, let url = lane.mirror, let length = entry.record.expected else {
            return laneEnded(lane, entry, attempt)
        }
        let verdict = trial.verdict(
            length: length, validator: entry.record.validator, isDigestKnown: expectedDigest(of: entry) != nil)
        switch verdict {
        case .same(let validator):
            attempt.mirrors.prove(url, by: validator)
            remember(entry, by: "mirror", "\(URLMasking.mask(url)) has the same file: used at once with the others")
            laneIsFree(lane, entry, attempt)
            if !attempt.isEnding, !attempt.lanes.isEmpty { grow(entry, attempt) }
        case .provesNothing:
            attempt.mirrors.postpone(url)
            laneEnded(lane, entry, attempt)
        case .refused(let reason):
            if let head = trial.head { notePause(RetryRules.error(for: head, now: clock.date), from: url) }
            refuseMirror(url, reason, entry, attempt)
            laneEnded(lane, entry, attempt)
        }
    }

    /// The mirror gets no further connection in this attempt.
    func refuseMirror(_ url: String, _ reason: String, _ entry: TaskEntry, _ attempt: Attempt) {
        attempt.mirrors.refuse(url)
        remember(entry, by: "mirror", "\(URLMasking.mask(url)) is not used at once: \(reason)")
    }

    // MARK: Connections of a host

    /// The host that a lane's requests go to.
    func host(of lane: Lane, _ entry: TaskEntry) -> String { lane.mirror.map { HostName.site($0) } ?? entry.host }

    /// Counts a further connection; false while its host is closed. The one an attempt begins with is the slot's.
    func acquirePermit(for lane: Lane, _ entry: TaskEntry) -> Bool {
        guard let permit = hosts.acquire(host(of: lane, entry), now: clock.now) else { return false }
        lane.permit = consume permit
        return true
    }

    /// A connection has ended. Where it was the slot's own and others go on, one of those to the same host uses that.
    func releasePermit(of lane: Lane, _ entry: TaskEntry, _ attempt: Attempt) {
        let holder = lane.permitHost != nil ? lane : attempt.lanes.first { $0.permitHost == entry.host }
        guard let permit = holder?.permit.take() else { return }
        hosts.release(permit)
        schedule()
    }
}
