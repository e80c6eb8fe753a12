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
            let url = attempt.mirrors.startTrial(isOpen: { hostIsOpen(TaskEntry.host(of: $0)) })
        {
            let lane = attempt.addLane()
            lane.mirror = url
            lane.trial = piece
            lane.nextAsk = RangeAsk(
                start: piece.start, end: piece.start + Int64(piece.held.count), usesRange: true)
            load(TaskEntry.host(of: url), with: lane)
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

    func hostIsOpen(_ host: String) -> Bool {
        hostLoad[host, default: 0] < configure.maxConnectionsPerHost && hostPause[host] == nil
    }

    /// Counts a further connection. The one an attempt begins with is counted with the task's slot.
    func load(_ host: String, with lane: Lane) {
        hostLoad[host, default: 0] += 1
        lane.countedHost = host
    }

    /// A connection has ended while others go on. The slot's own connection is then one of those that remain.
    func unload(_ lane: Lane, _ entry: TaskEntry, _ attempt: Attempt) {
        guard let host = lane.countedHost ?? passSlot(of: entry, attempt) else { return }
        lane.countedHost = nil
        hostLoad[host, default: 1] -= 1
        if hostLoad[host] == 0 { hostLoad[host] = nil }
        schedule()
    }

    private func passSlot(of entry: TaskEntry, _ attempt: Attempt) -> String? {
        guard let heir = attempt.lanes.first(where: { $0.countedHost == entry.host }) else { return nil }
        heir.countedHost = nil
        return entry.host
    }
}
