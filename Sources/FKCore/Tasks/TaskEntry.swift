import FKMiddleware
import Foundation

/// A task in the engine's memory. Confined to the engine.
final class TaskEntry {
    let id: TaskID
    var record: TaskRecord
    var info: InfoHandle
    /// The `HostName.site` of the URL tried next. Stays while the task is queued or holds a slot.
    var host: String
    /// What holds a slot for it, also for the moment in which it is being stopped.
    var run: TaskRun?
    /// False for tasks that are known but that nobody asked this engine to run.
    var isAdmitted = false
    /// True until the record was read from disk once: its part file, if there is one, is nobody's.
    let isNew: Bool
    /// Which URL of the plan is tried next.
    var urlIndex = 0
    /// The record has changed since it was last written.
    var isDirty = false
    /// What its last engine left was brought into order in memory alone: reading writes nothing.
    var isRecovered = false
    /// Ranges were added, dropped or begun anew since the record was last written.
    var rangesChanged = false
    /// No live counter was ever written to the info file: a record without a word about them is safe.
    var hasCleanCounters: Bool
    /// It was complete in another boot, and its file is compared before that counts again. Until then the record on disk
    /// says `complete` and names the other boot; only in memory the task queues for a slot and has a run.
    var awaitsProof = false
    /// The task is being forgotten, and its finished file stays.
    var keepsFile = false
    /// Bytes that download middlewares were last told of.
    var reported: Int64 = 0
    /// Counted among the tasks that can still run.
    var isOpen = false
    /// The command whose limits hold for it (`CommandGroups`).
    var group = CommandGroups.none
    /// The group of which it took its slot.
    var slotGroup = CommandGroups.none
    /// The limit of this task alone, once one was asked for.
    var limiter: RateLimiter?
    /// What barrels and the engine's totals last counted for this task.
    var accounted = Account()

    struct Account: Equatable {
        var received: Int64 = 0
        var expected: Int64 = 0
        /// No server has told its length: `expected` is what was received.
        var isLengthUnknown = false
        var state: DownloadState?
    }

    init(record: TaskRecord, info: InfoHandle, isNew: Bool) {
        id = record.id
        self.record = record
        self.info = info
        self.isNew = isNew
        hasCleanCounters = isNew
        urlIndex = record.nextURLIndex
        host = ""
        host = HostName.site(nextURL)
    }

    /// The state that verbs are decided on: a task whose file is compared is complete.
    var standing: DownloadState { awaitsProof && record.state != .unknown ? .complete : record.state }

    /// False for a task that is being trashed.
    var isThere: Bool { record.state != .unknown }

    /// The plan's entry that the next attempt takes.
    var nextURL: String { record.url(ofPlan: urlIndex % (1 + record.task.mirrors.count)) }

    /// Bytes in the part file at this moment.
    var received: Int64 { record.received(counters: run?.counters) }

    /// Bytes a second, smoothed; 0 while it does not run.
    var bytesPerSecond: Double { run?.speed.bytesPerSecond ?? 0 }

    /// The speed for the record: smoothed while the task runs, the average of the attempt at its end. It does not change
    /// between attempts.
    func recordedSpeed(in state: DownloadState, now: Int64) -> Int64? {
        guard let run, record.isForeign != true else { return record.bytesPerSecond }
        // Nothing is sampled without listeners. Then the average so far counts.
        if state == .action, run.speed.bytesPerSecond >= 1 { return Int64(run.speed.bytesPerSecond) }
        return run.attempt.averageSpeed(received: received, now: now) ?? record.bytesPerSecond
    }

    var account: Account {
        let received = received
        return Account(
            received: received, expected: max(record.expected ?? 0, received),
            isLengthUnknown: record.expected == nil && record.state != .complete && record.state != .unknown,
            state: record.state)
    }

    /// What middlewares are told.
    var context: TaskContext? {
        URL(string: record.task.url).map {
            TaskContext(
                id: id, originalURL: $0, attempt: record.attempts, barrels: record.barrels,
                attributes: record.task.attributes)
        }
    }

    /// The middlewares of a chain that handle this task. Nothing is made where none is registered.
    ///
    /// - Parameter url: the URL whose host counts; nil, the default, takes the task's own.
    func middlewares<Middleware>(of chain: MiddlewareChain<Middleware>, url: String? = nil) -> [Middleware] {
        chain.ordered(for: context, url: url.flatMap { URL(string: $0) })
    }

    /// True if a middleware of that chain handles this task.
    func isHandled<Middleware>(by chain: MiddlewareChain<Middleware>) -> Bool { !chain.isEmpty(for: context) }

    /// The digest the finished file must have: the one the task was given, else the one a server told.
    var expectedDigest: Checksum? { record.task.options.checksum ?? record.validator?.digest }

    /// Takes what its run knows into the record in memory, before somebody looks at it.
    func refresh() { run?.takeInlineHead() }

    // MARK: Changes

    /// Changes the state in memory. Returns false when it was that state already.
    func set(_ state: DownloadState) -> Bool {
        guard record.state != state else { return false }
        record.state = state
        isDirty = true
        if state != .action { run?.speed = SpeedMeter() }
        return true
    }

    /// Adds a line to the task's history, which keeps the newest eight.
    func appendHistory(by: String, _ what: String, at date: Date) {
        if by == "resume" { run?.noteDrop(because: what) }
        record.appendHistory(Verdict(time: date, by: by, what: what))
        isDirty = true
    }

    /// Takes the live counters of its run over into the record.
    func foldCounters() {
        guard let counters = run?.counters else { return }
        record.fold(counters)
        isDirty = true
    }

    /// Forgets everything that was received.
    func dropBytes() {
        for index in record.ranges.indices { run?.counters?.store(index, 0) }
        record.dropBytes()
        rangesChanged = true
    }

    /// The next attempt is the first one, and begins with the task's own URL.
    func freshen() {
        record.freshen()
        urlIndex = 0
    }

    /// The task queues for a slot as if it had something to fetch.
    func demandProof() {
        record.state = .idle
        record.forgetPart()
        awaitsProof = true
    }

    /// The finished file is gone, or not the one that was received.
    func forgetFile() {
        awaitsProof = false
        dropBytes()
        record.forgetFile()
    }
}
