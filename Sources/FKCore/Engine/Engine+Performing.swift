import FKMiddleware
import Foundation

/// Requests and their answers. `TaskControl` performs them; the engine then starts the tasks that may run.
extension Engine {
    /// Performs a request of another component or process. Errors are returned as `.failed`. A closing engine answers
    /// `.cancelled` and changes nothing, since another process may already own the work path.
    ///
    /// - Parameter own: limits for the tasks that the request adds or runs.
    package func perform(_ request: EngineRequest, own: OwnLimits? = nil) async -> EngineReply {
        await afterLeftovers()
        return await begin(request, own: own).reply
    }

    /// A request whose changes of state are complete.
    enum StartedRequest: Sendable {
        /// The request is complete.
        case done(EngineReply)
        /// Runs are being stopped, or finished files are being compared. `rest` is the request for what is left: after
        /// a kill it gives the same answer and changes no task a second time.
        case waiting(Task<EngineReply, Never>, rest: EngineRequest)

        /// A request that is answered by a line.
        static func done(note: String) -> StartedRequest { .done(.done(note: note)) }

        var reply: EngineReply {
            get async {
                switch self {
                case .done(let reply): reply
                case .waiting(let task, _): await task.value
                }
            }
        }
    }

    /// Performs all changes of state of a request. It returns the answer, or a task that waits for runs to stop or
    /// for files to be compared.
    func begin(_ request: EngineRequest, own: OwnLimits? = nil) async -> StartedRequest {
        do {
            try tenure.checkOpen()
            defer { startNext() }
            let group = try schedule.group(of: own)
            switch request {
            case .add(let tasks, let barrel, let run):
                return try finish(try await add(tasks, barrel, run: run, group), own)
            case .added(let results, let comparisons, let run):
                return try finish(control.resumeAddition(results, comparisons, run: run, group: group), own)
            case .verb(let verb, let selector): return try finish(control.choose(selector) { _ in verb })
            case .toggle(let selector): return try finish(control.choose(selector, StateMachine.toggled))
            case .chosen(let choices): return try finish(choices)
            case .limited(let limits, let request): return await begin(request, own: limits)
            case .follow:
                reporter.openChanges()
                return .done(note: "changes are written")
            case .resumeAll:
                return try finish(control.choose(.all) { _ in .resume }, forAll: true)
            case .join(let selectors, let barrel):
                return .done(.count(try control.join(selectors, barrel: barrel)))
            case .limits: return .done(.limits(try limits.report()))
            case .setAttributes(let selector, let attributes):
                let count = try book.setAttributes(selector, attributes)
                return .done(note: "attributes of \(Plural.count(count, "task")) changed")
            case .markUsed(let selector):
                return .done(note: "\(Plural.count(try book.markUsed(selector), "task")) marked as used")
            case .relink(let id, let url): return .done(note: try control.relink(id, to: url))
            case .change(let changes): return .done(note: try control.change(changes))
            case .createBarrel(let name, let options):
                return .done(note: try control.createBarrel(name, options: options))
            case .removeFromBarrel(let name, let urls):
                return .done(note: try control.remove(urls, fromBarrel: name))
            case .deleteBarrel(let name): return .done(note: try control.deleteBarrel(name))
            case .run(let selector): return .done(note: try control.admit(selector, group: group))
            case .limit(let rate, let barrel): return .done(note: try limits.set(rate, barrel: barrel))
            case .renew(let renewals):
                return .done(.count(try control.renew(renewals, group: group)))
            case .addProgram(let program): return .done(note: try programs.add(program))
            case .removeProgram(let name): return .done(note: try programs.remove(named: name))
            case .setLimits(let maxAction, let rateLimit):
                return .done(note: try setLimits(maxAction, rateLimit))
            }
        } catch {
            return .done(.failed(DownloadError(wrapping: error, code: .disk, message: "The request failed.")))
        }
    }

    private func setLimits(_ maxAction: Int?, _ rateLimit: Int64?) throws -> String {
        var changed = currentConfigure
        if let maxAction { changed.maxAction = maxAction }
        if let rateLimit { changed.rateLimit = rateLimit == 0 ? nil : rateLimit }
        try update(changed)
        return "limits changed"
    }

    // MARK: Adding

    /// Creates tasks, or finds existing ones, and queues them.
    ///
    /// - Parameters:
    ///   - barrel: the barrel that the tasks join; nil for none.
    ///   - run: true lets them start in an engine that runs only chosen tasks.
    ///   - group: the group of a command with limits for its own tasks; the default is none.
    /// - Returns: one result for each description, in order.
    /// - Throws: `.cancelled` once the engine closes; `.invalidArgument` for an invalid barrel name.
    package func add(
        _ descriptions: [TaskDescription], barrel: String?, run: Bool, group: Int32?
    ) async throws -> [EngineReply.Added] {
        await afterLeftovers()
        try tenure.beginOperation()
        defer { tenure.endOperation() }
        return await control.finish(try await add(descriptions, barrel, run: run, group))
    }

