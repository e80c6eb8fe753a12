import FKMiddleware
import Foundation

/// One attempt of a task, from its slot to the end. Confined to the engine.
///
/// ```text
/// start -> prepare (part file) -> lanes: ask -> gate -> body -> next range … -> finish (verify, name, respond) -> end
///              \-> prove (a finished file of another boot is compared) ----------------^
/// ```
///
/// It owns the lanes and changes the record while it lasts. Events of the transport arrive through its methods. It asks
/// for asynchronous work in `work`, and the engine performs it. A stop may come at any moment: the work and the lanes then
/// end, and the run ends in `stopped`.
final class TaskRun {
    /// The part file and its counters.
    struct Files {
        let folder: Folder
        let part: PartFile
        let counters: LiveCounters
        /// True if the part had bytes when the attempt began.
        let isResumed: Bool
        /// The URL of the attempt: the task's own, or a mirror.
        let url: String
    }

    let entry: TaskEntry
    /// The engine holds it, and calls a run only while it lives.
    unowned let room: RunRoom
    /// The number of attempts that this engine has begun so far, which orders the running tasks.
    let order: UInt64
    /// The facts of the attempt.
    private(set) var attempt: Attempt
    var speed = SpeedMeter()
    /// When the last byte arrived, as far as it was noticed.
    private(set) var lastByte: Date?
    /// The bytes that were there then.
    private var seen: Int64
    /// The asynchronous work.
    private var work = RunWork()
    /// The info file, where it stays open: from the reading of a parked task to the first gate, and from the record with
    /// the final name to the end.
    var openInfo: OpenInfoFile?
    /// The connection of the task's slot. The slot keeps it while only mirrors are in use.
    private var permit: HostPermit?
    /// Nil until the part file is open. Lanes, verifying and publishing begin after that.
    private var opened: Files?
    /// The rate limits for all of its connections.
    let limits = LimiterSet()
    /// The connections.
    var laneSet = LaneSet()
    /// What became of the files of a task that was trashed or forgotten.
    private(set) var forgottenNote = "forgotten"
    /// The digest of the whole file, if its bytes arrived in order.
    var digest: (algorithm: Checksum.Algorithm, hex: String)?
    /// Computes the digest of a large file whose bytes arrived in order.
    var follower: DigestFollower?
    /// The checksums of the pieces that have arrived in this attempt.
    var sums = PieceSums()
    /// The checksums of all pieces of the finished file, once they are known (`settleSums`).
    var finishedSums: [UInt32]?
    /// The pieces that were compared with a list's digests; nil until they are needed.
    var ledger: PieceLedger?
    /// True if the digests of pieces are lost.
    var isWithoutPieces = false
    /// True while pieces are compared and others arrive.
    var isComparing = false
    /// The number of pieces that were dropped because they are wrong.
    var reopens = 0
    /// True if the record on disk says that the task is complete.
    var isRecordedComplete = false
    /// A failure of the local disk, or a refusal by the head stage. It replaces the result of the transfer.
    var localError: DownloadError?
    /// The head of the response that failed last; nil if no server answered.
    var refusedHead: ResponseHead?
    /// True if free space is reserved for the missing bytes.
    var hasRoom = false
    /// The name that the URL alone gives to the file.
    lazy var urlName = FileNameRules.name(url: entry.record.task.url, head: nil)
    /// True once the rest of a body whose end nothing showed was requested.
    var wasAskedForEnd = false
    /// The head of the last response, with all fields.
    var head: ResponseHead?

    var book: TaskBook { room.book }
    var schedule: Schedule { room.schedule }
    var reporter: Reporter { room.reporter }
    var clock: any EngineClock { room.schedule.clock }
    var configure: Configure { room.schedule.configure }

    var folder: Folder { files.folder }
    var part: PartFile { files.part }
    /// The URL of the attempt: the task's own, or a mirror.
    var url: String { opened?.url ?? entry.nextURL }
    /// Nil while no part file is open.
    var counters: LiveCounters? { opened?.counters }
    /// Only valid while the part file is open.
    var files: Files {
        guard let opened else { preconditionFailure("a run without its part file") }
        return opened
    }

    var lanes: [Lane] { laneSet.lanes }

    /// Set once the run is to stop.
    var stop: RunWork.Stop? { work.stop }

    /// True once the lanes are to end.
    var isEnding: Bool { stop != nil || laneSet.afterLanes != nil }

    /// True while a response middleware runs for it.
    var isResponding: Bool {
        get { work.isResponding }
        set { work.isResponding = newValue }
    }

