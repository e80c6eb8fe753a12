import FKMiddleware
import Foundation

/// One attempt of a task, from its slot to the end. Confined to the engine.
///
/// ```text
/// preparing -> transferring <-> verifying -> publishing -> ended
///       \           \______________\______________\-> deciding (middlewares and a failure) -^
///        \-> ended (an existing or a finished file counts)
/// ```
///
/// It has the identity of the attempt, the changes of the record and the permit of the slot. Everything else belongs to a
/// phase, and goes with it. A phase asks for asynchronous work (`wants`), and the engine performs it. A stop may come at any
/// moment: the work and the lanes then end, and the run ends in `stopped`.
final class TaskRun: ActiveRun {
    private enum Phase {
        case preparing
        case transferring(Transfer)
        case verifying(Verification)
        case publishing(Publication)
        /// Middlewares decide about a failure.
        case deciding(FailedAttempt)
        case ended
    }

    let entry: TaskEntry
    /// The engine holds them, and calls a run only while they live. They hold the run by its task.
    unowned let reporter: Reporter
    unowned let phases: Phases
    /// The number of attempts that this engine has begun so far, which orders the running tasks.
    let order: UInt64
    var attempt: Attempt
    var pace: Pace
    /// The info file, where it stays open: from the reading of a parked task to the first gate, and from the record with
    /// the final name to the end.
    private(set) var openInfo: OpenInfoFile?
    /// What became of the files of a task that was trashed or forgotten.
    private(set) var forgottenNote = "forgotten"
    /// The name that the URL alone gives to the file; that of this attempt, where each URL has another file.
    private(set) lazy var urlName = FileNameRules.name(
        url: mirrorPolicy == .alternatives ? entry.nextURL : entry.record.task.url, head: nil)
    private var phase = Phase.preparing
    /// The asynchronous work.
    private var work = RunWork()
    /// The connection of the task's slot. The slot keeps it while only mirrors are in use.
    private var permit: HostPermit?

    var book: TaskBook { reporter.book }
    var schedule: Schedule { reporter.schedule }
    var clock: any EngineClock { reporter.schedule.clock }
    var configure: Configure { reporter.schedule.configure }

    /// Acquires the task's slot. `start` follows.
    init(_ entry: TaskEntry, _ reporter: Reporter, _ phases: Phases, openInfo: OpenInfoFile?) {
        let schedule = reporter.schedule
        self.entry = entry
        self.reporter = reporter
        self.phases = phases
        self.openInfo = openInfo
        attempt = Attempt(entry, now: schedule.clock.now)
        pace = Pace(entry)
        entry.feed = phases.readers[entry.id]
        permit = schedule.hosts.acquire(entry.host, for: schedule.groups.asker(entry.group), now: attempt.began)
        order = schedule.occupy(entry)
    }

    // MARK: Phases

    func start() {
        entry.run = self
        entry.record.begin(at: clock.date)
        attempt.number = entry.record.attempts
        if mirrorPolicy == .alternatives { forgetOtherFile() }
        reporter.tellAttempt(entry, self, .began)
        reporter.change(entry, to: .action)
        if entry.awaitsProof { return wants(.prove) }
        if let error = entry.missedDeadline(at: clock.date) { return expired(error) }
        do throws(DownloadError) {
            try phases.preparation(of: self).begin()
        } catch {
            fail(error, resumed: false)
        }
    }

    /// The part file is open.
    func transfer(to part: OpenPart) -> Transfer {
        let transfer = phases.transfer(of: self, part)
        phase = .transferring(transfer)
        recordMirror(part.url)
        return transfer
    }

    /// Names the mirror of the host in the history, once.
    private func recordMirror(_ url: String) {
        guard url != entry.nextURL, let mirror = schedule.hosts.rules(for: entry.host).mirror else { return }
        recordHost("requests to \(entry.host.shownSite) go to \(mirror.value), by the policy of \(mirror.policy)")
    }

    /// All bytes have arrived. The file is published in the same call if no step of it has to wait.
    func verify(_ transfer: Transfer) {
        let verification = Verification(run: self, transfer: transfer)
        phase = .verifying(verification)
        if verification.hasOpenPieces { return wants(.comparePieces(verification)) }
        guard verification.waitsForNothing else { return wants(.finish(verification)) }
        do throws(DownloadError) {
            let publication = phases.publication(of: self, transfer)
            let status = try publication.checkPlaces()
            let isCut = try verification.verifyAtOnce(length: Int64(status.st_size))
            phase = .publishing(publication)
            try publication.publishAtOnce(isCut ? nil : status, verification.knownSums)
        } catch {
            fail(error)
        }
    }

