import FKCore
import FKMiddleware
import Foundation

/// The options of every command.
struct GlobalOptions: Sendable, Hashable {
    /// The absolute path of the work path.
    var workPath = ""
    /// True if `--work-path` was given. Suggested commands then contain it as well.
    var isWorkPathGiven = false
    /// The saved bases of the work path (`Configure.bases`).
    var bases: [String: String] = [:]
    var json = false
    var quiet = false
    var progress = true
    var color = ColorChoice.auto

    init() {}

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
            if root.utf8.first == UInt8(ascii: "~") {
                context.warn(
                    "The work path \(root) begins with '~', which fk takes as a name: write the home folder's path.")
            }
            workPath = try Paths.absolute(root, from: context.workingDirectory)
        }
        json = arguments.has("json")
        quiet = arguments.has("quiet")
        progress = !arguments.has("no-progress") && !quiet
        color = try arguments.choice("color", "--color", of: ColorChoice.self) ?? .auto
    }

    /// Opens an existing work path for reading.
    ///
    /// - Throws: `.notFound`, `.workPathUnusable` or `.laterVersion`.
    func openReader() throws -> StoreReader { StoreReader(try openWorkPath()) }

    /// Opens an existing work path for a query, which adds its shards up.
    ///
    /// - Throws: same as `openReader`, and `.disk` if the shards cannot be listed.
    func openQuery() throws -> StoreReader { try StoreReader(withShardsOf: openWorkPath()) }

    /// The settings of a downloader for the work path, with its saved bases.
    var configure: Configure {
        var configure = Configure(workPath: URL(fileURLWithPath: workPath, isDirectory: true))
        configure.bases = bases.mapValues { URL(fileURLWithPath: $0, isDirectory: true) }
        return configure
    }

    /// The work path with its saved bases.
    var place: WorkPath { WorkPath(configure) }

    private func openWorkPath() throws -> WorkPath {
        let workPath = place
        try workPath.open(create: false)
        return workPath
    }

    /// A command to suggest, with the work path if it was given.
    func suggested(_ command: String) -> String { suggested(command, []) }

    /// A command to suggest with these names, which stand after `--` if one begins with a dash.
    func suggested(_ command: String, _ operands: [String]) -> String {
        let place = isWorkPathGiven ? ["--work-path", workPath.shellWord] : []
        let words = operands.map(\.shellWord)
        let needsDashes = operands.contains { $0.hasPrefix("-") }
        return ([command] + (needsDashes ? place + ["--"] + words : words + place)).joined(separator: " ")
    }
}
