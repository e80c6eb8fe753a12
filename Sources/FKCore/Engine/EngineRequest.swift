import FKMiddleware

/// The six verbs a task understands. What each does in each state is decided by `StateMachine`.
public enum Verb: String, Codable, Sendable, CaseIterable, Hashable {
    /// Queue again: cancel, error -> idle.
    case action
    /// action, idle -> suspend; bytes are kept.
    case suspend
    /// suspend -> action, or idle while all slots are taken.
    case resume
    /// action, suspend, idle, error -> cancel; unfinished bytes are dropped.
    case cancel
    /// error, cancel -> idle, with a fresh count of attempts.
    case retry
    /// Forget the task and delete every file it wrote, in any state.
    case trash
}

/// Which tasks a verb is meant for.
public enum TaskSelector: Codable, Sendable, Hashable, ExpressibleByStringLiteral {
    /// Every task of that URL: usually one, more where it has several destinations.
    case url(String)
    /// One task.
    case id(TaskID)
    /// The members of the barrel of that name.
    case barrel(String)
    /// Every task of the work path.
    case all

    /// `"https://…"` stands for `.url`.
    public init(stringLiteral value: String) { self = .url(value) }

    /// URLs and names of barrels are compared by their bytes: canonically equivalent ones are two.
    public static func == (one: TaskSelector, other: TaskSelector) -> Bool {
        switch (one, other) {
        case (.url(let one), .url(let other)), (.barrel(let one), .barrel(let other)): one.isExactly(other)
        case (.id(let one), .id(let other)): one == other
        case (.all, .all): true
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .url(let text), .barrel(let text): ExactText(text).hash(into: &hasher)
        case .id(let id): id.hash(into: &hasher)
        case .all: break
        }
    }
}

/// What a verb did to one task. A verb that does not apply changes nothing and says so.
public struct VerbResult: Codable, Sendable, Hashable {
    /// The task.
    public var id: TaskID
    /// The URL the task was built with, percent-encoded.
    public var url: String
    /// What was asked for.
    public var verb: Verb
    /// The state before the verb.
    public var before: DownloadState
    /// The state after it: `before` where nothing was changed, `.unknown` for a task that was trashed.
    public var after: DownloadState
    /// False when the verb does not apply in that state.
    public var applied: Bool
    /// One sentence for a person: "suspended, 12 MB kept", "is complete already: nothing to resume".
    public var note: String

