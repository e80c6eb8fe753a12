import FKMiddleware
import Foundation

/// The turns of requests to hosts with limits, for all processes of a work path. Each host has a small JSON file, which is
/// changed under its lock, and a file to lock for each connection. A request without a limit reads none of them.
///
/// ```text
/// connect (waits in a queue) -> HostConnection -> take (waits in a queue for each interval) -> the request is sent
/// ```
///
/// A process that dies does not block the others: the kernel releases its locks, and a place in a queue that is not used within
/// a second of its time is void. If the files cannot be used, nothing is shared. `sweep` removes files that say nothing any more,
/// under their locks, so the holder of a lock checks whether it still has its name.
///
/// Hosts are named by `shownSite`. Times are nanoseconds of the monotonic clock, which the processes of a machine share.
package final class HostTurns: Sendable {
    /// The time between two tries for what another process holds.
    private static let pause: Int64 = 50_000_000
    private static let maxSize = 1 << 16

    private let workPath: WorkPath
    /// This process in the queues.
    private let id = UInt32.random(in: 0...UInt32.max)
    /// The time. It is read under the lock: a time from before may be earlier than that of another process's request.
    private let now: @Sendable () -> Int64

    /// The turns of a work path. Nothing is created before the first request with a limit.
    package init(_ workPath: WorkPath, now: @escaping @Sendable () -> Int64) {
        self.workPath = workPath
        self.now = now
    }

    /// When the next request may be sent at the earliest; nil for now.
    ///
    /// - Parameter intervals: the nanoseconds from one request to the next, of each limit.
    package func due(_ host: String, _ intervals: [Int64]) -> Int64? {
        guard let file = read(host) else { return nil }
        let now = now()
        return intervals.compactMap { file.lines["\($0)"]?.due($0, now: now) }.max().flatMap { $0 > now ? $0 : nil }
    }

    /// Counts a request that is sent now.
    ///
    /// - Returns: nil if it may be sent, otherwise when to try again. This process then has a place in the queue.
    package func acquire(_ host: String, _ intervals: [Int64]) -> Int64? {
        change(host) { file, now in
            let waits = intervals.compactMap { file.lines["\($0)", default: .init()].ask(id, $0, now: now) }
            if let until = waits.max() { return until }
            for interval in intervals { file.lines["\(interval)", default: .init()].sent(id, now: now) }
            return nil
        }
    }

    /// Counts a request that was sent already.
    package func count(_ host: String, _ intervals: [Int64]) {
        _ = change(host) { file, now in
            for interval in intervals { file.lines["\(interval)", default: .init()].last = now }
            return nil
        }
    }

    /// Acquires one of a host's connections.
    ///
    /// - Returns: the connection, or when to try again; neither if nothing can be shared.
    package func connect(_ host: String, limit: Int) -> (connection: HostConnection?, until: Int64?) {
        var connection: HostConnection?
        let until = change(host) { file, now in
            if let until = file.connections.ask(id, 0, now: now) { return until }
            for number in 0..<limit {
                do { connection = try .lock("\(path(host))~\(number)") } catch { return nil }
                if connection == nil { continue }
                file.connections.leave(id)
                return nil
            }
            return file.connections.wait(id, until: now + Self.pause)
        }
        return (connection, until)
    }

    /// True while another process waits for a connection.
    package func isAwaited(_ host: String) -> Bool {
        let now = now()
        return read(host)?.connections.queue.contains { $0.id != id && !$0.isVoid(0, now: now) } ?? false
    }

    // MARK: Files

    /// The content of a host's file. The keys are intervals.
    private struct File: Codable, Hashable {
        var lines: [String: Line] = [:]
        var connections = Line()
    }

    private func path(_ host: String) -> String { "\(workPath.turnsFolder)/\(host.barrelFileName)" }

    private func read(_ host: String) -> File? {
        (try? FileIO.contents(of: path(host), limit: Self.maxSize)).flatMap {
            try? StoreJSON.decode(File.self, from: $0)
        }
    }

    /// The seconds after which a file is removed whose times are of another clock.
    private static let lifetime: Double = 3_600

    /// Removes the files of hosts whose intervals are over and for which no process waits, and those of free connections.
    ///
    /// - Parameters:
    ///   - now: nanoseconds of the monotonic clock.
    ///   - date: the time of the clock of files.
    package static func sweep(_ workPath: WorkPath, now: Int64, date: Date) {
        guard let names = try? FileIO.names(in: workPath.turnsFolder) else { return }
        for name in names {
            let path = "\(workPath.turnsFolder)/\(name)"
            guard let descriptor = try? FileIO.open(path, O_RDWR) else { continue }
            defer { FileLock.release(descriptor) }
            var status = stat()
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, fstat(descriptor, &status) == 0 else { continue }
            let file = (try? FileIO.contents(of: path, limit: maxSize)).flatMap {
                try? StoreJSON.decode(File.self, from: $0)
            }
            let isOld = date.timeIntervalSince1970 - Double(status.modificationTime) / 1e9 > lifetime
            let isNeeded =
                file.map { file in
                    file.connections.isAwaited(0, now: now)
                        || file.lines.contains { interval, line in
                            let interval = Int64(interval) ?? 0
                            if line.isAwaited(interval, now: now) { return true }
                            // A time that is still to come is of another clock.
                            return line.isNeeded(interval, now: now) && !(isOld && line.last.map { $0 > now } ?? true)
                        }
                } ?? false
            if !isNeeded { unlink(path) }
        }
    }

    private func open(_ path: String) throws -> Int32 {
        do {
            return try FileIO.open(path, O_RDWR | O_CREAT)
        } catch let error as DownloadError where error.code == .notFound {
            try workPath.open(create: true)
            try FileIO.makeFolder(workPath.turnsFolder)
            return try FileIO.open(path, O_RDWR | O_CREAT)
        }
    }

    /// Changes a host's file under its lock. It waits for the lock for 5 ms at most: its holder may be stopped.
    private func change(_ host: String, _ body: (inout File, _ now: Int64) -> Int64?) -> Int64? {
        let path = path(host)
        guard var descriptor = try? open(path) else { return nil }
        defer { FileLock.release(descriptor) }
        var tries = 5
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else { return nil }
            tries -= 1
            if tries == 0 { return now() + Self.pause }
            usleep(1_000)
        }
        if FileLock.isNameless(descriptor) {
            guard let next = try? open(path) else { return nil }
            FileLock.release(descriptor)
            descriptor = next
            // Another process has it already.
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, !FileLock.isNameless(descriptor) else {
                return now() + Self.pause
            }
        }
        // A file that a kill has left damaged has no turns.
        let before = read(host)
        var file = before ?? File()
        let now = now()
        let until = body(&file, now)
        file.lines = file.lines.filter { $1.isNeeded(Int64($0) ?? 0, now: now) }
        guard file != before, var bytes = try? StoreJSON.encode(file), bytes.count <= Self.maxSize else { return until }
        var status = stat()
        _ = fstat(descriptor, &status)
        // One write replaces the content, whatever its length was.
        bytes += [UInt8](repeating: UInt8(ascii: " "), count: max(0, Int(status.st_size) - bytes.count))
        try? bytes.withUnsafeBytes { try FileIO.write($0, to: descriptor, at: 0, path: path) }
        return until
    }
}

