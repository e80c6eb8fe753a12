import FKMiddleware

/// Several mirrors at once for one file: each one's trial, and what follows from it.
///
/// `MirrorSources` says which mirror gets a connection, `MirrorTrial` whether its file is the same.
extension TaskRun {
    /// Puts the mirrors of a file on trial that several connections fill, as soon as there are bytes to compare.
    func tryMirrors() {
        guard laneSet.growth.limit > 1, laneSet.mirrors.isUndecided, mayDivide, isWorthLanes, let piece = heldPiece()
        else { return }
        while let lane = laneSet.trial(
            piece, isOpen: { schedule.hosts.isOpen(HostName.site($0), now: clock.now) })
        {
            // It was open when the trial began.
            _ = acquirePermit(for: lane)
            ask(with: lane)
        }
    }

    /// The newest bytes of the range that has the most: far from the file's beginning, which many files share.
    private func heldPiece() -> Lane.HeldPiece? {
        entry.foldCounters()
        let count = ResumeRules.maxOverlap
        guard let range = entry.record.ranges.max(by: { $0.position - $0.start < $1.position - $1.start }),
            range.position - range.start >= count,
            let held = try? part.bytes(at: range.position - count, count: Int(count)), held.count == Int(count)
        else { return nil }
        return Lane.HeldPiece(start: range.position - count, held: held)
    }

    func trialEnded(_ lane: Lane, _ trial: MirrorTrial) {
        lane.operation = nil
        lane.trial = nil
        guard !isEnding, !lane.isUnwanted, let url = lane.mirror, let length = entry.record.expected else {
            return laneEnded(lane)
        }
        let verdict = trial.verdict(
            length: length, validator: entry.record.validator, isDigestKnown: entry.expectedDigest != nil)
        switch verdict {
        case .same(let validator):
            laneSet.mirrors.prove(url, by: validator)
            appendHistory(by: "mirror", "\(URLMasking.mask(url)) has the same file: used at once with the others")
            laneIsFree(lane)
            if !isEnding, !lanes.isEmpty { grow() }
        case .provesNothing:
            laneSet.mirrors.postpone(url)
            laneEnded(lane)
        case .refused(let reason):
            if let head = trial.head { schedule.notePause(RetryRules.error(for: head, now: clock.date), from: url) }
            refuseMirror(url, reason)
            laneEnded(lane)
        }
    }

    /// The mirror gets no further connection in this attempt.
    func refuseMirror(_ url: String, _ reason: String) {
        laneSet.mirrors.refuse(url)
        appendHistory(by: "mirror", "\(URLMasking.mask(url)) is not used at once: \(reason)")
    }

    // MARK: Connections of a host

    /// The host that a lane's requests go to.
    func host(of lane: Lane) -> String { lane.mirror.map { HostName.site($0) } ?? entry.host }

    /// Counts a further connection; false while its host is closed. The one an attempt begins with is the slot's.
    func acquirePermit(for lane: Lane) -> Bool {
        guard let permit = schedule.hosts.acquire(host(of: lane), now: clock.now) else { return false }
        lane.permit = consume permit
        return true
    }

    /// A connection has ended. Where it was the slot's own and others go on, one of those to the same host uses that.
    func releasePermit(of lane: Lane) {
        let holder = lane.permitHost != nil ? lane : lanes.first { $0.permitHost == entry.host }
        guard let permit = holder?.permit.take() else { return }
        schedule.hosts.release(permit)
    }
}