    /// Pieces were wrong, and are fetched again.
    func fetchAgain(_ transfer: Transfer) {
        phase = .transferring(transfer)
        transfer.resume()
    }

    private func publish(_ verification: Verification, isolation: isolated (any Actor)? = #isolation)
        async throws(DownloadError)
    {
        let sums = try await verification.verify()
        let publication = phases.publication(of: self, verification.transfer)
        phase = .publishing(publication)
        try await publication.publish(sums)
    }

    /// Gives the slot back while middlewares decide about a failure. The next attempt opens the part file again.
    func park(_ failure: FailedAttempt) {
        leavePart()
        phase = .deciding(failure)
        schedule.park(entry, permit.take())
        wants(.decide(failure))
    }

    /// Ends the run: releases its slot, writes the record, and reports the task's new state.
    ///
    /// - Parameter isRecorded: true if the record on disk says so already; the default is false.
    func end(as state: DownloadState, isRecorded: Bool = false) {
        if isOver { return }
        leavePart(isComplete: state == .complete)
        phase = .ended
        let isNews = entry.set(state)
        if isRecorded {
            entry.recordSaved()
        } else if state != .unknown {
            // A trashed task has no record any more.
            book.write(entry)
        }
        openInfo = nil
        entry.run = nil
        entry.feed?.wake()
        tellEnd(state)
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
        if state == .unknown { forgottenNote = reporter.remove(entry) }
        work.end()
    }

    /// The info file of a body that passes the gate is written at most once a second, and need not stay open.
    func closeInfo() { openInfo = nil }

    /// The info file stays open to the end of the run.
    func keepInfoOpen() { openInfo = openInfo ?? OpenInfoFile() }

    // MARK: Asynchronous work

    /// Asks the engine to perform work.
    func wants(_ step: RunWork.Step) { work.request(step) }

    /// Returns the work to perform, once.
    func nextWork() -> RunWork.Step? { work.nextStep() }

    /// Performs the work of a phase. Its error ends the attempt.
    func perform(_ step: RunWork.Step, isolation: isolated (any Actor)? = #isolation) async {
        // The run may have been stopped since it asked for the work.
        if stop != nil || isOver { return stopped() }
        do throws(DownloadError) {
            switch step {
            case .prove: try await phases.preparation(of: self).prove()
            case .keepExisting(let name): try await phases.preparation(of: self).keepExisting(name)
            case .reuse(let digest, let transfer): try await transfer.reuse(digest)
            case .makeRoom(let work, let transfer): try await transfer.makeRoom(work)
            case .adopt(let path, let transfer): try await transfer.adopt(path)
            case .copyDamaged(let transfer): try await transfer.copyDamaged()
            case .comparePieces(let verification): try await verification.comparePieces()
            case .finish(let verification): try await publish(verification)
            case .decide(let failure): await failure.decide()
            }
        } catch {
            if stop != nil { return stopped() }
            fail(error, resumed: step.isBeforeRequest ? false : nil)
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
            phases.onDisk { continuation.resume(returning: Result { () throws(DownloadError) in try body() }) }
        }
        try checkStop()
        return try result.get()
    }

    /// Runs slow disk work on another thread, beside the transfer.
    func onDisk(_ work: @escaping @Sendable () -> Void) { phases.onDisk(work) }

    /// Reads an existing file on another thread. A stop ends the reading.
    func read<Value: Sendable>(
        _ file: PartFile, isolation: isolated (any Actor)? = #isolation,
        _ body: @escaping @Sendable (PartFile) throws(DownloadError) -> Value
    ) async throws(DownloadError) -> Value {
        work.compare(file)
        defer { work.compare(nil) }
        return try await offThread { () throws(DownloadError) in try body(file) }
    }

    /// Runs middlewares of the task, and records what they note.
    func inChain<Value: Sendable>(
        isolation: isolated (any Actor)? = #isolation, _ body: @Sendable () async -> Value
    ) async -> Value {
        let (value, notes) = await MiddlewareCall.inChain(of: phases.engine, entry.id, body)
        notes.forEach(record)
        return value
    }

    /// - Throws: `.cancelled` if the run was stopped.
    func checkStop() throws(DownloadError) { try work.check() }

    // MARK: Events

    /// Handles an event of the transfer. In other phases there are none.
    func handle(_ event: EngineInbox.Event) {
        if case .transferring(let transfer) = phase { transfer.handle(event) }
    }

    /// To be called once a second.
    func tick() {
        pace.record(entry.received, at: clock.date)
        pace.sample(entry.received, at: clock.now)
        transfer?.watchLanes()
        transfer?.watchReaders()
        work.tick(isInMiddleware: isInMiddleware)
        transfer?.recordSlowSmallFile()
        counters?.flush()
        transfer?.watchPieces()
    }

    /// Measures the throughput of the connections, and adds more if that helps.
    func measureGrowth() { transfer?.measureGrowth() }

    /// Sets the task's new number of connections.
    func setConnections(_ limit: ConnectionLimit) { transfer?.setConnections(limit) }

    // MARK: Stopping

    /// True once the run has ended. Nothing changes any more.
    var isOver: Bool { if case .ended = phase { true } else { false } }

    /// Set once the run is to stop.
    var stop: RunWork.Stop? { work.stop }

    /// True while a request or response middleware runs for it.
    var isInMiddleware: Bool {
        switch phase {
        case .transferring(let transfer): transfer.lanes.contains { $0.chain != nil }
        case .publishing(let publication): publication.isResponding
        case .deciding(let failure): failure.isAsking
        case .preparing, .verifying, .ended: false
        }
    }

    /// Stops the run. `stopped` follows once its work and its lanes have ended.
    func signalStop(_ stop: RunWork.Stop) {
        work.stop(stop)
        switch phase {
        case .transferring(let transfer):
            transfer.abandon()
            stopParked(transfer)
        case .verifying(let verification): verification.transfer.abandon()
        case .publishing(let publication): publication.part.file.abandon()
        case .preparing, .deciding, .ended: break
        }
    }

    /// Stops the run and keeps the bytes. Another attempt begins.
    func restart(
        _ by: String = "options", _ why: String = "asked for again with other options: a new attempt begins"
    ) {
        guard stop == nil, !isOver else { return }
        entry.freshen()
        appendHistory(by: by, why)
        work.stop(.keepingBytes)
        transfer?.cancel()
        if let transfer { stopParked(transfer) }
    }

    /// A transfer without a connection has no event that ends it.
    private func stopParked(_ transfer: Transfer) {
        guard transfer.isParked, transfer.lanes.isEmpty else { return }
        phases.later { [weak self] in self?.stopped() }
    }

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

    // MARK: What the phases have

    /// The transfer; nil in any other phase. It lives no longer than the run.
    var transfer: Transfer? { if case .transferring(let transfer) = phase { transfer } else { nil } }

    /// The live counters; nil while no part file is open.
    var counters: LiveCounters? { part?.counters }

    /// The open part file; nil while there is none.
    var part: OpenPart? {
        switch phase {
        case .transferring(let transfer): transfer.part
        case .verifying(let verification): verification.transfer.part
        case .publishing(let publication): publication.part
        case .preparing, .deciding, .ended: nil
        }
    }

    /// The heads of its responses.
    var heads: Heads {
        switch phase {
        case .transferring(let transfer): transfer.heads
        case .verifying(let verification): verification.transfer.heads
        case .publishing(let publication): publication.heads
        case .deciding(let failure): failure.heads
        case .preparing, .ended: Heads()
        }
    }
}

// MARK: What other rooms see

extension TaskRun {
    var movingRate: Int64? {
        guard pace.isMoving(at: clock.date) else { return nil }
        let rate = entry.recordedSpeed(in: .action, now: clock.now) ?? 0
        return rate > 0 ? rate : nil
    }

    var systemWait: Waiting? { transfer?.systemWait }

    var connections: Int { transfer?.lanes.count { $0.index != nil } ?? 0 }

    func unanswered(of host: String) -> Int { transfer?.unanswered(of: host) ?? 0 }

    func drainInlineHead() { transfer?.drainInlineHead() }

    func use(_ limiters: [RateLimiter]) { transfer?.use(limiters) }
}

extension TaskEntry {
    /// The run with its phases. There is no other type of runs.
    var taskRun: TaskRun? { run.map { unsafeDowncast($0, to: TaskRun.self) } }
}
