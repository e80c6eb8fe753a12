import FKMiddleware
import Foundation

/// Requests in, answers out. What they do is done by `TaskControl`; the engine starts what may run then.
extension Engine {
    /// Carries out what another component or process asks for. Errors come back as `.failed`; an engine that closes
    /// answers `.cancelled` and touches nothing, for the work path may be another process's already.
    ///
    /// - Parameter own: limits for the tasks that the request adds or has run.
    package func perform(_ request: EngineRequest, own: OwnLimits? = nil) async -> EngineReply {
        await afterLeftovers()
        return await begin(request, own: own).reply
    }

    /// A request that has had its effect on the states of all tasks.
    enum Begun: Sendable {
        case done(EngineReply)
        /// Runs are still being stopped, or finished files compared.
        case waiting(Task<EngineReply, Never>)

        var reply: EngineReply {
            get async {
                switch self {
                case .done(let reply): reply
                case .waiting(let task): await task.value
                }
            }
        }
    }

    /// Carries a request out as far as states are concerned. Returns with the answer, or with the waiting for runs that are
    /// being stopped, or for files that are being compared.
    func begin(_ request: EngineRequest, own: OwnLimits? = nil) async -> Begun {
        do {
            try tenure.checkOpen()
            defer { startNext() }
            let group = try schedule.group(of: own)
            switch request {
            case .add(let tasks, let barrel, let run):
                return try finish(try await add(tasks, barrel, run: run, group))
            case .verb(let verb, let selector): return try finish(control.choose(selector) { _ in verb })
            case .toggle(let selector): return try finish(control.choose(selector, StateMachine.toggled))
            case .chosen(let choices): return try finish(choices)
            case .limited(let limits, let request): return await begin(request, own: limits)
            case .limits: return .done(.limits(try limits.report()))
            default: return .done(.done(note: try note(of: request, group)))
            }
        } catch {
            return .done(.failed(DownloadError(wrapping: error, code: .disk, message: "The request failed.")))
        }
    }

    /// Requests that are done at once, and answered by a line.
    private func note(of request: EngineRequest, _ group: Int32?) throws -> String {
        switch request {
        case .setAttributes(let selector, let attributes):
            "attributes of \(Plural.count(try book.setAttributes(selector, attributes), "task")) changed"
        case .markUsed(let selector): "\(Plural.count(try book.markUsed(selector), "task")) marked as used"
        case .createBarrel(let name, let options): try control.createBarrel(name, options: options)
        case .removeFromBarrel(let name, let urls): try control.remove(urls, fromBarrel: name)
        case .deleteBarrel(let name): try control.deleteBarrel(name)
        case .run(let selector): try control.admit(selector, group: group)
        case .limit(let rate, let barrel): try limits.set(rate, barrel: barrel)
        case .setLimits(let maxAction, let rateLimit): try setLimits(maxAction, rateLimit)
        case .add, .verb, .toggle, .chosen, .limited, .limits: preconditionFailure("answered in another way")
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

    /// Makes tasks, or finds them again, and queues them.
    package func add(
        _ descriptions: [TaskDescription], barrel: String?, run: Bool, group: Int32? = nil
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

    private func finish(_ addition: TaskControl.Addition) throws -> Begun {
        if addition.comparisons.isEmpty { return .done(.added(addition.results)) }
        // The lock is held until that is done.
        try tenure.beginOperation()
        return .waiting(
            Task {
                defer { tenure.endOperation() }
                return .added(await control.finish(addition))
            })
    }

    // MARK: Verbs

    /// - Parameter forAll: `resume` then queues cancelled and failed tasks again as well (FKDownloader's resumeAll).
    package func apply(_ verb: Verb, to selector: TaskSelector, forAll: Bool = false) async throws -> [VerbResult] {
        try await apply(to: selector, forAll: forAll) { _ in verb }
    }

    /// One button for a task: what it does is decided by `StateMachine.toggles`.
    package func toggle(_ selector: TaskSelector) async throws -> [VerbResult] {
        try await apply(to: selector, choose: StateMachine.toggled)
    }

    /// - Parameter choose: the verb for a task in that state.
    private func apply(
        to selector: TaskSelector, forAll: Bool = false, choose: (DownloadState) -> Verb
    ) async throws -> [VerbResult] {
        await afterLeftovers()
        try tenure.beginOperation()
        defer { tenure.endOperation() }
        return await finish(try begin(control.choose(selector, choose), forAll: forAll))
    }

    private func begin(_ choices: [VerbChoice], forAll: Bool = false) throws -> TaskControl.BegunVerbs {
        defer { startNext() }
        return try control.begin(choices, forAll: forAll)
    }

    private func finish(_ begun: TaskControl.BegunVerbs) async -> [VerbResult] {
        defer { startNext() }
        return await control.finish(begun)
    }

    private func finish(_ choices: [VerbChoice]) throws -> Begun {
        let begun = try begin(choices)
        if begun.stops.isEmpty { return .done(.verbs(begun.results)) }
        try tenure.beginOperation()
        return .waiting(
            Task {
                defer { tenure.endOperation() }
                return .verbs(await finish(begun))
            })
    }

    // MARK: At once

    /// Makes existing tasks members of a barrel as well; they stay what they are.
    func join(_ selectors: [TaskSelector], barrelNamed name: String) throws -> Int {
        try control.join(selectors, barrel: name)
    }

    func remove(_ urls: [String], fromBarrel name: String) throws -> String {
        try control.remove(urls, fromBarrel: name)
    }

    func deleteBarrel(_ name: String) throws -> String { try control.deleteBarrel(name) }

    func setAttributes(_ selector: TaskSelector, _ attributes: [String: String?]) throws -> Int {
        try tenure.checkOpen()
        return try book.setAttributes(selector, attributes)
    }

    func markUsed(_ selector: TaskSelector) throws -> Int {
        try tenure.checkOpen()
        return try book.markUsed(selector)
    }
}

extension StateMachine {
    /// Where there is nothing to toggle, resume changes nothing either and says why.
    static func toggled(_ state: DownloadState) -> Verb { toggles(state) ?? .resume }
}
