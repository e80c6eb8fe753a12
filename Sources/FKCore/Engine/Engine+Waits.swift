import FKMiddleware
import Foundation

/// Why queued tasks wait: for this process, for others, and for the next engine.
extension Engine {
    /// Why an idle task is not running, as far as this engine knows.
    func waiting(of entry: TaskEntry) -> Waiting? {
        guard entry.record.state == .idle else { return nil }
        let obstacle = hosts.obstacle(entry.host, now: clock.now)
        if let waiting = entry.record.waiting {
            // Its own delay may be shorter than what the host asked others for.
            if case .paused(let pause) = obstacle, let until = waiting.until, pause.date > until {
                return Waiting(.host, until: pause.date, host: HostName.shown(entry.host))
            }
            return waiting
        }
        guard isActive, entry.isAdmitted else { return Waiting(.queue) }
        switch obstacle {
        case .paused(let pause): return Waiting(.host, until: pause.date, host: HostName.shown(entry.host))
        case .full(let limit) where takenSlots(entry.group) == nil:
            return Waiting(.host, host: HostName.shown(entry.host), limit: limit)
        default: return Waiting(.slot, limit: takenSlots(entry.group))
        }
    }

    /// The server has failed a request and asked to be left alone: no task asks it before that time.
    ///
    /// - Parameter seconds: as long as the server asked for, or as `Configure.retry` allows.
    /// - Returns: the host, for a person.
    func pauseHost(_ site: String, seconds: Double) -> String {
        if hosts.pause(site, seconds: seconds, now: clock.now, date: clock.date) {
            tellWaits()
            setDeadline()
        }
        return HostName.shown(site)
    }

    /// The same for a further connection's failure, where it asks for anything.
    func notePause(_ error: DownloadError, from url: String) {
        guard let seconds = RetryRules.asked(by: error, configure.retry) else { return }
        _ = pauseHost(site(of: error, from: url), seconds: seconds)
    }

    /// The server that an error is of: after redirects it is not the one that was asked.
    func site(of error: DownloadError, from url: String) -> String {
        HostName.site(unnormalized: error.url ?? url)
    }

    /// Writes down why tasks wait, where that has changed: other processes show it, and the next engine keeps to the pauses.
    func tellWaits() {
        guard mayWrite else { return }
        var notice = WaitNotice()
        let waits = !ready.isEmpty && !isClosing
        for (site, pause) in hosts.pauses { notice.hosts[site] = .init(until: pause.date) }
        if waits {
            for (site, count) in hosts.connections where count >= hosts.limit {
                notice.hosts[site, default: .init()].limit = hosts.limit
            }
            notice.slots =
                running.count >= descriptors.slots
                ? descriptors.slots : groups.taken(shared: configure.maxAction, open: openCount)
        }
        guard notice != lastNotice else { return }
        lastNotice = notice
        // Only others read it: a disk that is full keeps nobody from downloading.
        try? notice.save(in: workPath)
    }
}

extension HostBudget {
    /// Takes over the pauses that an earlier engine noted.
    ///
    /// - Parameter longest: seconds; a wall clock that was set back must not make anybody wait for hours.
    mutating func restorePauses(_ notice: WaitNotice, at clock: any EngineClock, atMost longest: Double) {
        for (site, host) in notice.hosts {
            guard let until = host.until else { continue }
            let seconds = until.timeIntervalSince(clock.date)
            pause(site, seconds: min(seconds, longest), now: clock.now, date: clock.date)
        }
    }
}
