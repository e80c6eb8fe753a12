/// `fk man`
struct ManualCommand: Command {
    let output: OutputStream

    func run() async throws -> Int32 {
        output.write(ManualPage.text)
        return ExitStatus.done
    }
}
