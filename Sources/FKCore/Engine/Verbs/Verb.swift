import FKMiddleware

/// The verbs for tasks, as `Control` has them.
public enum Verb: String, Codable, Sendable, CaseIterable, Hashable {
    /// Queues a cancelled or failed task: cancel, error -> idle.
    case action
    /// Stops a task and keeps its bytes: idle, action -> suspend.
    case suspend
    /// Queues a suspended task: suspend -> idle. It runs as soon as a slot is free.
    case resume
    /// Stops a task and deletes its unfinished bytes: idle, action, suspend, error -> cancel.
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
    package init(
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

/// A verb for one task.
package struct VerbChoice: Codable, Sendable, Hashable {
    package var id: TaskID
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

/// A finished file of an `add` request, to be compared with the checksum and the signature that the request contains.
package struct DigestCheck: Codable, Sendable, Hashable {
    /// The position among the results of the request.
    package var position: Int
    /// The description in the request.
    package var task: TaskDescription
    /// The barrel that the task has joined for the request; nil if it was a member before.
    package var barrel: String?
}

extension VerbResult: CustomStringConvertible {
    /// The verb, the note, the id and the URL, with the secrets of the URL masked.
    public var description: String { "VerbResult(\(verb), \(note), \(id.short), \(url.masked))" }
}