extension HostTurns {
    /// The processes that wait for one interval of a host, or for its connections. A value type.
    package struct Line: Codable, Sendable, Hashable {
        /// A process that waits.
        struct Place: Codable, Sendable, Hashable {
            var id: UInt32
            /// When it asks again.
            var until: Int64

            /// True if the process did not come, or if its time is of another clock.
            func isVoid(_ interval: Int64, now: Int64) -> Bool {
                until + Line.patience <= now || until > now + Line.maxPlaces * interval + Line.patience
            }
        }

        /// The time of the last request.
        var last: Int64?
        private(set) var queue: [Place] = []

        private static let maxPlaces: Int64 = 64
        /// The time after which a place that is not used is void.
        private static let patience: Int64 = 1_000_000_000
        /// The longest interval: no time overflows with it.
        private static let longest: Int64 = 1 << 55

        package init() {}

        /// The end of the interval since the last request; nil without one, or if its time is of another clock.
        func due(_ interval: Int64, now: Int64) -> Int64? {
            last.flatMap { $0 <= now ? $0 + min(interval, Self.longest) : nil }
        }

        /// True if a process waits that may still come.
        func isAwaited(_ interval: Int64, now: Int64) -> Bool { queue.contains { !$0.isVoid(interval, now: now) } }

        func isNeeded(_ interval: Int64, now: Int64) -> Bool {
            !queue.isEmpty || last.map { $0 > now - min(interval, Self.longest) } ?? false
        }

        /// Requests the next turn, and queues this process for it.
        ///
        /// - Returns: nil if the turn is this process's now; otherwise the time of the next call, until which the place in the
        ///   queue is kept.
        mutating func ask(_ id: UInt32, _ interval: Int64, now: Int64) -> Int64? {
            // The clock began again: the machine has started since, or it is another one.
            if let last, last > now { (self.last, queue) = (now, []) }
            let interval = min(interval, Self.longest)
            queue.removeAll { $0.isVoid(interval, now: now) }
            let due = due(interval, now: now) ?? now
            let index = queue.firstIndex { $0.id == id } ?? queue.count
            guard index > 0 else { return due <= now ? nil : wait(id, until: due) }
            // The first one may not come.
            let until = min(due + Int64(index) * interval, queue[0].until + Self.patience)
            return wait(id, until: max(until, now + HostTurns.pause))
        }

        /// Gives the process a place, or keeps the one that it has.
        mutating func wait(_ id: UInt32, until: Int64) -> Int64 {
            if let index = queue.firstIndex(where: { $0.id == id }) {
                queue[index].until = until
            } else if queue.count < Self.maxPlaces {
                queue.append(Place(id: id, until: until))
            }
            return until
        }

        /// The process has what it waited for.
        mutating func leave(_ id: UInt32) { queue.removeAll { $0.id == id } }

        /// The process sends a request.
        mutating func sent(_ id: UInt32, now: Int64) {
            last = now
            leave(id)
        }
    }
}

/// A connection to a host whose connections are limited, until it is released.
package final class HostConnection: Sendable {
    private let descriptor: Int32

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Locks a file; nil if another one holds its lock.
    ///
    /// - Throws: `DownloadError` if the file cannot be locked at all.
    fileprivate static func lock(_ path: String) throws -> HostConnection? {
        for _ in 0..<3 {
            let connection = HostConnection(try FileIO.open(path, O_RDWR | O_CREAT))
            if flock(connection.descriptor, LOCK_EX | LOCK_NB) == 0 {
                if FileLock.isNameless(connection.descriptor) { continue }
                return connection
            }
            if FileLock.unsupported.contains(errno) { throw DownloadError(system: errno, "lock", path) }
            return nil
        }
        return nil
    }

    deinit { FileLock.release(descriptor) }
}
