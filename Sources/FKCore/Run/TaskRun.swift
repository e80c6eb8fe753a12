import FKMiddleware
import Foundation

/// One task's life from its slot to the end of the attempt. Confined to the engine.
///
/// ```text
/// start -> prepare (part file) -> lanes: ask -> gate -> body -> next range … -> finish (verify, name, respond) -> end
///              \-> prove (a finished file of another boot is compared) ----------------^
/// ```
///
/// It owns the lanes and what changes in the record while it lasts. Events of the transport come in by its methods; what
/// has to be waited for is asked for in `work`, which the engine performs. A stop may come at any moment: whatever is under
/// way then reports back, and the run ends in `stopped`.
final class TaskRun {
    enum Stop {
        /// Suspended, or the engine closes: bytes stay.
        case keepingBytes
        /// Cancelled or trashed.
        case droppingBytes
    }

    /// What is done in steps that wait for a disk or for a middleware.
    enum Work {
        /// The bytes are there: verify, final name, response chain.
        case finish
        /// A file with this name existed before: it is compared, and then counts as the result.
        case keepExisting(String)
        /// The finished file of another boot is compared.
        case prove
    }

    /// The part file and what goes with it.
    struct Files {
        let folder: Folder
        let part: PartFile
        let counters: LiveCounters
        /// Bytes were there when the attempt began.
        let isResumed: Bool
        /// The URL it fetches from: the task's own, or a mirror.
        let url: String
    }

    let entry: TaskEntry
    /// The engine holds it; nothing of a run happens without the engine.
    unowned let room: RunRoom
    /// Attempts of this engine, counted: its place in the running list.
    let order: UInt64
    /// When it began, in nanoseconds of the monotonic clock.
    let began: Int64
    /// Bytes of earlier attempts.
    let receivedBefore: Int64
    /// The plan's entry that is tried, masked.
    let shownURL: String
    /// How the attempt before this one ended.
    let previousError: DownloadError?
    /// How this one failed.
    private var failure: DownloadError?
    /// Why it dropped bytes of earlier ones.
    var dropReason: String?
    var speed = SpeedMeter()
    /// The info file, where it stays open: from the reading of a task that rested to the first gate, and from the moment
    /// the final name is written down to the end.
    var openInfo: OpenInfoFile?
    /// The connection that goes with the task's slot. It stays with the slot while only mirrors are at work.
    private var permit: HostPermit?

    /// Nil until the part file is open. Nothing of lanes, verifying or publishing is called before.
    private var opened: Files?
    /// The rate limits that hold for all of its connections.
    let limits = LimiterSet()
    /// The connections at work.
    var laneSet = LaneSet()
    /// Set once somebody wants it to end.
    private(set) var stop: Stop?
    /// What is waited for next; the engine takes it.
    private var work: Work?
    /// The work that is being performed.
    private var task: Task<Void, Never>?
    /// A response middleware is at work for it.
    var isResponding = false
    private var waiters = Waiters()
    /// What became of the files of its task, which was trashed or forgotten meanwhile.
    private(set) var forgottenNote = "forgotten"
    /// Digest of the whole file, where its bytes came in order.
    var digest: (algorithm: Checksum.Algorithm, hex: String)?
    /// The record on disk says that the task is complete.
    var isRecordedComplete = false
    /// The existing file that is being compared. A stop abandons it.
    var comparedFile: PartFile?
    /// An existing file is not the expected one. No other URL changes that.
    var isExistingRefused = false
    /// A failure of our own disk, which counts instead of how the transfer ended.
    var diskError: DownloadError?
    /// What is missing of the file is taken into account where others ask for room.
    var hasRoom = false
    /// It has dropped the bytes: the next attempt has none of this one.
    private var dropsAll = false
    /// The head of the last response, with all of its fields.
    var head: ResponseHead?

    var book: TaskBook { room.book }
    var schedule: Schedule { room.schedule }
    var reporter: Reporter { room.reporter }
    var clock: any EngineClock { room.schedule.clock }
    var configure: Configure { room.schedule.configure }

