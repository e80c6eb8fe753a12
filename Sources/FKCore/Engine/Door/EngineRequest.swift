import FKMiddleware

/// A request to the engine of a work path, with the type of its reply. The engine of this process performs it
/// (`EngineAccess.perform`). For the engine of another process the same value goes through the mailbox (`EngineMessage`).
package protocol EngineRequest: Codable, Sendable, Hashable {
    /// The reply. `EngineReply` is its form in the mailbox.
    associatedtype Reply: Sendable

    /// The name of the request in the mailbox.
    static var kind: String { get }

    /// Performs all changes of state.
    ///
    /// - Parameter group: the group of a command with limits for its own tasks; nil for none.
    func begin(at engine: isolated any RequestHost, group: Int32?) async throws -> StartedRequest<Reply>

    /// The request that replaces this one in the mailbox before it begins, because a second time would have another effect.
    /// The default is nil: the effect is the same.
    func resolved(at engine: isolated any RequestHost) throws -> ChosenVerbs?

    /// The same request, divided into requests that fit into the mailbox. The default is one.
    var messages: [Self] { get }

    /// The form of a reply in the mailbox.
    ///
    /// - Parameter version: the version of the message.
    func form(_ reply: Reply, version: Int) -> EngineReply

    /// The reply of that form; nil if it is the reply to another request.
    func reply(_ form: EngineReply) -> Reply?
}

extension EngineRequest {
    package func resolved(at engine: isolated any RequestHost) throws -> ChosenVerbs? { nil }
    package var messages: [Self] { [self] }
}

extension EngineRequest where Reply == [AddResult] {
    package func form(_ reply: Reply, version: Int) -> EngineReply { .added(reply) }
    package func reply(_ form: EngineReply) -> Reply? { if case .added(let list) = form { list } else { nil } }
}

extension EngineRequest where Reply == [VerbResult] {
    package func form(_ reply: Reply, version: Int) -> EngineReply { .verbs(reply) }
    package func reply(_ form: EngineReply) -> Reply? { if case .verbs(let list) = form { list } else { nil } }
}

/// A reply that is a line for people.
extension EngineRequest where Reply == String {
    package func form(_ reply: Reply, version: Int) -> EngineReply { .done(note: reply) }
    package func reply(_ form: EngineReply) -> Reply? { if case .done(let note) = form { note } else { nil } }
}

extension EngineRequest where Reply == LimitsReport {
    package func form(_ reply: Reply, version: Int) -> EngineReply { .limits(reply) }
    package func reply(_ form: EngineReply) -> Reply? { if case .limits(let report) = form { report } else { nil } }
}

/// A reply that is a number of tasks.
extension EngineRequest where Reply == Int {
    package func form(_ reply: Reply, version: Int) -> EngineReply { .count(reply) }
    package func reply(_ form: EngineReply) -> Reply? {
        switch form {
        case .count(let count): count
        // An engine of version 1 gives the number in a line for people.
        case .done(let note): note.split(separator: " ").lazy.compactMap { Int($0) }.first ?? 0
        default: nil
        }
    }
}

/// A request whose changes of state are complete.
package enum StartedRequest<Reply: Sendable>: Sendable {
    /// The request is complete.
    case done(Reply)
    /// Runs are being stopped, or finished files are being compared. `rest` is the request for what is left: after a kill
    /// it gives the same answer and changes no task a second time.
    case waiting(Task<Reply, Never>, rest: any EngineRequest)

    var reply: Reply {
        get async {
            switch self {
            case .done(let reply): reply
            case .waiting(let task, _): await task.value
            }
        }
    }
}

/// The requests in their short form: `perform(.verb(.suspend, .all))`. The constraint lets the compiler find them; each returns
/// a request of its own type.
extension EngineRequest where Self == AddTasks {
    package static func add(tasks: [TaskDescription], barrel: String?, run: Bool) -> AddTasks {
        AddTasks(tasks: tasks, barrel: barrel, run: run)
    }
    package static func verb(_ verb: Verb, _ selector: TaskSelector) -> VerbRequest {
        VerbRequest(verb: verb, selector: selector)
    }
    package static func toggle(_ selector: TaskSelector) -> ToggleRequest { ToggleRequest(selector: selector) }
    package static func chosen(_ choices: [VerbChoice]) -> ChosenVerbs { ChosenVerbs(choices: choices) }
    package static var resumeAll: ResumeAll { ResumeAll() }
    package static func run(_ selector: TaskSelector) -> RunTasks { RunTasks(selector: selector) }
    package static func renew(_ renewals: [Renewal]) -> RenewFiles { RenewFiles(renewals: renewals) }
    package static func setAttributes(_ selector: TaskSelector, _ attributes: [String: String?]) -> SetAttributes {
        SetAttributes(selector: selector, attributes: attributes)
    }
    package static func markUsed(_ selector: TaskSelector) -> MarkUsed { MarkUsed(selector: selector) }
    package static func relink(_ id: TaskID, to url: String) -> Relink { Relink(id: id, to: url) }
    package static func change(_ changes: [TaskChange]) -> ChangeTasks { ChangeTasks(changes: changes) }
    package static func createBarrel(name: String, options: BarrelOptions) -> CreateBarrel {
        CreateBarrel(name: name, options: options)
    }
    package static func join(_ selectors: [TaskSelector], barrel: String) -> JoinBarrel {
        JoinBarrel(selectors: selectors, barrel: barrel)
    }
    package static func removeFromBarrel(name: String, urls: [String]) -> LeaveBarrel {
        LeaveBarrel(name: name, urls: urls)
    }
    package static func deleteBarrel(name: String) -> DeleteBarrel { DeleteBarrel(name: name) }
    package static func setLimits(maxAction: Int?, rateLimit: Int64?) -> SetLimits {
        SetLimits(maxAction: maxAction, rateLimit: rateLimit)
    }
    package static func limit(rate: Int64?, barrel: String?, daily: [DailyWindow] = []) -> SetRateLimit {
        SetRateLimit(rate: rate, barrel: barrel, daily: daily.isEmpty ? nil : daily, windows: nil)
    }
    package static func limit(_ limit: StandingLimit) -> SetRateLimit {
        SetRateLimit(rate: limit.rate, barrel: nil, daily: nil, windows: limit.daily)
    }
    package static var limits: AskLimits { AskLimits() }
    package static func addProgram(_ program: MiddlewareProgram) -> AddProgram { AddProgram(program: program) }
    package static func removeProgram(name: String) -> RemoveProgram { RemoveProgram(name: name) }
    package static var trustPrograms: TrustPrograms { TrustPrograms() }
    package static var follow: FollowChanges { FollowChanges() }
}
