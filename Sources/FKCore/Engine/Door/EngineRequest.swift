import FKMiddleware

/// The verbs for a task. `StateMachine` decides what each does in each state.
public enum Verb: String, Codable, Sendable, CaseIterable, Hashable {
    /// Queues a task: prepare, cancel, error -> idle.
    case action
    /// Stops a task and keeps its bytes: prepare, idle, action -> suspend.
    case suspend
    /// Queues a suspended task: suspend -> idle. It runs as soon as a slot is free.
    case resume
    /// Stops a task and deletes its unfinished bytes: prepare, idle, action, suspend, error -> cancel.
    case cancel
    /// Queues a failed or cancelled task with a fresh count of attempts: error, cancel -> idle.
    case retry
    /// Removes the task in any state and deletes every file that it wrote.
    case trash
    /// Removes the task in any state. The finished file of a complete task stays, unfinished bytes are deleted.
    case forget
}

/// The effect of a verb on one task. A verb that does not apply changes nothing and gives the reason.
public struct VerbResult: Codable, Sendable, Hashable {
    /// The task.
    public var id: TaskID
    /// The URL the task was built with, percent-encoded.
    public var url: String
    /// The requested verb.
    public var verb: Verb
    /// The state before the verb.
    public var before: DownloadState
    /// The state after the verb: equal to `before` if nothing changed, `.unknown` for a trashed or forgotten task.
    public var after: DownloadState
    /// False if the verb does not apply in that state.
    public var applied: Bool
    /// A short text for people: "suspended, 12 MB kept", "is complete already: nothing to resume".
    public var note: String

    /// Creates a result, for tests of code that reads results.
    public init(
        id: TaskID, url: String, verb: Verb, before: DownloadState, after: DownloadState, applied: Bool, note: String
    ) {
        self.id = id
        self.url = url
        self.verb = verb
        self.before = before
        self.after = after
        self.applied = applied
        self.note = note
    }
}

/// A request to the engine of a work path. A process calls its own engine directly, and posts to another process's
/// engine through the mailbox.
package enum EngineRequest: Codable, Sendable, Hashable {
    /// Creates tasks, or finds existing ones, and queues them, optionally as members of a barrel. `run` lets them
    /// start in an engine that runs only chosen tasks.
    case add(tasks: [TaskDescription], barrel: String?, run: Bool)
    /// Applies a verb to the selected tasks.
    case verb(Verb, TaskSelector)
    /// The resolved verbs of a verb or toggle request. It replaces the request in the mailbox, so that a second time
    /// changes nothing.
    case chosen([VerbChoice])
    /// An `add` whose tasks are made and queued. It replaces the request in the mailbox while finished files are
    /// compared. `run` is that of the request.
    case added([EngineReply.Added], comparisons: [Comparison], run: Bool)
    /// Suspends running and waiting tasks, and resumes or queues all others.
    case toggle(TaskSelector)
    /// Sets attributes of the selected tasks. A nil value removes the pair.
    case setAttributes(TaskSelector, [String: String?])
    /// Records the present time as the last use of the selected tasks.
    case markUsed(TaskSelector)
    /// Gives a task another address, which requests use in place of its URL.
    case relink(TaskID, to: String)
    /// Changes options, mirrors and priorities of existing tasks.
    case change([TaskChange])
    /// Creates a barrel, or replaces the settings of an existing one.
    case createBarrel(name: String, options: BarrelOptions)
    /// Removes members from a barrel. Their tasks stay.
    case removeFromBarrel(name: String, urls: [String])
    /// Deletes a barrel. Its tasks stay.
    case deleteBarrel(name: String)
    /// Lets waiting tasks start in an engine that runs only chosen tasks.
    case run(TaskSelector)
    /// Changes `Configure.maxAction` (tasks at once) and `Configure.rateLimit` (bytes a second; 0 for no limit). Nil
    /// keeps the present value.
    case setLimits(maxAction: Int?, rateLimit: Int64?)
    /// Changes the rate limit of all tasks, or of a barrel's members, in bytes a second. It applies until it is
    /// changed. Nil or 0 means no limit.
    case limit(rate: Int64?, barrel: String?)
    /// Returns the limits in force.
    case limits
    /// Fetches damaged ranges of finished files, or whole files, again.
    case renew([Renewal])
    /// Adds a program to the middlewares of the work path.
    case addProgram(MiddlewareProgram)
    /// Removes a program from the middlewares of the work path.
    case removeProgram(name: String)
    /// Makes the selected tasks members of a barrel, which is created if missing. The answer is `count`.
    case join([TaskSelector], barrel: String)
    /// Resumes suspended tasks, and queues cancelled and failed ones again (FKDownloader's resumeAll).
    case resumeAll
    /// Writes changes of tasks for the follower that asks (`ChangeJournal`).
    case follow
    /// An `add` or `run` of a command with limits for its own tasks.
    indirect case limited(OwnLimits, EngineRequest)

    /// The same request, divided into requests of at most `count` tasks.
    package func portions(of count: Int) -> [EngineRequest] {
        if case .limited(let limits, let request) = self {
            return request.portions(of: count).map { .limited(limits, $0) }
        }
        guard case .add(let tasks, let barrel, let run) = self, tasks.count > count else { return [self] }
        return stride(from: 0, to: tasks.count, by: count).map {
            .add(tasks: Array(tasks[$0..<min($0 + count, tasks.count)]), barrel: barrel, run: run)
        }
    }

    /// The same request, divided into requests that fit into the mailbox.
    package var messages: [EngineRequest] {
        if case .limited(let limits, let request) = self { return request.messages.map { .limited(limits, $0) } }
        guard case .add(let tasks, let barrel, let run) = self else { return [self] }
        return tasks.portions(ofBytes: 16 << 20, \.messageSize).map { .add(tasks: $0, barrel: barrel, run: run) }
    }
}

