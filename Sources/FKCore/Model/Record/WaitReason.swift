import Foundation

/// Why an idle task is not running, or for what a running one waits.
public enum WaitReason: Sendable, Hashable {
    /// All slots are taken, this many; nil if one is free, so that the task is about to start.
    case slot(limit: Int?)
    /// The host has its maximum of connections, this many.
    case host(String, limit: Int?)
    /// The host asked for a pause (Retry-After), or `DownloadInfo.waitingPolicy` allows its next request at that time.
    case hostPaused(String, until: Date)
    /// The last attempt failed, and the next one starts at that time. `DownloadInfo.waitingHost` is the host that asked
    /// for the delay, if one did.
    case retry(until: Date)
    /// The disk has no space for the file. `DownloadInfo.waitingUntil` is the time of the next attempt.
    case noSpace
    /// No process runs the downloads of the work path.
    case engine
    /// The queue is not active (`Downloader.activateQueue()`).
    case queue
    /// The system performs the request of a running task (`Configure.background`). `DownloadInfo.waitingPolicy` says whether Low Power
    /// Mode or the kind of network delays it, as far as is known.
    case background

    /// The reason in a record. A retry without a time is due.
    init(_ waiting: Waiting) {
        switch waiting.reason {
        case .slot: self = .slot(limit: waiting.limit)
        case .host:
            let host = waiting.host ?? ""
            if let until = waiting.until {
                self = .hostPaused(host, until: until)
            } else {
                self = .host(host, limit: waiting.limit)
            }
        case .retry: self = .retry(until: waiting.until ?? Date(timeIntervalSince1970: 0))
        case .noSpace: self = .noSpace
        case .engine: self = .engine
        case .queue: self = .queue
        case .background: self = .background
        }
    }
}

extension Waiting {
    /// The record's form of a reason.
    package init(of reason: WaitReason) {
        switch reason {
        case .slot(let limit): self.init(.slot, limit: limit)
        case .host(let host, let limit): self.init(.host, host: host, limit: limit)
        case .hostPaused(let host, let until): self.init(.host, until: until, host: host)
        case .retry(let until): self.init(.retry, until: until)
        case .noSpace: self.init(.noSpace)
        case .engine: self.init(.engine)
        case .queue: self.init(.queue)
        case .background: self.init(.background)
        }
    }
}
