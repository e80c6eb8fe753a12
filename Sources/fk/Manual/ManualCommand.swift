import Foundation

struct ManualCommand: Command {
    /// The page, as mdoc.
    let page: String
    let context: CommandContext

    func run() async throws -> Int32 {
        if context.outputTerminal(.never).isTerminal { try become(viewer: context.environment["PATH"] ?? "") }
        context.output.write(page)
        return ExitStatus.done
    }

    /// Becomes the program `man` or `mandoc`, with the page as its standard input. It returns if neither can be started.
    private func become(viewer path: String) throws {
        let viewers = [["man", "-l", "-"], ["mandoc", "-a"]]
        guard
            let (words, program) = viewers.lazy.compactMap({ words in
                Self.find(words[0], path).map { (words, $0) }
            }).first
        else { return }
        let folder = try ScratchFolder.make("fk-man", context)
        let file = "\(folder)/fk.1"
        try page.write(toFile: file, atomically: false, encoding: .utf8)
        let input = open(file, O_RDONLY)
        // The open file is enough: nothing is left when the viewer ends.
        unlink(file)
        rmdir(folder)
        guard input >= 0, dup2(input, 0) == 0 else { return }
        var arguments = words.map { strdup($0) } + [nil]
        execv(program, &arguments)
    }

    private static func find(_ name: String, _ path: String) -> String? {
        path.split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
    }
}
