import FKMiddleware

/// Several mirrors for one file at the same time. `MirrorSources` decides which mirror gets a connection, `MirrorTrial`
/// whether its file is the same.
extension TaskRun {
    /// Starts the trials of mirrors, once several connections are in use and there are bytes to compare.
    func tryMirrors() {
        guard laneSet.growth.limit > 1, laneSet.mirrors.isUndecided, mayDivide, isWorthLanes, let piece = heldPiece()
        else { return }
        while let lane = laneSet.trial(
            piece, isOpen: { schedule.hosts.isOpen(HostName.site($0), now: clock.now) })
        {
            // `isOpen` has just returned true.
            _ = acquirePermit(for: lane)
            ask(with: lane)
        }
    }

    /// The newest bytes of the range with the most bytes: far from the start of the file, which many files have in common.
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

    /// The host of a lane's requests.
    func host(of lane: Lane) -> String { lane.mirror.map { HostName.site($0) } ?? entry.host }

    /// Acquires a permit for a further connection. Returns false while its host accepts none. The first connection of an
    /// attempt has the permit of the slot.
    func acquirePermit(for lane: Lane) -> Bool {
        guard let permit = schedule.hosts.acquire(host(of: lane), now: clock.now) else { return false }
        lane.permit = consume permit
        return true
    }

    /// Releases the permit of an ended connection. If that was the slot's connection, another lane to the same host takes
    /// the slot's permit and its own is released.
    func releasePermit(of lane: Lane) {
        let holder = lane.permitHost != nil ? lane : lanes.first { $0.permitHost == entry.host }
        guard let permit = holder?.permit.take() else { return }
        schedule.hosts.release(permit)
    }
}
