import FKMiddleware

/// A request to the engine of a work path. The engine of this process performs it (`EngineAccess.perform`). For the engine of
/// another process the same value goes through the mailbox (`EngineMessage`): the names of the cases and of their values are its format.
package enum EngineRequest: Codable, Sendable, Hashable {
    /// Creates tasks, or finds existing ones, and queues them, optionally as members of a barrel. `run` lets them start in an engine that
    /// runs only chosen tasks. The reply has a result for each, in order.
    case add(tasks: [TaskDescription], barrel: String?, run: Bool)
    /// An `add` whose tasks are made and queued. It replaces the request in the mailbox while finished files are compared.
    case added([AddResult], comparisons: [DigestCheck], run: Bool)
    /// Applies a verb to the selected tasks. The reply of each verb has a result for each task.
    case verb(Verb, TaskSelector)
    /// Suspends running and waiting tasks, and resumes or queues all others.
    case toggle(TaskSelector)
    /// A verb for each of some tasks. It replaces a verb or a toggle in the mailbox, so that a second time changes nothing.
    case chosen([VerbChoice])
    /// Resumes suspended tasks, and queues cancelled and failed ones again (FKDownloader's resumeAll).
    case resumeAll
    /// Lets waiting tasks start in an engine that runs only chosen tasks.
    case run(TaskSelector)
    /// Fetches damaged ranges of finished files, or whole files, again. The reply is their number.
    case renew([Renewal])
    /// Sets attributes of the selected tasks. A nil value removes the pair. The reply is the number of tasks.
    case setAttributes(TaskSelector, [String: String?])
    /// Records the present time as the last use of the selected tasks. The reply is their number.
    case markUsed(TaskSelector)
    /// Gives a task another address, which requests use in place of its URL.
    case relink(TaskID, to: String)
    /// Changes options, mirrors and priorities of existing tasks.
    case change([TaskChange])
    /// Creates a barrel, or replaces the settings of an existing one.
    case createBarrel(name: String, options: BarrelOptions)
    /// Makes the selected tasks members of a barrel, which is created if missing. The reply is the number of new members.
    case join([TaskSelector], barrel: String)
    /// Removes members from a barrel, by URLs or whole ids. Their tasks stay.
    case removeFromBarrel(name: String, urls: [String])
    /// Deletes a barrel. Its tasks stay.
    case deleteBarrel(name: String)
    /// Changes `Configure.maxAction` (tasks at once) and `Configure.rateLimit` (bytes a second; 0 for no limit). Nil keeps the
    /// present value.
    case setLimits(maxAction: Int?, rateLimit: Int64?)
    /// Changes the rate limit of all tasks, or of a barrel's members, in bytes a second. It applies until it is changed. Nil or 0
    /// means no limit. With `daily`, the limit of all tasks applies in these windows alone, and the others stay. `windows` replaces all
    /// windows, each with its own limit, and the rate applies at the other times.
    case limit(rate: Int64?, barrel: String?, daily: [DailyWindow]?, windows: [DailyWindow]?)
    /// Asks for the limits in force.
    case limits
    /// Adds a program to the middlewares of the work path.
    case addProgram(MiddlewareProgram)
    /// Removes a program from the middlewares of the work path.
    case removeProgram(name: String)
    /// Lets the programs run that came with a work path from elsewhere.
    case trustPrograms
    /// Writes changes of tasks for the follower that asks (`ChangeJournal`).
    case follow

    /// A verb for each of some tasks.
    package static func chosen(_ ids: [TaskID], _ verb: Verb) -> EngineRequest {
        .chosen(ids.map { VerbChoice(id: $0, verb: verb) })
    }

    /// A rate limit without the windows of all tasks.
    package static func limit(rate: Int64?, barrel: String?, daily: [DailyWindow] = []) -> EngineRequest {
        .limit(rate: rate, barrel: barrel, daily: daily.isEmpty ? nil : daily, windows: nil)
    }

    /// The limit of all tasks, with all of its windows.
    package static func limit(_ limit: StandingLimit) -> EngineRequest {
        .limit(rate: limit.rate, barrel: nil, daily: nil, windows: limit.daily)
    }

    /// The same request, divided into requests that fit into the mailbox.
    package var messages: [EngineRequest] {
        guard case .add(let tasks, let barrel, let run) = self else { return [self] }
        return tasks.portions(ofBytes: 16 << 20, \.messageSize).map { .add(tasks: $0, barrel: barrel, run: run) }
    }
}

/// A request with the type of its reply: `perform(.verb(.suspend, .all))`.
package struct Request<Reply: Sendable>: Sendable {
    /// What is asked.
    package let content: EngineRequest
    /// The reply of that form; nil if it is the reply to another request.
    private let read: @Sendable (EngineReply) -> Reply?

    /// The reply of that form.
    ///
    /// - Throws: the error of a failed request; `.corruptInfo` for the reply to another one.
    package func reply(_ form: EngineReply) throws(DownloadError) -> Reply {
        if case .failed(let error) = form { throw error }
        if let reply = read(form) { return reply }
        throw DownloadError(.corruptInfo, "The engine answered another question.")
    }
}

extension Request where Reply == [AddResult] {
    private init(_ content: EngineRequest) {
        self.init(content: content) { if case .added(let list) = $0 { list } else { nil } }
    }

    package static func add(tasks: [TaskDescription], barrel: String?, run: Bool) -> Self {
        Self(.add(tasks: tasks, barrel: barrel, run: run))
    }
}

extension Request where Reply == [VerbResult] {
    private init(_ content: EngineRequest) {
        self.init(content: content) { if case .verbs(let list) = $0 { list } else { nil } }
    }

    package static func verb(_ verb: Verb, _ selector: TaskSelector) -> Self { Self(.verb(verb, selector)) }
    package static func toggle(_ selector: TaskSelector) -> Self { Self(.toggle(selector)) }
    package static func chosen(_ choices: [VerbChoice]) -> Self { Self(.chosen(choices)) }
    package static var resumeAll: Self { Self(.resumeAll) }
}

/// The reply is a number of tasks.
extension Request where Reply == Int {
    private init(_ content: EngineRequest) {
        self.init(content: content) {
            switch $0 {
            case .count(let count): count
            // An engine of version 1 gives the number in a line for people.
            case .done(let note): note.split(separator: " ").lazy.compactMap { Int($0) }.first ?? 0
            default: nil
            }
        }
    }

    package static func renew(_ renewals: [Renewal]) -> Self { Self(.renew(renewals)) }
    package static func setAttributes(_ selector: TaskSelector, _ attributes: [String: String?]) -> Self {
        Self(.setAttributes(selector, attributes))
    }
    package static func markUsed(_ selector: TaskSelector) -> Self { Self(.markUsed(selector)) }
    package static func join(_ selectors: [TaskSelector], barrel: String) -> Self {
        Self(.join(selectors, barrel: barrel))
    }
}

/// The reply is a line for people.
extension Request where Reply == String {
    /// Asks what is answered with a line.
    package static func line(_ content: EngineRequest) -> Self {
        Self(content: content) { if case .done(let note) = $0 { note } else { nil } }
    }
}
