import FKMiddleware
import Foundation

/// A task in the engine's memory. Confined to the engine.
package final class TaskEntry {
    package let id: TaskID
    package var record: TaskRecord
    package var info: InfoHandle
    /// The `site` of the next URL. It does not change while the task is queued or has a slot.
    package var host: String
    /// The run that has its slot, also while it stops; nil without one.
    var run: (any ActiveRun)?
    /// True if this engine may run it. An engine for chosen tasks also knows others.
    private(set) var isAdmitted = false
    /// True if this engine created it: then no earlier attempt has left a part file.
    package let isNew: Bool
    /// The index of the next URL in the plan.
    var urlIndex = 0
    /// What the record on disk does not say.
    private(set) var unsaved: UnsavedChanges
    /// True if the task was complete in another boot and its file is to be compared. Until then the record on disk says
    /// `complete` with the other boot, and the task is queued or running only in memory.
    var awaitsProof = false
    /// True while its finished file waits to be synced, which the record will say.
    var awaitsSync = false
    /// True if it was requested again while its file is missing and the comparison has begun.
    var isMissed = false
    /// The files that stay when the task is forgotten.
    var kept = KeptFiles()
    /// The places from which response middlewares have moved the file, as they were left there.
    package private(set) var left: [SetAsideFile] = []
    /// `DownloadInfo.besides`.
    private(set) var besides: Int64 = 0
    /// The received bytes in the last report to download middlewares.
    package var reported: Int64 = 0
    /// True if it counts among the tasks that can still run.
    var isOpen = false
    /// The command whose limits apply (`CommandGroups`).
    package var group = CommandGroups.none
    /// The group of its slot.
    var slotGroup = CommandGroups.none
    /// The rate limit of this task only; nil without one.
    var limiter: RateLimiter?
    /// The readers of its bytes; nil without any.
    weak var feed: ReadFeed?
    /// The values that barrels and totals last counted for this task.
    var accounted = TaskTotals.Share()

    /// - Parameter site: returns the host of the next URL; the default computes it.
    package init(
        record: consuming TaskRecord, info: InfoHandle, isNew: Bool, site: (String) -> String = { $0.site }
    ) {
        id = record.id
        self.info = info
        self.isNew = isNew
        unsaved = UnsavedChanges(hasCleanCounters: isNew)
        urlIndex = record.nextURLIndex
        host = site(record.address(urlIndex))
        self.record = record
    }

    /// The state for decisions about verbs: a task whose file is compared counts as complete.
    package var verbState: DownloadState { awaitsProof && record.state != .unknown ? .complete : record.state }

    /// False for a task that is trashed or forgotten.
    package var isThere: Bool { record.state != .unknown }

    /// The URL of the next attempt.
    package var nextURL: String { record.address(urlIndex) }

    /// The received bytes now.
    package var received: Int64 { record.received(counters: run?.counters) }

    /// The smoothed speed in bytes per second; 0 while it does not run.
    package var bytesPerSecond: Double { run?.pace.bytesPerSecond ?? 0 }

    /// The speed for the record: smoothed while the task runs, the average of the attempt at its end. It does not change
    /// between attempts.
    func recordedSpeed(in state: DownloadState, now: Int64) -> Int64? {
        guard let run, record.isForeign != true else { return record.bytesPerSecond }
        // Nothing is sampled without listeners. Then the average so far counts.
        if state == .action, run.pace.bytesPerSecond >= 1 { return Int64(run.pace.bytesPerSecond) }
        return run.attempt.averageSpeed(received: received, now: now) ?? record.bytesPerSecond
    }

    /// The values that barrels and totals count for the task now.
    package var share: TaskTotals.Share {
        TaskTotals.Share(received: received, expected: record.expected, state: record.state)
    }

    /// The task as middlewares see it.
    package var context: TaskContext {
        var context = TaskContext(
            id: id, address: record.task.url, givenURL: record.task.given, attempt: record.attempts,
            barrels: record.barrels, attributes: record.task.attributes)
        context.isSigned = record.task.optionsBox?.value.awsSignature != nil
        return context
    }

    /// The middlewares of a chain that handle this task. Nothing is made where none is registered.
    ///
    /// - Parameter url: the URL whose host counts; nil, the default, takes the task's own.
    package func middlewares<Middleware>(of chain: MiddlewareChain<Middleware>, url: String? = nil) -> [Middleware] {
        chain.ordered(for: context, url: url)
    }

    /// True if a middleware of that chain handles this task.
    func isHandled<Middleware>(by chain: MiddlewareChain<Middleware>) -> Bool { !chain.isEmpty(for: context) }

    /// The digest that the finished file must have: the task's own, otherwise that of the first server; nil without one.
    var expectedDigest: Checksum? {
        record.task.optionsBox?.value.checksum ?? record.announced?.checksum ?? record.serverDigest
    }

    /// Updates the record in memory with the facts of the run, before it is read.
    package func refresh() {
        guard let run else { return }
        run.drainInlineHead()
        run.pace.record(received, at: run.clock.date)
    }

    /// True if a list has given digests for the pieces of the file.
    var hasPieceDigests: Bool { record.task.optionsBox?.value.pieces != nil }

    // MARK: Changes

    /// This engine may run the task, or may not any more.
    func admit(_ mayRun: Bool = true) { isAdmitted = mayRun }

    /// The record differs from the one on disk.
    func recordChange() { unsaved.isDirty = true }

    /// The record on disk is the present one.
    func recordSaved() { unsaved = UnsavedChanges(hasCleanCounters: unsaved.hasCleanCounters) }

    /// The record was repaired, in memory alone.
    func recordRecovery() { unsaved.isRecovered = true }

    /// The info file has live counters from now on.
    func recordCounters() { unsaved.hasCleanCounters = false }

    /// Adds, drops or restarts ranges. The counters on disk are not theirs until the next write.
    @inline(__always)
    func remakeRanges(_ change: (inout TaskRecord) -> Void) {
        let before = record.received
        change(&record)
        besides &+= before &- record.received
        unsaved.rangesChanged = true
    }

    /// Sorts and joins the ranges. Returns false if nothing changes.
    func normalizeRanges() -> Bool {
        let isChanged = record.normalize()
        if isChanged { unsaved.rangesChanged = true }
        return isChanged
    }

    /// Changes the state in memory. Returns false if it had that state already.
    package func set(_ state: DownloadState) -> Bool {
        guard record.state != state else { return false }
        record.state = state
        unsaved.isDirty = true
        if state != .action { run?.pace.restart() }
        return true
    }

    /// Adds the decision of a middleware to the task's history. A repeated decision is one line with the last time, because a
    /// chain runs for every request of every connection.
    package func recordDecision(of name: String, _ what: String, at date: Date) {
        record.recordDecision(HistoryLine(time: date, by: name, what: record.secretBook.mask(what)))
        unsaved.isDirty = true
    }

    /// Adds a line to the task's history, which keeps the newest eight.
    package func appendHistory(by: String, _ what: String, at date: Date) {
        if by == "resume" { run?.attempt.drop(because: what) }
        record.appendHistory(HistoryLine(time: date, by: by, what: record.secretBook.mask(what)))
        unsaved.isDirty = true
    }

    /// The received bytes are gone. Readers that have read some of them cannot continue.
    ///
    /// - Parameter error: why they are gone; nil, the default, for the task's last error.
    func tellReaders(because error: DownloadError? = nil) {
        feed?.dropped(
            because: error ?? record.error
                ?? DownloadError(.incompleteBody, "The received bytes were dropped, and are fetched again."))
    }

    /// Stores the live counters of its run in the record.
    func foldCounters() {
        guard let counters = run?.counters else { return }
        record.fold(counters)
        unsaved.isDirty = true
    }

    /// Forgets all received bytes.
    ///
    /// - Parameter error: why, for readers of the bytes; nil, the default, for the task's last error.
    package func dropBytes(because error: DownloadError? = nil) {
        for index in record.ranges.indices { run?.counters?.store(index, 0) }
        if !record.ranges.isEmpty { tellReaders(because: error) }
        remakeRanges { $0.dropBytes() }
    }

    /// The finished file has other places, which are removed after the record is written.
    package func leaveBehind(_ files: [SetAsideFile]) {
        left = files
        record.leaveBehind(files.map(\.path))
    }

    /// Resets the count of attempts. The next one begins with the plan's first entry.
    package func freshen() {
        record.freshen()
        urlIndex = record.firstOfPlan
    }

    /// The finished file is to be compared. The task needs a slot for that, as for a fetch.
    func demandProof() {
        record.state = .idle
        record.forgetPart()
        awaitsProof = true
    }

    /// The finished file is missing or differs from the received bytes.
    package func forgetFile() {
        awaitsProof = false
        dropBytes()
        record.forgetFile()
    }
}
