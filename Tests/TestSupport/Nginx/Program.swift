import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Runs programs that tests need and says clearly when one is missing.
package enum Program {
    package struct Failure: Error, CustomStringConvertible {
        package var description: String
    }

    /// Looks in PATH and in the folders for system programs.
    package static func find(_ name: String) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let folders =
            path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"]
        return folders.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Runs a program to its end.
    ///
    /// - Returns: what it wrote to its standard output and error.
    /// - Throws: `Failure` when it is missing or its status is not 0.
    @discardableResult
    package static func run(_ name: String, _ arguments: [String], in folder: URL? = nil) throws -> String {
        guard let program = find(name) else {
            throw Failure(description: "The program \(name) is needed for this test and is not installed.")
        }
        let scratch = try TemporaryFolder()
        let status = try spawn(
            [program] + arguments, in: (folder ?? scratch.url).path, output: scratch.file("output").path)
        let output = String(decoding: (try? scratch.read("output")) ?? [], as: UTF8.self)
        guard status == 0 else {
            throw Failure(description: "\(name) \(arguments.joined(separator: " ")) failed: \(output)")
        }
        return output
    }

    /// Not Foundation's `Process`: that waits for a socket to close which a daemon like nginx inherits and keeps open.
    ///
    /// - Returns: the exit status, or 128 for an end by a signal.
    private static func spawn(_ words: [String], in folder: String, output: String) throws -> Int32 {
        #if canImport(Glibc)
            var actions = posix_spawn_file_actions_t()
        #else
            var actions: posix_spawn_file_actions_t?
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        #if !canImport(Darwin)
            // A daemon that inherits a test's connection would keep it open.
            for descriptor in 3..<Int32(clamping: min(sysconf(Int32(_SC_OPEN_MAX)), 4_096)) {
                posix_spawn_file_actions_addclose(&actions, descriptor)
            }
        #endif
        let words = ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", folder] + words
        var arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var pid: pid_t = 0
        let code = posix_spawn(&pid, words[0], &actions, nil, &arguments, environ)
        guard code == 0 else { throw Failure(description: "\(words[0]): \(String(cString: strerror(code)))") }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
        return status & 0x7f == 0 ? status >> 8 & 0xff : 128
    }
}
