import FKCore
import FKMiddleware
import Foundation

/// One invocation of a command, with its arguments converted and checked.
protocol Command: Sendable {
    var context: CommandContext { get }

    /// - Returns: the exit status, see `ExitStatus`.
    /// - Throws: `UsageError`, `CommandFailure` or `DownloadError`. `main` prints it and chooses the status.
    func run() async throws -> Int32
}

extension Command {
    var global: GlobalOptions { context.global }
}

/// The facts about the process that a command may use, and the options of every command.
struct CommandContext: Sendable {
    var environment: [String: String]
    /// The absolute path of the current folder. Empty if it was removed or its name is not UTF-8; relative paths are
    /// then refused.
    var workingDirectory: String
    /// Variables whose bytes are not UTF-8. Their values in `environment` are not the real ones.
    var unreadable: Set<String> = []
    /// Set by the dispatcher, before a command is made.
    var global = GlobalOptions()
    var output: OutputStream = .standardOutput
    var errors: OutputStream = .standardError

    static var process: CommandContext {
        let environment = ProcessInfo.processInfo.environment
        return CommandContext(
            environment: environment, workingDirectory: ProcessInfo.currentFolder ?? "",
            unreadable: Set(environment.keys.filter { !ProcessInfo.isText(variable: $0) }))
    }

    /// The same with the options of every command.
    func with(_ arguments: ParsedArguments) throws -> Self {
        var context = self
        context.global = try GlobalOptions(arguments, self)
        return context
    }

    /// Writes a warning: a line about a fault that does not stop the command.
    func warn(_ message: String) { say("fk: warning: \(message.visible)") }

    /// Says that a list or listing is asked for again, if that takes a while.
    func tellWait(_ error: DownloadError, _ seconds: Double) {
        guard seconds >= 3, !global.quiet else { return }
        let place = error.url.map { "\($0): " } ?? ""
        errors.writeLine("fk: \("\(place)\(error.shortText) Next attempt in \(Formatting.duration(seconds)).".visible)")
    }

    /// Writes a paragraph to standard error. A terminal gets lines that end between words, because it would break them inside of words.
    ///
    /// - Parameters:
    ///   - mark: the beginning of the paragraph; the default is none.
    ///   - shown: the beginning with its colour.
    func say(_ text: String, after mark: String = "", shown: String = "") {
        for (number, line) in paragraph(mark + text, for: errors).enumerated() {
            errors.writeLine(number == 0 ? shown + line.dropFirst(mark.count) : line)
        }
    }

    func print(_ text: String) { paragraph(text, for: output).forEach(output.writeLine) }

    private func paragraph(_ text: String, for stream: OutputStream) -> [String] {
        let terminal = Terminal(descriptor: stream.descriptor, color: .never, environment: environment)
        guard terminal.isTerminal else { return [text] }
        // A secret may contain a blank, so it is masked before the text is divided.
        return Columns.paragraph(stream.hidden.mask(text), to: terminal.size.columns)
    }

    func outputTerminal(_ color: ColorChoice) -> Terminal {
        Terminal(descriptor: output.descriptor, color: color, environment: environment)
    }

    func errorTerminal(_ color: ColorChoice) -> Terminal {
        Terminal(descriptor: errors.descriptor, color: color, environment: environment)
    }
}
