import FKMiddleware
import Foundation

/// How an attempt ends: complete, failed, stopped or past its deadline, and what becomes of its bytes.
extension TaskRun {
    // MARK: Completing

    /// Completes the task.
    ///
    /// - Parameter isRecorded: true if the record on disk says so already; the default is false.
    func complete(isRecorded: Bool = false) {
        let isRecorded = !entry.record.removeSetAside() && isRecorded
        if !isRecorded { entry.record.finish(received: entry.received, at: clock.date) }
        counters?.store(0, entry.record.expected ?? 0)
        entry.record.forgetPart()
        entry.limiter = nil
        phases.completes(entry)
        end(as: .complete, isRecorded: isRecorded)
        phases.completed(entry)
    }

    // MARK: Failing

    /// The attempt has failed. `RetryRules` decides whether another one follows.
    func fail(_ error: DownloadError, resumed: Bool? = nil) {
        if isOver { return }
        if error.isOutOfDescriptors, schedule.taken > 1 { return waitForDescriptors() }
        let part = part
        let url = part?.url ?? entry.nextURL
        var error = entry.record.secretBook.mask(error)
        error.url = error.url ?? url.masked
        if let policy = retryPolicy(for: error, from: url), !error.isRetryable {
            error.isRetryable = true
            recordHost("the policy of \(policy) says that \(error.status ?? 0) is retried")
        }
        record(error)
        appendHistory(by: "attempt \(entry.record.attempts)", error.message)
        if part != nil, !attempt.dropsAll { entry.record.recordProgress(received: entry.received) }
        let rules = attempt.decide(
            error, of: entry.record, from: url, received: part == nil ? 0 : entry.received,
            isResumed: resumed ?? (part?.isResumed == true && !attempt.dropsAll), policy: configure.retry,
            random: Double.random(in: 0..<1))
        let failure = FailedAttempt(self, error, rules, from: url)
        guard failure.asksMiddlewares else { return follow(rules, error) }
        dropEmptyPart()
        park(failure)
    }

    /// Names a policy of the host in the history, once while it is the last one of its kind.
    func recordHost(_ what: String) {
        if entry.record.history.last(where: { $0.by == "host" })?.what != what { appendHistory(by: "host", what) }
    }

    /// The policy of the host that lets the status of an answer be retried; nil for none.
    private func retryPolicy(for error: DownloadError, from url: String) -> String? {
        guard error.code == .httpStatus, let status = error.status else { return nil }
        let policies = schedule.hosts.policies
        return policies.retrying(status, of: entry.host) ?? policies.retrying(status, of: error.site(from: url))
    }

    /// True if no attempt follows a failure of this one.
    var isLastAttempt: Bool {
        let most = entry.record.task.optionsBox?.value.maxAttempts ?? configure.retry.maxAttempts
        var record = entry.record
        record.recordProgress(received: entry.received)
        return record.countedAttempts >= most && record.attempts >= record.planCount
    }

    private func record(_ error: DownloadError) {
        attempt.fail(error)
        entry.record.fail(error)
    }

    /// Ends the failed attempt as it was decided.
    func follow(_ decision: RetryRules.Decision, _ error: DownloadError) {
        let url = part?.url ?? entry.nextURL
        var error = entry.record.secretBook.mask(error)
        error.url = error.url ?? url.masked
        record(error)
        switch decision {
        case .retry(let seconds, let index, let pause):
            entry.urlIndex = (index + entry.record.firstOfPlan) % entry.record.plan.count
            let asker = pause.map { seconds in
                let site = error.site(from: url)
                // The tasks of a host wait for its mirror, too.
                return schedule.pauseHost(site == url.site ? entry.host : site, seconds: seconds)
            }
            if seconds > 0 {
                let reason: Waiting.Reason = error.code == .noSpace ? .noSpace : .retry
                entry.record.setWaiting(
                    Waiting(reason, until: clock.date + seconds, host: seconds == pause ? asker : nil))
            }
            end(as: .idle)
            schedule.setDeadline()
        case .askAgain:
            entry.record.undoAttempt()
            end(as: .idle)
        case .wait(let seconds):
            entry.record.undoAttempt()
            entry.record.setWaiting(Waiting(.retry, until: clock.date + seconds))
            end(as: .idle)
            schedule.setDeadline()
        case .fail:
            if entry.record.isRepair {
                // The copy of the damaged file is of no use without the repair.
                entry.record.removePart(of: book.workPath, book.owner)
                dropBytes()
            }
            dropEmptyPart()
            entry.record.giveUp(at: clock.date)
            end(as: .error)
        }
    }

    /// An empty part file is of no use to the next attempt.
    private func dropEmptyPart() {
        guard let part, entry.received == 0 else { return }
        part.file.remove()
        entry.record.forgetPart()
    }

    /// Other tasks hold the descriptors that this one needs. It continues when one of them ends, and this attempt does not
    /// count.
    private func waitForDescriptors() {
        schedule.descriptors.ranOut(running: schedule.taken - 1, now: clock.now)
        entry.record.putBack()
        end(as: .idle)
    }

    // MARK: Stopping

    /// Stops the run of a task that is past its deadline and in state error already. Its bytes stay.
    func expire(_ error: DownloadError) {
        attempt.fail(error)
        signalStop(.keepingBytes)
    }

    /// Ends the run of a task that is past its deadline.
    func expired(_ error: DownloadError) {
        attempt.fail(error)
        entry.record.expire(error, at: clock.date)
        // A failed task has no finished file.
        if let part, entry.record.isPublished { try? entry.unpublish(in: part.home, book.owner) }
        let head = heads.last
        end(as: .error)
        ResponseChainEnd.tell(error, of: entry, head: head, book)
    }

