/// Writes the paths of finished files to standard output, for scripts.
struct FinishedPaths: Sendable {
    /// What `--print` selects.
    enum Choice: String, Sendable, CaseIterable {
        /// The path of each finished file.
        case path
        case none
    }

    /// The character after each path.
    let end: String
    private let output: OutputStream
    /// True if standard output is a terminal, which a live view may share.
    let isTerminal: Bool

    /// - Parameters:
    ///   - choice: nil selects paths where standard output is not a terminal, unless the run is quiet.
    ///   - isNUL: true ends each path with NUL instead of a line feed, and asks for the paths.
    /// - Returns: nil if nothing is to be printed.
    init?(_ choice: Choice?, isNUL: Bool, _ context: CommandContext) {
        guard !context.global.json else { return nil }
        isTerminal = context.outputTerminal(.never).isTerminal
        let isDefault = choice == nil && !isTerminal && !context.global.quiet
        guard choice == .path || isDefault || isNUL && choice == nil else { return nil }
        output = context.output
        end = isNUL ? "\0" : "\n"
    }

    /// Writes the bytes of a path as they are.
    func write(_ path: String) { output.write(path + end) }
}
