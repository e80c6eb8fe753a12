import FKMiddleware
import Foundation

/// A program at work: its pipes, its deadline, its end. Confined to the thread of `ProgramHost`.
///
/// ```text
/// running -> exited -> outputs at their end -> group killed, reaped -> over
///    |         `-> outputs open for a second -> group killed ----^
///    `-> time limit, too much output, cancelled -> group killed -> reaped -> over
/// ```
///
/// The group is killed before the process is reaped: until then no other process can have its number.
final class ProgramProcess {
    /// The bytes of standard error that are kept. The rest is read and dropped.
    static let maxErrorBytes = 16 << 10
    /// The nanoseconds for which an output may stay open after the exit.
    static let patienceAfterExit: Int64 = 1_000_000_000
    /// The maximum number of bytes of one read, so that one program's output does not delay the others.
    private static let portion = 64 << 10

    /// The groups of all programs at work.
    private static let groups = Locked<Set<pid_t>>([])

    private let pid: pid_t
    private var process: Int32
    private(set) var input: Int32
    private(set) var output: Int32
    private(set) var errors: Int32
    private var unwritten: ArraySlice<UInt8>
    private var written: [UInt8] = []
    private let sink: (@Sendable ([UInt8]) -> Bool)?
    private var errorText: [UInt8] = []
    /// When it is killed, in nanoseconds of the monotonic clock; nil once it was killed.
    private(set) var deadline: Int64?
    private var exit: ProgramResult.End?
    private var isReaped = false
    /// Receives the result; nil once it has it.
    private var report: ((ProgramResult) -> Void)?

    /// Takes a started program over.
    ///
    /// - Parameters:
    ///   - sink: same as `ProgramCall.sink`.
    ///   - report: called once, as soon as the result is known. The process may be reaped later.
    init(
        _ program: SpawnedProgram, input bytes: [UInt8], timeLimit: Duration,
        sink: (@Sendable ([UInt8]) -> Bool)? = nil, now: Int64, report: @escaping (ProgramResult) -> Void
    ) {
        self.sink = sink
        pid = program.pid
        process = program.process
        (input, output, errors) = (program.input, program.output, program.errors)
        unwritten = bytes[...]
        deadline = now + Int64(timeLimit.inSeconds * 1e9)
        self.report = report
        Self.groups.withLock { _ = $0.insert(program.pid) }
    }

    /// Kills all programs and their children, for a process that ends at once.
    static func killAll() { groups.withLock { for group in $0 { kill(-group, SIGKILL) } } }

    /// Readable when it has ended; -1 while its end is known, and where the system has no such descriptor.
    var ending: Int32 { exit != nil && report != nil ? -1 : process }
    /// True if its end has to be looked for.
    var mustLook: Bool { process < 0 }

    /// True once it is reaped and all of its descriptors are closed.
    var isOver: Bool { isReaped }

    /// Writes as much of the input as the pipe takes.
    func feed() {
        guard input >= 0 else { return }
        while !unwritten.isEmpty {
            let count = unwritten.withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
            if count > 0 {
                unwritten.removeFirst(count)
            } else if errno == EAGAIN {
                return
            } else if errno != EINTR {
                break  // It does not read its input, which is its own business.
            }
        }
        Self.close(&input)
    }

    /// Reads what is there.
    func drain(_ now: Int64) {
        if output >= 0, let bytes = Self.read(&output), !append(bytes) { end(.flooded) }
        if errors >= 0, let bytes = Self.read(&errors) {
            errorText += bytes.prefix(Self.maxErrorBytes - errorText.count)
        }
        finishIfComplete(now)
    }

    /// Appends a part of the output; false if it is too long.
    private func append(_ bytes: [UInt8]) -> Bool {
        if let sink { return bytes.isEmpty || sink(bytes) }
        written += bytes
        return written.count <= ProgramAnswer.maxBytes
    }

    /// Looks whether the process has ended, and whether its time is over.
    func look(_ now: Int64) {
        recordExit(now)
        finishIfComplete(now)
        guard let deadline, now >= deadline else { return }
        end(exit == nil ? .timedOut : .heldOpen)
    }

    /// Kills it and its children, for an attempt that is stopped.
    func cancel() { end(.notStarted("it was stopped", isRetryable: true)) }

    /// Closes all descriptors, kills the group and reaps the process if it has ended.
    private func end(_ result: ProgramResult.End) {
        deadline = nil
        kill(-pid, SIGKILL)
        Self.close(&input)
        Self.close(&output)
        Self.close(&errors)
        report?(ProgramResult(end: result, output: written, errors: errorText))
        report = nil
        (written, errorText, unwritten) = ([], [], [])
        reap()
    }

    private func finishIfComplete(_ now: Int64) {
        guard let exit, output < 0, errors < 0, report != nil else { return }
        end(exit)
    }

    /// Notices the end of the process and leaves it to be reaped.
    private func recordExit(_ now: Int64) {
        guard exit == nil, !isReaped else { return reap() }
        var info = siginfo_t()
        guard waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 else {
            // The application reaps all child processes itself, so the status is unknown.
            if errno == ECHILD {
                exit = .notStarted(
                    "its exit status is unknown: something else in this process waits for it", isRetryable: false)
            }
            return
        }
        guard let status = Self.status(of: info) else { return }
        exit = status
        if report == nil { return reap() }
        deadline = min(deadline ?? .max, now + Self.patienceAfterExit)
        // Its last words are in the pipes by now.
        while output >= 0, let bytes = Self.read(&output), !bytes.isEmpty {
            if !append(bytes) { return end(.flooded) }
        }
        while errors >= 0, let bytes = Self.read(&errors), !bytes.isEmpty {
            errorText += bytes.prefix(Self.maxErrorBytes - errorText.count)
        }
    }

    private func reap() {
        guard !isReaped, report == nil else { return }
        var status: Int32 = 0
        isReaped = Self.groups.withLock { groups in
            let result = waitpid(pid, &status, WNOHANG)
            guard result == pid || (result < 0 && errno == ECHILD) else { return false }
            groups.remove(pid)
            return true
        }
        guard isReaped else { return }
        Self.close(&process)
    }

    // MARK: System calls

    /// The available bytes, at most a portion; empty if there are none now. At the end it closes the descriptor and returns
    /// nil.
    private static func read(_ descriptor: inout Int32) -> [UInt8]? {
        let bytes = [UInt8](unsafeUninitializedCapacity: portion) { buffer, count in
            let result = systemRead(descriptor, buffer.baseAddress, buffer.count)
            count = max(0, result)
            if result == 0 || (result < 0 && errno != EAGAIN && errno != EINTR) { close(&descriptor) }
        }
        return descriptor < 0 ? nil : bytes
    }

    private static func close(_ descriptor: inout Int32) {
        if descriptor >= 0 { FileIO.close(descriptor) }
        descriptor = -1
    }

    private static func status(of info: siginfo_t) -> ProgramResult.End? {
        #if canImport(Darwin)
            let (pid, status) = (info.si_pid, info.si_status)
        #else
            let (pid, status) = (info._sifields._sigchld.si_pid, info._sifields._sigchld.si_status)
        #endif
        if pid == 0 { return nil }
        return info.si_code == CLD_EXITED ? .exited(status & 0xff) : .signalled(status)
    }
}

private func systemRead(_ descriptor: Int32, _ buffer: UnsafeMutableRawPointer?, _ count: Int) -> Int {
    read(descriptor, buffer, count)
}
