import FKMiddleware

/// From the words of a command line to an exit status.
struct Dispatcher: Sendable {
    let context: CommandContext

    /// Parses, runs and reports; never throws.
    func run(_ words: [String]) async -> Int32 {
        Self.status(await perform(words), context.output, context.errors)
    }

    /// A result that could not be written is a failure, whatever the command itself came to.
    static func status(_ status: Int32, _ output: OutputStream, _ errors: OutputStream) -> Int32 {
        guard let reason = output.failure else { return status }
        errors.writeLine("fk: The results could not be written to standard output: \(reason).")
        return status == ExitStatus.done ? ExitStatus.taskFailed : status
    }

    private func perform(_ words: [String]) async -> Int32 {
        do {
            return try await command(words).run()
        } catch let error as UsageError {
            report(error.message, words)
            context.errors.writeLine(error.hint)
            return ExitStatus.usage
        } catch let error as CommandFailure {
            report(error.message, words)
            return error.status
        } catch let error as DownloadError {
            report(error.fullText, words)
            return Self.status(of: error.code)
        } catch {
            report(String(describing: error), words)
            return ExitStatus.taskFailed
        }
    }

    /// The command that the words mean, its options checked.
    ///
    /// - Throws: `UsageError`, or `DownloadError` when the saved settings cannot be read.
    func command(_ words: [String]) throws -> any Command {
        switch try CommandTable.parser.parse(words) {
        case .command(let spec, var arguments):
            if spec.usesSettings, !spec.options.isEmpty {
                let workPath = try GlobalOptions(arguments, context).workPath
                try Settings.load(workPath: workPath).fill(&arguments, of: spec, workPath: workPath)
            }
            return try spec.make(arguments, context)
        case .help(let topic, let arguments):
            return try HelpCommand(topic: topic, global: GlobalOptions(arguments, context), context: context)
        case .version(let arguments): return ShowVersion(json: arguments.has("json"), output: context.output)
        }
    }

    static func status(of code: DownloadError.Code) -> Int32 {
        switch code {
        // A download that finds no space is a task in error; what ends a command is the work path's.
        case .workPathUnusable, .workPathBusy, .laterVersion, .noSpace: ExitStatus.workPath
        case .notFound: ExitStatus.notFound
        case .invalidArgument, .invalidURL, .unsupportedScheme: ExitStatus.usage
        default: ExitStatus.taskFailed
        }
    }

    private func report(_ message: String, _ words: [String]) {
        // The line may be wrong before `--color` was read: look for it by itself.
        let choice = words.last { $0.hasPrefix("--color=") }.flatMap { ColorChoice(rawValue: String($0.dropFirst(8))) }
        let usesColor = context.errorTerminal(choice ?? .auto).usesColor
        context.errors.writeLine("\(Style.red("fk:", usesColor)) \(Escaping.visible(message))")
    }
}

private struct ShowVersion: Command {
    let json: Bool
    let output: OutputStream

    func run() async throws -> Int32 {
        output.write(VersionCommand.text(json: json))
        return ExitStatus.done
    }
}
