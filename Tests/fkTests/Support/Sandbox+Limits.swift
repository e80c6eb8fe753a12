import TestSupport

extension Sandbox {
    /// Runs `fk` to its end under limits as the shell's `ulimit` sets them, such as `-n 20`.
    func fk(under limits: String, _ words: [String]) async throws -> FKProgram.Output {
        try await FKProgram.run(
            "/bin/sh", ["-c", "ulimit \(limits); exec \"$0\" \"$@\"", FKProgram.path] + words,
            environment: ["FK_WORK_PATH": workPath], folder: files)
    }
}
