import FKCore
import FKMiddleware
import Foundation

/// Leaves a run to a background process (`--detach`).
///
/// The tasks are made first, so that nothing is lost whatever happens next. Then `fk run` starts in a session of its
/// own, told in a file which tasks are meant; it is the engine, or waits its turn behind the one there is.
enum Detach {
    /// Names the file that lists the ids of the tasks to run, one a line; `fk run` reads and removes it.
    static let variable = "FK_RUN_TASKS"

    static func start(_ ids: [TaskID], _ options: RunOptions, _ global: GlobalOptions, _ context: CommandContext) throws
    {
        let list = "\(global.workPath)/detached-\(UUID().uuidString)"
        try Array(ids.map { $0.hex + "\n" }.joined().utf8).withUnsafeBytes { try FileIO.create(list, $0) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try OwnProgram.path())
        process.arguments = ["run", "--quiet", "--work-path", global.workPath] + options.words
        process.environment = context.environment.merging([variable: list]) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    /// The tasks this process was started for in the background; nil for a run that a person typed.
    static func tasks(_ context: CommandContext) -> [TaskID]? {
        guard let path = context.environment[variable] else { return nil }
        // A session of its own: closing the terminal it came from does not end it.
        if setsid() < 0 { signal(SIGHUP, SIG_IGN) }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return [] }
        unlink(path)
        return text.split(separator: "\n").compactMap { TaskID(hex: String($0)) }
    }
}

extension RunOptions {
    /// The options as words of a command line.
    fileprivate var words: [String] {
        var words: [String] = []
        if let jobs { words += ["-j", String(jobs)] }
        switch connections {
        case .automatic: words += ["-x", "auto"]
        case .fixed(let count): words += ["-x", String(count)]
        case nil: break
        }
        if let rateLimit { words += ["--limit-rate", String(rateLimit)] }
        if let durability { words += ["--durability", durability.rawValue] }
        if let transport { words += ["--transport", transport.rawValue] }
        return words
    }
}