    var folder: Folder { files.folder }
    var part: PartFile { files.part }
    /// The URL it fetches from: the task's own, or a mirror.
    var url: String { opened?.url ?? entry.nextURL }
    /// Nil while no part file is open.
    var counters: LiveCounters? { opened?.counters }
    /// To be asked once the part file is open only.
    var files: Files {
        guard let opened else { preconditionFailure("a run without its part file") }
        return opened
    }

    var lanes: [Lane] { laneSet.lanes }

    /// It has been decided that the lanes end.
    var isEnding: Bool { stop != nil || laneSet.afterLanes != nil }

    /// A request or response middleware is at work for it.
    var isInMiddleware: Bool { isResponding || lanes.contains { $0.chain != nil } }

    /// The task takes its slot. Call `start` then.
    init(_ entry: TaskEntry, in room: RunRoom, openInfo: OpenInfoFile? = nil) {
        self.entry = entry
        self.room = room
        self.openInfo = openInfo
        began = room.schedule.clock.now
        receivedBefore = entry.record.received
        shownURL = URLMasking.mask(entry.nextURL)
        previousError = entry.record.error
        permit = room.schedule.hosts.acquire(entry.host, now: began)
        order = room.schedule.take(entry)
    }

    // MARK: Beginning

    /// Begins the attempt.
    func start() {
        entry.run = self
        entry.record.begin(at: clock.date)
        reporter.tellAttempt(entry, self, .began)
        reporter.change(entry, to: .action)
        if entry.awaitsProof { return work = .prove }
        do throws(DownloadError) {
            try fetchAnew()
        } catch {
            fail(error, resumed: false)
        }
    }

