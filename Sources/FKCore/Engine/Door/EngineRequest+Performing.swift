import FKMiddleware

/// A request whose changes of state are complete.
package enum StartedRequest: Sendable {
    /// The request is complete.
    case done(EngineReply)
    /// Runs are being stopped, or finished files are being compared. `rest` is the request for what is left: after a kill
    /// it gives the same answer and changes no task a second time.
    case waiting(Task<EngineReply, Never>, rest: EngineRequest)

    var reply: EngineReply {
        get async {
            switch self {
            case .done(let reply): reply
            case .waiting(let task, _): await task.value
            }
        }
    }
}

extension EngineRequest {
    /// Performs all changes of state.
    ///
    /// - Parameter group: the group of a command with limits for its own tasks; nil for none.
    func begin(at engine: isolated any RequestHost, group: Int32?) async throws -> StartedRequest {
        switch self {
        case .add(let tasks, let barrel, let run):
            return try engine.started(try await engine.add(tasks, barrel, run: run, group))
        case .added(let results, let comparisons, let run):
            return try engine.started(engine.control.resumeAddition(results, comparisons, run: run, group: group))
        case .verb, .toggle: return try engine.started(choices(at: engine), forAll: false)
        case .chosen(let choices): return try engine.started(choices, forAll: false)
        case .resumeAll: return try engine.started(engine.control.choose(.all) { _ in .resume }, forAll: true)
        case .run(let selector): return .done(.done(note: try engine.control.admit(selector, group: group)))
        case .renew(let renewals): return .done(.count(try engine.control.renew(renewals, group: group)))
        case .setAttributes(let selector, let attributes):
            return .done(.count(try engine.book.setAttributes(selector, attributes)))
        case .markUsed(let selector): return .done(.count(try engine.book.markUsed(selector)))
        case .relink(let id, let url): return .done(.done(note: try engine.control.relink(id, to: url)))
        case .change(let changes): return .done(.done(note: try engine.control.change(changes)))
        case .createBarrel(let name, let options):
            return .done(.done(note: try engine.control.createBarrel(name, options: options)))
        case .join(let selectors, let barrel): return .done(.count(try engine.control.join(selectors, barrel: barrel)))
        case .removeFromBarrel(let name, let urls):
            return .done(.done(note: try engine.control.remove(urls, fromBarrel: name)))
        case .deleteBarrel(let name): return .done(.done(note: try engine.control.deleteBarrel(name)))
        case .setLimits(let maxAction, let rateLimit):
            var changed = engine.currentConfigure
            if let maxAction { changed.maxAction = maxAction }
            if let rateLimit { changed.rateLimit = rateLimit == 0 ? nil : rateLimit }
            try engine.update(changed)
            return .done(.done(note: "limits changed"))
        case .limit(let rate, _, _, let windows?):
            return .done(.done(note: try engine.limits.set(StandingLimit(rate: rate, daily: windows))))
        case .limit(let rate, let barrel, let daily, nil):
            return .done(.done(note: try engine.limits.set(rate, barrel: barrel, daily: daily ?? [])))
        case .limits: return .done(.limits(try engine.limits.report()))
        case .addProgram(let program): return .done(.done(note: try engine.programs.add(program)))
        case .removeProgram(let name): return .done(.done(note: try engine.programs.remove(named: name)))
        case .trustPrograms: return .done(.done(note: try engine.programs.trust()))
        case .follow:
            engine.openChanges()
            return .done(.done(note: "changes are written"))
        }
    }

    /// The request that replaces this one in the mailbox before it begins, because a second time would have another effect.
    /// Nil if the effect is the same.
    func resolved(at engine: isolated any RequestHost) throws -> EngineRequest? {
        switch self {
        case .verb(.trash, _), .verb(.forget, _), .toggle: .chosen(try choices(at: engine))
        default: nil
        }
    }

    /// The verb for each task of `verb` and `toggle`.
    private func choices(at engine: isolated any RequestHost) throws -> [VerbChoice] {
        switch self {
        case .verb(let verb, let selector): try engine.control.choose(selector) { _ in verb }
        // If no verb applies, `resume` changes nothing and returns the reason.
        case .toggle(let selector): try engine.control.choose(selector) { $0.toggleVerb ?? .resume }
        default: []
        }
    }
}
