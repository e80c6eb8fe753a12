import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// What the RPC knows about a task without asking the engine.
package struct TaskRow: Sendable {
    package let id: TaskID
    /// The number that clients use.
    package var gid: UInt64
    /// The submission number.
    package var number: UInt64
    /// Tasks with a higher priority start earlier.
    package var priority: Int
    /// The URL that requests begin with: the task's own, or the address in its place.
    package var url: String
    /// The URLs to try after it.
    package var mirrors: [String]
    /// The folder of the file; nil inside the work path.
    package var directory: String?
    /// The folder that clients see: that of the call, if the file is in a subfolder of it.
    var dir: String?
    /// The file's name as far as it is known.
    package var name: String
    /// False while the name is only a guess from the URL.
    package var isNamed: Bool
    package var state: DownloadState
    package var received: Int64
    /// Bytes of the whole file; nil if unknown.
    package var expected: Int64?
    /// The smoothed speed; 0 while the task does not run.
    package var bytesPerSecond: Int64 = 0
    package var connections = 0
    /// The finished file; nil until the task is complete.
    package var path: String?
    /// Attempts started so far.
    package var attempts: Int
    package var barrels: [String]
    /// The last error.
    package var error: DownloadError?
    package var waiting: Waiting?
    package var created: Date
    /// When its first attempt started.
    package var started: Date?
    /// When it completed, failed or was removed.
    package var finished: Date?
    /// Its place among the running, waiting or ended tasks.
    var place: SortedPlaces.Place?

    package init(_ record: TaskRecord) {
        id = record.id
        gid = Self.gid(of: record)
        number = record.number
        // Sums of priorities must not overflow.
        priority = min(max(record.task.priority, -1 << 60), 1 << 60)
        url = record.link ?? record.task.url
        mirrors = record.task.mirrors
        directory = record.task.directory
        dir = record.task.attributes[TaskDescription.givenFolder] ?? directory
        name =
            record.path?.lastPathPart ?? record.task.fileName
            ?? FileNameRules.name(url: record.task.url, head: nil)
        isNamed = record.path != nil || record.task.fileName != nil
        state = record.state
        received = record.received
        expected = record.expected
        path = record.state == .complete ? record.path : nil
        attempts = record.attempts
        barrels = record.barrels
        error = record.shownError
        waiting = record.state == .idle ? record.waiting : nil
        created = record.created
        started = record.started
        finished = record.finished
    }

    /// What the task adds to sums.
    var share: TaskTotals.Share { TaskTotals.Share(received: received, expected: expected, state: state) }

    /// The row of a download that ended before it began, because its file is there already.
    ///
    /// - Parameter name: the name of the file; nil takes it from the description.
    init(refused task: TaskDescription, name: String?) {
        let now = Date()
        let id = TaskID(url: task.url, destination: UUID().uuidString)
        self.init(TaskRecord(task: task, id: id, number: 0, created: now))
        self.name = name ?? self.name
        isNamed = true
        state = .error
        finished = now
        error = DownloadError(
            .fileExists,
            "The file \(self.name.visible) exists, and auto-file-renaming is false: set allow-overwrite to true "
                + "to fetch it anew.")
    }

    /// The gid that the client chose, or the beginning of the id.
    private static func gid(of record: TaskRecord) -> UInt64 {
        if let text = record.task.attributes[GID.attribute], GID.isWhole(text), let gid = GID.number(text) {
            return gid
        }
        return record.id.leadingWord
    }

    /// Absorbs a report of the engine.
    ///
    /// - Parameter now: the time of a change of state.
    mutating func absorb(_ info: DownloadInfo, now: Date) {
        if info.state != state {
            if info.state.isEnded { finished = now } else { finished = nil }
            if info.state == .action { started = started ?? now }
        }
        state = info.state
        received = info.count.received
        expected = info.count.expected ?? expected
        bytesPerSecond = info.state == .action ? Int64(max(0, min(info.bytesPerSecond, 1e15))) : 0
        connections = info.state == .action ? info.connections : 0
        attempts = info.attempts
        if let known = info.knownName {
            name = known
            isNamed = true
        }
        path = info.path
        barrels = info.barrels
        error = info.error
        waiting = info.wait
    }
}

extension DownloadState {
    /// True for the states that aria2 calls stopped.
    var isEnded: Bool { self == .complete || self == .error || self == .cancel }
    /// True for the states that aria2 calls waiting and paused.
    var isQueued: Bool { self == .idle || self == .suspend }
}
