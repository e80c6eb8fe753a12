import FKMiddleware

/// Creates tasks, or finds existing ones, and queues them, optionally as members of a barrel. The reply has a result for each,
/// in order.
package struct AddTasks: EngineRequest {
    package static let kind = "add"
    package var tasks: [TaskDescription]
    package var barrel: String?
    /// True lets them start in an engine that runs only chosen tasks.
    package var run: Bool

    package func begin(
        at engine: isolated any RequestHost, group: Int32?
    ) async throws -> StartedRequest<[AddResult]> {
        try engine.started(try await engine.add(tasks, barrel, run: run, group))
    }

    package var messages: [AddTasks] {
        tasks.portions(ofBytes: 16 << 20, \.messageSize).map { AddTasks(tasks: $0, barrel: barrel, run: run) }
    }
}

/// An `AddTasks` whose tasks are made and queued. It replaces the request in the mailbox while finished files are compared.
package struct AddedTasks: EngineRequest {
    package static let kind = "added"
    let results: [AddResult]
    let comparisons: [DigestCheck]
    /// That of the request.
    let run: Bool

    private enum CodingKeys: String, CodingKey { case results = "_0", comparisons, run }

    package func begin(at engine: isolated any RequestHost, group: Int32?) async throws -> StartedRequest<[AddResult]> {
        try engine.started(engine.control.resumeAddition(results, comparisons, run: run, group: group))
    }
}

/// Applies a verb to the selected tasks. The reply of each verb has a result for each task.
package struct VerbRequest: EngineRequest {
    package static let kind = "verb"
    let verb: Verb
    let selector: TaskSelector

    private enum CodingKeys: String, CodingKey { case verb = "_0", selector = "_1" }

    package func begin(at engine: isolated any RequestHost, group: Int32?) async throws -> StartedRequest<[VerbResult]>
    {
        try engine.started(engine.control.choose(selector) { _ in verb })
    }

    package func resolved(at engine: isolated any RequestHost) throws -> ChosenVerbs? {
        guard verb == .trash || verb == .forget else { return nil }
        return ChosenVerbs(choices: try engine.control.choose(selector) { _ in verb })
    }
}

/// Suspends running and waiting tasks, and resumes or queues all others.
package struct ToggleRequest: EngineRequest {
    package static let kind = "toggle"
    let selector: TaskSelector

    private enum CodingKeys: String, CodingKey { case selector = "_0" }

    package func begin(at engine: isolated any RequestHost, group: Int32?) async throws -> StartedRequest<[VerbResult]>
    {
        try engine.started(choices(at: engine))
    }

    package func resolved(at engine: isolated any RequestHost) throws -> ChosenVerbs? {
        ChosenVerbs(choices: try choices(at: engine))
    }

    /// If no verb applies, `resume` changes nothing and returns the reason.
    private func choices(at engine: isolated any RequestHost) throws -> [VerbChoice] {
        try engine.control.choose(selector) { StateMachine.toggles($0) ?? .resume }
    }
}

/// A verb for each of some tasks. It replaces a verb or a toggle in the mailbox, so that a second time changes nothing.
package struct ChosenVerbs: EngineRequest {
    package static let kind = "chosen"
    package let choices: [VerbChoice]

    private enum CodingKeys: String, CodingKey { case choices = "_0" }

    package func begin(at engine: isolated any RequestHost, group: Int32?) async throws -> StartedRequest<[VerbResult]>
    {
        try engine.started(choices)
    }
}

/// Resumes suspended tasks, and queues cancelled and failed ones again (FKDownloader's resumeAll).
package struct ResumeAll: EngineRequest {
    package static let kind = "resumeAll"

    package func begin(at engine: isolated any RequestHost, group: Int32?) async throws -> StartedRequest<[VerbResult]>
    {
        try engine.started(engine.control.choose(.all) { _ in .resume }, forAll: true)
    }
}

/// A request that is complete once its changes of state are.
package protocol PromptRequest: EngineRequest {
    associatedtype Reply
    /// Performs the request.
    func perform(at engine: isolated any RequestHost, group: Int32?) throws -> Reply
}

extension PromptRequest {
    package func begin(at engine: isolated any RequestHost, group: Int32?) async throws -> StartedRequest<Reply> {
        .done(try perform(at: engine, group: group))
    }
}

/// Lets waiting tasks start in an engine that runs only chosen tasks.
package struct RunTasks: PromptRequest {
    package static let kind = "run"
    let selector: TaskSelector

    private enum CodingKeys: String, CodingKey { case selector = "_0" }

    package func perform(at engine: isolated any RequestHost, group: Int32?) throws -> String {
        try engine.control.admit(selector, group: group)
    }
}

/// Fetches damaged ranges of finished files, or whole files, again. The reply is their number.
package struct RenewFiles: PromptRequest {
    package static let kind = "renew"
    let renewals: [Renewal]

    private enum CodingKeys: String, CodingKey { case renewals = "_0" }

    package func perform(at engine: isolated any RequestHost, group: Int32?) throws -> Int {
        try engine.control.renew(renewals, group: group)
    }
}

/// Sets attributes of the selected tasks. A nil value removes the pair. The reply is the number of tasks.
package struct SetAttributes: PromptRequest {
    package static let kind = "setAttributes"
    let selector: TaskSelector
    let attributes: [String: String?]

    private enum CodingKeys: String, CodingKey { case selector = "_0", attributes = "_1" }

    package func perform(at engine: isolated any RequestHost, group: Int32?) throws -> Int {
        try engine.book.setAttributes(selector, attributes)
    }

    package func form(_ count: Int, version: Int) -> EngineReply {
        version > 1 ? .count(count) : .done(note: "attributes of \(Plural.count(count, "task")) changed")
    }
}

/// Records the present time as the last use of the selected tasks. The reply is their number.
package struct MarkUsed: PromptRequest {
    package static let kind = "markUsed"
    let selector: TaskSelector

    private enum CodingKeys: String, CodingKey { case selector = "_0" }

    package func perform(at engine: isolated any RequestHost, group: Int32?) throws -> Int {
        try engine.book.markUsed(selector)
    }

    package func form(_ count: Int, version: Int) -> EngineReply {
        version > 1 ? .count(count) : .done(note: "\(Plural.count(count, "task")) marked as used")
    }
}

/// Gives a task another address, which requests use in place of its URL.
package struct Relink: PromptRequest {
    package static let kind = "relink"
    let id: TaskID
    let to: String

    private enum CodingKeys: String, CodingKey { case id = "_0", to }

    package func perform(at engine: isolated any RequestHost, group: Int32?) throws -> String {
        try engine.control.relink(id, to: to)
    }
}

/// Changes options, mirrors and priorities of existing tasks.
package struct ChangeTasks: PromptRequest {
    package static let kind = "change"
    let changes: [TaskChange]

    private enum CodingKeys: String, CodingKey { case changes = "_0" }

    package func perform(at engine: isolated any RequestHost, group: Int32?) throws -> String {
        try engine.control.change(changes)
    }
}