    /// From the disk to the first request.
    func fetchAnew() throws(DownloadError) {
        do throws(DownloadError) {
            try fetch()
        } catch {
            // The folder may have gone since it was opened for an earlier task: open it anew, once.
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

    // MARK: Work that waits

    func wants(_ work: Work) { self.work = work }

    /// What has to be performed next; taken once.
    func takeWork() -> Work? { work.take() }

    func perform(_ work: Work, isolation: isolated (any Actor)? = #isolation) async {
        // Somebody may have stopped it since the work was asked for.
        if stop != nil { return stopped() }
        switch work {
        case .finish: await finish()
        case .keepExisting(let name): await keepExisting(name)
        case .prove: await prove()
        }
    }

    /// The engine performs work for it.
    func performs(_ task: Task<Void, Never>) { self.task = task }

    /// Runs slow disk work on another thread.
    ///
    /// - Throws: `.cancelled` where the run was stopped meanwhile.
    func offThread<Value: Sendable>(
        isolation: isolated (any Actor)? = #isolation,
        _ work: @escaping @Sendable () throws(DownloadError) -> Value
    ) async throws(DownloadError) -> Value {
        let result = await withCheckedContinuation { continuation in
            room.diskWork.async {
                continuation.resume(returning: Result { () throws(DownloadError) in try work() })
            }
        }
        try checkStop()
        return try result.get()
    }

    /// - Throws: `.cancelled` where the run was stopped.
    func checkStop() throws(DownloadError) {
        if stop != nil { throw DownloadError(.cancelled, "The attempt was stopped.") }
    }

    // MARK: Lanes

    /// Transfers that pause under a former rate limit ask again at once.
    func resumeTransfers() { lanes.forEach { $0.operation?.resume() } }

    /// Once a second.
    func tick() {
        watchLanes()
        waiters.tick(isInMiddleware: stop != nil && isInMiddleware)
        recordSlowSmallFile()
        counters?.flush()
    }

    // MARK: Failing

    /// The attempt has failed: wait and try again, or end in error. `RetryRules` decides.
    func fail(_ error: DownloadError, resumed: Bool? = nil) {
        if error.isOutOfDescriptors, schedule.running.count > 1 { return waitForDescriptors() }
        let resumed = resumed ?? (opened?.isResumed == true && !dropsAll)
        var error = error
        let plan = entry.record.plan
        let url = url
        error.url = error.url ?? URLMasking.mask(url)
        failure = error
        entry.record.fail(error)
        appendHistory(by: "attempt \(entry.record.attempts)", error.message)
        var policy = configure.retry
        if let maxAttempts = entry.record.task.options.maxAttempts { policy.maxAttempts = maxAttempts }
        let decision = RetryRules.decide(
            error: error, attempt: entry.record.attempts, policy: policy,
            mirrors: isExistingRefused ? 0 : entry.record.task.mirrors.count,
            resumed: resumed || RetryRules.looksSigned(url), random: Double.random(in: 0..<1),
            nextIsSame: plan[entry.record.attempts % plan.count] == url, previous: previousError)
        switch decision {
        case .retry(let seconds, let index, let pause):
            entry.urlIndex = index
            let asker = pause.map { schedule.pauseHost(HostName.site(of: error, from: url), seconds: $0) }
            if seconds > 0 {
                let reason: Waiting.Reason = error.code == .noSpace ? .noSpace : .retry
                entry.record.retry(
                    Waiting(reason, until: clock.date + seconds, host: seconds == pause ? asker : nil))
            }
            end(as: .idle)
            schedule.setDeadline()
        case .fail:
            if let files = opened, entry.received == 0 {
                // Nothing worth keeping: an empty hidden file would only be in somebody's way.
                files.part.remove()
                entry.record.forgetPart()
            }
            entry.record.giveUp(at: clock.date)
            end(as: .error)
            tellResponseChain(error)
        }
    }

    /// Others have what this task needs: it gets its turn when one of them ends, and this was no attempt of its own.
    private func waitForDescriptors() {
        schedule.descriptors.ranOut(running: schedule.running.count - 1, now: clock.now)
        entry.record.putBack()
        end(as: .idle)
    }

    // MARK: Stopping

    /// Has the run end soon: `stopped` follows once nothing of it is under way any more.
    func signalStop(_ stop: Stop) {
        if self.stop != .droppingBytes { self.stop = stop }
        cancelTransfers()
        opened?.part.abandon()
        comparedFile?.abandon()
    }

    /// Has the attempt end soon without its bytes being dropped: another one begins with other options.
    func restart() {
        guard stop == nil else { return }
        entry.freshen()
        appendHistory(by: "options", "asked for again with other options: a new attempt begins")
        stop = .keepingBytes
        cancelTransfers()
    }

    private func cancelTransfers() {
        lanes.forEach { $0.cancel() }
        task?.cancel()
    }

    /// Whatever was going on has reported back, and nobody wants it any more.
    func stopped() {
        entry.foldCounters()
        // A comparison has nothing to drop: its file is the finished one.
        if stop == .droppingBytes, !entry.awaitsProof { dropFiles() }
        // While the engine closes, nobody has given a verb: the task goes on with the next engine.
        let state = entry.record.state == .action ? .idle : entry.record.state
        end(as: state)
    }

    private func dropFiles() {
        // It may have got its final name already, and be in the hands of the response chain.
        if let path = entry.record.path, let files = opened, files.folder.status(of: files.part.name) == nil {
            if entry.record.owns(path) {
                unlink(path)
            } else if FileIdentity(path: path) != nil {
                book.problems.append("\(path) stays: it is not the file as the task left it.")
            }
        }
        entry.record.removeLeftBehind()
        opened?.part.remove()
        dropBytes()
    }

    // MARK: Ending

    /// The run is over: its slot is free, its record is written, and the task is in `state`.
    func end(as state: DownloadState) {
        if let files = opened {
            entry.foldCounters()
            if state != .complete, !entry.awaitsProof, entry.record.received > 0 { leavePart(files) }
            files.part.close()
            files.counters.detach()
        }
        opened = nil
        let isNews = entry.set(state)
        // A task that is being trashed has no record any more.
        if state == .complete, isRecordedComplete {
            entry.isDirty = false
        } else if state != .unknown {
            book.write(entry)
        }
        openInfo = nil
        entry.run = nil
        attemptEnded(state)
        // Only now: who hears that a task is complete may end the process, or look into the info file.
        if isNews {
            reporter.stateChanged(entry)
        } else if state.isSettled {
            reporter.endBarrelSequences(of: entry)
        }
        if schedule.release(entry, permit.take()), state == .idle, entry.isAdmitted {
            // A failed one, or one that was queued again while it was being stopped.
            schedule.enqueue(entry, host: book.shared(HostName.site(entry.nextURL)))
        }
        book.retire(entry)
        if state == .unknown { forgottenNote = room.forget(entry) }
        waiters.end()
    }

    /// Notes how the part file is left, for the next attempt to compare. One that bears its final name already is not there to
    /// be noted, and bytes of a file that somebody has removed or replaced are lost: a time alone does not tell two files
    /// apart that were written to within one tick of the kernel's clock (4 ms).
    private func leavePart(_ files: Files) {
        if files.part.hasItsName {
            entry.record.leavePart(files.part.time)
        } else if entry.record.path == nil {
            appendHistory(by: "resume", "somebody has removed or replaced the part file: starting again")
            dropBytes()
        }
    }

    /// Says how the attempt ended. What follows is in the record already.
    private func attemptEnded(_ state: DownloadState) {
        if state == .complete {
            reporter.tellAttempt(entry, self, .succeeded)
        } else if stop != nil {
            reporter.tellAttempt(entry, self, .stopped)
        } else if let failure {
            reporter.tellAttempt(entry, self, .failed(failure, next: nextStep))
        }
        guard state != .idle || stop != nil else { return }
        for target in [Observers.Target.id(entry.id), .url(entry.record.task.url)] {
            reporter.endAttemptSequences(target, behindAttemptOf: entry)
        }
    }

    private var nextStep: AttemptInfo.Next {
        guard entry.record.state == .idle else { return .gaveUp }
        return .retry(url: URLMasking.mask(entry.nextURL), at: entry.record.waiting?.until ?? clock.date)
    }

    // MARK: Waiting for the end

    /// Waits until nothing of it runs any more; to be called once it was told to stop.
    ///
    /// - Returns: false where the wait was given up because of a middleware that does not return.
    @discardableResult
    func ended(isolation: isolated (any Actor)? = #isolation) async -> Bool {
        if waiters.isOver { return true }
        return await withCheckedContinuation { waiters.add($0) }
    }

    /// Lets go who waits for a middleware: that may be waiting for them.
    func releaseWaiters() {
        if isInMiddleware { waiters.release() }
    }

    // MARK: The record

    /// Adds a line to the task's history.
    func appendHistory(by: String, _ what: String) { book.appendHistory(entry, by: by, what) }

    /// Forgets everything that was received.
    func dropBytes() {
        entry.dropBytes()
        reporter.account(entry)
    }

    /// What was received is not the file: the next attempt begins without a byte.
    func startAnew() {
        dropsAll = true
        dropBytes()
    }
}

/// Who waits for the end of a run, and for how long they do where a middleware holds it up.
private struct Waiters {
    /// Seconds for which a verb waits for a middleware.
    private static let patience = 5

    private var continuations: [CheckedContinuation<Bool, Never>] = []
    private var ticks = 0
    private(set) var isOver = false

    mutating func add(_ continuation: CheckedContinuation<Bool, Never>) { continuations.append(continuation) }

    mutating func end() {
        isOver = true
        resume(returning: true)
    }

    mutating func release() { resume(returning: false) }

    mutating func tick(isInMiddleware: Bool) {
        guard !continuations.isEmpty, isInMiddleware else { return ticks = 0 }
        ticks += 1
        if ticks > Self.patience { release() }
    }

    private mutating func resume(returning value: Bool) {
        continuations.forEach { $0.resume(returning: value) }
        continuations = []
    }
}

extension TaskEntry {
    /// What a record says about the speed: smoothed while the task runs, the average of the attempt at its end. Between
    /// attempts it stays as it is.
    func recordedSpeed(in state: DownloadState, now: Int64) -> Int64? {
        guard let run, record.isForeign != true else { return record.bytesPerSecond }
        // Nobody samples while nobody listens: then it is the average so far.
        if state == .action, run.speed.bytesPerSecond >= 1 { return Int64(run.speed.bytesPerSecond) }
        let moved = received - (run.dropReason == nil ? run.receivedBefore : 0)
        let seconds = Double(now - run.began) / 1e9
        guard moved > 0, seconds > 0 else { return record.bytesPerSecond }
        return Int64(min(Double(moved) / seconds, 0x1p62))
    }
}
