import FKMiddleware
import Foundation

/// What was so when an attempt began: for its place in the running list and its average speed.
struct AttemptStart {
    /// Attempts of this engine, counted.
    let order: UInt64
    /// Nanoseconds of the monotonic clock.
    let time: Int64
    /// Bytes of earlier attempts.
    let received: Int64
    /// The plan's entry that is tried, masked.
    let url: String
}

/// Who wants to hear of attempts, and what an attempt leaves in the record about its speed.
extension Engine {
    /// - Parameter end: for a sequence: called once, behind the last info, when no attempt runs or follows.
    func observeAttempts(
        _ selector: TaskSelector, end: (@Sendable () -> Void)? = nil,
        _ callback: @escaping @Sendable (AttemptInfo) -> Void
    ) throws -> UInt64 {
        try checkOpen()
        let target = try Observers.Target(selector)
        let listener = Observers.AttemptListener(number: observers.number(), target: target, callback: callback)
        observers.add(listener, end: end)
        if end != nil { endAttemptSequences(target) }
        armReports()
        return listener.number
    }

    func attemptBegins(_ entry: TaskEntry) {
        startCount += 1
        entry.work.dropReason = nil
        entry.work.start = AttemptStart(
            order: startCount, time: clock.now, received: entry.record.received, url: URLMasking.mask(entry.nextURL))
        tellAttempt(entry, .began)
    }

    /// Says how the attempt ended. What follows is in the record already.
    func attemptEnded(_ entry: TaskEntry, _ attempt: Attempt?) {
        guard entry.workIfAny?.start != nil else { return }
        let state = entry.record.state
        if state == .complete {
            tellAttempt(entry, .succeeded)
        } else if attempt?.stop != nil {
            tellAttempt(entry, .stopped)
        } else if let error = entry.work.previousError {
            tellAttempt(entry, .failed(error, next: next(of: entry)))
        }
        let isLast = entry.record.state != .idle || attempt?.stop != nil
        entry.work.start = nil
        guard isLast else { return }
        for target in [Observers.Target.id(entry.id), .url(entry.record.task.url)] {
            endAttemptSequences(target, behindAttemptOf: entry)
        }
    }

    private func next(of entry: TaskEntry) -> AttemptInfo.Next {
        guard entry.record.state == .idle else { return .gaveUp }
        return .retry(url: URLMasking.mask(entry.nextURL), at: entry.record.waiting?.until ?? clock.date)
    }

    /// - Parameter phase: `.progressed` gets its counts here, for each listener its own.
    func tellAttempt(_ entry: TaskEntry, _ phase: AttemptInfo.Phase) {
        guard !observers.attempts.isEmpty, let start = entry.work.start else { return }
        let received = entry.received
        for listener in observers.attempts
        where listener.target == .id(entry.id) || listener.target == .url(entry.record.task.url) {
            var info = AttemptInfo(id: entry.id, url: start.url, number: entry.record.attempts, phase: phase)
            info.kept = received
            info.dropReason = start.received > 0 ? entry.work.dropReason : nil
            let previous = listener.told.previous(of: entry.id, now: received)
            if case .progressed = phase {
                info.phase = .progressed(
                    ByteCount(received: received, previousReceived: previous, expected: entry.record.expected))
            }
            callbacks.async { [info, callback = listener.callback] in callback(info) }
        }
    }

    // MARK: Speed

    /// What a record says about the speed: smoothed while the task runs, the average of the attempt at its end. Between
    /// attempts it stays as it is.
    func speedToRecord(of entry: TaskEntry, in state: DownloadState) -> Int64? {
        let before = entry.record.bytesPerSecond
        guard let start = entry.workIfAny?.start, entry.record.isForeign != true else { return before }
        // Nobody samples while nobody listens: then it is the average so far.
        if state == .action, entry.work.speed.bytesPerSecond >= 1 { return Int64(entry.work.speed.bytesPerSecond) }
        let moved = entry.received - (entry.work.dropReason == nil ? start.received : 0)
        let seconds = Double(clock.now - start.time) / 1e9
        guard moved > 0, seconds > 0 else { return before }
        return Int64(min(Double(moved) / seconds, 0x1p62))
    }
}
