import FKMiddleware
import Foundation

/// Makes one process at a time the engine of a work path.
///
/// The lock is the kernel's (`flock`) on an open file: it ends with its holder however that dies, and two holders in
/// one process exclude each other as well. The content of the file is for display only, and no decision depends on
/// it.
package final class EngineLock: Sendable {
    /// The holder of the lock, as it described itself.
    package struct Holder: Codable, Sendable, Hashable {
        /// The process id, for display only: it may belong to another process by now.
        package var pid: Int32
        /// The host name, for display only.
        package var host: String
        /// The boot in which the holder started.
        package var bootID: String
        package var started: Date
        /// The time of the holder's last tick, which is at most about a second old while it works.
        package var tick: Date
        /// Increases with each tick, whatever the wall clock does.
        package var beat: UInt64?
        /// The boot in which an engine last checked for finished files that never reached the disk.
        package var examinedBoot: String?

        /// True if it is a downloader of this process.
        package var isThisProcess: Bool { pid == getpid() && bootID == BootID.current }

        /// True if its process has ended, or runs where this process cannot see it.
        fileprivate var hasEnded: Bool {
            host == EngineLock.hostName && bootID == BootID.current && kill(pid, 0) != 0 && errno == ESRCH
        }

        /// The same JSON as `StoreJSON` writes, without the first use of an encoder, which takes half a millisecond of every
        /// start.
        package var json: [UInt8] {
            var text = JSONText(capacity: 512)
            text.beginObject()
            if let beat { text.member("beat", Int64(clamping: beat)) }
            text.member("bootID", bootID)
            if let examinedBoot { EngineLock.write(examinedBoot: examinedBoot, into: &text) }
            text.member("host", host)
            text.member("pid", Int64(pid))
            text.key("started")
            text.value(started)
            text.key("tick")
            text.value(tick)
            text.endObject()
            return text.bytes
        }
    }

    private static func write(examinedBoot: String, into text: inout JSONText) {
        text.member("examinedBoot", examinedBoot)
    }

    /// The content always has this length, with spaces at the end, so that one pwrite replaces it.
    private static let width = 512

    private struct State {
        /// -1 after the release.
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

    /// Acquires the lock.
    ///
    /// - Throws: `.workPathBusy` if another process has it; same as `tryAcquire`.
    package static func acquire(_ workPath: WorkPath) throws -> EngineLock {
        if let lock = try tryAcquire(workPath) { return lock }
        let holder = holder(workPath)
        if holder?.isThisProcess == true {
            throw DownloadError(
                .workPathBusy, "This program has opened the work path \(workPath.root) already.", isRetryable: true,
                remedy: .chooseWorkPath)
        }
        let name = holder.map { "process \($0.pid) on \($0.host)" } ?? "another process"
        throw DownloadError(
            .workPathBusy, "The work path \(workPath.root) is in use by \(name).", isRetryable: true,
            remedy: .chooseWorkPath)
    }

    /// Acquires the lock; nil while another holder has it. It waits up to about 5 ms, because `isHeld` of another
    /// process holds the lock for an instant, which must not look like an engine.
    ///
    /// - Throws: `.workPathUnusable` or `.noSpace` if the lock file cannot be used; `.disk` if too many files are open.
    package static func tryAcquire(_ workPath: WorkPath) throws -> EngineLock? {
        let path = workPath.lockPath
        for attempt in 0..<5 {
            if attempt > 0 { usleep(1_000) }
            let descriptor: Int32
            do {
                descriptor = try FileIO.open(path, O_RDWR | O_CREAT)
            } catch let error as DownloadError where error.code == .disk && !error.isRetryable {
                throw DownloadError(.workPathUnusable, error.message, underlying: error.underlying)
            }
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                let code = errno
                FileIO.close(descriptor)
                if code == EWOULDBLOCK || code == EINTR { continue }
                let reason =
                    FileLock.unsupported.contains(code)
                    ? "The file system of \(path) has no locks" : "The file \(path) cannot be locked"
                throw DownloadError(
                    .workPathUnusable, "\(reason): choose a local work path.",
                    underlying: String(cString: strerror(code)))
            }
            // If the file was removed between opening and locking, this lock excludes no other process.
            var ours = stat()
            var named = stat()
            guard fstat(descriptor, &ours) == 0, stat(path, &named) == 0 else {
                let code = errno
                FileIO.close(descriptor)
                if code == ENOENT { continue }
                throw DownloadError(system: code, "lock", path)
            }
            guard ours.st_ino == named.st_ino, ours.st_dev == named.st_dev else {
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
            pid: getpid(), host: hostName, bootID: BootID.current, started: now, tick: now)
        if wasExamined(path) { holder.examinedBoot = BootID.current }
        let lock = EngineLock(descriptor: descriptor, path: path, holder: holder)
        _ = fchmod(descriptor, 0o600)
        try lock.touch(now)
        return lock
    }

    /// The name of this machine. `ProcessInfo` would need many types of Foundation at every start.
    fileprivate static var hostName: String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "localhost" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// True if an earlier holder recorded a check in this boot. The text is searched and not parsed, because the
    /// first use of a JSON decoder takes a tenth of a start.
    private static func wasExamined(_ path: String) -> Bool {
        guard let bytes = try? FileIO.contents(of: path, limit: 4_096), !bytes.isEmpty else { return false }
        var word = JSONText()
        word.beginObject()
        write(examinedBoot: BootID.current, into: &word)
        return Data(bytes).range(of: Data(word.bytes.dropFirst())) != nil
    }

    /// True once the files were checked in this boot.
    package var isExamined: Bool { state.withLock { $0.holder.examinedBoot == BootID.current } }

    /// Records that the files were checked.
    package func recordExamined() {
        state.withLock { $0.holder.examinedBoot = BootID.current }
        try? touch(Date())
    }

    /// Records that the holder is alive. It does nothing after `release`.
    ///
    /// - Throws: `.noSpace` or `.disk`.
    package func touch(_ now: Date) throws {
        try state.withLock { state in
            guard state.descriptor >= 0 else { return }
            state.holder.tick = now
            state.holder.beat = (state.holder.beat ?? 0) &+ 1
            var bytes = state.holder.json
            guard bytes.count < Self.width else { return }
            bytes.append(contentsOf: repeatElement(0x20, count: Self.width - 1 - bytes.count))
            bytes.append(0x0a)
            try bytes.withUnsafeBytes { try FileIO.write($0, to: state.descriptor, at: 0, path: path) }
        }
    }

    /// True if another file has replaced the locked one, so that this lock excludes no other process. False while
    /// there is no file; a new one is detected the next time.
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

    /// Releases the lock. A second call does nothing.
    package func release() {
        state.withLock { state in
            guard state.descriptor >= 0 else { return }
            // The content stays and shows the last holder. `holder` asks the kernel whether it still holds.
            FileLock.release(state.descriptor)
            state.descriptor = -1
        }
    }

    /// True while a process holds the lock, according to the kernel, and if the kernel cannot be asked (`FileLock`).
    package static func isHeld(_ workPath: WorkPath) -> Bool { FileLock.isHeld(workPath.lockPath, LOCK_SH) }

    /// The content of the lock file; nil if it is missing. A working holder changes it about once a second.
    package static func content(_ workPath: WorkPath) -> [UInt8]? {
        try? FileIO.contents(of: workPath.lockPath, limit: 4_096)
    }

    /// The holder of the lock; nil if there is none, or if it has not described itself yet.
    ///
    /// A new holder describes itself an instant after it has the lock. Until then the file shows the former one, whose process
    /// has ended. A process that cannot be seen may also be one of another container, so the wait ends after 50 ms.
    package static func holder(_ workPath: WorkPath) -> Holder? {
        holder {
            guard isHeld(workPath), let bytes = content(workPath) else { return nil }
            return try? StoreJSON.decode(Holder.self, from: bytes)
        }
    }

    /// The holder that `described` shows, once it shows one that has not ended.
    package static func holder(_ described: () -> Holder?) -> Holder? {
        var found = described()
        for _ in 0..<10 {
            guard found?.hasEnded == true else { break }
            usleep(5_000)
            found = described()
        }
        return found
    }

    // MARK: Silence

    /// The seconds without a sign of life after which a holder counts as stopped or hung.
    package static let silenceLimit: Double = 5
    /// The seconds for which a process that asks once waits for a sign of life of a holder that seems silent: the clocks of the
    /// two may differ, or the machine may have slept.
    private static let silenceProof: Double = 2.5

    /// The holder of the lock, if it is stopped or hung; nil if it works, or if there is none. A process that asks once learns
    /// it within five seconds, mostly at once; one that stays uses `EngineWatch`.
    package static func silentHolder(_ workPath: WorkPath) -> Holder? {
        guard let holder = holder(workPath) else { return nil }
        if isStopped(holder) { return holder }
        let before = content(workPath)
        var waited = 0.0
        while abs(Date().timeIntervalSince(holder.tick)) > silenceProof {
            if waited > silenceProof, abs(Date().timeIntervalSince(holder.tick)) >= silenceLimit { return holder }
            usleep(50_000)
            waited += 0.05
            guard content(workPath) == before, isHeld(workPath) else { return nil }
        }
        return nil
    }

    /// True if the system says that the holder's process is stopped.
    private static func isStopped(_ holder: Holder) -> Bool {
        #if os(Linux)
            guard holder.host == hostName, holder.bootID == BootID.current,
                let descriptor = try? FileIO.open("/proc/\(holder.pid)/stat", O_RDONLY)
            else { return false }
            defer { FileIO.close(descriptor) }
            // The file says that it has no bytes.
            var bytes = [UInt8](repeating: 0, count: 512)
            let count = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress!, $0.count) }
            guard count > 0,
                // The name of the program stands in parentheses, and may have some itself.
                let end = bytes[..<count].lastIndex(of: UInt8(ascii: ")")), end + 2 < count
            else { return false }
            return bytes[end + 2] == UInt8(ascii: "T")
        #else
            return false
        #endif
    }
}
