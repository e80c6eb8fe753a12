import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Runs a program with a real pseudo-terminal as its input and output, and collects what it writes.
final class PseudoTerminal: Sendable {
    struct Failure: Error {
        var reason: String
    }

    struct Output {
        /// Everything the program wrote, escape sequences included.
        var raw: String
        /// Exit status, or 128 + signal.
        var status: Int32
        /// What a person sees at the end.
        var screen: [String]
    }

    private let primary: Int32
    private let secondary: Int32
    private let columns: Int
    private let rows: Int

    init(columns: Int = 80, rows: Int = 24) throws {
        self.columns = columns
        self.rows = rows
        primary = open("/dev/ptmx", O_RDWR | O_NOCTTY)
        guard primary >= 0, let name = Self.unlockedName(of: primary) else {
            throw Failure(reason: "no pseudo-terminal: \(String(cString: strerror(errno)))")
        }
        secondary = open(name, O_RDWR | O_NOCTTY)
        guard secondary >= 0 else {
            let reason = "\(name) cannot be opened: \(String(cString: strerror(errno)))"
            close(primary)
            throw Failure(reason: reason)
        }
        _ = fcntl(primary, F_SETFD, FD_CLOEXEC)
        var size = winsize()
        size.ws_col = UInt16(columns)
        size.ws_row = UInt16(rows)
        _ = ioctl(secondary, UInt(TIOCSWINSZ), &size)
    }

    deinit {
        close(primary)
    }

    /// Why no pseudo-terminal can be opened here; nil where one can.
    static let absence: String? = {
        do {
            let terminal = try PseudoTerminal()
            close(terminal.secondary)
            return nil
        } catch {
            return (error as? Failure)?.reason ?? "\(error)"
        }
    }()

    /// The other end's device. Swift's Glibc module lacks `unlockpt` and `ptsname`; these are the calls beneath them.
    private static func unlockedName(of primary: Int32) -> String? {
        #if os(Linux)
            var isLocked: Int32 = 0
            var number: UInt32 = 0
            let setLock: UInt = 0x4004_5431  // TIOCSPTLCK
            let getNumber: UInt = 0x8004_5430  // TIOCGPTN
            guard ioctl(primary, setLock, &isLocked) == 0, ioctl(primary, getNumber, &number) == 0 else { return nil }
            return "/dev/pts/\(number)"
        #else
            guard grantpt(primary) == 0, unlockpt(primary) == 0 else { return nil }
            return ptsname(primary).map { String(cString: $0) }
        #endif
    }

    /// Types the text: the program reads it when it asks.
    func type(_ text: String) {
        _ = text.withCString { write(primary, $0, strlen($0)) }
    }

    /// Gives the terminal another size.
    func resize(columns: Int, rows: Int) {
        var size = winsize()
        size.ws_col = UInt16(columns)
        size.ws_row = UInt16(rows)
        _ = ioctl(primary, UInt(TIOCSWINSZ), &size)
    }

    /// Runs the program to its end.
    ///
    /// - Parameters:
    ///   - environment: replaces the process's own, but for PATH and HOME.
    ///   - onOutput: told of everything written so far, each time there is more.
    ///   - onStart: receives the process's id.
    func run(
        _ program: String, _ arguments: [String], environment: [String: String] = [:],
        onOutput: (String) -> Void = { _ in }, onStart: (Int32) -> Void = { _ in }
    ) throws -> Output {
        let process = try ChildProcess(
            [program] + arguments, environment: FKProgram.environment(environment), input: .descriptor(secondary),
            output: .descriptor(secondary))
        close(secondary)
        onStart(process.pid)
        let bytes = readToEnd(onOutput)
        let status = process.end()
        let raw = String(decoding: bytes, as: UTF8.self)
        var screen = Screen(columns: columns, rows: rows)
        screen.feed(raw)
        return Output(raw: raw, status: status, screen: screen.lines)
    }

    /// Linux ends a terminal whose other end is closed with EIO, Darwin with an end of file.
    private func readToEnd(_ onOutput: (String) -> Void) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(primary, &chunk, chunk.count)
            if count > 0 {
                bytes.append(contentsOf: chunk[..<count])
                onOutput(String(decoding: bytes, as: UTF8.self))
            } else if count == 0 || errno != EINTR {
                return bytes
            }
        }
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips a test where no pseudo-terminal can be opened, as in a bare chroot.
    static var needsPseudoTerminal: Self {
        let reason = PseudoTerminal.absence
        return .enabled(if: reason == nil, "needs a pseudo-terminal (mount devpts on /dev/pts): \(reason ?? "")")
    }
}