/// A verb for one task.
package struct VerbChoice: Codable, Sendable, Hashable {
    /// The task.
    package var id: TaskID
    /// The verb for it.
    package var verb: Verb
    /// The submission number of the task. A task that was made since with the same id is left alone. The default is
    /// nil: any task with the id.
    package var number: UInt64?
    /// The state before the verb, if the verb was performed and the record says so: then only the result is missing.
    /// The default is nil: the verb is yet to be performed.
    package var performedIn: DownloadState?
    /// The task's URL, for the result if the task is gone by then; nil, the default, if unknown.
    package var url: String?
    /// The state when the task was chosen. A task that is gone by then was forgotten by this verb, if the verb forgets: an
    /// earlier engine performed it and could not answer. The default is nil: unknown.
    package var chosenIn: DownloadState?
    /// Creates a choice.
    package init(
        id: TaskID, verb: Verb, number: UInt64? = nil, performedIn: DownloadState? = nil, url: String? = nil,
        chosenIn: DownloadState? = nil
    ) {
        self.id = id
        self.verb = verb
        self.number = number
        self.performedIn = performedIn
        self.url = url
        self.chosenIn = chosenIn
    }
}

/// A finished file of an `add` request, to be compared with the checksum that the request contains.
package struct Comparison: Codable, Sendable, Hashable {
    /// The position among the results of the request.
    package var position: Int
    /// The description in the request.
    package var task: TaskDescription
    /// Its checksum.
    package var checksum: Checksum
}

/// The answer to an `EngineRequest`.
package enum EngineReply: Codable, Sendable, Hashable {
    /// The result for each task of `add`, in order.
    case added([Added])
    /// The result for each task that a verb or toggle selected.
    case verbs([VerbResult])
    /// The request is complete; a line for people.
    case done(note: String)
    /// The limits in force.
    case limits(LimitsReport)
    /// The request is complete; the number of tasks it concerned.
    case count(Int)
    /// The request failed.
    case failed(DownloadError)

    /// The result of `add` for one task.
    package struct Added: Codable, Sendable, Hashable {
        /// The task.
        package var id: TaskID
        /// Its state now.
        package var state: DownloadState
        /// False if the task existed before.
        package var isNew: Bool
        /// Set if this task could not be created.
        @Seldom package var error: DownloadError?
        /// Creates a result.
        package init(id: TaskID, state: DownloadState, isNew: Bool, error: DownloadError? = nil) {
            self.id = id
            self.state = state
            self.isNew = isNew
            self.error = error
        }
    }
}

extension EngineReply {
    /// Combines the answers to the portions of one request.
    ///
    /// - Throws: `.corruptInfo` for answers of different kinds.
    package init(pages: [EngineReply]) throws {
        guard let first = pages.first, pages.count > 1 else {
            self = pages.first ?? .verbs([])
            return
        }
        var added: [Added] = []
        var results: [VerbResult] = []
        for page in pages {
            switch (first, page) {
            case (.added, .added(let list)): added += list
            case (.verbs, .verbs(let list)): results += list
            default: throw DownloadError(.corruptInfo, "The pages of the engine's answer do not belong together.")
            }
        }
        if case .added = first { self = .added(added) } else { self = .verbs(results) }
    }

    /// The same answer, divided into answers of about `size` bytes each.
    package func pages(ofBytes size: Int) -> [EngineReply] {
        switch self {
        case .added(let list):
            list.portions(ofBytes: size) { 200 + ($0.error?.messageSize ?? 0) }.map(EngineReply.added)
        case .verbs(let list):
            list.portions(ofBytes: size) { 300 + 2 * ($0.url.utf8.count + $0.note.utf8.count) }.map(EngineReply.verbs)
        case .done, .limits, .count, .failed: [self]
        }
    }
}

extension DownloadError {
    /// The approximate size in a message, in bytes.
    fileprivate var messageSize: Int {
        200 + 2 * (message.utf8.count + (url?.utf8.count ?? 0) + (underlying?.utf8.count ?? 0))
    }
}

extension TaskDescription {
    /// The approximate size in a message, in bytes. JSON writes a slash as two bytes.
    package var messageSize: Int {
        var size = 400 + 2 * (url.utf8.count + (directory?.utf8.count ?? 0) + (fileName?.utf8.count ?? 0))
        for mirror in mirrors { size += 2 * mirror.utf8.count + 4 }
        for (name, value) in attributes { size += 2 * (name.utf8.count + value.utf8.count) + 8 }
        for field in options.headers ?? [] { size += 2 * (field.name.utf8.count + field.value.utf8.count) + 40 }
        size += (options.pieces?.bytes?.count ?? 0) * 3 / 2
        for name in options.secretHeaders ?? [] { size += 2 * name.utf8.count + 4 }
        return size + 2 * (options.proxy?.utf8.count ?? 0)
    }
}

extension Array {
    /// Divides the array into portions of about `limit` bytes with at least one element each. An empty array is one
    /// portion.
    fileprivate func portions(ofBytes limit: Int, _ size: (Element) -> Int) -> [[Element]] {
        var portions: [[Element]] = []
        var begin = startIndex
        var sum = 0
        for index in indices {
            let own = size(self[index])
            if sum + own > limit, index > begin {
                portions.append(Array(self[begin..<index]))
                begin = index
                sum = 0
            }
            sum += own
        }
        portions.append(Array(self[begin...]))
        return portions
    }
}
