import FKMiddleware
import Foundation

/// The head of a response: the head stage, the gate, and the changes of the record.
extension Transfer {
    /// Asks response middlewares about the head, and then opens the gate.
    func headArrived(_ lane: Lane, _ receiver: RangeReceiver) {
        answered(lane, receiver.head)
        let chain = lane.claim == nil && lane.mirror == nil ? entry.middlewares(of: book.chains.response) : []
        guard !chain.isEmpty, let response = receiver.head?.httpURLResponse else { return openGate(lane, receiver) }
        let context = entry.context
        lane.headStage.isRunning = true
        lane.chain = Task { [inbox, id = entry.id] in
            let (refusal, notes) = await MiddlewareCall.inChain(of: inbox.engine, id) {
                await FailureStage.accept(chain, response, context)
            }
            inbox.post(.judged(id, receiver, refusal, notes))
        }
    }

    /// The head stage has ended.
    func headJudged(_ lane: Lane, _ receiver: RangeReceiver, _ refusal: DownloadError?) {
        lane.chain = nil
        lane.headStage.isRunning = false
        if !isEnding, !lane.isUnwanted {
            if let refusal {
                fail(refusal)
                record(refused: receiver.head)
                lane.cancel()
            } else {
                openGate(lane, receiver)
            }
        }
        endIfOver(lane, receiver)
    }

    /// The response may have ended while its head was waited for.
    private func endIfOver(_ lane: Lane, _ receiver: RangeReceiver) {
        guard lane.headStage.responseHasEnded, !lane.headStage.isRunning else { return }
        lane.headStage.responseHasEnded = false
        responseEnded(lane, receiver)
    }

    /// Deletes finished files on another thread. The body waits meanwhile.
    private func makeRoom(
        _ lane: Lane, _ receiver: RangeReceiver, _ work: @escaping @Sendable () -> Result<TrimmedFiles, DownloadError>
    ) {
        lane.headStage.isRunning = true
        run.onDisk { [inbox, id = entry.id] in inbox.post(.roomMade(id, receiver, work())) }
    }

    /// There is room, or there can be none.
    func roomMade(_ lane: Lane, _ receiver: RangeReceiver, _ result: Result<TrimmedFiles, DownloadError>) {
        lane.headStage.isRunning = false
        do throws(DownloadError) {
            try recordTrimmed(result, for: receiver.total ?? 0)
            if !isEnding, !lane.isUnwanted { openGate(lane, receiver) }
        } catch {
            if !isEnding { fail(error) }
            lane.cancel()
        }
        endIfOver(lane, receiver)
    }

    /// Writes the record for a head that has arrived, before a byte of the part is overwritten.
    func openGate(_ lane: Lane, _ receiver: RangeReceiver) {
        do throws(DownloadError) {
            if lane.claim == nil, lane.mirror == nil, let total = receiver.total, let work = try room(for: total) {
                return makeRoom(lane, receiver, work)
            }
            useMirrors()
            if lane.claim != nil, !settle(lane, receiver) { return unwant(lane) }
            if lane.claim == nil, lane.mirror == nil, let total = receiver.total { try reserveRoom(total) }
            // A body that passes the gate has its record updated at most once a second.
            run.closeInfo()
            try book.attach(part.counters, of: entry)
            if let mirror = lane.mirror { recordSource(of: receiver, mirror) } else { try adopt(receiver) }
            let plan = receiver.plan
            if let head = receiver.head,
                ResumeRules.needsDigest(head: head, ask: plan.ask, known: plan.known, segments: plan.segments)
            {
                entry.record.requireDigest()
            }
            // The digest may have been taken away since the request was sent.
            if entry.record.version.isUnproven { return run.restart() }
            try book.save(entry)
        } catch {
            fail(error)
            lane.cancel()
            return
        }
        reporter.account(entry)
        entry.feed?.wake()
        if seeks(lane) { return }
        receiver.openGate()
        laneSet.answered(lane, received: entry.received, now: clock.now)
        lane.request.operation?.resume()
        grow()
    }