    private func add(
        _ descriptions: [TaskDescription], _ barrel: String?, run: Bool, _ group: Int32?
    ) async throws -> TaskControl.Addition {
        var addition = try control.beginAddition(descriptions, barrel: barrel, run: run, group: group)
        defer { control.endAddition(addition) }
        while try await control.addPortion(&addition) {
            startNext()
            control.park(addition)
        }
        return addition
    }

    private func finish(_ addition: TaskControl.Addition, _ own: OwnLimits?) throws -> StartedRequest {
        if addition.comparisons.isEmpty { return .done(.added(addition.results)) }
        // The operation keeps the lock until the comparisons are complete.
        try tenure.beginOperation()
        let task = Task {
            defer { tenure.endOperation() }
            return EngineReply.added(await control.finish(addition))
        }
        let rest = EngineRequest.added(addition.results, comparisons: addition.comparisons, run: addition.run)
        return .waiting(task, rest: own.map { .limited($0, rest) } ?? rest)
    }

    // MARK: Verbs

    /// Applies a verb to each matching task. Returns once the attempts that it stops have ended.
    ///
    /// - Parameter forAll: true makes `resume` also queue cancelled and failed tasks (FKDownloader's resumeAll). The
    ///   default is false.
    /// - Throws: `.notFound` if no task matches; `.cancelled` once the engine closes.
    package func apply(_ verb: Verb, to selector: TaskSelector, forAll: Bool) async throws -> [VerbResult] {
        try await apply(to: selector, forAll: forAll) { _ in verb }
    }

    /// Applies the verb that `StateMachine.toggles` gives for the state of each task.
    ///
    /// - Throws: `.notFound` if no task matches; `.cancelled` once the engine closes.
    package func toggle(_ selector: TaskSelector) async throws -> [VerbResult] {
        try await apply(to: selector, choose: StateMachine.toggled)
    }

    /// Applies a verb to each matching task, a portion at a time, so that a million results are never in memory at once. Only
    /// for an engine that runs no task: otherwise tasks would start between the portions.
    ///
    /// - Parameter took: receives the results of each portion, in order.
    /// - Throws: same as `apply`.
    package func apply(
        _ verb: Verb, to selector: TaskSelector, forAll: Bool, inPortions took: @Sendable ([VerbResult]) -> Void
    ) async throws {
        await afterLeftovers()
        try tenure.beginOperation()
        defer { tenure.endOperation() }
        var ids = try book.ids(selector)[...]
        var count = 0
        while !ids.isEmpty {
            let choices = try ids.prefix(1_000).filter { try book.find($0) != nil }.map {
                VerbChoice(id: $0, verb: verb)
            }
            ids = ids.dropFirst(1_000)
            let results = await finish(try begin(choices, forAll: forAll))
            count += results.count
            if !results.isEmpty { took(results) }
        }
        guard count > 0 || selector.mayBeEmpty else {
            throw DownloadError(.notFound, "There is no task \(selector.name).")
        }
    }

    /// - Parameter choose: returns the verb for a state.
    private func apply(
        to selector: TaskSelector, forAll: Bool = false, choose: (DownloadState) -> Verb
    ) async throws -> [VerbResult] {
        await afterLeftovers()
        try tenure.beginOperation()
        defer { tenure.endOperation() }
        return await finish(try begin(control.choose(selector, choose), forAll: forAll))
    }

    private func begin(_ choices: [VerbChoice], forAll: Bool = false) throws -> TaskControl.StartedVerbs {
        defer { startNext() }
        return try control.begin(choices, forAll: forAll)
    }

    private func finish(_ started: TaskControl.StartedVerbs) async -> [VerbResult] {
        defer { startNext() }
        return await control.finish(started)
    }

    private func finish(_ choices: [VerbChoice], forAll: Bool = false) throws -> StartedRequest {
        let started = try begin(choices, forAll: forAll)
        if started.stops.isEmpty { return .done(.verbs(started.results)) }
        try tenure.beginOperation()
        let task = Task {
            defer { tenure.endOperation() }
            return EngineReply.verbs(await finish(started))
        }
        return .waiting(task, rest: .chosen(control.rest(of: started)))
    }

    // MARK: At once

    /// Makes existing tasks members of a barrel. Their states do not change.
    package func join(_ selectors: [TaskSelector], barrelNamed name: String) throws -> Int {
        try control.join(selectors, barrel: name)
    }

    package func remove(_ urls: [String], fromBarrel name: String) throws -> String {
        try control.remove(urls, fromBarrel: name)
    }

    package func deleteBarrel(_ name: String) throws -> String { try control.deleteBarrel(name) }

    package func setAttributes(_ selector: TaskSelector, _ attributes: [String: String?]) throws -> Int {
        try tenure.checkOpen()
        return try book.setAttributes(selector, attributes)
    }

    package func markUsed(_ selector: TaskSelector) throws -> Int {
        try tenure.checkOpen()
        return try book.markUsed(selector)
    }
}

extension StateMachine {
    /// The verb for a toggle. If none applies, `resume` changes nothing and returns the reason.
    static func toggled(_ state: DownloadState) -> Verb { toggles(state) ?? .resume }
}
