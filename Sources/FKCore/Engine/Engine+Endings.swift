import FKMiddleware
import Foundation

/// What follows when a response has ended: the next range, verifying, another try, or the end of the attempt.
extension Engine {
    /// Everything the transport's thread has left since the last time, in order.
    func handleEvents() {
        // Slots that become free meanwhile are filled at once behind all of the news: one wake-up of the transport.
        isScheduling = true
        defer {
            isScheduling = false
            schedule()
        }
        for event in inbox.take() {
            switch event {
            case .gate(let id, let receiver):
                guard let entry = tasks[id], let attempt = entry.attempt, let lane = attempt.lane(of: receiver) else {
                    continue
                }
                if !attempt.isEnding, !lane.isUnwanted { openGate(lane, receiver, entry, attempt) }
            case .end(let id, let receiver):
                guard let entry = tasks[id], let attempt = entry.attempt, let lane = attempt.lane(of: receiver) else {
                    continue
                }
                responseEnded(lane, receiver, entry, attempt)
            case .trial(let id, let number, let trial):
                guard let entry = tasks[id], let attempt = entry.attempt,
                    let lane = attempt.lane(number: number), lane.trial != nil
                else { continue }
                trialEnded(lane, trial, entry, attempt)
            }
        }
    }

    private func responseEnded(_ lane: Lane, _ receiver: RangeReceiver, _ entry: TaskEntry, _ attempt: Attempt) {
        lane.operation = nil
        lane.receiver = nil
        do throws(DownloadError) {
            if !receiver.askedEngine, !receiver.isRecorded, lane.claim == nil, lane.mirror == nil {
                try adopt(receiver, entry, attempt)
            }
        } catch {
            attempt.diskError = error
        }
        foldCounters(entry, attempt)
        if let piece = receiver.piece { entry.record.pieces = (entry.record.pieces ?? []) + [piece] }
        if attempt.isEnding || lane.isUnwanted { return laneEnded(lane, entry, attempt) }
        if let error = attempt.diskError { return end(attempt, .fail(error), entry, without: lane) }
        guard let outcome = receiver.outcome else { return }
        switch outcome {
        case .ended(.success(let summary)):
            bodyEnded(lane, receiver, summary, entry, attempt)
        case .ended(.failure(let error)):
            laneFailed(lane, error, entry, attempt)
        case .complete(let total):
            entry.record.expected = total
            entry.record.ranges = [SavedRange(start: 0, end: total, position: total)]
            laneEnded(lane, entry, attempt)
        case .askAgain(let again):
            let reason =
                receiver.head.map { ResumeRules.reason($0, receiver.plan.ask, receiver.plan.known) }
                ?? "the server's answer to a range request was not usable"
            ask(again, reason, lane, entry, attempt)
        case .seamDiffers:
            ask(.withoutRange, "the bytes before the seam are not the ones we hold: another file", lane, entry, attempt)
        case .seamProvesNothing:
            ask(
                .withoutRange,
                "the bytes before the seam are all alike: they cannot tell the mirror's file from another",
                lane, entry, attempt)
        }
    }

    private func bodyEnded(
        _ lane: Lane, _ receiver: RangeReceiver, _ summary: TransportSummary, _ entry: TaskEntry, _ attempt: Attempt
    ) {
        let index = receiver.index
        guard entry.record.ranges.indices.contains(index) else {
            let error = DownloadError(.protocolViolation, "The server's answer had no usable head.")
            return laneFailed(lane, error, entry, attempt)
        }
        if let end = entry.record.ranges[index].end {
            guard receiver.position >= end || receiver.position > receiver.plan.ask.start else {
                let error = DownloadError(
                    .incompleteBody,
                    "The server sent nothing of what is missing: \(Plural.count(end - receiver.position, "byte")).",
                    isRetryable: true)
                return laneFailed(lane, error, entry, attempt)
            }
        } else {
            entry.record.ranges[index].end = receiver.position
            entry.record.expected = receiver.position
        }
        entry.record.lengthVerified = summary.lengthVerified ? nil : false
        if let digester = receiver.digester, receiver.position == entry.record.expected {
            attempt.digest = (digester.algorithm, digester.hex())
        }
        laneIsFree(lane, entry, attempt)
    }