    /// True while a request or response middleware runs for it.
    var isInMiddleware: Bool { isResponding || lanes.contains { $0.chain != nil } }

    /// Acquires the task's slot. `start` follows.
    init(_ entry: TaskEntry, in room: RunRoom, openInfo: OpenInfoFile? = nil) {
        self.entry = entry
        self.room = room
        self.openInfo = openInfo
        attempt = Attempt(entry, now: room.schedule.clock.now)
        permit = room.schedule.hosts.acquire(entry.host, now: attempt.began)
        seen = entry.received
        lastByte = entry.record.partTime == nil ? nil : entry.record.lastByteAt
        order = room.schedule.take(entry)
    }

    // MARK: Beginning

    /// Begins the attempt.
    func start() {
        entry.run = self
        entry.record.begin(at: clock.date)
        reporter.tellAttempt(entry, self, .began)
        reporter.change(entry, to: .action)
        if entry.awaitsProof { return work.request(.prove) }
        if let error = entry.missedDeadline(at: clock.date) { return expired(error) }
        do throws(DownloadError) {
            try fetchAnew()
        } catch {
            fail(error, resumed: false)
        }
    }

    /// Opens the part file and sends the first request.
    func fetchAnew() throws(DownloadError) {
        do throws(DownloadError) {
            try fetch()
        } catch {
            // The folder may have been removed since it was opened for an earlier task. It is opened again, once.
            guard error.code == .destination, room.folders.forget(folderPath) else { throw error }
            try fetch()
        }
    }

    func use(_ files: Files) {
        opened = files
        limits.replace(with: room.limits.limiters(for: entry))
    }

    func closeFiles() {
        opened?.part.close()
        opened = nil
    }

    // MARK: Asynchronous work

    /// Asks the engine to perform work.
    func wants(_ step: RunWork.Step) { work.request(step) }

    /// Returns the work to perform, once.
    func takeWork() -> RunWork.Step? { work.take() }

    func perform(_ step: RunWork.Step, isolation: isolated (any Actor)? = #isolation) async {
        // The run may have been stopped since it asked for the work.
        if stop != nil { return stopped() }
        switch step {
        case .finish: await finish()
        case .comparePieces: await comparePieces()
        case .keepExisting(let name): await keepExisting(name)
        case .reuse(let digest): await reuse(digest)
        case .copyDamaged: await copyDamaged()
        case .prove: await prove()
        case .decide(let error, let rules): await decide(error, rules)
        }
    }

    /// The engine performs the work in this task.
    func performs(_ task: Task<Void, Never>) { work.began(task) }

    /// Runs slow disk work on another thread.
    ///
    /// - Throws: `.cancelled` if the run was stopped meanwhile.
    func offThread<Value: Sendable>(
        isolation: isolated (any Actor)? = #isolation,
        _ body: @escaping @Sendable () throws(DownloadError) -> Value
    ) async throws(DownloadError) -> Value {
        let result = await withCheckedContinuation { continuation in
            room.diskWork.async {
                continuation.resume(returning: Result { () throws(DownloadError) in try body() })
            }
        }
        try checkStop()
        return try result.get()
    }

    /// Computes the digest of an existing file. A stop ends the reading.
    func readDigest(
        of file: PartFile, _ algorithm: Checksum.Algorithm, isolation: isolated (any Actor)? = #isolation
    ) async throws(DownloadError) -> String {
        work.compare(file)
        defer { work.compare(nil) }
        return try await offThread { () throws(DownloadError) in try file.digest(algorithm) }
    }

    /// - Throws: `.cancelled` if the run was stopped.
    func checkStop() throws(DownloadError) { try work.check() }

    // MARK: Lanes

    /// Continues transfers that pause under a former rate limit.
    func resumeTransfers() { lanes.forEach { $0.operation?.resume() } }

    /// Notices whether bytes have arrived since the last call. Once a second is enough, and costs nothing where the
    /// bytes arrive.
    func noteBytes() {
        let received = entry.received
        if received > seen { lastByte = clock.date }
        seen = received
    }

    /// Without a byte for these seconds, a task has no speed.
    private static let silence = 5.0

    /// The smoothed speed in bytes per second; nil while no byte arrives.
    var movingRate: Int64? {
        guard let lastByte, clock.date.timeIntervalSince(lastByte) < Self.silence else { return nil }
        let rate = entry.recordedSpeed(in: .action, now: clock.now) ?? 0
        return rate > 0 ? rate : nil
    }

    /// To be called once a second.
    func tick() {
        noteBytes()
        speed.add(time: clock.now, bytes: entry.received)
        watchLanes()
        work.tick(isInMiddleware: isInMiddleware)
        recordSlowSmallFile()
        counters?.flush()
        watchPieces()
    }

