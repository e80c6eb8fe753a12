import FKMiddleware
import Foundation

/// A task in the engine's memory. Confined to the engine.
final class TaskEntry {
    let id: TaskID
    var record: TaskRecord
    var info: InfoHandle
    /// The `HostName.site` of the URL tried next. Stays while the task is queued or holds a slot.
    var host: String
    /// The running attempt, also for the moment in which it is being stopped.
    var attempt: Attempt?
    /// False for tasks that are known but that nobody asked this engine to run.
    var isAdmitted = false
    /// True until the record was read from disk once: its part file, if there is one, is nobody's.
    let isNew: Bool
    /// Which URL of the plan is tried next.
    var urlIndex = 0
    /// The record has changed since it was last written.
    var isDirty = false
    /// Ranges were added, dropped or begun anew since the record was last written.
    var rangesChanged = false
    /// No live counter was ever written to the info file: a record without a word about them is safe.
    var hasCleanCounters: Bool
    /// It was complete in another boot, and its file is compared before that counts again. Until then the record on disk
    /// says `complete` and names the other boot; only in memory the task queues for a slot and has an attempt.
    var awaitsProof = false
    /// Counted among the tasks that can still run.
    var isOpen = false
    /// The command whose limits hold for it (`CommandGroups`).
    var group = CommandGroups.none
    /// The group of which it took its slot.
    var slotGroup = CommandGroups.none
    /// What barrels and the engine's totals last counted for this task.
    var accounted = Account()

    /// What only a task that has been worked on has: of a hundred thousand that wait, nobody has any.
    final class Work {
        var speed = SpeedMeter()
        /// What was so when the present attempt began; nil between attempts.
        var start: AttemptStart?
        /// Why the present attempt dropped bytes of earlier ones.
        var dropReason: String?
        /// How the attempt before the present one ended.
        var previousError: DownloadError?
        /// The info file, where it stays open: from the reading of a task that rested to the first gate, and from the
        /// moment the final name is written down to the end of the attempt.
        var openInfo: OpenInfoFile?
        /// The connection that goes with the task's slot. It stays with the slot while only mirrors are at work.
        var permit: HostPermit?
        /// `received` at the last report to middlewares.
        var reported: Int64 = 0
    }

    private(set) var workIfAny: Work?
    /// Made when it is asked for.
    var work: Work {
        if let workIfAny { return workIfAny }
        let work = Work()
        workIfAny = work
        return work
    }

    func forgetSpeed() { workIfAny?.speed = SpeedMeter() }

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

    /// The plan's entry that the next attempt takes.
    var nextURL: String {
        let place = urlIndex % (1 + record.task.mirrors.count)
        return place == 0 ? record.task.url : record.task.mirrors[place - 1]
    }

    /// Bytes in the part file at this moment.
    var received: Int64 {
        guard let counters = attempt?.counters else { return record.received }
        var sum: Int64 = 0
        for index in record.ranges.indices { sum += max(0, counters.load(index) - record.ranges[index].start) }
        return sum
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
                id: id.hex, originalURL: $0, attempt: record.attempts, barrels: record.barrels,
                attributes: record.task.attributes)
        }
    }
}