    private func ask(
        _ again: ResumeRules.Again, _ reason: String, _ lane: Lane, _ entry: TaskEntry, _ attempt: Attempt
    ) {
        let next = ResumeRules.ask(again: again, after: lane.lastAsk)
        // A claim that the server does not serve costs nothing: what runs goes on without it.
        if again != .withoutRange, lane.claim != nil {
            let refusal = DownloadError(.badRange, "The server does not serve ranges of this file: \(reason).")
            return laneFailed(lane, refusal, entry, attempt)
        }
        // Nor does a mirror's answer say anything about the file that the others fetch.
        if again != .plainRange, lane.mirror != nil {
            return laneFailed(lane, DownloadError(.badRange, reason, isRetryable: true), entry, attempt)
        }
        lane.asksAgain += 1
        guard lane.asksAgain <= 3 else {
            let error = DownloadError(
                .badRange, "The server does not answer range requests as RFC 9110 section 14 asks.", isRetryable: true)
            return laneFailed(lane, error, entry, attempt)
        }
        remember(entry, by: "range", reason)
        guard again == .plainRange || attempt.lanes.count == 1 else {
            return end(attempt, .restart(next), entry, without: lane)
        }
        lane.nextAsk = next
        ask(with: lane, entry, attempt)
    }

    /// Takes the live counters over into the record.
    func foldCounters(_ entry: TaskEntry, _ attempt: Attempt) {
        for index in entry.record.ranges.indices {
            entry.record.ranges[index].position = entry.record.ranges[index].clamped(attempt.counters.load(index))
        }
        entry.isDirty = true
    }

    // MARK: Failing

    /// An attempt has failed: wait and try again, or end in error. `RetryRules` decides.
    func fail(_ entry: TaskEntry, _ error: DownloadError, resumed: Bool) {
        if error.isOutOfDescriptors, running.count > 1 { return waitForDescriptors(entry) }
        var error = error
        let plan = [entry.record.task.url] + entry.record.task.mirrors
        let url = entry.attempt?.url ?? entry.nextURL
        error.url = error.url ?? URLMasking.mask(url)
        let previous = entry.work.previousError
        entry.work.previousError = error
        entry.record.error = error
        entry.record.path = nil
        remember(entry, by: "attempt \(entry.record.attempts)", error.message)
        var policy = configure.retry
        if let maxAttempts = entry.record.task.options.maxAttempts { policy.maxAttempts = maxAttempts }
        let decision = RetryRules.decide(
            error: error, attempt: entry.record.attempts, policy: policy, mirrors: entry.record.task.mirrors.count,
            resumed: resumed || RetryRules.looksSigned(url), random: Double.random(in: 0..<1),
            nextIsSame: plan[entry.record.attempts % plan.count] == url, previous: previous)
        switch decision {
        case .retry(let seconds, let index, let pause):
            entry.urlIndex = index
            let asker = pause.map { pauseHost(site(of: error, from: url), seconds: $0) }
            if seconds > 0 {
                let reason: Waiting.Reason = error.code == .noSpace ? .noSpace : .retry
                entry.record.waiting = Waiting(
                    reason, until: clock.date + seconds, host: seconds == pause ? asker : nil)
            }
            end(entry, as: .idle)
            setDeadline()
        case .fail:
            let head = entry.attempt?.head
            if let attempt = entry.attempt, entry.received == 0 {
                // Nothing worth keeping: an empty hidden file would only be in somebody's way.
                attempt.part.remove()
                entry.record.partName = nil
            }
            entry.record.finished = clock.date
            end(entry, as: .error)
            tellResponseChain(entry, head: head, error)
        }
    }

