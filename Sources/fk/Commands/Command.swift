import Foundation

/// One invocation of a command, with its arguments read and checked.
protocol Command: Sendable {
    /// Does it.
    ///
    /// - Returns: the exit status, see `ExitStatus`.
    /// - Throws: `UsageError`, `CommandFailure` or `DownloadError`; `main` prints it and picks the status.
    func run() async throws -> Int32
}

/// What a command may know of the process it runs in.
struct CommandContext: Sendable {
    var environment: [String: String]
    /// Absolute.
    var workingDirectory: String
    var output: OutputStream = .standardOutput
    var errors: OutputStream = .standardError

    static var process: CommandContext {
        CommandContext(
            environment: ProcessInfo.processInfo.environment, workingDirectory: FileManager.default.currentDirectoryPath
        )
    }

    /// What standard output can show.
    func outputTerminal(_ color: ColorChoice) -> Terminal {
        Terminal(descriptor: output.descriptor, color: color, environment: environment)
    }

    /// What standard error can show.
    func errorTerminal(_ color: ColorChoice) -> Terminal {
        Terminal(descriptor: errors.descriptor, color: color, environment: environment)
    }
}

/// A command that failed for a reason of its own.
struct CommandFailure: Error, Hashable {
    var message: String
    var status: Int32

    init(_ message: String, status: Int32) {
        self.message = message
        self.status = status
    }
}
