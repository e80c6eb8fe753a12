import FKMiddleware

/// Which limits hold for a task: its own, those of the command that asked for it, those of its barrels, and the total. The
/// tightest counts. Confined to the engine.
final class RateLimits {
    private let workPath: WorkPath
    private let schedule: Schedule
    private let barrels: Barrels
    private let total: RateLimiter
    /// What `fk limit` set for all tasks of the work path.
    private var standing: Int64?
    private var ofBarrels = ExactMap<RateLimiter>()

    private var clock: any EngineClock { schedule.clock }

    init(_ workPath: WorkPath, schedule: Schedule, barrels: Barrels, problems: Problems) {
        self.workPath = workPath
        self.schedule = schedule
        self.barrels = barrels
        do {
            standing = try StandingLimit.read(in: workPath)
        } catch {
            problems.append(
                "The work path's rate limit cannot be read, and does not hold until it is set again: \(error)")
        }
        total = RateLimiter(
            rate: Self.tightest(schedule.configure.rateLimit, standing), now: schedule.clock.now)
    }

    // MARK: Asking

    func limiters(for entry: TaskEntry) -> [RateLimiter] {
        var limiters = [total]
        if let rate = entry.record.task.options.rateLimit, rate > 0 {
            let limiter = entry.limiter ?? RateLimiter(rate: rate, now: clock.now)
            if limiter.rate != rate { limiter.setRate(rate, now: clock.now) }
            entry.limiter = limiter
            limiters.append(limiter)
        }
        if let limiter = schedule.groups.limiter(of: entry.group, barrels: entry.record.barrels) {
            limiters.append(limiter)
        }
        for name in entry.record.barrels { limiters.append(limiter(ofBarrel: name)) }
        return limiters
    }

    func connections(of entry: TaskEntry) -> ConnectionLimit {
        entry.record.task.options.connections ?? schedule.groups.connections(of: entry.group)
            ?? schedule.configure.connections
    }

    /// There is one for every barrel that a task in memory belongs to, so that a limit set later acts as well.
    private func limiter(ofBarrel name: String) -> RateLimiter {
        if let limiter = ofBarrels[name] { return limiter }
        let options = barrels.book[name]?.options ?? (try? BarrelFile.load(name, in: workPath).options)
        let limiter = RateLimiter(rate: options?.rateLimit, now: clock.now)
        ofBarrels[name] = limiter
        return limiter
    }

    // MARK: Changing

    /// The limits of a running task have changed: a transfer that pauses under the former ones asks again at once.
    func apply(to entry: TaskEntry) {
        entry.run?.limits.replace(with: limiters(for: entry))
        entry.run?.resumeTransfers()
    }

    func applyToAll() {
        for entry in schedule.running.values { apply(to: entry) }
    }

    /// `Configure.rateLimit` or the standing limit has changed.
    ///
    /// - Parameter others: limits of others have changed as well.
    func setTotal(others: Bool = false) {
        let rate = Self.tightest(schedule.configure.rateLimit, standing)
        let isChanged = total.rate != rate
        if isChanged { total.setRate(rate, now: clock.now) }
        if isChanged || others { applyToAll() }
    }

    private static func tightest(_ rates: Int64?...) -> Int64? { rates.compactMap(\.self).filter { $0 > 0 }.min() }

    /// Sets the limit of all tasks or of a barrel's members, which lasts until it is changed. That of all takes the place
    /// of the limits that running commands brought for their own tasks, that of a barrel for its members.
    ///
    /// - Parameter rate: bytes a second; nil or 0 is no limit.
    func set(_ rate: Int64?, barrel name: String?) throws -> String {
        if let rate, rate < 0 {
            throw DownloadError(.invalidArgument, "A rate limit is \(rate), and must be at least 0.")
        }
        let rate = rate == 0 ? nil : rate
        let text = rate.map { "at most \(ByteSize.format($0))/s" } ?? "no limit"
        guard let name else {
            try StandingLimit.write(rate, in: workPath)
            standing = rate
            let lifted = schedule.groups.liftRates()
            setTotal(others: lifted > 0)
            let commands = Plural.count(lifted, "running command")
            return "all tasks: \(text)" + (lifted > 0 ? "; it takes the place of the limit of \(commands)" : "")
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

    /// The barrel's settings were replaced.
    func barrelChanged(_ name: String) {
        guard let limiter = ofBarrels[name] else { return }
        limiter.setRate(barrels.book[name]?.options.rateLimit, now: clock.now)
    }

    func barrelDeleted(_ name: String) {
        ofBarrels[name] = nil
        applyToAll()
    }

    func report() throws -> LimitsReport {
        var report = try LimitsReport(stored: workPath)
        report.configured = schedule.configure.rateLimit.flatMap { $0 > 0 ? $0 : nil }
        report.commands = schedule.groups.all.map {
            .init(rate: $0.limits.rateLimit, jobs: $0.limits.maxAction, tasks: $0.open)
        }
        return report
    }
}