    /// Others have what this task needs: it gets its turn when one of them ends, and this was no attempt of its own.
    private func waitForDescriptors(_ entry: TaskEntry) {
        descriptors.ranOut(running: running.count - 1, now: clock.now)
        entry.record.attempts -= 1
        entry.record.path = nil
        entry.record.finished = nil
        end(entry, as: .idle)
    }

    // MARK: Ending

    /// The attempt is over: its slot is free, its record is written, and the task is in `state`.
    func end(_ entry: TaskEntry, as state: DownloadState) {
        let attempt = entry.attempt
        if let attempt {
            foldCounters(entry, attempt)
            if state != .complete, !entry.awaitsProof, entry.record.received > 0 { leavePart(of: entry, attempt) }
            attempt.part.close()
            attempt.counters.detach()
        }
        entry.attempt = nil
        let isNews = set(entry, to: state)
        // A task that is being trashed has no record any more.
        let isOnDisk = state == .complete && attempt?.isRecordedComplete == true
        if isOnDisk {
            entry.isDirty = false
        } else if state != .unknown {
            write(entry)
        }
        entry.workIfAny?.openInfo = nil
        attemptEnded(entry, attempt)
        // Only now: who hears that a task is complete may end the process, or look into the info file.
        if isNews {
            stateChanged(entry)
        } else if state.isSettled {
            endBarrelSequences(of: entry)
        }
        releaseSlot(of: entry)
        if state.isSettled, entry.attempt == nil { entry.forgetWork() }
        retire(entry)
        attempt?.end()
    }

    /// Notes how the part file is left, for the next attempt to compare. One that bears its final name already is not there to
    /// be noted, and bytes of a file that somebody has removed or replaced are lost: a time alone does not tell two files
    /// apart that were written to within one tick of the kernel's clock (4 ms).
    private func leavePart(of entry: TaskEntry, _ attempt: Attempt) {
        if attempt.part.hasItsName {
            entry.record.partTime = attempt.part.time
        } else if entry.record.path == nil {
            remember(entry, by: "resume", "somebody has removed or replaced the part file: starting again")
            dropBytes(of: entry)
        }
    }

    /// Has an attempt end soon: `attemptStopped` follows once nothing of it runs any more.
    func signalStop(of entry: TaskEntry, _ stop: Attempt.Stop) -> Attempt? {
        guard let attempt = entry.attempt else { return nil }
        if attempt.stop != .droppingBytes { attempt.stop = stop }
        attempt.lanes.forEach { $0.cancel() }
        attempt.chain?.cancel()
        attempt.part.abandon()
        return attempt
    }

    /// Ends an attempt from outside.
    ///
    /// - Parameter patiently: also waits for a middleware that is at work for it.
    /// - Returns: true when nothing of it runs any more; false where it ends once its middleware has returned.
    func stopAttempt(of entry: TaskEntry, _ stop: Attempt.Stop, patiently: Bool) async -> Bool {
        guard let attempt = signalStop(of: entry, stop) else { return true }
        guard patiently && !isClosing || !attempt.isInMiddleware else { return false }
        return await attempt.ended()
    }

    /// Verbs do not wait for ever for middlewares that may wait for them.
    func releaseLongWaiters() {
        for entry in running.values where entry.attempt?.stop != nil { entry.attempt?.releaseLongWaiters() }
    }

