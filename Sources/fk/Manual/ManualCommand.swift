/// `fk man`
struct ManualCommand: Command {
    let context: CommandContext

    func run() async throws -> Int32 {
        context.output.write(ManualPage.text)
        return ExitStatus.done
    }
}
