import FKMiddleware
import Foundation

/// What keeps queued tasks from running, as the engine of a work path writes it down: `<root>/waiting`.
///
/// It is advice for processes that show tasks, and tells the next engine which hosts asked to be left alone. It is not there
/// while nothing waits; one that cannot be read says nothing.
package struct WaitNotice: Codable, Sendable, Hashable {
    /// Why no request goes to a host.
    package struct Host: Codable, Sendable, Hashable {
        /// It asked to be left alone until then.
        package var until: Date?
        /// It has this many connections, which are all it may have.
        package var limit: Int?
    }

    /// All of this many slots are taken; nil while one is free.
    package var slots: Int?
    /// By `HostName.site`.
    package var hosts: [String: Host] = [:]

    package init() {}

    /// Larger files are no notice: 64 bytes for each of ten thousand hosts.
    private static let maxSize = 1 << 20

    package static func load(from workPath: WorkPath) -> WaitNotice {
        guard let bytes = try? FileIO.contents(of: workPath.waitingPath, limit: maxSize) else { return WaitNotice() }
        return (try? StoreJSON.decode(WaitNotice.self, from: bytes)) ?? WaitNotice()
    }

    /// Replaces the file, or removes it where there is nothing to say. It is not synced: a power cut costs advice.
    package func save(in workPath: WorkPath) throws {
        guard self != WaitNotice() else {
            try FileIO.remove(workPath.waitingPath)
            return
        }
        let bytes = try StoreJSON.encode(self)
        try bytes.withUnsafeBytes { try FileIO.replace(workPath.waitingPath, aside: workPath.waitingPath + ".new", $0) }
    }

    /// Why a queued task waits; nil where nothing here concerns it.
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
