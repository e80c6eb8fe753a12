import FKMiddleware
import Foundation

/// Why tasks wait, and in which order.
extension Schedule {
    // MARK: Why tasks wait

    /// The reason why an idle task does not run, if it is known.
    func waiting(of entry: TaskEntry) -> Waiting? {
        guard entry.record.state == .idle else { return nil }
        let obstacle = hosts.obstacle(entry.host, for: groups.asker(entry.group), now: clock.now)
        if let waiting = entry.record.waiting {
            // The task's own delay may be shorter than the host's pause.
            if case .paused(let pause) = obstacle, let until = waiting.until, pause.date > until {
                return Waiting(.host, until: pause.date, host: entry.host.shownSite)
            }
            return waiting
        }
        guard isActive, entry.isAdmitted, !configure.isPaused else { return Waiting(.queue) }
        switch obstacle {
        case .paused(let pause): return Waiting(.host, until: pause.date, host: entry.host.shownSite)
        case .paced(let turn):
            return Waiting(.host, until: date(of: turn.until), host: entry.host.shownSite, policy: turn.policy)
        case .full(let limit, let policy) where takenSlots(entry.group) == nil:
            return Waiting(.host, host: entry.host.shownSite, limit: limit, policy: policy)
        default: return Waiting(.slot, limit: takenSlots(entry.group))
        }
    }

    private func date(of time: Int64) -> Date { clock.date + Double(time - clock.now) / 1e9 }

    /// The reasons for waiting, for other processes and the next engine.
    ///
    /// - Parameter isClosing: true keeps only the pauses.
    func notice(isClosing: Bool) -> WaitNotice {
        var notice = WaitNotice()
        for (site, pause) in hosts.pauses { notice.hosts[site] = .init(until: pause.date, seconds: pause.seconds) }
        for (site, quota) in hosts.quotas where notice.hosts[site]?.until == nil {
            guard let end = quota.exhausted(now: clock.now) else { continue }
            notice.hosts[site] = .init(until: date(of: end), seconds: Double(end - clock.now) / 1e9)
        }
        guard !ready.isEmpty || !heldRequests.isEmpty, !isClosing else { return notice }
        for (site, count) in hosts.connections {
            guard case .full(let limit, let policy) = hosts.obstacle(site, now: clock.now) else { continue }
            guard count >= limit else { continue }
            notice.hosts[site, default: .init()].limit = limit
            notice.hosts[site]?.policy = policy
        }
        for (site, turn) in pacedHosts where notice.hosts[site]?.until == nil {
            notice.hosts[site, default: .init()].until = date(of: turn.until)
            notice.hosts[site]?.policy = turn.policy
        }
        notice.slots =
            taken >= descriptors.slots
            ? descriptors.slots : groups.taken(shared: configure.maxAction, open: openCount)
        return notice
    }

    /// The tasks in the ready queue; nil if there are too many for the notice.
    var queued: Set<String>? {
        ready.count > WaitNotice.maxQueued ? nil : Set(ready.all.map(\.id.hex))
    }

    // MARK: The waiting list

    /// The queued tasks in the order in which they would start now. Tasks in the ready queue come first, with those
    /// of hosts that accept no request last. Tasks with a later attempt follow.
    func waitingOrder() -> [TaskID] {
        var queue = ready
        // A task that was queued again while it is being stopped enters the queue when that has ended.
        for entry in running.values where entry.record.state == .idle && entry.isAdmitted {
            queue.push(element(of: entry))
        }
        let now = clock.now
        var free = descriptors.slots - taken
        var groups = groups
        var more: [String: Int] = [:]
        var open: [TaskID] = []
        var closed: [TaskID] = []
        for element in queue.sorted() {
            let asker = groups.asker(element.group)
            guard hosts.obstacle(element.host, for: asker, now: now, more: more[element.host, default: 0]) == nil else {
                closed.append(element.id)
                continue
            }
            open.append(element.id)
            // The task would take a free slot.
            if free > 0, groups.hasSlot(element.group, shared: configure.maxAction) {
                groups.began(element.group)
                more[element.host, default: 0] += 1
                free -= 1
            }
        }
        return open + closed + alarms.wakes.sorted()
    }
}

extension DownloadError {
    /// The server that the error of a request to `url` concerns. After redirects it is not the requested one.
    package func site(from url: String) -> String {
        (self.url ?? url).normalizedSite
    }
}

extension HostBudget {
    /// Restores the pauses of an earlier engine, each for its length at most: the wall clock may have been set back.
    ///
    /// - Parameter longest: the maximum in seconds, also for a pause without a length.
    mutating func restorePauses(_ notice: WaitNotice, at clock: any EngineClock, atMost longest: Double) {
        for (site, host) in notice.hosts {
            guard let until = host.until, host.policy == nil else { continue }
            let seconds = until.timeIntervalSince(clock.date)
            pause(site, seconds: min(seconds, host.seconds ?? longest, longest), now: clock.now, date: clock.date)
        }
    }
}
