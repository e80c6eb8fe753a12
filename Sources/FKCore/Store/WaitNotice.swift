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

        /// Creates a reason; by default none at all.
        package init(until: Date? = nil, seconds: Double? = nil, limit: Int? = nil) {
            self.until = until
            self.seconds = seconds
            self.limit = limit
        }
    }

    /// The number of slots, if all are taken; nil while one is free.
    package var slots: Int?
    /// The keys are `HostName.site`.
    package var hosts: [String: Host] = [:]
    /// The bytes per second of running tasks, by id. A task to which no byte arrives is not listed; nil if none is.
    package var rates: [String: Int64]?

    /// Creates an empty notice.
    package init() {}

    /// Larger files are ignored: 64 bytes for each of ten thousand hosts.
    private static let maxSize = 1 << 20

    /// Reads the notice; an empty one if it is missing or unreadable.
    package static func read(from workPath: WorkPath) -> WaitNotice {
        guard let bytes = try? FileIO.contents(of: workPath.waitingPath, limit: maxSize) else { return WaitNotice() }
        return (try? StoreJSON.decode(WaitNotice.self, from: bytes)) ?? WaitNotice()
    }

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
        guard record.state == .idle, !hosts.isEmpty || slots != nil else { return record.waiting }
        let site = HostName.site(record.nextURL)
        if let until = hosts[site]?.until, until > max(now, record.waiting?.until ?? now) {
            return Waiting(.host, until: until, host: HostName.shown(site))
        }
        if let waiting = record.waiting, waiting.until ?? now > now { return waiting }
        if let slots { return Waiting(.slot, limit: slots) }
        if let limit = hosts[site]?.limit { return Waiting(.host, host: HostName.shown(site), limit: limit) }
        return record.waiting
    }
}
