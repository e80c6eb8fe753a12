import FKMiddleware
import Foundation

/// Why queued tasks are not running, and how fast the others are, as the engine of a work path writes it to
/// `<root>/waiting`.
///
/// Processes that show tasks read it, and the next engine learns from it which hosts asked for a pause. The file is
/// missing while no task waits and no byte arrives. An unreadable one is ignored.
package struct WaitNotice: Codable, Sendable, Hashable {
    /// Why a host gets no requests.
    package struct Host: Codable, Sendable, Hashable {
        /// The end of the pause that the host asked for.
        package var until: Date?
        /// The seconds of that pause. Whatever the wall clock says, the next engine waits no longer.
        package var seconds: Double?
        /// The host's maximum of connections, if all are in use.
        package var limit: Int?
        /// The limit that `until` or `limit` comes from, if the host did not ask itself (`Waiting.policy`).
        package var policy: String?

        /// Creates a reason; by default none at all.
        package init(until: Date? = nil, seconds: Double? = nil, limit: Int? = nil, policy: String? = nil) {
            self.until = until
            self.seconds = seconds
            self.limit = limit
            self.policy = policy
        }
    }

    /// The number of slots, if all are taken; nil while one is free.
    package var slots: Int?
    /// The ids of the tasks that have their turn in the queue; nil if every task of the work path has one, and for more than `maxQueued`.
    package var queued: Set<String>?
    /// The keys are `site`.
    package var hosts: [String: Host] = [:]
    /// The bytes per second of running tasks, by id. A task to which no byte arrives is not listed; nil if none is.
    package var rates: [String: Int64]?

    /// When the engine began, for readers. The engine itself does not write it.
    package var since: Date?

    package init() {}

    /// Larger files are ignored: 64 bytes for each of ten thousand hosts.
    fileprivate static let maxSize = 1 << 20
    /// The most tasks in `queued`.
    package static let maxQueued = 256

    /// Replaces the file, or removes it if the notice is empty. It is not synced, because it is only advice.
    package func write(in workPath: WorkPath) throws {
        guard self != WaitNotice() else {
            try FileIO.remove(workPath.waitingPath)
            return
        }
        let bytes = try StoreJSON.encode(self)
        try bytes.withUnsafeBytes { try FileIO.replace(workPath.waitingPath, aside: workPath.waitingPath + ".new", $0) }
    }

    /// The speed of a running task in bytes per second; nil while no byte arrives.
    package func rate(of id: TaskID) -> Int64? { rates?[id.hex].flatMap { $0 > 0 ? $0 : nil } }

    /// Why a queued task waits; the record's own reason if the notice has none.
    package func waiting(of record: TaskRecord, now: Date) -> Waiting? {
        guard record.state == .idle, !hosts.isEmpty || slots != nil || queued != nil else { return record.waiting }
        let site = record.nextURL.site
        let host = hosts[site]
        if let until = host?.until, until > max(now, record.waiting?.until ?? now) {
            return Waiting(.host, until: until, host: site.shownSite, policy: host?.policy)
        }
        if let waiting = record.waiting, waiting.until ?? now > now { return waiting }
        // A new task may be queued and not in the notice yet.
        if let queued, now.timeIntervalSince(record.created) > 2, !queued.contains(record.id.hex) {
            return Waiting(.queue)
        }
        if let slots { return Waiting(.slot, limit: slots) }
        if let limit = host?.limit {
            return Waiting(.host, host: site.shownSite, limit: limit, policy: host?.policy)
        }
        return record.waiting
    }
}

extension WorkPath {
    /// The notice of the engine; an empty one if it is missing or unreadable.
    package var waitNotice: WaitNotice {
        guard let bytes = try? FileIO.contents(of: waitingPath, limit: WaitNotice.maxSize) else { return WaitNotice() }
        return (try? StoreJSON.decode(WaitNotice.self, from: bytes)) ?? WaitNotice()
    }
}

extension Waiting {
    /// The reason with its time, host and limit, as far as they are known.
    package var text: String {
        let time = until.map(\.timestamp)
        switch reason {
        case .slot: return limit.map { "all \($0) slots are taken" } ?? "all slots are taken"
        case .host:
            let host = host ?? "its host"
            if let time, let policy { return "waiting until \(time) for the next request to \(host) (\(policy))" }
            if let time { return "waiting until \(time) because \(host) asked for it" }
            let whose = policy.map { " (\($0))" } ?? ""
            return
                (limit.map { "\(host) has \($0) of \($0) connections" }
                ?? "\(host) has as many connections as it may have") + whose
        case .retry:
            guard let time else { return "the last attempt failed and the next one is due" }
            return host.map { "the last attempt failed; waiting until \(time) because \($0) asked for it" }
                ?? "the last attempt failed and the next one is due at \(time)"
        case .noSpace:
            return "there was no space on the disk; the next attempt is due" + (time.map { " at \($0)" } ?? "")
        case .engine: return "no process runs the downloads"
        case .queue: return "the queue is not active"
        case .background: return "the system performs the request" + (policy.map { ": \($0)" } ?? "")
        }
    }
}