    /// Stores in the record what a response head says about the file.
    func adopt(_ receiver: RangeReceiver) throws(DownloadError) {
        guard let head = receiver.head, let decision = receiver.decision else { return }
        record(head: head)
        receiver.isRecorded = true
        if case .startOver = decision, entry.record.isRepair, case .refuted = receiver.plan.known.joins(head) {
            throw run.refuseRepair(part)
        }
        switch decision {
        case .append(_, _, let length):
            if entry.record.ranges.isEmpty {
                entry.remakeRanges { $0.adopt(length: length) }
            } else {
                entry.record.adopt(length: length)
            }
        case .startOver(let length) where !receiver.askedEngine:
            // A small body is written to an empty part without a gate. Its counter may have advanced already.
            entry.remakeRanges { $0.startOver(length: length) }
        case .startOver(let length):
            tellReaders(of: receiver)
            if entry.record.received > 0 {
                let name = receiver.plan.known.isOtherSource ? "the mirror" : "the server"
                run.appendHistory(
                    by: "resume",
                    "\(name) sends the file from its beginning: \(entry.record.received.plural("byte")) dropped")
                try part.file.truncate(to: 0)
            }
            entry.remakeRanges { $0.startOver(length: length) }
            restart(receiver)
        default: return
        }
        recordSource(of: receiver, url)
        adoptValidator(of: head, receiver)
        adoptOfferedMirrors(head)
        entry.record.adopt(head.essentials)
    }

    /// Readers that have read bytes of the file continue only if it is the same one.
    private func tellReaders(of receiver: RangeReceiver) {
        guard let feed = entry.feed, !entry.record.ranges.isEmpty else { return }
        let masked = url.masked
        switch receiver.head.map({ receiver.plan.known.joins($0) }) {
        case .proven(let evidence) where evidence != .comparison && !(isStream && entry.hasPieceDigests):
            feed.dropped(because: nil)
        case .refuted:
            feed.dropped(
                because: DownloadError(
                    .changedOnServer, "The file has changed on the server while it was read.", url: masked))
        default:
            feed.dropped(
                because: DownloadError(
                    .incompleteBody,
                    "The connection was lost, and the file would come from its beginning. Nothing proves that it is the same one.",
                    url: masked))
        }
    }

    /// Records the source of a range before its first byte arrives, so that after a crash no byte is attributed to another
    /// source.
    private func recordSource(of receiver: RangeReceiver, _ source: String) {
        guard entry.record.ranges.indices.contains(receiver.index) else { return }
        let range = entry.record.ranges[receiver.index]
        if case .startOver = receiver.decision { return entry.record.record(0..<Int64.max, from: source) }
        entry.record.record(range.position..<max(range.position, range.end ?? .max), from: source)
    }

    /// Stores the validator with its URL. A digest is valid for all URLs; that of the first server binds them.
    private func adoptValidator(of head: ResponseHead, _ receiver: RangeReceiver) {
        let source = url == entry.record.task.url ? nil : url
        let digest = entry.record.serverDigest
        let sent = Validator(head)
        if entry.record.validator == nil || entry.record.source != source { entry.record.adopt(sent, of: source) }
        if sent.digest != nil || entry.record.announced != nil {
            var isWhole = false
            if case .startOver = receiver.decision { isWhole = true }
            let joining = receiver.plan.known.joins(head)
            entry.record.bind(
                to: .after(
                    entry.record.announced, sent.digest, from: url, isOwn: url == entry.record.address(0),
                    isWhole: isWhole,
                    isSame: joining == .proven(by: .entityTag) || joining == .proven(by: .lastModified)))
        }
        // A server may send it only with a part of the file.
        if let digest = entry.record.announced?.checksum ?? ServerDigest.stronger(digest, sent.digest) {
            entry.record.adopt(digest)
        }
        recordCoding()
    }

    /// Adds a line to the history if the server sends the file with a content coding, once.
    private func recordCoding() {
        guard let coding = entry.record.validator?.coding else { return }
        let what = "the server sends the file with Content-Encoding \(coding): its bytes are kept as sent"
        if !entry.record.history.contains(where: { $0.what == what }) { run.appendHistory(by: "coding", what) }
    }
}
