import FKMiddleware
import Foundation

/// Requests and their answers. `TaskControl` performs them; the engine then starts the tasks that may run.
extension Engine: RequestHost {
    /// Performs a request of another component of this process. A closing engine throws `.cancelled` and changes nothing,
    /// since another process may already own the work path.
    ///
    /// - Parameter own: limits for the tasks that the request adds or runs.
    package func reply(to request: EngineRequest, own: OwnLimits?) async throws(DownloadError) -> EngineReply {
        await afterLeftovers()
        try ownership.beginOperation()
        defer { ownership.endOperation() }
        return try await attempt(request, own).get().reply
    }

    /// Performs all changes of state of a request.
    func attempt(_ request: EngineRequest, _ own: OwnLimits?) async -> Result<StartedRequest, DownloadError> {
        do {
            try ownership.checkOpen()
            defer { startNext() }
            return .success(try await request.begin(at: self, group: schedule.group(of: own)))
        } catch {
            return .failure(DownloadError(wrapping: error, code: .disk, message: "The request failed."))
        }
    }

    package func openChanges() { reporter.openChanges(isAsked: true) }

    // MARK: Adding

    package func add(
        _ descriptions: [TaskDescription], _ barrel: String?, run: Bool, _ group: Int32?
    ) async throws -> TaskControl.Addition {
        var addition = try control.beginAddition(descriptions, barrel: barrel, run: run, group: group)
        do {
            while try await control.addPortion(&addition) {
                startNext()
                control.park(addition)
            }
        } catch {
            try? control.endAddition(addition)
            throw error
        }
        try control.endAddition(addition)
        return addition
    }

    package func started(_ addition: TaskControl.Addition) throws -> StartedRequest {
        if addition.comparisons.isEmpty { return .done(.added(addition.results)) }
        // The operation keeps the lock until the comparisons are complete.
        try ownership.beginOperation()
        let task = Task {
            defer { ownership.endOperation() }
            return EngineReply.added(await control.finish(addition))
        }
        return .waiting(task, rest: .added(addition.results, comparisons: addition.comparisons, run: addition.run))
    }

    // MARK: Verbs

    /// Applies the chosen verbs.
    ///
    /// - Parameter forAll: true makes `resume` also queue cancelled and failed tasks (FKDownloader's resumeAll).
    package func started(_ choices: [VerbChoice], forAll: Bool) throws -> StartedRequest {
        let started = try control.begin(choices, forAll: forAll)
        if started.stops.isEmpty { return .done(.verbs(started.results)) }
        try ownership.beginOperation()
        let task = Task {
            defer { ownership.endOperation() }
            return EngineReply.verbs(await finish(started))
        }
        return .waiting(task, rest: .chosen(control.remaining(of: started)))
    }

    /// Applies a verb to each matching task, a portion at a time, so that a million results are never in memory at once. Only
    /// for an engine that runs no task: otherwise tasks would start between the portions.
    ///
    /// - Parameter took: receives the results of each portion, in order.
    /// - Throws: `.notFound` if no task matches; `.cancelled` once the engine closes.
    package func apply(
        _ verb: Verb, to selector: TaskSelector, forAll: Bool, inPortions took: @Sendable ([VerbResult]) -> Void
    ) async throws {
        await afterLeftovers()
        try ownership.beginOperation()
        defer { ownership.endOperation() }
        var ids = try book.ids(selector)[...]
        var count = 0
        while !ids.isEmpty {
            let choices = try ids.prefix(1_000).filter { try book.find($0) != nil }.map {
                VerbChoice(id: $0, verb: verb)
            }
            ids = ids.dropFirst(1_000)
            let results = await finish(try control.begin(choices, forAll: forAll))
            count += results.count
            if !results.isEmpty { took(results) }
        }
        guard count > 0 || selector.mayBeEmpty else {
            throw DownloadError(.notFound, "There is no task \(selector.name).")
        }
    }

    private func finish(_ started: TaskControl.StartedVerbs) async -> [VerbResult] {
        defer { startNext() }
        return await control.finish(started)
    }
}
