import FKCore
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
    /// Absolute. Empty when the current folder was removed or its name is not UTF-8: relative paths are then refused.
    var workingDirectory: String
    /// Variables whose bytes are not UTF-8: what `environment` has in their place is not what was set.
    var unreadable: Set<String> = []
    var output: OutputStream = .standardOutput
    var errors: OutputStream = .standardError

    static var process: CommandContext {
        let environment = ProcessInfo.processInfo.environment
        return CommandContext(
            environment: environment, workingDirectory: ProcessPaths.currentFolder ?? "",
            unreadable: Set(environment.keys.filter { !ProcessPaths.isText(variable: $0) }))
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
