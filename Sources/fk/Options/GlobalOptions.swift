import FKCore

/// When to use colour.
enum ColorChoice: String, Sendable, CaseIterable {
    /// On a terminal that is not `dumb`, unless `NO_COLOR` is set.
    case auto
    case always
    case never
}

/// The options that every command takes.
struct GlobalOptions: Sendable, Hashable {
    /// Absolute.
    var workPath: String
    /// `--work-path` was given: commands that are suggested need it as well.
    var isWorkPathGiven = false
    var json = false
    var quiet = false
    var progress = true
    var color = ColorChoice.auto

    init(_ arguments: ParsedArguments, _ context: CommandContext) throws {
        if let path = arguments["work-path"] {
            guard !path.isEmpty else { throw arguments.error("--work-path: the folder's name is empty.") }
            workPath = try Paths.absolute(path, from: context.workingDirectory)
            isWorkPathGiven = true
        } else {
            let (root, variable) = WorkPath.defaultRoot(in: context.environment)
            if let variable, context.unreadable.contains(variable) {
                throw arguments.error("The variable \(variable) is not UTF-8 text: name a work path with --work-path.")
            }
            workPath = try Paths.absolute(root, from: context.workingDirectory)
        }
        json = arguments.has("json")
        quiet = arguments.has("quiet")
        progress = !arguments.has("no-progress") && !quiet
        color = try arguments.choice("color", "--color", of: ColorChoice.self) ?? .auto
    }

    /// Reads the work path, which has to be there.
    ///
    /// - Throws: `.notFound`, `.workPathUnusable` or `.laterVersion`.
    func openReader() throws -> StoreReader {
        let workPath = WorkPath(workPath)
        try workPath.open(create: false)
        return StoreReader(workPath)
    }

    /// A command to suggest, so that it can be typed as it stands.
    func suggested(_ command: String) -> String {
        isWorkPathGiven ? "\(command) --work-path \(Paths.shellWord(workPath))" : command
    }
}
