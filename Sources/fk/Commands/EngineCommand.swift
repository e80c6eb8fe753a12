/// A command that needs an engine or a work path to act on, with its options read and checked.
struct EngineCommand<Options: Sendable>: Command {
    let arguments: ParsedArguments
    let options: Options

    func run() async throws -> Int32 {
        throw CommandFailure(
            "'fk \(arguments.command.joined(separator: " "))' is not part of this build.", status: ExitStatus.taskFailed
        )
    }
}