    /// Whatever was going on has reported back, and nobody wants it any more.
    func attemptStopped(_ entry: TaskEntry, _ attempt: Attempt) {
        foldCounters(entry, attempt)
        // A comparison has nothing to drop: its file is the finished one.
        if attempt.stop == .droppingBytes, !entry.awaitsProof {
            // It may have got its final name already, and be in the hands of the response chain.
            if let path = entry.record.path, attempt.folder.status(of: attempt.part.name) == nil {
                if entry.record.owns(path) {
                    unlink(path)
                } else if FileIdentity(path: path) != nil {
                    problems.append("\(path) stays: it is not the file as the task left it.")
                }
            }
            removeLeftBehind(entry)
            attempt.part.remove()
            dropBytes(of: entry)
        }
        // While the engine closes, nobody has given a verb: the task goes on with the next engine.
        let state = entry.record.state == .action ? .idle : entry.record.state
        end(entry, as: state)
        if state == .unknown { attempt.trashNote = forget(entry) }
    }

    /// Forgets everything that was received of a task.
    func dropBytes(of entry: TaskEntry) {
        for index in entry.record.ranges.indices { entry.attempt?.counters.store(index, 0) }
        entry.record.ranges = []
        entry.rangesChanged = true
        entry.record.expected = nil
        entry.record.validator = nil
        entry.record.source = nil
        entry.record.partName = nil
        entry.record.partTime = nil
        entry.record.pieces = nil
        entry.record.path = nil
        entry.record.written = nil
        entry.record.lengthVerified = nil
        account(entry)
    }

    // MARK: Records

    /// Adds a line to the task's history, which keeps the newest eight.
    func remember(_ entry: TaskEntry, by: String, _ what: String) {
        if by == "resume" { entry.work.dropReason = entry.work.dropReason ?? what }
        entry.record.history.append(Verdict(time: clock.date, by: by, what: what))
        if entry.record.history.count > 8 { entry.record.history.removeFirst() }
        entry.isDirty = true
    }

    /// Writes the record in place. A disk that refuses is reported and the record stays dirty, for the next tick.
    func write(_ entry: TaskEntry) {
        // A task that is being trashed has no record any more, and what another engine owns is not ours to write.
        guard entry.record.state != .unknown, mayWrite else { return }
        do throws(DownloadError) {
            try save(entry)
            guard entry.record.leftBehind != nil else { return }
            // A name that is gone goes through the file system's journal, ahead of the record that tells why.
            if configure.durability == .power { try synchronizeInfo(entry) }
            removeLeftBehind(entry)
            try save(entry)
        } catch {
            problems.append(error.description)
        }
    }

    /// - Parameter written: the state that is written instead of the task's present one; the ranges are then those of the
    ///   finished file already, which the counters know nothing of.
    ///
    /// - Throws: `.cancelled` without the lock of the work path; `.disk` and the like.
    func save(_ entry: TaskEntry, as written: DownloadState? = nil) throws(DownloadError) {
        guard mayWrite else { throw DownloadError(.cancelled, "The downloader is closed.") }
        beat()
        if let attempt = entry.attempt, written == nil { foldCounters(entry, attempt) }
        let state = entry.record.state
        // What is yet to be proven stays so in the record: complete, in the boot it was finished in.
        entry.record.state = written ?? entry.standing
        defer { entry.record.state = state }
        // Those that are attached have been written anew.
        let boot = entry.record.bootID
        let dropsCounters =
            boot != nil && boot != BootID.current && !entry.hasCleanCounters
            && entry.attempt?.counters.isAttached != true
        if !entry.awaitsProof { entry.record.bootID = BootID.current }
        entry.record.bytesPerSecond = speedToRecord(of: entry, in: entry.record.state)
        do {
            try InfoFile.update(
                workPath.infoPath(entry.id), record: entry.record, handle: &entry.info,
                counters: entry.awaitsProof ? nil : entry.attempt?.counters, rangesChanged: entry.rangesChanged,
                dropsCounters: dropsCounters,
                open: entry.workIfAny?.openInfo)
        } catch {
            entry.record.bootID = boot
            throw DownloadError(wrapping: error, code: .disk, message: "The info file could not be written.")
        }
        entry.rangesChanged = false
        entry.isDirty = false
        entry.isRecovered = false
    }
}
