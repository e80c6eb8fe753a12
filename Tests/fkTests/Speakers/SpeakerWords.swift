import TestSupport

@testable import FKCore
@testable import FKEngine
@testable import FKManifests
@testable import FKModel
@testable import fk

/// How a word becomes tasks, and where a task keeps what was said of it. Nothing else of the courses knows the engine's
/// types for options, or how a command reads a list.
enum SpeakerWords {
    /// The tasks of `fk get WORDS`. Its lists, and those of servers that it follows, are read over the transport.
    static func get(
        _ words: [String], _ context: CommandContext, over transport: any Transport
    ) async throws -> [TaskDescription] {
        guard let command = try Dispatcher(context: context).command(["get"] + words) as? GetCommand else { return [] }
        return try await command.options.input.resolve(command.context, over: transport).tasks.all()
    }

    /// The tasks of `fk barrel import NAME URL WORDS`: a list that a server sends.
    static func imported(
        _ url: String, _ words: [String], _ context: CommandContext, over transport: any Transport
    ) async throws -> [TaskDescription] {
        let words = ["barrel", "import", "list", url] + words
        guard let command = try Dispatcher(context: context).command(words) as? BarrelEditCommand,
            case .add(let options) = command.edit, let source = options.source
        else { return [] }
        var settings = ListedTasks.Settings(folder: options.directory ?? context.workingDirectory)
        settings.isFolderGiven = options.directory != nil
        return try await source.listed(settings, command.context, over: transport).tasks
    }

    /// The tasks of an application that has fetched a list and takes its files.
    static func application(_ text: String, to folder: URL) throws -> [TaskDescription] {
        try Manifest(parsing: Array(text.utf8)).entries.map { try Builder($0, in: folder).description }
    }

    /// Adds the tasks of a command. The command is the owner's last word.
    ///
    /// - Returns: the error of each task, nil for those that were taken.
    static func add(
        _ tasks: [TaskDescription], to engine: Engine
    ) async throws -> [DownloadError?] {
        try await engine.perform(.add(tasks: tasks, barrel: nil, run: true)).map(\.error)
    }

    /// Adds a file as an application does, with what the call names.
    static func call(
        _ url: String, to folder: URL, _ said: InForce, _ downloader: Downloader
    ) async throws -> TaskID {
        let checksum = try said.digest.map { try Checksum(.sha256, hex: $0) }
        if said.orders.isEmpty, said.priority == 0 {
            return try await downloader.add(url, to: folder, checksum: checksum).id
        }
        var builder = try Builder(url)
        builder.folder = folder
        if said.priority != 0 { builder.priority = said.priority }
        builder.options.checksum = checksum
        for (name, value) in said.orders {
            switch name {
            case "proxy": builder.options.proxy = value
            case "insecure": builder.options.insecure = true
            case "max-size": builder.options.maxSize = Int64(value)
            default:
                builder.options.headers = (builder.options.headers ?? []) + [HeaderField(name, value)]
                builder.options.secretHeaders = (builder.options.secretHeaders ?? []) + [name]
            }
        }
        return try await downloader.add(builder).id
    }

    /// What is in force for a task.
    static func inForce(_ task: TaskDescription) -> InForce {
        var inForce = InForce(priority: task.priority)
        let options = task.options
        inForce.digest = options.checksum?.hex
        var orders: [String: String?] = [
            "proxy": options.proxy, "insecure": options.insecure.map { "\($0)" },
            "max-size": options.maxSize.map { "\($0)" }, "netrc": options.netrc.map { "\($0)" },
            "existing": options.existing?.rawValue, "rate": options.rateLimit.map { "\($0)" },
            "cookies": options.cookiePath, "cacert": options.caPath, "tries": options.maxAttempts.map { "\($0)" },
            "connections": options.connections.map { "\($0)" },
        ]
        // What is said of nothing above.
        let named: Set = [
            "proxy", "insecure", "maxSize", "netrc", "existing", "rateLimit", "cookiePath", "caPath", "maxAttempts",
            "connections", "headers",
        ]
        for order in TaskOptions.orders where !named.contains(order.name) {
            if order.outcome(TaskOptions(), options, .takesAll) == .added { orders[order.name] = "set" }
        }
        orders["gid"] = task.attributes["gid"]
        orders["pause"] = task.startsSuspended == true ? "true" : nil
        for field in options.headers ?? [] { orders[field.name.lowercased()] = field.value }
        inForce.orders = orders.compactMapValues(\.self)
        return inForce
    }
}

extension Engine {
    /// The task as the engine has it now.
    func task(_ id: TaskID) -> TaskDescription? { record(id)?.task }

    /// The record of a task as the engine has it now.
    func record(_ id: TaskID) -> TaskRecord? { (try? book.find(id))?.record }

    /// Ends once the files that other threads compare or publish are done.
    nonisolated func finishDiskWork() async {
        await withCheckedContinuation { continuation in
            diskWork.async(flags: .barrier) { continuation.resume() }
        }
    }
}
