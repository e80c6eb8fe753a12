import CSystem
import FKMiddleware
import Foundation

/// One run of a program.
struct ProgramCall: Sendable {
    /// The program's absolute path.
    var path: String
    /// The program's name and its arguments.
    var arguments: [String]
    /// `NAME=value` each.
    var environment: [String]
    /// The folder that it runs in, absolute.
    var directory: String
    /// What it reads from standard input.
    var input: [UInt8]
    /// The time after which it is killed.
    var timeLimit: Duration
    /// Receives the standard output as it arrives, on the thread of the programs, and returns false to end the program. nil, the default,
    /// collects it for the result, at most `ProgramAnswer.maxBytes`.
    var sink: (@Sendable ([UInt8]) -> Bool)?
}

/// A started program: the parent's ends of its pipes, and its process group, which has its process id.
///
/// Every descriptor is closed at `exec`, also in programs that other threads start.
struct SpawnedProgram {
    let pid: pid_t
    /// Readable when the process has ended; -1 where the system has no such descriptor.
    let process: Int32
    let input: Int32
    let output: Int32
    let errors: Int32

    /// Why a program was not started.
    struct Failure: Error {
        var code: Int32
        /// True if a later attempt may succeed: the system lacks processes, memory or descriptors, or the program file is open
        /// for writing.
        var isRetryable: Bool { [EAGAIN, ENOMEM, EMFILE, ENFILE, ETXTBSY].contains(code) }
    }

    static func start(_ call: ProgramCall) throws(Failure) -> SpawnedProgram {
        var pipes: [Int32] = []
        defer { pipes.forEach { close($0) } }
        for _ in 0..<3 { pipes += try makePipe() }
        // The program reads its input from the first pipe, and writes into the two others.
        let theirs = [pipes[0], pipes[3], pipes[5]]
        let ours = [pipes[1], pipes[2], pipes[4]]
        for end in ours {
            let flags = fcntl(end, F_GETFL)
            guard flags >= 0, fcntl(end, F_SETFL, flags | O_NONBLOCK) == 0 else { throw Failure(code: errno) }
        }
        var pid: pid_t = 0
        let code = CStrings.with(call.arguments) { arguments in
            CStrings.with(call.environment) { environment in
                fk_spawn(&pid, call.path, arguments, environment, call.directory, theirs)
            }
        }
        guard code == 0 else { throw Failure(code: code) }
        pipes = theirs
        return SpawnedProgram(
            pid: pid, process: fk_process_descriptor(pid), input: ours[0], output: ours[1], errors: ours[2])
    }

    /// The two ends of a pipe, for reading and for writing. Their numbers are above 2, so that none of them is in the way
    /// of the program's own three.
    static func makePipe() throws(Failure) -> [Int32] {
        var ends: [Int32] = [-1, -1]
        guard fk_pipe(&ends) == 0 else { throw Failure(code: errno) }
        for index in ends.indices {
            guard ends[index] <= 2 else { continue }
            let other = fcntl(ends[index], F_DUPFD_CLOEXEC, 3)
            let code = errno
            close(ends[index])
            ends[index] = other
            guard other >= 0 else {
                ends.filter { $0 >= 0 }.forEach { close($0) }
                throw Failure(code: code)
            }
        }
        return ends
    }
}