    /// Ends a stopped run once its work and its lanes have ended.
    func stopped() {
        if isOver { return }
        entry.foldCounters()
        // Attempts count failures, and a stop is none. A comparison has not counted.
        if !entry.awaitsProof, entry.record.state != .error { entry.record.undoAttempt() }
        // A comparison has no bytes to drop: its file is the finished one.
        if stop == .droppingBytes, !entry.awaitsProof { dropFiles() }
        // A closing engine gives no verb: the task continues with the next engine.
        let state = entry.record.state == .action ? .idle : entry.record.state
        if state == .error, let failure = attempt.failure { return expired(failure) }
        end(as: state)
    }

    private func dropFiles() {
        // The file may have its final name already, while the response chain runs.
        if let path = entry.record.path, let part, !part.file.hasItsName {
            if entry.kept.hasRenewed, entry.record.former != nil {
                // It has replaced the finished file already.
                FileOwner.clear(path)
            } else if case .stays(let reason) = entry.record.remove(path, for: .cancel, book.owner) {
                book.problems.append("\(path) stays: \(reason).", code: .fileExists)
            }
        }
        entry.removeLeftBehind()
        if let part { part.file.remove() } else { entry.record.removePart(of: book.workPath, book.owner) }
        dropBytes()
    }

    /// Closes the part file for the next attempt.
    ///
    /// It records the time of the file, which the next attempt compares. If another program has removed or replaced the file, the
    /// bytes are lost. The time alone does not prove that: two files written within one tick of the kernel's clock (4 ms) have
    /// the same time.
    func leavePart(isComplete: Bool = false) {
        guard let part else { return }
        entry.foldCounters()
        if !isComplete, !entry.awaitsProof, entry.record.received > 0 {
            if part.file.hasItsName {
                entry.record.leavePart(part.file.time)
            } else if entry.record.path == nil {
                appendHistory(by: "resume", "somebody has removed or replaced the part file: starting again")
                dropBytes()
            }
        }
        part.file.close()
        part.counters.detach()
    }

    /// Reports the end of the attempt. The record already has the next state.
    func tellEnd(_ state: DownloadState) {
        if state == .complete {
            reporter.tellAttempt(entry, self, .succeeded)
        } else if stop != nil, state != .error {
            reporter.tellAttempt(entry, self, .stopped)
        } else if let failure = attempt.failure {
            reporter.tellAttempt(entry, self, .failed(failure, next: nextStep))
        }
        for target in [Observers.Target.id(entry.id), .url(entry.record.task.url)] {
            reporter.endAttemptSequences(target, behindAttemptOf: entry)
        }
    }

    private var nextStep: AttemptInfo.Next {
        guard entry.record.state == .idle else { return .gaveUp }
        return .retry(url: entry.nextURL.masked, at: entry.record.waiting?.until ?? clock.date)
    }

    // MARK: The record

    /// Adds a line to the task's history.
    func appendHistory(by: String, _ what: String) { book.appendHistory(entry, by: by, what) }

    /// Records what a middleware has decided.
    func record(_ note: MiddlewareCall.Note) { entry.recordDecision(of: note.name, note.what, at: clock.date) }

    /// The final name of the file: from the task, the server or the URL, in this order.
    ///
    /// - Parameter head: that of the last response; nil takes the recorded one.
    func finalName(_ head: ResponseHead?) -> String {
        entry.record.task.fileName ?? FileNameRules.name(own: urlName, head: head ?? entry.record.response)
    }

    /// When bytes of several sources may be combined.
    var mirrorPolicy: MirrorPolicy { entry.record.task.optionsBox?.value.mirrorPolicy ?? configure.mirrorPolicy }

    /// Each entry of the plan is another file: nothing of the file of another entry is kept.
    func forgetOtherFile() {
        let address = schedule.hosts.policies.mirrored(entry.nextURL)
        guard !entry.record.isRepair, entry.record.source != (address == entry.record.task.url ? nil : address)
        else { return }
        if entry.received > 0 {
            appendHistory(
                by: "plan", "\(entry.received.plural("byte")) dropped: \(address.masked) is another file")
        }
        entry.record.removePart(of: book.workPath, book.owner)
        dropBytes()
        entry.record.forgetAnswer()
    }

    /// Forgets all received bytes.
    func dropBytes(because error: DownloadError? = nil) {
        entry.dropBytes(because: error)
        reporter.account(entry)
    }

    /// The received bytes are wrong. The next attempt begins without a byte. Readers of the bytes get the error.
    func startAnew(because error: DownloadError) {
        attempt.dropAll(entry.received)
        // Listeners that count bytes get them before they are gone.
        reporter.tellReceived(entry)
        dropBytes(because: error)
    }

    /// The bytes of a repair do not belong to the finished file. None of them stays.
    func refuseRepair(_ part: OpenPart) -> DownloadError {
        part.file.remove()
        startAnew(because: .otherVersion)
        return .otherVersion
    }
}

extension TaskEntry {
    /// Gives the part's name back to the file, because the response chain was interrupted with its process and runs again, or
    /// because the final name could not be synced.
    func unpublish(in folder: Folder, _ owner: FileOwner) throws(DownloadError) {
        guard let path = record.path, let part = record.partName else { return }
        if try record.reclaim(path, as: part, in: folder, owner) { record.dropPath() }
    }

    /// True if something vouches for the bytes of any source: the digests of pieces, or a digest of the whole file that did not
    /// come from a server. Validators then need not be strong.
    var isVouched: Bool { hasPieceDigests || record.task.optionsBox?.value.checksum != nil }
}
