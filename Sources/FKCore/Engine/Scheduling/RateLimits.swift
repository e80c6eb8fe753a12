import FKMiddleware

/// Combines the limits of a task: its own, those of the command that requested it, those of its barrels, and the
/// total. The lowest applies. Confined to the engine.
package final class RateLimits {
    private let workPath: WorkPath
    private let schedule: Schedule
    private let barrels: Barrels
    private let total: RateLimiter
    /// The limit of all tasks that `fk limit` has set, with its windows.
    private var plan: StandingLimit
    /// What it says now.
    private var standing: Int64?
    private var ofBarrels = ExactText.Map<RateLimiter>()
    /// By host and port. A host that had a limit keeps its limiter.
    private var ofHosts: [String: RateLimiter] = [:]

    private var clock: any EngineClock { schedule.clock }

    init(_ workPath: WorkPath, schedule: Schedule, barrels: Barrels, problems: Problems) {
        self.workPath = workPath
        self.schedule = schedule
        self.barrels = barrels
        do {
            plan = try StandingLimit.stored(in: workPath)
        } catch {
            plan = StandingLimit()
            problems.append(
                "The work path's rate limit cannot be read, and has no effect until it is set again: \(error)",
                code: .corruptInfo)
        }
        standing = plan.limit(at: DailyWindow.minute(of: schedule.clock.date)).rate
        total = RateLimiter(
            rate: Self.tightest(schedule.configure.rateLimit, standing), now: schedule.clock.now)
    }

    // MARK: Asking

    /// The rate limiters of a task.
    func limiters(for entry: TaskEntry) -> [RateLimiter] {
        var limiters = [total]
        if let rate = entry.record.task.optionsBox?.value.rateLimit, rate > 0 {
            let limiter = entry.limiter ?? RateLimiter(rate: rate, now: clock.now)
            if limiter.rate != rate { limiter.setRate(rate, now: clock.now) }
            entry.limiter = limiter
            limiters.append(limiter)
        }
        if let limiter = schedule.groups.limiter(of: entry.group, barrels: entry.record.barrels) {
            limiters.append(limiter)
        }
        for name in entry.record.barrels { limiters.append(limiter(ofBarrel: name)) }
        if let limiter = limiter(ofHost: entry.host, for: entry) { limiters.append(limiter) }
        return limiters
    }

    /// The limiter of a host's policy; nil for a host without a limit.
    ///
    /// - Parameter site: `site`.
    func limiter(ofHost site: String, for entry: TaskEntry) -> RateLimiter? {
        let asker = schedule.groups.asker(entry.group)
        guard let rate = schedule.hosts.rules(for: site, asker).rateLimit else { return nil }
        let limiter = ofHosts[site.shownSite] ?? RateLimiter(rate: rate, now: clock.now)
        ofHosts[site.shownSite] = limiter
        if limiter.rate != rate { limiter.setRate(rate, now: clock.now) }
        return limiter
    }

    /// The connections for a task's file: its own setting, else the command's, else the configuration's.
    func connections(of entry: TaskEntry) -> ConnectionLimit {
        entry.record.task.optionsBox?.value.connections ?? schedule.groups.connections(of: entry.group)
            ?? schedule.configure.connections
    }

    /// Returns the limiter of a barrel. Every barrel of a task in memory has one, so that a limit set later applies
    /// as well.
    private func limiter(ofBarrel name: String) -> RateLimiter {
        if let limiter = ofBarrels[name] { return limiter }
        let options = barrels.book[name]?.options ?? (try? workPath.options(ofBarrel: name))
        let limiter = RateLimiter(rate: options?.rateLimit, now: clock.now)
        ofBarrels[name] = limiter
        return limiter
    }

    // MARK: Changing

    /// Applies changed limits to a running task. Its paused transfers resume and ask the new limits.
    func apply(to entry: TaskEntry) {
        entry.run?.use(limiters(for: entry))
    }

    /// Applies changed limits to all running tasks.
    func applyToAll() {
        for entry in schedule.running.values { apply(to: entry) }
    }

    /// Applies a change of `Configure.rateLimit` or the standing limit.
    ///
    /// - Parameter others: true if other limits have changed as well; the default is false.
    func setTotal(others: Bool = false) {
        let rate = Self.tightest(schedule.configure.rateLimit, standing)
        let isChanged = total.rate != rate
        if isChanged { total.setRate(rate, now: clock.now) }
        if isChanged || others { applyToAll() }
    }

    /// Applies the window that has begun or ended. To be called once a second.
    func followClock() {
        guard !plan.daily.isEmpty else { return }
        let rate = plan.limit(at: DailyWindow.minute(of: clock.date)).rate
        guard rate != standing else { return }
        standing = rate
        setTotal()
    }

    private static func tightest(_ rates: Int64?...) -> Int64? { rates.compactMap(\.self).filter { $0 > 0 }.min() }

    /// Sets the limit of all tasks or of a barrel's members. It applies until it is changed. The limit of all tasks
    /// replaces the limits of running commands. The limit of a barrel replaces them for its members.
    ///
    /// - Parameters:
    ///   - rate: bytes a second; nil or 0 means no limit.
    ///   - daily: the times of each day in which the limit of all tasks applies; none, the default, for always. The limit of a
    ///     barrel has none.
    /// - Returns: a line for people.
    /// - Throws: `.invalidArgument` for a negative rate, and for too many windows; `.notFound` if there is no such barrel.
    func set(_ rate: Int64?, barrel name: String?, daily: [DailyWindow] = []) throws -> String {
        if let rate, rate < 0 {
            throw DownloadError(.invalidArgument, "A rate limit is \(rate), and must be at least 0.")
        }
        let rate = rate == 0 ? nil : rate
        let text = rate.map { "at most \(ByteSize.format($0))/s" } ?? "no limit"
        guard let name else {
            let hadWindows = !plan.daily.isEmpty
            let lifted = try replace(by: plan.setting(rate, daily: daily))
            let when = daily.isEmpty ? "" : ", daily \(daily.map(\.text).joined(separator: " and "))"
            return "all tasks: \(text)\(when)" + (hadWindows && daily.isEmpty ? "; its daily windows are removed" : "")
                + lifted
        }
        guard daily.isEmpty else {
            throw DownloadError(.invalidArgument, "The limit of a barrel has no daily windows.")
        }
        var options = try barrels.open(name, creating: false).options
        options.rateLimit = rate
        barrels.book.setOptions(options, of: name)
        barrels.save()
        limiter(ofBarrel: name).setRate(rate, now: clock.now)
        schedule.groups.liftRates(ofBarrel: name)
        applyToAll()
        return "barrel \(name): \(text)"
    }

    /// Sets the limit of all tasks and all of its windows.
    ///
    /// - Returns: a line for people.
    /// - Throws: `.invalidArgument` for a rate below 0, windows of the same times, and too many of them; `.disk` or `.noSpace`.
    func set(_ limit: StandingLimit) throws -> String {
        for rate in [limit.rate] + limit.daily.map(\.rate) {
            guard let rate, rate < 0 else { continue }
            throw DownloadError(.invalidArgument, "A rate limit is \(rate), and must be at least 0.")
        }
        func positive(_ rate: Int64?) -> Int64? { rate == 0 ? nil : rate }
        var new = StandingLimit(rate: positive(limit.rate))
        for window in limit.daily {
            guard !new.daily.contains(where: window.isSameTime) else {
                throw DownloadError(.invalidArgument, "Two daily windows have the times \(window.text).")
            }
            new = new.setting(positive(window.rate), daily: [window])
        }
        let lifted = try replace(by: new)
        let count = new.daily.isEmpty ? "" : ", and \(new.daily.count.plural("daily window"))"
        return "all tasks: \(new.rate.map { "at most \(ByteSize.format($0))/s" } ?? "no limit")\(count)\(lifted)"
    }

    /// - Returns: what that means for running commands, as the end of a sentence.
    private func replace(by new: StandingLimit) throws -> String {
        guard new.daily.count <= DailyWindow.maxCount else {
            throw DownloadError(
                .invalidArgument, "The limit has more than \(DailyWindow.maxCount) daily windows.")
        }
        try new.write(in: workPath)
        plan = new
        standing = plan.limit(at: DailyWindow.minute(of: clock.date)).rate
        let lifted = schedule.groups.liftRates()
        setTotal(others: lifted > 0)
        return lifted > 0 ? "; it takes the place of the limit of \(lifted.plural("running command"))" : ""
    }

    /// Ends the limit of a deleted barrel.
    func barrelDeleted(_ name: String) {
        ofBarrels[name] = nil
        applyToAll()
    }

    /// The limits in force.
    func report() throws -> LimitsReport {
        var report = try LimitsReport(stored: workPath, at: clock.date)
        report.configured = schedule.configure.rateLimit.flatMap { $0 > 0 ? $0 : nil }
        let limited = schedule.running.values.filter {
            schedule.groups.limiter(of: $0.group, barrels: $0.record.barrels) != nil
        }
        report.commands = schedule.groups.all.map { group in
            let barrels = Set(limited.lazy.filter { $0.group == group.number }.flatMap(\.record.barrels))
            return .init(
                rate: group.limits.rateLimit, jobs: group.limits.maxAction, tasks: group.open, barrels: barrels.sorted()
            )
        }
        return report
    }
}
