import FKMiddleware

/// The deadlines of the engine's timer: tick, polled reports, measurements, clean-up, tasks to wake and tasks to fail.
///
/// Times are nanoseconds of a monotonic clock. A value type without locks.
struct Alarms: Sendable {
    /// The deadlines that have passed.
    struct Due: Sendable, Equatable {
        /// The once-a-second tick.
        var tick = false
        /// The polled callbacks are due.
        var report = false
        /// The number of connections of growing attempts is measured.
        var growth = false
        /// Unread replies are deleted, once a minute.
        var sweep = false
        /// The tasks to wake, earliest first.
        var woken: [TaskID] = []
        /// The tasks whose deadline may have passed, earliest first.
        var expired: [TaskID] = []
    }

    private static let second: Int64 = 1_000_000_000

    private var tick: Int64
    private var sweep: Int64
    private var report = Int64.max
    private var growth = Int64.max
    /// The times at which tasks are due.
    var wakes = WakeQueue()
    /// The times at which tasks must be complete.
    var expiries = WakeQueue()

    /// The first tick and the first sweep are due immediately.
    init(now: Int64) {
        tick = now
        sweep = now
    }

    /// Makes the next tick due immediately.
    mutating func startTicking(now: Int64) { tick = now }

    /// Sets the time of the next report, unless an earlier one is set.
    mutating func setReport(_ due: Int64) { report = min(report, due) }

    /// Sets the time of the next measurement, unless an earlier one is set.
    mutating func setGrowth(_ due: Int64) { growth = min(growth, due) }

    var hasReport: Bool { report != .max }
    var hasGrowth: Bool { growth != .max }

    /// The earliest deadline.
    var next: Int64 { min(tick, sweep, report, growth, wakes.nextDue ?? .max, expiries.nextDue ?? .max) }

    /// Removes and returns everything that is due. A repeating deadline is due once, however late it is. The next one
    /// is one period after it, or one period from now if that has passed as well.
    mutating func due(_ now: Int64) -> Due {
        var result = Due()
        result.tick = Self.fire(&tick, now, every: Self.second)
        result.sweep = Self.fire(&sweep, now, every: 60 * Self.second)
        result.report = Self.fire(&report, now)
        result.growth = Self.fire(&growth, now)
        result.woken = wakes.popDue(now)
        result.expired = expiries.popDue(now)
        return result
    }

    private static func fire(_ alarm: inout Int64, _ now: Int64, every period: Int64) -> Bool {
        guard alarm <= now else { return false }
        alarm = alarm + period > now ? alarm + period : now + period
        return true
    }

    private static func fire(_ alarm: inout Int64, _ now: Int64) -> Bool {
        guard alarm <= now else { return false }
        alarm = .max
        return true
    }
}
