import FKMiddleware
import Foundation

/// One run of a program that is no middleware: the list of a source, or a helper that has credentials. It has the environment and the
/// process group of middleware programs.
package struct ProgramRun: Sendable {
    /// The program with its arguments. A name without a slash is looked up in `PATH`.
    package var arguments: [String]
    /// The folder that it runs in, absolute.
    package var directory: String
    /// What it reads from standard input. The default is nothing.
    package var input: [UInt8] = []
    /// The time after which it is killed. The default is 10 s.
    package var timeLimit: Duration = .seconds(10)
    /// Variables beside `PATH`, `HOME`, `LANG` and `TMPDIR`, or in their place. The default is none.
    package var variables: [(name: String, value: String)] = []
    /// Receives the standard output as it arrives, on the thread of the programs, and returns false to end the program. nil, the default,
    /// returns it, at most 1 MiB.
    package var sink: (@Sendable ([UInt8]) -> Bool)?

    package init(_ arguments: [String], in directory: String) {
        self.arguments = arguments
        self.directory = directory
    }

    /// Kills all programs of this process and their children, before it ends at once.
    package static func killAll() { ProgramProcess.killAll() }

    /// The path of the program, if it can be run at present.
    ///
    /// - Throws: `.middleware` with the reason: it is missing or not executable.
    package func locate() throws(DownloadError) -> String {
        try ProgramPath.find(arguments[0], from: directory, path: ProgramPath.searched)
    }

    /// The end of a program.
    package struct End: Sendable {
        package var status: Int32
        /// The standard output, unless a sink takes it.
        package var output: [UInt8]
        /// The first 16 KiB of standard error.
        package var errors: [UInt8]
    }

    /// Runs the program to its end.
    ///
    /// - Returns: its standard output, unless a sink takes it.
    /// - Throws: same as `end`, and `.middleware` for another exit status than 0, with the first line of standard error.
    package func callAsFunction() async throws(DownloadError) -> [UInt8] {
        let end = try await end()
        guard end.status != 0 else { return end.output }
        let reason = ProgramReason.text(end.errors)
        throw DownloadError(
            .middleware, "The program \(name) failed: \(reason ?? "exit status \(end.status)")")
    }

    private var name: String { (arguments.first ?? "").visible }

    /// Runs the program to its end, with whatever exit status.
    ///
    /// - Throws: `.middleware` for a program that is missing, crashes, takes too long or writes too much; `.cancelled`.
    package func end() async throws(DownloadError) -> End {
        let result: ProgramResult
        do {
            result = try await ProgramHost.shared.run { [self] in
                ProgramCall(
                    path: try ProgramPath.find(arguments[0], from: directory, path: ProgramPath.searched),
                    arguments: arguments,
                    environment: (ProgramEnvironment.inherited.filter { one in
                        !variables.contains { $0.name == one.name }
                    }
                        + variables).map { "\($0.name)=\($0.value)" },
                    directory: directory, input: input, timeLimit: timeLimit, sink: sink)
            }
        } catch is CancellationError {
            throw DownloadError(.cancelled, "The program \(name) was stopped.")
        } catch let error as DownloadError {
            throw DownloadError(.middleware, "The program \(name) did not run: \(error.message).")
        } catch {
            throw DownloadError(wrapping: error, code: .middleware, message: "The program \(name) did not run.")
        }
        if let fault = result.end.fault(timeLimit: timeLimit) {
            throw DownloadError(
                .middleware, "The program \(name) \(fault).", underlying: ProgramReason.text(result.errors))
        }
        guard case .exited(let status) = result.end else {
            throw DownloadError(
                .middleware, "The program \(name) failed.", underlying: ProgramReason.text(result.errors))
        }
        return End(status: status, output: result.output, errors: result.errors)
    }
}
