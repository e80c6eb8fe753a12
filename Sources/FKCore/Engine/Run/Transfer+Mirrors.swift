import FKMiddleware
import Foundation

/// Several mirrors for one file at the same time. `MirrorSources` decides which mirror gets a connection, `MirrorTrial`
/// whether its file is the same.
extension Transfer {
    /// Lets the mirrors of the task serve beside its URL. It is called once a server has answered.
    func useMirrors() {
        guard !laneSet.hasMirrors, !isAlone, run.mirrorPolicy.usesSeveralAtOnce else { return }
        let plan = entry.record.plan
        let policies = schedule.hosts.policies
        laneSet.use(
            MirrorSources(
                own: url, plan: plan.beside(entry.urlIndex).map(policies.mirrored),
                offered: plan.offered.map(policies.mirrored)))
    }

    /// Adds the mirrors that a response offers (RFC 6249), best first. Beside the server, each one gets a trial like any
    /// mirror. If a digest vouches for the bytes, they also follow the task's own mirrors after a failure.
    ///
    /// An https file gets no http mirror, and a server with a public address gives no private one.
    func adoptOfferedMirrors(_ head: ResponseHead) {
        // Most responses have no links.
        guard !head.carried.isEmpty || head.fields.contains(where: { $0.name.caseInsensitiveEquals("Link") }) else {
            return
        }
        let values = (head.carried + head.fields).filter { $0.name.caseInsensitiveEquals("Link") }.map(\.value)
        let links = LinkField.parse(values).filter { $0.relations.contains("duplicate") }
        let sorted = links.enumerated().sorted {
            ($0.element.priority, $0.offset) < ($1.element.priority, $1.offset)
        }
        let urls = sorted.compactMap { _, link -> String? in
            guard let target = URL(string: link.target, relativeTo: URL(string: head.url))?.absoluteString,
                let url = try? target.normalizedURL(), let origin = URLOrigin(url),
                let own = URLOrigin(head.url), origin.scheme == "https" || own.scheme == "http",
                AddressClass.isPrivate(host: origin.host) != true || AddressClass.isPrivate(host: own.host) == true
            else { return nil }
            return url
        }
        if laneSet.growth.limit > 1, !isAlone {
            useMirrors()
            for url in urls { laneSet.mirrors.offer(schedule.hosts.policies.mirrored(url), own: self.url) }
        }
        if entry.record.version.isCompared { entry.record.offer(urls) }
    }

    /// Starts the trials of mirrors, once several connections are in use and there are bytes to compare.
    func tryMirrors() {
        guard laneSet.growth.limit > 1, laneSet.mirrors.isUndecided, mayDivide, isWorthLanes, let piece = heldPiece()
        else { return }
        while let lane = laneSet.trial(piece, isOpen: { schedule.hosts.isOpen($0.site, for: asker, now: clock.now) }) {
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
            let held = try? part.file.bytes(at: range.position - count, count: Int(count)), held.count == Int(count)
        else { return nil }
        return Lane.HeldPiece(start: range.position - count, held: held)
    }

    /// When sources whose bytes are not proven to be the same may be combined.
    var mirrorPolicy: MirrorPolicy { run.mirrorPolicy }

    /// True if the attempt uses one source, because the whole file is compared at its end or has had another digest than
    /// expected. Several sources would not show which one is wrong.
    private var isAlone: Bool {
        entry.record.isRepair
            || run.attempt.previousError?.code == .checksumMismatch && entry.record.received == 0
    }

    func trialEnded(_ lane: Lane, _ trial: MirrorTrial) {
        answered(lane, trial.head)
        lane.request.operation = nil
        lane.trial = nil
        guard !isEnding, !lane.isUnwanted, let url = lane.mirror else { return laneEnded(lane) }
        var version = entry.record.version
        version.isVouched = isVouched
        let verdict = trial.verdict(version, source: url, policy: mirrorPolicy)
        var unvouched = version
        unvouched.isVouched = false
        switch verdict {
        case .same(let validator), .trusted(let validator):
            laneSet.mirrors.prove(url, by: validator)
            // It is compared with all bytes at the end, unless the server of the task has announced one.
            if entry.record.serverDigest == nil, let digest = validator.digest { entry.record.adopt(digest) }
            switch trial.verdict(unvouched, source: url, policy: mirrorPolicy) {
            case .same, .trusted: break
            case .provesNothing, .refused: entry.record.requireDigest()
            }
            let how =
                if case .trusted = verdict { "is taken for the same file after a sample, which proves nothing" } else {
                    "has the same file"
                }
            run.appendHistory(by: "mirror", "\(url.masked) \(how): used at once with the others")
            laneIsFree(lane)
            if !isEnding, !lanes.isEmpty { grow() }
        case .provesNothing:
            laneSet.mirrors.postpone(url)
            laneEnded(lane)
        case .refused(let reason):
            if let head = trial.head { schedule.recordPause(RetryRules.error(for: head, now: clock.date), from: url) }
            refuseMirror(url, reason)
            laneEnded(lane)
        }
    }

    /// The mirror gets no further connection in this attempt.
    func refuseMirror(_ url: String, _ reason: String) {
        laneSet.mirrors.refuse(url)
        run.appendHistory(by: "mirror", "\(url.masked) is not used at once: \(reason)")
    }

    // MARK: Connections of a host

    /// The host of a lane's requests.
    func host(of lane: Lane) -> String { lane.mirror.map { $0.site } ?? entry.host }

    /// Acquires a permit for a further connection. Returns false while its host accepts none. The first connection of an
    /// attempt has the permit of the slot.
    func acquirePermit(for lane: Lane) -> Bool {
        guard let permit = schedule.hosts.acquire(host(of: lane), for: asker, now: clock.now) else { return false }
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
