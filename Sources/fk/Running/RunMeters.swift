import FKCore
import Foundation

/// The rates of the tasks of a run and of their sum, and how long each has been silent. A value type without a clock.
struct RunMeters: Sendable {
    private var tasks: [TaskID: RateWindow] = [:]
    private var total = RateWindow()
    /// True while the process that runs the tasks is stopped or hung: there is no rate then.
    var isStill = false
    /// Since when no task runs; nil while one does.
    private var idleSince: Int64?

    /// The nanoseconds without a running task after which there is no rate, and the next one is measured anew.
    private static let pause: Int64 = 1_000_000_000

    /// The seconds without a byte after which no remaining time is shown.
    static let stalling = 2.0
    /// The seconds without a byte after which a row says so.
    static let patience = 5.0

    /// Adds a sample for each running task and for the sum. Other tasks are removed.
    ///
    /// - Parameters:
    ///   - fetched: the bytes of all tasks that arrived in this run.
    ///   - time: nanoseconds of a monotonic clock.
    mutating func look(_ running: [DownloadInfo], fetched: Int64, time: Int64) {
        var kept: [TaskID: RateWindow] = [:]
        for info in running where info.state == .action {
            var window = tasks[info.id] ?? RateWindow()
            window.add(time: time, bytes: info.count.received)
            kept[info.id] = window
        }
        tasks = kept
        idleSince = kept.isEmpty ? idleSince ?? time : nil
        // Between two small files nothing runs for a moment.
        if let idleSince, time - idleSince >= Self.pause { total = RateWindow() }
        total.add(time: time, bytes: fetched)
    }

    /// Bytes per second of all tasks; nil while nothing arrives.
    var rate: Double? { isStill ? nil : total.rate.flatMap { $0 >= 1 ? $0 : nil } }

    /// Bytes per second of a task; nil while nothing arrives.
    func rate(of id: TaskID) -> Double? { isStill ? nil : tasks[id]?.rate.flatMap { $0 >= 1 ? $0 : nil } }

    /// True if no byte of a task has arrived for a moment.
    func isStalling(_ id: TaskID, at time: Int64) -> Bool { tasks[id]?.silence(at: time) ?? 0 >= Self.stalling }

    /// True if no byte of any task has arrived for a moment.
    func isStalling(at time: Int64) -> Bool { total.silence(at: time) >= Self.stalling }

    /// The seconds without a byte, from `patience` on; nil while bytes arrive.
    func silence(of id: TaskID, at time: Int64) -> Double? {
        guard let seconds = tasks[id]?.silence(at: time), seconds >= Self.patience else { return nil }
        return seconds.rounded(.down)
    }
}

extension TaskLine {
    /// The row of a running task, or of one that waits for its next attempt.
    ///
    /// - Parameters:
    ///   - label: tells it apart from tasks of the same name.
    ///   - resumed: the bytes from before this run.
    ///   - time: nanoseconds of the clock of `meters`.
    init(
        _ info: DownloadInfo, label: String? = nil, resumed: Int64 = 0, meters: RunMeters, time: Int64, now: Date
    ) {
        self.init(
            name: info.shownName, received: info.count.received, expected: info.count.expected,
            rate: meters.rate(of: info.id))
        self.label = label
        self.resumed = resumed
        attempt = info.attempts
        attempts = info.maxAttempts
        connections = info.connections
        if info.state == .action {
            silence = meters.silence(of: info.id, at: time)
            isStalling = meters.isStalling(info.id, at: time)
        } else {
            note = Self.note(info, now: now)
        }
    }

    /// `attempt 2 of 5 in 9s: The server answered 503.`
    private static func note(_ info: DownloadInfo, now: Date) -> String? {
        guard let wait = info.wait else { return nil }
        var text = WaitText.text(wait, now: now)
        if wait.reason == .retry, let until = wait.until {
            let next = "attempt \(info.attempts + 1)" + (info.maxAttempts.map { " of \($0)" } ?? "")
            let left = Formatting.duration(max(0, until.timeIntervalSince(now)))
            text = wait.host == nil ? "\(next) in \(left)" : "\(text), \(next)"
        }
        // The reason of an earlier attempt is not why the task waits for a slot.
        guard wait.until != nil, let error = info.error else { return text }
        return "\(text): \(error.shortText)"
    }
}

extension TotalLine {
    init(_ tracker: RunTracker, rate: Double?, isStalling: Bool = false, waiting: String?) {
        let goal = tracker.goal
        self.init(
            complete: tracker.count(.complete), error: tracker.count(.error), total: tracker.total,
            received: goal.received, expected: goal.expected, rate: rate)
        resumed = tracker.atStart
        isLowerBound = goal.isLowerBound
        // Without the lengths of all files the whole is unknown.
        fraction = goal.isLowerBound ? nil : tracker.fraction
        rest = tracker.rest
        self.isStalling = isStalling
        self.waiting = waiting
    }
}
