import FKCore
import FKMiddleware

/// Runs a command line and returns its exit status.
struct Dispatcher: Sendable {
    let context: CommandContext

    /// Parses, runs and reports. It never throws.
    func run(_ words: [String]) async -> Int32 {
        // Before anything is parsed: a message about a word that cannot be parsed quotes it.
        context.errors.hide(SecretBook(CommandSecrets.values(of: words, context.environment)))
        return Self.status(await perform(words), context.output, context.errors)
    }

    /// The exit status of the program. Output that could not be written is a failure, whatever the command returned.
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
            for line in error.lines { context.say(line) }
            context.say(error.hint)
            return ExitStatus.usage
        } catch let error as CommandFailure {
            report(error.message, words)
            for line in error.lines { context.errors.writeLine(line.visible) }
            return error.status
        } catch let error as DownloadError {
            report(error.fullText, words)
            return ExitStatus.of(error)
        } catch {
            report(String(describing: error), words)
            return ExitStatus.taskFailed
        }
    }

    /// The command for these words, with its options checked.
    ///
    /// - Throws: `UsageError`, or `CommandFailure` or `DownloadError` about the saved settings.
    func command(_ words: [String]) throws -> any Command {
        switch try CommandTable.parser(for: words).parse(words) {
        case .command(let spec, var arguments):
            var context = try context.with(arguments)
            if spec.usesWorkPath {
                // A shard has the settings of its work path.
                let workPath = WorkPath(context.global.workPath).ofShards.root
                let settings = try Settings.read(workPath: workPath)
                context.global.bases = settings.bases
                if spec.usesSettings {
                    settings.warn(context, workPath: workPath)
                    try settings.fill(&arguments, of: spec, workPath: workPath, home: context.environment["HOME"])
                }
            }
            return try spec.make(arguments, context)
        case .help(let topic, let arguments): return try HelpCommand(topic: topic, context: context.with(arguments))
        case .version(let arguments): return ShowVersion(json: arguments.has("json"), context: context)
        }
    }

    private func report(_ message: String, _ words: [String]) {
        // The line may be invalid before `--color` was parsed, so this looks for the option directly.
        let choice = words.last { $0.hasPrefix("--color=") }.flatMap { ColorChoice(rawValue: String($0.dropFirst(8))) }
        let usesColor = context.errorTerminal(choice ?? .auto).usesColor
        context.say(message.visible, after: "fk: ", shown: Style.red("fk:", usesColor) + " ")
    }
}

private struct ShowVersion: Command {
    let json: Bool
    let context: CommandContext

    func run() async throws -> Int32 {
        context.output.write(VersionCommand.text(json: json))
        return ExitStatus.done
    }
}
