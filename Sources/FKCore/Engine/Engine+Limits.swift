import FKMiddleware

/// Which limits hold for a task: its own, those of the command that asked for it, those of its barrels, and the total. The
/// tightest counts.
extension Engine {
    func limiters(for entry: TaskEntry) -> [RateLimiter] {
        var limiters = [totalLimiter]
        if let rate = entry.record.task.options.rateLimit, rate > 0 {
            let limiter = taskLimiters[entry.id] ?? RateLimiter(rate: rate, now: clock.now)
            if limiter.rate != rate { limiter.setRate(rate, now: clock.now) }
            taskLimiters[entry.id] = limiter
            limiters.append(limiter)
        }
        if let limiter = groups.limiter(of: entry.group, barrels: entry.record.barrels) { limiters.append(limiter) }
        for name in entry.record.barrels { limiters.append(limiter(ofBarrel: name)) }
        return limiters
    }

    func connections(of entry: TaskEntry) -> ConnectionLimit {
        entry.record.task.options.connections ?? groups.connections(of: entry.group) ?? configure.connections
    }

    /// There is one for every barrel that a task in memory belongs to, so that a limit set later acts as well.
    private func limiter(ofBarrel name: String) -> RateLimiter {
        if let limiter = barrelLimiters[name] { return limiter }
        let options = barrels[name]?.options ?? (try? BarrelFile.load(name, in: workPath).options)
        let limiter = RateLimiter(rate: options?.rateLimit, now: clock.now)
        barrelLimiters[name] = limiter
        return limiter
    }

    /// The limits of running tasks have changed: transfers that pause under the former ones ask again at once.
    func limitsChanged() {
        for entry in running.values {
            guard let attempt = entry.attempt else { continue }
            attempt.limits.replace(with: limiters(for: entry))
            attempt.lanes.forEach { $0.operation?.resume() }
        }
    }

    /// `Configure.rateLimit` or the standing limit has changed.
    ///
    /// - Parameter others: limits of others have changed as well.
    func setTotalLimit(others: Bool = false) {
        let rate = Self.tightest(configure.rateLimit, standingLimit)
        let isChanged = totalLimiter.rate != rate
        if isChanged { totalLimiter.setRate(rate, now: clock.now) }
        if isChanged || others { limitsChanged() }
    }

    static func tightest(_ rates: Int64?...) -> Int64? { rates.compactMap(\.self).filter { $0 > 0 }.min() }

    /// Sets the limit of all tasks or of a barrel's members, which lasts until it is changed. That of all takes the place
    /// of the limits that running commands brought for their own tasks, that of a barrel for its members.
    ///
    /// - Parameter rate: bytes a second; nil is no limit.
    func setLimit(_ rate: Int64?, barrel name: String?) throws -> String {
        if let rate, rate < 0 {
            throw DownloadError(.invalidArgument, "A rate limit is \(rate), and must be at least 0.")
        }
        let rate = rate == 0 ? nil : rate
        let text = rate.map { "at most \(ByteSize.format($0))/s" } ?? "no limit"
        guard let name else {
            try StandingLimit.write(rate, in: workPath)
            standingLimit = rate
            let lifted = groups.liftRates()
            setTotalLimit(others: lifted > 0)
            let commands = Plural.count(lifted, "running command")
            return "all tasks: \(text)" + (lifted > 0 ? "; it takes the place of the limit of \(commands)" : "")
        }
        var options = try openBarrel(name, creating: false).options
        options.rateLimit = rate
        barrels.setOptions(options, of: name)
        saveBarrels()
        limiter(ofBarrel: name).setRate(rate, now: clock.now)
        groups.liftRates(ofBarrel: name)
        limitsChanged()
        return "barrel \(name): \(text)"
    }

    func limitsReport() throws -> LimitsReport {
        var report = try LimitsReport(stored: workPath)
        report.configured = configure.rateLimit.flatMap { $0 > 0 ? $0 : nil }
        report.commands = groups.all.map { .init(rate: $0.limits.rateLimit, jobs: $0.limits.maxAction, tasks: $0.open) }
        return report
    }

    // MARK: Groups

    /// - Throws: `.invalidArgument` for limits outside their ranges.
    func group(of limits: OwnLimits?) throws(DownloadError) -> Int32? {
        guard let limits else { return nil }
        if let fault = limits.fault { throw DownloadError(.invalidArgument, "The request is refused: \(fault).") }
        return groups.number(for: limits, now: clock.now)
    }

    /// The task is that command's from now on, and its limits are the command's.
    func join(_ entry: TaskEntry, group: Int32?) {
        guard let group, entry.group != group else { return }
        if entry.isOpen {
            groups.count(group, open: 1)
            groups.count(entry.group, open: -1)
        }
        entry.group = group
        // Its place in the queue is among its group's.
        if ready.contains(entry.id) { ready.push(readyElement(entry)) }
        guard let attempt = entry.attempt else { return }
        attempt.limits.replace(with: limiters(for: entry))
        attempt.lanes.forEach { $0.operation?.resume() }
    }
}
