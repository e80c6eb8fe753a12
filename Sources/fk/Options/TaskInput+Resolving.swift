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
    /// - Parameter transport: sends the requests; it is not shut down here.
    /// - Returns: the tasks, and the number of entries of lists that were left out.
    /// - Throws: `.invalidURL` or `.unsupportedScheme` for the first invalid URL; `UsageError` for a list that cannot be
    ///   used; the error of a request. No task was started then.
    func resolve(
        _ context: CommandContext, over transport: any Transport
    ) async throws -> (tasks: TaskSpool, refused: Int, signer: String?) {
        guard let unproven, let signature else {
            let (tasks, refused) = try await resolveOperands(context, over: transport)
            return (tasks, refused, nil)
        }
        let listed: ListedTasks
        do {
            var list = unproven.list
            try await list.prove(by: signature, shared, context, over: transport)
            listed = try ListedTasks(list, unproven.settings, context)
        } catch let error as ListInput.Fault {
            throw CommandFailure(error.description, status: ExitStatus.usage)
        }
        let (operands, refused) = try await resolveOperands(context, over: transport)
        listed.spool.prepend(try operands.all())
        return (listed.spool, refused + listed.refused, listed.manifest?.facts.signedBy)
    }

    private func resolveOperands(
        _ context: CommandContext, over transport: any Transport
    ) async throws -> (tasks: TaskSpool, refused: Int) {
        guard operands > 0 else { return (spool, refused) }
        // A list has normalised URLs, and digests of its own.
        var tasks = try spool.take(atMost: operands)
        for index in tasks.indices {
            tasks[index].url = try Self.normalize(tasks[index].url)
            if !tasks[index].mirrors.isEmpty { tasks[index].mirrors = try tasks[index].mirrors.map(Self.normalize) }
        }
        if let digests {
            try await digests.apply(to: &tasks, shared, signature, context, over: transport)
        } else if let signature, unproven == nil {
            for index in tasks.indices { try await signature.sign(&tasks[index], over: transport) }
        }
        guard followsMetalink else {
            spool.prepend(tasks)
            return (spool, refused)
        }
        var refused = refused
        var followed: [TaskDescription] = []
        for task in tasks {
            let (found, faults) = try await Self.follow(task, over: transport, context)
            followed += found
            refused += faults
        }
        spool.prepend(followed)
        return (spool, refused)
    }

    /// The files of the Metalink that the task's URL answers with; the task itself for any other answer.
    private static func follow(
        _ task: TaskDescription, over transport: any Transport, _ context: CommandContext
    ) async throws -> ([TaskDescription], refused: Int) {
        var request = DocumentRequest(url: task.url, options: task.options)
        request.headers =
            (task.options.headers ?? []) + [
                HeaderField("Accept", "application/metalink4+xml, application/metalink+xml;q=0.9, */*;q=0.1")
            ]
        request.secretHeaders = Set((task.options.secretHeaders ?? []).map { $0.lowercased() })
        request.isWanted = { head in
            let type = head["Content-Type"]?.prefix { $0 != ";" }.lowercased() ?? ""
            return type == "application/metalink4+xml" || type == "application/metalink+xml"
        }
        let answer = try await request.fetch(over: transport)
        guard let bytes = answer.bytes else { return ([task], 0) }
        let source = URLMasking.mask(answer.head.url)
        var reading = Manifest.Reading()
        reading.baseURL = BaseURL.folder(of: answer.head.url)
        var settings = ListedTasks.Settings(folder: task.directory ?? context.workingDirectory)
        settings.options = task.options
        settings.attributes = task.attributes
        do {
            let manifest = try Manifest(parsing: bytes, as: .metalink4, reading)
            let listed = try ListedTasks(manifest, from: source, settings, context)
            return (listed.tasks, listed.refused)
        } catch let error as ManifestError {
            throw CommandFailure(ListInput.Fault(source, error).description, status: ExitStatus.taskFailed)
        } catch let error as ListInput.Fault {
            throw CommandFailure(error.description, status: ExitStatus.taskFailed)
        }
    }

    /// For several URLs, the message names the invalid one.
    private static func normalize(_ text: String) throws -> String {
        do throws(DownloadError) {
            return try URLNormalizer.normalize(text)
        } catch {
            var error = error
            error.url = URLMasking.mask(text)
            throw error
        }
    }
}
