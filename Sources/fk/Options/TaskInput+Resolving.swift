import FKCore
import FKManifests
import FKMiddleware

/// What has to be asked from servers before the tasks are made.
extension TaskInput {
    /// The tasks with normalised URLs, which identify them; call it once.
    ///
    /// With `--metalink`, a URL that answers with a Metalink becomes the files of that list. The lists of `--checksum
    /// @LIST` and `auto` are read here. A list of `--signed-by` is proven and read first; without a list, each URL's signature is fetched.
    ///
    /// - Parameters:
    ///   - transport: sends the requests; it is not shut down here.
    ///   - took: receives the list at a URL, which is not signed, as the source of a barrel. The default ignores it.
    /// - Returns: the tasks, and the number of entries of lists that were left out.
    /// - Throws: `.invalidURL` or `.unsupportedScheme` for the first invalid URL; `UsageError` for a list that cannot be
    ///   used; the error of a request. No task was started then.
    func resolve(
        _ context: CommandContext, over transport: any Transport,
        took: (SourceImport, ListedTasks) -> Void = { _, _ in }
    ) async throws -> (tasks: TaskSpool, refused: Int, signer: String?) {
        guard let unproven, let signature else {
            let (tasks, refused) = try await resolveOperands(context, over: transport)
            guard let remote else { return (tasks, refused, nil) }
            var settings = settings
            settings.folder = try folder(ofList: remote.url)
            let listed = try await remote.source.listed(settings, context, over: transport)
            took(remote.source, listed)
            listed.spool.prepend(try tasks.all())
            return (listed.spool, refused + listed.refused, nil)
        }
        let listed: ListedTasks
        do {
            var list = unproven.list
            try await list.prove(by: signature, shared, context, over: transport)
            var settings = unproven.settings
            if !list.speaker.mayOrder { settings.folder = try folder(ofList: list.path) }
            listed = try ListedTasks(list, settings, context)
        } catch let error as ListInput.Fault {
            throw CommandFailure(error.description, status: ExitStatus.usage)
        }
        return (listed.spool, refused + listed.refused, listed.manifest?.facts.signedBy)
    }

    /// True if servers are asked before the tasks are made.
    var asksServers: Bool {
        remote != nil || unproven != nil || digests != nil || signature != nil || followsMetalink
    }

    var objectSettings: ListedTasks.Settings {
        var settings = settings
        settings.namesObject = true
        settings.namesFile = object?.fileName != nil
        return settings
    }

    /// Gives the only object what the command says of it.
    ///
    /// - Throws: `.invalidURL` or `.unsupportedScheme` for an invalid mirror.
    func complete(_ task: inout TaskDescription) throws {
        guard let object else { return }
        task.fileName = object.fileName ?? task.fileName
        task.directory = object.directory
        task.mirrors += try object.mirrors.map(Self.normalize)
        task.words.formUnion(object.words)
        guard object.hasOptions || object.words.contains(.dropsDigests) else { return }
        task.options.adoptPath = object.options.adoptPath ?? task.options.adoptPath
        if object.options.checksum != nil || object.words.contains(.dropsDigests) {
            task.options.checksum = object.options.checksum
            (task.options.pieces, task.options.list) = (nil, nil)
        }
    }

    private func resolveOperands(
        _ context: CommandContext, over transport: any Transport
    ) async throws -> (tasks: TaskSpool, refused: Int) {
        guard operands > 0 else { return (spool, refused) }
        // A list has normalised URLs, and digests of its own.
        var tasks = try spool.drain(atMost: operands)
        for index in tasks.indices {
            tasks[index].url = try Self.normalize(tasks[index].url)
            if !tasks[index].mirrors.isEmpty { tasks[index].mirrors = try tasks[index].mirrors.map(Self.normalize) }
        }
        if let digests {
            try await digests.apply(to: &tasks, shared, signature, context, over: transport)
        } else if let signature {
            for index in tasks.indices { try await signature.sign(&tasks[index], over: transport) }
        }
        guard followsMetalink else {
            spool.prepend(tasks)
            return (spool, refused)
        }
        var refused = refused
        var followed: [TaskDescription] = []
        for task in tasks {
            let (found, faults) = try await follow(task, over: transport, context)
            followed += found
            refused += faults
        }
        spool.prepend(followed)
        return (spool, refused)
    }