    // MARK: Failing

    /// The attempt has failed. `RetryRules` decides whether another one follows.
    func fail(_ error: DownloadError, resumed: Bool? = nil) {
        if error.isOutOfDescriptors, schedule.taken > 1 { return waitForDescriptors() }
        let url = url
        var error = error
        error.url = error.url ?? URLMasking.mask(url)
        note(error)
        appendHistory(by: "attempt \(entry.record.attempts)", error.message)
        let decision = attempt.decide(
            error, of: entry.record, from: url, received: opened == nil ? 0 : entry.received,
            isResumed: resumed ?? (opened?.isResumed == true && !attempt.dropsAll), policy: configure.retry,
            random: Double.random(in: 0..<1))
        guard asksMiddlewares(about: decision) else { return follow(decision, error) }
        rest()
        wants(.decide(error, decision))
    }

    private func note(_ error: DownloadError) {
        attempt.fail(error)
        entry.record.fail(error)
    }

    /// Gives the slot back while middlewares decide. The next attempt opens the part file again.
    private func rest() {
        dropEmptyPart()
        leaveFiles()
        schedule.rest(entry, permit.take())
    }

    /// Ends the failed attempt as it was decided.
    func follow(_ decision: RetryRules.Decision, _ error: DownloadError) {
        var error = error
        error.url = error.url ?? URLMasking.mask(url)
        note(error)
        switch decision {
        case .retry(let seconds, let index, let pause):
            entry.urlIndex = (index + entry.record.firstOfPlan) % entry.record.plan.count
            let asker = pause.map { schedule.pauseHost(HostName.site(of: error, from: url), seconds: $0) }
            if seconds > 0 {
                let reason: Waiting.Reason = error.code == .noSpace ? .noSpace : .retry
                entry.record.retry(
                    Waiting(reason, until: clock.date + seconds, host: seconds == pause ? asker : nil))
            }
            end(as: .idle)
            schedule.setDeadline()
        case .askAgain:
            entry.record.takeBackAttempt()
            end(as: .idle)
        case .wait(let seconds):
            entry.record.takeBackAttempt()
            entry.record.retry(Waiting(.retry, until: clock.date + seconds))
            end(as: .idle)
            schedule.setDeadline()
        case .fail:
            if entry.record.isRepair {
                // The copy of the damaged file is of no use without the repair.
                entry.record.removePart(of: book.workPath)
                dropBytes()
            }
            dropEmptyPart()
            entry.record.giveUp(at: clock.date)
            end(as: .error)
        }
    }

    /// An empty part file is of no use to the next attempt.
    private func dropEmptyPart() {
        guard let files = opened, entry.received == 0 else { return }
        files.part.remove()
        entry.record.forgetPart()
    }

    /// Bytes of several sources are in the file.
    func noteCombined() { attempt.combine() }

    /// The existing file is not the expected one.
    func refuseExisting() { attempt.refuseExisting() }

    /// Other tasks hold the descriptors that this one needs. It continues when one of them ends, and this attempt does not
    /// count.
    private func waitForDescriptors() {
        schedule.descriptors.ranOut(running: schedule.taken - 1, now: clock.now)
        entry.record.putBack()
        end(as: .idle)
    }

    // MARK: Stopping

    /// Stops the run. `stopped` follows once its work and its lanes have ended.
    func signalStop(_ stop: RunWork.Stop) {
        work.stop(stop)
        lanes.forEach { $0.cancel() }
        opened?.part.abandon()
        follower?.abandon()
    }

    /// Stops the run and keeps the bytes. Another attempt begins.
    func restart(
        _ by: String = "options", _ why: String = "asked for again with other options: a new attempt begins"
    ) {
        guard stop == nil else { return }
        entry.freshen()
        appendHistory(by: by, why)
        work.stop(.keepingBytes)
        lanes.forEach { $0.cancel() }
    }

    /// Stops the run of a task that is past its deadline and in state error already. Its bytes stay.
    func expire(_ error: DownloadError) {
        attempt.fail(error)
        signalStop(.keepingBytes)
    }

    /// Ends the run of a task that is past its deadline.
    private func expired(_ error: DownloadError) {
        attempt.fail(error)
        entry.record.expire(error, at: clock.date)
        // A failed task has no finished file.
        if let folder = opened?.folder, entry.record.isPublished { try? unpublish(in: folder) }
        end(as: .error)
        ResponseChainEnd.tell(error, of: entry, head: head, room.chains)
    }

