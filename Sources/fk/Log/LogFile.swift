import FKCore
import FKMiddleware
import Foundation

/// A log that is appended to. Once it is larger than `maxBytes`, it is renamed to `FILE.1`, in the place of an older one, and a
/// new file begins. A `FILE.1` that is no log of fk stays, and the log grows. Several processes may write the same log. Safe to use
/// from any thread.
final class LogFile: Sendable {
    /// The size from which a new file begins. A log and the one before it take twice as much.
    static let maxBytes: off_t = 10 << 20

    private struct State {
        var descriptor: Int32
        /// The error number of a failed write. Nothing is written after it.
        var failure: Int32?
    }

    let path: String
    private let level: LogLevel
    private let limit: off_t
    private let hidden: SecretBook
    private let onFailure: @Sendable (String) -> Void
    private let state: Locked<State>

    /// Opens a log, or creates it with mode 0600.
    ///
    /// - Parameters:
    ///   - path: an absolute path.
    ///   - level: lines of a finer level are left out.
    ///   - hidden: the values that no line shows; the default is none.
    ///   - limit: the size in bytes from which a new file begins; the default is `maxBytes`.
    ///   - onFailure: called once with a message if a line cannot be written. Nothing is logged after it.
    /// - Throws: `CommandFailure` with the system's reason.
    init(
        _ path: String, level: LogLevel, hiding hidden: SecretBook = SecretBook([]), limit: off_t = LogFile.maxBytes,
        onFailure: @escaping @Sendable (String) -> Void
    ) throws {
        let descriptor = Self.open(path)
        guard descriptor >= 0 else {
            let reason = errno == ENXIO ? "nobody reads this pipe" : String(cString: strerror(errno))
            throw CommandFailure(
                "--log: \(path) cannot be opened: \(reason). Choose another file, or leave --log out.",
                status: ExitStatus.usage)
        }
        self.path = path
        self.level = level
        self.limit = limit
        self.hidden = hidden
        self.onFailure = onFailure
        state = Locked(State(descriptor: descriptor))
    }

    deinit { state.withLock { _ = close($0.descriptor) } }

    func record(_ event: RunSession.Event) { for line in LogLine.lines(of: event) { write(line) } }

    /// Writes a line in one piece.
    func write(_ line: LogLine, at time: Date = Date()) {
        guard line.level <= level else { return }
        let bytes = Array("\(time.timestamp) \(hidden.mask(line.text))\n".utf8)
        let failure = state.withLock { state -> Int32? in
            guard state.failure == nil else { return nil }
            rotate(&state)
            if bytes.withUnsafeBytes({ Glue.writeAll(state.descriptor, $0) }) { return nil }
            state.failure = errno
            return errno
        }
        if let failure {
            onFailure(
                "The log \(path) cannot be written: \(String(cString: strerror(failure))). Nothing more is logged; the "
                    + "downloads go on.")
        }
    }

    /// Begins a new file if this one is full, or follows another process that did.
    private func rotate(_ state: inout State) {
        var own = stat()
        guard fstat(state.descriptor, &own) == 0, own.st_mode & S_IFMT == S_IFREG, own.st_size >= limit else { return }
        _ = flock(state.descriptor, LOCK_EX)
        var named = stat()
        let isCurrent = stat(path, &named) == 0 && named.st_ino == own.st_ino && named.st_dev == own.st_dev
        if isCurrent, !Self.mayReplace(path + ".1") || rename(path, path + ".1") != 0 {
            // A folder without write permission: the log grows on.
            _ = flock(state.descriptor, LOCK_UN)
            return
        }
        let next = Self.open(path)
        guard next >= 0 else {
            _ = flock(state.descriptor, LOCK_UN)
            return
        }
        close(state.descriptor)
        state.descriptor = next
    }

    /// True if there is no file, or one whose last line is of a log of fk: it begins with a time such as `2026-11-27T17:07:02`.
    private static func mayReplace(_ path: String) -> Bool {
        let descriptor = Foundation.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return errno == ENOENT }
        defer { close(descriptor) }
        let length = lseek(descriptor, 0, SEEK_END)
        var end = [UInt8](repeating: 0, count: 64 << 10)
        let count = pread(descriptor, &end, end.count, max(0, length - off_t(end.count)))
        guard count > 0, let line = end[..<count].split(separator: 0x0a).last, line.count > 10 else {
            return count == 0
        }
        return zip(line, "0000-00-00T".utf8).allSatisfy { $1 == UInt8(ascii: "0") ? $0.isASCIIDigit : $0 == $1 }
    }

    /// A pipe without a reader is an error and not a wait.
    private static func open(_ path: String) -> Int32 {
        Foundation.open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0o600)
    }
}