    /// For tests of code that reads results.
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

/// Settings of a barrel that its later members inherit.
package struct BarrelOptions: Codable, Sendable, Hashable {
    package var directory: String?
    package var options: TaskOptions?
    /// Bytes a second over all members together, above 0; nil is no limit.
    package var rateLimit: Int64?
    package init(directory: String? = nil, options: TaskOptions? = nil, rateLimit: Int64? = nil) {
        self.directory = directory
        self.options = options
        self.rateLimit = rateLimit
    }
}

/// What a process may ask of the engine of a work path: directly when it owns the engine, else through the mailbox.
package enum EngineRequest: Codable, Sendable, Hashable {
    /// Make tasks, or find them again when they exist, optionally as members of a barrel, and queue them.
    /// `run` lets them start in an engine that runs only chosen tasks.
    case add(tasks: [TaskDescription], barrel: String?, run: Bool)
    case verb(Verb, TaskSelector)
    /// What a verb or a toggle comes to, written down before it is carried out: a second time then changes nothing.
    case chosen([VerbChoice])
    /// Suspend what runs or waits, resume or queue again what does not.
    case toggle(TaskSelector)
    /// A nil value removes the pair.
    case setAttributes(TaskSelector, [String: String?])
    case markUsed(TaskSelector)
    case createBarrel(name: String, options: BarrelOptions)
    case removeFromBarrel(name: String, urls: [String])
    /// Forget the group; its tasks stay.
    case deleteBarrel(name: String)
    /// Let these waiting tasks start.
    case run(TaskSelector)
    case setLimits(maxAction: Int?, rateLimit: Int64?)
    /// Changes the rate limit of all tasks, or of a barrel's; it lasts until it is changed. Nil or 0 is no limit.
    case limit(rate: Int64?, barrel: String?)
    /// Which limits are in force.
    case limits
    /// An `add` or a `run` of a command that has limits for its own tasks.
    indirect case limited(OwnLimits, EngineRequest)

    /// The same in requests of so many tasks at most.
    package func portions(of count: Int) -> [EngineRequest] {
        if case .limited(let limits, let request) = self {
            return request.portions(of: count).map { .limited(limits, $0) }
        }
        guard case .add(let tasks, let barrel, let run) = self, tasks.count > count else { return [self] }
        return stride(from: 0, to: tasks.count, by: count).map {
            .add(tasks: Array(tasks[$0..<min($0 + count, tasks.count)]), barrel: barrel, run: run)
        }
    }

    /// The same in requests that fit into the mailbox.
    package var messages: [EngineRequest] {
        if case .limited(let limits, let request) = self { return request.messages.map { .limited(limits, $0) } }
        guard case .add(let tasks, let barrel, let run) = self else { return [self] }
        return tasks.portions(ofBytes: 16 << 20, \.messageSize).map { .add(tasks: $0, barrel: barrel, run: run) }
    }
}

/// A verb for one task.
package struct VerbChoice: Codable, Sendable, Hashable {
    package var id: TaskID
    package var verb: Verb
    package init(id: TaskID, verb: Verb) {
        self.id = id
        self.verb = verb
    }
}

package enum EngineReply: Codable, Sendable, Hashable {
    /// What became of each task of `add`, in order.
    case added([Added])
    case verbs([VerbResult])
    case done(note: String)
    case limits(LimitsReport)
    case failed(DownloadError)

    package struct Added: Codable, Sendable, Hashable {
        package var id: TaskID
        package var state: DownloadState
        /// False when the task was there already.
        package var isNew: Bool
        /// Set when this task could not be made.
        @Seldom package var error: DownloadError?
        package init(id: TaskID, state: DownloadState, isNew: Bool, error: DownloadError? = nil) {
            self.id = id
            self.state = state
            self.isNew = isNew
            self.error = error
        }
    }
}

extension EngineReply {
    /// The answer to several portions of one request.
    ///
    /// - Throws: `.corruptInfo` for answers of different kinds.
    init(pages: [EngineReply]) throws {
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

    /// The same as answers that take about so many bytes each.
    func pages(ofBytes size: Int) -> [EngineReply] {
        switch self {
        case .added(let list):
            list.portions(ofBytes: size) { 200 + ($0.error?.messageSize ?? 0) }.map(EngineReply.added)
        case .verbs(let list):
            list.portions(ofBytes: size) { 300 + 2 * ($0.url.utf8.count + $0.note.utf8.count) }.map(EngineReply.verbs)
        case .done, .limits, .failed: [self]
        }
    }
}

extension DownloadError {
    /// About as many bytes as it takes in a message.
    fileprivate var messageSize: Int {
        200 + 2 * (message.utf8.count + (url?.utf8.count ?? 0) + (underlying?.utf8.count ?? 0))
    }
}

extension TaskDescription {
    /// About as many bytes as it takes in a message: JSON writes a slash as two.
    fileprivate var messageSize: Int {
        var size = 400 + 2 * (url.utf8.count + (directory?.utf8.count ?? 0) + (fileName?.utf8.count ?? 0))
        for mirror in mirrors { size += 2 * mirror.utf8.count + 4 }
        for (name, value) in attributes { size += 2 * (name.utf8.count + value.utf8.count) + 8 }
        for field in options.headers ?? [] { size += 2 * (field.name.utf8.count + field.value.utf8.count) + 40 }
        for name in options.secretHeaders ?? [] { size += 2 * name.utf8.count + 4 }
        return size + 2 * (options.proxy?.utf8.count ?? 0)
    }
}

extension Array {
    /// In order, each of at least one element and of about so many bytes; an empty array is one portion.
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