    /// Ends a stopped run once its work and its lanes have ended.
    func stopped() {
        entry.foldCounters()
        // Attempts count failures, and a stop is none. A comparison has not counted.
        if !entry.awaitsProof, entry.record.state != .error { entry.record.takeBackAttempt() }
        // A comparison has no bytes to drop: its file is the finished one.
        if stop == .droppingBytes, !entry.awaitsProof { dropFiles() }
        // A closing engine gives no verb: the task continues with the next engine.
        let state = entry.record.state == .action ? .idle : entry.record.state
        if state == .error, let failure = attempt.failure { return expired(failure) }
        end(as: state)
    }

    private func dropFiles() {
        // The file may have its final name already, while the response chain runs.
        if let path = entry.record.path, let files = opened, files.folder.status(of: files.part.name) == nil {
            if entry.keepsRenewed, entry.record.former != nil {
                // It has replaced the finished file already.
                FileOwner.clear(path)
            } else if case .stays(let reason) = entry.record.remove(path, for: .cancel, book.owner) {
                book.problems.append("\(path) stays: \(reason).")
            }
        }
        entry.removeLeftBehind()
        if let opened { opened.part.remove() } else { entry.record.removePart(of: book.workPath) }
        dropBytes()
    }

    // MARK: Ending

    /// Ends the run: releases its slot, writes the record, and reports the task's new state.
    func end(as state: DownloadState) {
        leaveFiles(isComplete: state == .complete)
        let isNews = entry.set(state)
        // A trashed task has no record any more.
        if state == .complete, isRecordedComplete {
            entry.noteSaved()
        } else if state != .unknown {
            book.write(entry)
        }
        openInfo = nil
        entry.run = nil
        attemptEnded(state)
        // Reported last, because a listener may end the process or read the info file.
        if isNews {
            reporter.stateChanged(entry)
        } else if state.isSettled {
            reporter.endBarrelSequences(of: entry)
        }
        if schedule.release(entry, permit.take()), state == .idle, entry.isAdmitted {
            // It has failed, or was queued again while it stopped.
            schedule.enqueue(entry, host: book.site(of: entry.nextURL))
        }
        book.retire(entry)
        if state == .unknown { forgottenNote = room.forget(entry) }
        work.end()
    }

    /// Closes the part file for the next attempt.
    private func leaveFiles(isComplete: Bool = false) {
        guard let files = opened else { return }
        entry.foldCounters()
        if !isComplete, !entry.awaitsProof, entry.record.received > 0 { leavePart(files) }
        files.part.close()
        files.counters.detach()
        opened = nil
    }

    /// Records the time of the part file, which the next attempt compares. If another program has removed or replaced the
    /// file, the bytes are lost. The time alone does not prove that: two files written within one tick of the kernel's
    /// clock (4 ms) have the same time.
    private func leavePart(_ files: Files) {
        if files.part.hasItsName {
            entry.record.leavePart(files.part.time)
        } else if entry.record.path == nil {
            appendHistory(by: "resume", "somebody has removed or replaced the part file: starting again")
            dropBytes()
        }
    }

    /// Reports the end of the attempt. The record already says what follows.
    private func attemptEnded(_ state: DownloadState) {
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
        return .retry(url: URLMasking.mask(entry.nextURL), at: entry.record.waiting?.until ?? clock.date)
    }

    // MARK: Waiting for the end

    /// Waits until the run has ended. Call it after `signalStop`.
    ///
    /// - Returns: false if a middleware takes too long and the wait ended before the run.
    @discardableResult
    func ended(isolation: isolated (any Actor)? = #isolation) async -> Bool {
        if work.isOver { return true }
        return await withCheckedContinuation { work.wait($0) }
    }

    /// Releases callers of `ended` while a middleware runs, because the middleware may wait for them.
    func releaseWaiters() {
        if isInMiddleware { work.releaseWaiters() }
    }

    // MARK: The record

    /// Adds a line to the task's history.
    func appendHistory(by: String, _ what: String) { book.appendHistory(entry, by: by, what) }

    /// Records what a middleware has decided.
    func note(_ note: MiddlewareCall.Note) { entry.noteDecision(of: note.name, note.what, at: clock.date) }

    /// Records why bytes of earlier attempts were dropped.
    func noteDrop(because reason: String) { attempt.drop(because: reason) }

    /// Forgets all received bytes.
    func dropBytes() {
        entry.dropBytes()
        reporter.account(entry)
    }

    /// The received bytes are wrong. The next attempt begins without a byte.
    func startAnew() {
        attempt.dropAll()
        dropBytes()
    }
}
