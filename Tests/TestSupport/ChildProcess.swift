import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A program that was started and has to be waited for.
///
/// Not Foundation's `Process`: on Linux that copies each name under `/proc/self/fd` past the end of the directory's
/// buffer, which ends a process with more than some 1,300 open descriptors; it keeps the handles of the streams it was
/// given; and it waits for a socket to close which a daemon like nginx inherits and keeps open.
package struct ChildProcess: Sendable {
    package enum Stream: Sendable {
        case null
        /// Read from its beginning, or made anew and written.
        case file(String)
        case descriptor(Int32)
    }

    package let pid: Int32
    /// Dispatch's work items may be cancelled on any thread; its module does not say so on Linux.
    private nonisolated(unsafe) let longest: DispatchWorkItem

    /// The longest that a program of a test may run, in seconds. One that hangs would hold the whole run of the tests:
    /// a time limit of the test library cannot end a thread that waits for it.
    private static let longestRun = 600

    /// Starts a program that inherits the three streams and no other descriptor, and kills it after ten minutes.
    ///
    /// - Parameters:
    ///   - words: the program's path and its arguments.
    ///   - environment: nil for this process's own.
    ///   - folder: the folder to start in; nil for this process's own.
    ///   - errors: nil for the same as `output`.
    /// - Throws: `Program.Failure` when the system cannot start it.
    package init(
        _ words: [String], environment: [String: String]? = nil, folder: String? = nil, input: Stream = .null,
        output: Stream = .null, errors: Stream? = nil
    ) throws {
        #if canImport(Darwin)
            var actions: posix_spawn_file_actions_t?
            var attributes: posix_spawnattr_t?
        #else
            var actions = posix_spawn_file_actions_t()
            var attributes = posix_spawnattr_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        for (stream, descriptor) in [(input, 0), (output, 1), (errors, 2)] as [(Stream?, Int32)] {
            switch stream {
            case .null:
                posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
            case .file(let path):
                let flags = descriptor == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC
                posix_spawn_file_actions_addopen(&actions, descriptor, path, flags, 0o600)
            case .descriptor(let own):
                posix_spawn_file_actions_adddup2(&actions, own, descriptor)
            case nil:
                posix_spawn_file_actions_adddup2(&actions, 1, descriptor)
            }
        }
        // A shell's background job ignores these, and what a process ignores its children ignore: tests send them.
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGINT, SIGQUIT] { sigaddset(&signals, signal) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        #if canImport(Darwin)
            posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_CLOEXEC_DEFAULT | POSIX_SPAWN_SETSIGDEF))
        #else
            posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
            for descriptor in 3..<Int32(clamping: min(sysconf(Int32(_SC_OPEN_MAX)), 4_096)) {
                posix_spawn_file_actions_addclose(&actions, descriptor)
            }
        #endif
        // The call that changes the folder is not in every C library's headers that Swift sees; a shell can do it.
        let words = folder.map { ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", $0] + words } ?? words
        var arguments = words.map { strdup($0) } + [nil]
        var variables = (environment ?? ProcessInfo.processInfo.environment).map { strdup("\($0)=\($1)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var pid: pid_t = 0
        let code = posix_spawn(&pid, words[0], &actions, &attributes, &arguments, &variables)
        guard code == 0 else { throw Program.Failure(description: "\(words[0]): \(String(cString: strerror(code)))") }
        self.pid = pid
        longest = DispatchWorkItem { [pid] in kill(pid, SIGKILL) }
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(Self.longestRun), execute: longest)
    }

    /// Waits for its end, once.
    ///
    /// - Returns: the exit status, or 128 + the number of the signal that ended it.
    @discardableResult
    package func end() -> Int32 {
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
        longest.cancel()
        let signal = status & 0x7f
        return signal == 0 ? status >> 8 & 0xff : 128 + signal
    }
}
