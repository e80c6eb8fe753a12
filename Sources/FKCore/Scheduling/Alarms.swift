import FKMiddleware

/// When the engine's timer has something to do: the heartbeat, polled reports, measuring, clearing up, tasks to wake.
///
/// Times are nanoseconds of a monotonic clock. A value type without locks.
struct Alarms: Sendable {
    /// What one look at the clock found.
    struct Due: Sendable, Equatable {
        /// The heartbeat, once a second.
        var tick = false
        /// The polled callbacks.
        var report = false
        /// Connections of growing attempts are measured.
        var growth = false
        /// Unread replies are cleared away, once a minute.
        var sweep = false
        /// Tasks to wake, the earliest first.
        var woken: [TaskID] = []
    }

    private static let second: Int64 = 1_000_000_000

    private var tick: Int64
    private var sweep: Int64
    private var report = Int64.max
    private var growth = Int64.max
    /// Which task is due when.
    var wakes = WakeQueue()

    /// The first tick and the first sweep are due at once.
    init(now: Int64) {
        tick = now
        sweep = now
    }

    /// The next tick is due at once, as at the beginning.
    mutating func startTicking(now: Int64) { tick = now }

    /// Sets the next report, unless one is due already.
    mutating func setReport(_ due: Int64) { report = min(report, due) }

    /// Sets the next measurement, unless one is due already.
    mutating func setGrowth(_ due: Int64) { growth = min(growth, due) }

    var hasReport: Bool { report != .max }
    var hasGrowth: Bool { growth != .max }

    /// The first deadline.
    var next: Int64 { min(tick, sweep, report, growth, wakes.nextDue ?? .max) }

    /// Takes out all that is due. What repeats by itself is due once, however late it is, and again one period from its
    /// deadline, or from now where that has passed as well.
    mutating func due(_ now: Int64) -> Due {
        var result = Due()
        result.tick = Self.take(&tick, now, every: Self.second)
        result.sweep = Self.take(&sweep, now, every: 60 * Self.second)
        result.report = Self.take(&report, now)
        result.growth = Self.take(&growth, now)
        result.woken = wakes.popDue(now)
        return result
    }

    private static func take(_ alarm: inout Int64, _ now: Int64, every period: Int64) -> Bool {
        guard alarm <= now else { return false }
        alarm = alarm + period > now ? alarm + period : now + period
        return true
    }

    private static func take(_ alarm: inout Int64, _ now: Int64) -> Bool {
        guard alarm <= now else { return false }
        alarm = .max
        return true
    }
}