    /// The files of the Metalink that the task's URL answers with; the task itself for any other answer.
    private func follow(
        _ task: TaskDescription, over transport: any Transport, _ context: CommandContext
    ) async throws -> ([TaskDescription], refused: Int) {
        var request = DocumentRequest(url: task.url, options: task.options)
        request.headers =
            (task.options.headers ?? []) + [
                HeaderField("Accept", "application/metalink4+xml, application/metalink+xml;q=0.9, */*;q=0.1")
            ]
        request.secretHeaders = Set((task.options.secretHeaders ?? []).map { $0.lowercased() })
        request.origin = task.secretOrigin
        request.isWanted = { head in
            let type = head["Content-Type"]?.prefix { $0 != ";" }.lowercased() ?? ""
            return type == "application/metalink4+xml" || type == "application/metalink+xml"
        }
        let answer = try await request.fetch(over: transport)
        guard let bytes = answer.bytes else { return ([task], 0) }
        let source = answer.head.url.masked
        var reading = Manifest.Reading()
        reading.baseURL = answer.head.url.urlFolder
        do {
            var counter = ServerList.Reader(.metalink4, reading)
            let faults = try counter.read(bytes) { _, _ in }.faultCount
            let isSingle = counter.count + faults == 1
            if !isSingle, let option = Self.singleOption(of: task) {
                throw UsageError(
                    "\(option) describes a single file, and the Metalink of \(source) has \(counter.count + faults).",
                    command: ["get"])
            }
            var settings = settings
            settings.options = task.options
            // The owner has named this URL, and not those of the list.
            settings.options.secretOrigin = task.url
            settings.attributes = task.attributes
            settings.namesFile = task.fileName != nil
            if settings.namesFile {
                settings.folder = task.directory ?? settings.folder
            } else if !isSingle || barrel != nil {
                settings.folder = try folder(ofList: task.url)
            }
            var listed = try ListedTasks(ofServer: source, hidden: .never, settings, context)
            var reader = ServerList.Reader(.metalink4, reading)
            let list = try reader.read(bytes) { files, form in
                try listed.add(
                    files.map { file in
                        var file = file
                        file.name = task.fileName ?? file.name
                        file.sources += task.mirrors.map { .init($0) }
                        return file
                    }, form)
            }
            try listed.finish(list)
            return (listed.tasks, listed.refused)
        } catch let error as ManifestError {
            throw CommandFailure(ListInput.Fault(source, error).description, status: ExitStatus.taskFailed)
        } catch let error as ListInput.Fault {
            throw CommandFailure(error.description, status: ExitStatus.taskFailed)
        }
    }

    /// The option of the task that describes one file; nil for none.
    private static func singleOption(of task: TaskDescription) -> String? {
        if task.fileName != nil { return "-o" }
        if task.options.checksum != nil { return "--checksum" }
        return task.mirrors.isEmpty ? nil : "--mirror"
    }

    /// The folder for the files of a server's list: that of `-d` or the barrel's, else one of the barrel's or the list's name in the saved
    /// or current folder.
    ///
    /// - Throws: `CommandFailure` if a file has that name.
    private func folder(ofList url: String) throws -> String {
        if settings.isFolderGiven || isBarrelFolder { return directory }
        if let barrel { return try Paths.notFile("\(base)/\(barrel)") }
        let name = FileNameRules.name(url: url, head: nil)
        let suffix = [".meta4", ".metalink"].first {
            name.lowercased().hasSuffix($0) && name.utf8.count > $0.utf8.count
        }
        return try Paths.notFile("\(base)/\(name.dropLast(suffix?.count ?? 0))")
    }

    /// For several URLs, the message names the invalid one.
    private static func normalize(_ text: String) throws -> String {
        do throws(DownloadError) {
            return try text.normalizedURL()
        } catch {
            var error = error
            error.url = text.masked
            throw error
        }
    }
}
