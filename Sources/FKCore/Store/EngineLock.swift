import FKMiddleware
import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Makes one process at a time the engine of a work path.
///
/// The lock is the kernel's (`flock`), on an open file: it ends with its holder however that dies, and two holders in
/// one process exclude each other too. The file's content is only for people and for `fk`; nothing trusts it.
package final class EngineLock: Sendable {
    /// Who holds the lock, as it wrote itself down.
    package struct Holder: Codable, Sendable, Hashable {
        /// For display only: a process id may be another process by now.
        package var pid: Int32
        package var host: String
        package var bootID: String
        package var started: Date
        /// The time of its last tick, at most about a second old while the holder is well.
        package var tick: Date
        /// Goes up with each tick, whatever the wall clock does.
        package var beat: UInt64?
        /// The boot in which an engine last looked for finished files that never reached the disk.
        package var examinedBoot: String?
    }

    /// The content has always this length, blanks at the end, so that one pwrite replaces it.
    private static let width = 512

    private struct State {
        /// -1 once released.
        var descriptor: Int32
        var holder: Holder
    }

    private let state: Locked<State>
    private let path: String

    private init(descriptor: Int32, path: String, holder: Holder) {
        self.path = path
        state = Locked(State(descriptor: descriptor, holder: holder))
    }

    deinit { release() }

    /// Takes the lock, or returns nil while another holder has it. Waits at most about 5 ms: `isHeld` of another process
    /// holds the lock for an instant, which must not look like an engine.
    ///
    /// - Throws: `.workPathUnusable`, `.noSpace` or `.disk` when the lock file cannot be used.
    package static func tryAcquire(_ workPath: WorkPath) throws -> EngineLock? {
        let path = workPath.lockPath
        for attempt in 0..<5 {
            if attempt > 0 { usleep(1_000) }
            let descriptor = try FileIO.open(path, O_RDWR | O_CREAT)
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                let code = errno
                FileIO.close(descriptor)
                if code == EWOULDBLOCK || code == EINTR { continue }
                throw DownloadError(
                    .workPathUnusable, "The file system of \(path) has no locks: choose a local work path.",
                    underlying: String(cString: strerror(code)))
            }
            // Somebody may have removed the file between opening and locking: then this lock excludes nobody.
            var ours = stat()
            var named = stat()
            guard fstat(descriptor, &ours) == 0, stat(path, &named) == 0, ours.st_ino == named.st_ino,
                ours.st_dev == named.st_dev
            else {
                FileIO.close(descriptor)
                continue
            }
            return try locked(descriptor, path: path)
        }
        return nil
    }

    private static func locked(_ descriptor: Int32, path: String) throws -> EngineLock {
        let now = Date()
        var holder = Holder(
            pid: getpid(), host: ProcessInfo.processInfo.hostName, bootID: BootID.current, started: now, tick: now)
        if wasExamined(path) { holder.examinedBoot = BootID.current }
        let lock = EngineLock(descriptor: descriptor, path: path, holder: holder)
        _ = fchmod(descriptor, 0o600)
        try lock.touch(now)
        return lock
    }

    /// Whether the holder before has written down that it looked in this boot. The text is searched, not parsed: a JSON
    /// decoder's first use takes a tenth of a start.
    private static func wasExamined(_ path: String) -> Bool {
        guard let bytes = try? FileIO.contents(of: path, limit: 4_096),
            let word = try? StoreJSON.encode(["examinedBoot": BootID.current])
        else { return false }
        return Data(bytes).range(of: Data(word.dropFirst().dropLast())) != nil
    }

    /// True once the files have been looked at in this boot.
    package var isExamined: Bool { state.withLock { $0.holder.examinedBoot == BootID.current } }

    /// Writes down that the files have been looked at.
    package func noteExamined() {
        state.withLock { $0.holder.examinedBoot = BootID.current }
        try? touch(Date())
    }

    /// Writes down that the holder is alive. After `release` it does nothing.
    package func touch(_ now: Date) throws {
        try state.withLock { state in
            guard state.descriptor >= 0 else { return }
            state.holder.tick = now
            state.holder.beat = (state.holder.beat ?? 0) &+ 1
            var bytes = try StoreJSON.encode(state.holder)
            guard bytes.count < Self.width else { return }
            bytes.append(contentsOf: repeatElement(0x20, count: Self.width - 1 - bytes.count))
            bytes.append(0x0a)
            try bytes.withUnsafeBytes { try FileIO.write($0, to: state.descriptor, at: 0, path: path) }
        }
    }

    /// True when another file has taken the place of the locked one: then this lock excludes nobody. False while there is
    /// no file at all: whoever makes one is noticed the next time.
    package var isReplaced: Bool {
        state.withLock { state in
            var ours = stat()
            var named = stat()
            guard state.descriptor >= 0, stat(path, &named) == 0, fstat(state.descriptor, &ours) == 0 else {
                return false
            }
            return ours.st_ino != named.st_ino || ours.st_dev != named.st_dev
        }
    }

    /// Gives the lock up. Does nothing the second time.
    package func release() {
        state.withLock { state in
            guard state.descriptor >= 0 else { return }
            // The content stays: it says who was there last. `holder` asks the kernel whether that still holds.
            // Unlocked and not only closed: a child between fork and exec has the descriptor too, for an instant.
            _ = flock(state.descriptor, LOCK_UN)
            FileIO.close(state.descriptor)
            state.descriptor = -1
        }
    }

    /// True while some process holds the lock. The kernel is asked, not the file's content.
    package static func isHeld(_ workPath: WorkPath) -> Bool {
        guard let descriptor = try? FileIO.open(workPath.lockPath, O_RDONLY | O_NONBLOCK) else { return false }
        defer { FileIO.close(descriptor) }
        guard flock(descriptor, LOCK_SH | LOCK_NB) == 0 else { return errno == EWOULDBLOCK }
        _ = flock(descriptor, LOCK_UN)
        return false
    }

    /// What the lock file holds: a holder that is well changes it about once a second. Nil when there is none.
    package static func content(_ workPath: WorkPath) -> [UInt8]? {
        try? FileIO.contents(of: workPath.lockPath, limit: 4_096)
    }

    /// Who holds the lock; nil when nobody does, or when the holder has not written itself down yet.
    package static func holder(_ workPath: WorkPath) -> Holder? {
        guard isHeld(workPath), let bytes = try? FileIO.contents(of: workPath.lockPath, limit: 4_096) else {
            return nil
        }
        return try? StoreJSON.decode(Holder.self, from: bytes)
    }
}
