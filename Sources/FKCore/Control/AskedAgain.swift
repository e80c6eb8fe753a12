import FKMiddleware

/// What a task that is known becomes when it is asked for again, by `Builder.prepare`, `fk get` or `fk barrel add`.
///
/// The asking carries its whole set of options, and that set replaces the former: what it leaves out is reset.
/// `resume`, `retry` and `fk run` ask for nothing and keep what is stored. Folder and name are the task's identity:
/// with others it is another task.
///
/// | state | file | asked with | then |
/// | --- | --- | --- | --- |
/// | waiting | | the same | nothing |
/// | waiting | | anything else | it queues at once with a fresh count of attempts |
/// | running | | the same | nothing |
/// | running | | other limits, checksum, attempts, connections, policy for existing files | they act in the running attempt |
/// | running | | anything else | a new attempt begins at once; bytes stay where the server serves ranges |
/// | suspended, cancelled, failed, prepared | | anything | it queues |
/// | complete | its own | a checksum | the file is compared now |
/// | complete | its own | a limit it exceeds | refused |
/// | complete | its own | anything else | stored for the next fetch; the file and its checksum stay |
/// | complete | another's, kept by `.skip` | `.skip` | as its own |
/// | complete | another's, kept by `.skip` | anything else | fetched |
/// | complete | gone | anything | fetched |
/// | any | | another name, where the name is not part of its identity | refused |
package enum AskedAgain {
    /// The finished file of a complete task.
    package enum File: Sendable, Hashable, CaseIterable {
        case own
        /// It was there before and counts as the result (`ExistingFilePolicy.skip`).
        case foreign
        /// There is none, or not the one the record tells of.
        case gone
    }

    /// What follows once the new options are stored.
    package enum Effect: Sendable, Hashable {
        case nothing
        /// The running attempt takes them over.
        case adjust
        /// The running attempt ends with its bytes kept, and the next one begins.
        case restart
        /// A waiting task gets its place in the queue anew.
        case requeue
        /// As the verbs `resume` and `retry` do.
        case queue
        /// The finished file is compared with this first; nothing is stored where it differs.
        case compare(Checksum)
        /// The task forgets its finished file and queues.
        case fetchAgain
    }

    /// - Parameters:
    ///   - length: of the finished file.
    /// - Returns: the description to store, and what follows.
    /// - Throws: `.invalidArgument` for a name that cannot change, `.tooLarge` for a finished file beyond the limit,
    ///   `.cancelled` for a task that is being trashed.
    package static func decide(
        _ known: TaskDescription, in state: DownloadState, file: File, length: Int64?, asked: TaskDescription
    ) throws(DownloadError) -> (task: TaskDescription, effect: Effect) {
        if let name = asked.fileName, let old = known.fileName, !name.isExactly(old) {
            throw DownloadError(
                .invalidArgument,
                "The name of a known task cannot change from \"\(Escaping.visible(old))\" to "
                    + "\"\(Escaping.visible(name))\": trash the task first, or name a folder of its own.",
                url: URLMasking.mask(known.url))
        }
        var task = known
        task.options = asked.options
        task.mirrors = asked.mirrors
        task.type = asked.type
        task.priority = asked.priority
        if task.fileName == nil { task.fileName = asked.fileName }
        switch state {
        case .idle: return (task, task == known ? .nothing : .requeue)
        case .action: return (task, running(known, task))
        case .prepare, .suspend, .cancel, .error: return (task, .queue)
        case .complete: return try complete(task, known, file, length)
        case .unknown:
            throw DownloadError(.cancelled, "The task is just being trashed: add it again.", isRetryable: true)
        }
    }

    private static func running(_ known: TaskDescription, _ task: TaskDescription) -> Effect {
        if task == known { return .nothing }
        let isSameOnTheWire =
            task.mirrors == known.mirrors && task.options.onTheWire == known.options.onTheWire
        return isSameOnTheWire ? .adjust : .restart
    }

    private static func complete(
        _ task: TaskDescription, _ known: TaskDescription, _ file: File, _ length: Int64?
    ) throws(DownloadError) -> (TaskDescription, Effect) {
        guard file == .own || file == .foreign && task.options.existing == .skip else { return (task, .fetchAgain) }
        if let maxSize = task.options.maxSize, let length, length > maxSize {
            throw DownloadError(
                .tooLarge, "The finished file has \(length) bytes, and \(maxSize) are allowed. It stays as it is.",
                url: URLMasking.mask(known.url))
        }
        if let checksum = task.options.checksum { return (task, .compare(checksum)) }
        // It is known of this file, and proves it after a power cut.
        var task = task
        if file == .own, let checksum = known.options.checksum { task.options.checksum = checksum }
        return (task, .nothing)
    }
}

extension TaskOptions {
    /// Without what an attempt reads as it goes.
    fileprivate var onTheWire: TaskOptions {
        var options = self
        options.checksum = nil
        options.rateLimit = nil
        options.minFree = nil
        options.maxAttempts = nil
        options.connections = nil
        options.existing = nil
        return options
    }
}
