import FKMiddleware

/// Decides what happens to an existing task that is requested again, by `Builder.prepare`, `fk get` or `fk barrel
/// add`.
///
/// The request contains a whole set of options, which replaces the stored one: options left out are reset. `resume`,
/// `retry` and `fk run` contain no options and keep the stored ones. Folder and name are part of the identity: with
/// others it is another task.
///
/// | state | file | asked with | then |
/// | --- | --- | --- | --- |
/// | waiting | | the same options | no change |
/// | waiting | | other options | it is queued anew with a fresh count of attempts |
/// | running | | the same options | no change |
/// | running | | other limits, checksum, signature, attempts, connections, `existing` | the running attempt applies them |
/// | running | | no digest, and the stored bytes need one | a new attempt starts at byte 0 |
/// | running | | other options | a new attempt starts at once; bytes are kept if the server serves ranges |
/// | suspended, cancelled, failed, prepared | | any options | it is queued |
/// | complete | its own | a checksum or a signature | the file is compared now |
/// | complete | its own | a limit it exceeds | refused |
/// | complete | its own | other options | stored for the next fetch; the file and its checksum stay |
/// | complete | another's, kept by `.skip` | `.skip` | as with its own file |
/// | complete | another's, kept by `.skip` | other options | fetched |
/// | complete | missing | any options | fetched |
/// | any | | another name, if the name is not part of its identity | refused |
package enum KnownTaskRules {
    /// The finished file of a complete task.
    package enum File: Sendable, Hashable, CaseIterable {
        /// The task wrote it.
        case own
        /// It existed before and counts as the result (`ExistingFilePolicy.skip`).
        case foreign
        /// It is missing, or differs from the one in the record.
        case gone
    }

    /// What follows after the new options are stored.
    package enum Effect: Sendable, Hashable {
        /// Nothing changes.
        case nothing
        /// The running attempt applies the options.
        case adjust
        /// The running attempt stops with its bytes kept, and the next one starts.
        case restart
        /// A waiting task gets a new place in the queue.
        case requeue
        /// Same as the verbs `resume` and `retry`.
        case queue
        /// The finished file is compared with the request's checksum and signature first. If it differs, nothing is stored.
        case compare
        /// The task discards its finished file from the record and is queued.
        case fetchAgain
    }

    /// Decides for one task.
    ///
    /// - Parameters:
    ///   - length: the length of the finished file in bytes; nil if there is none.
    /// - Returns: the description to store, and the effect.
    /// - Throws: `.invalidArgument` for a name that cannot change, `.tooLarge` for a finished file over the limit,
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
        case .suspend, .cancel, .error: return (task, .queue)
        case .complete: return try complete(task, known, file, length)
        case .unknown:
            throw DownloadError(.cancelled, "The task is just being trashed: add it again.", isRetryable: true)
        }
    }

    /// What changed settings mean for a running task.
    package static func running(_ known: TaskDescription, _ task: TaskDescription) -> Effect {
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
        if let size = task.options.size, let length, length != size {
            throw DownloadError(
                .checksumMismatch,
                "The finished file has \(length) bytes, and the one expected has \(size). It stays as it is: trash the task "
                    + "to fetch it again.", url: URLMasking.mask(known.url))
        }
        if task.options.checksum != nil || task.options.signature != nil { return (task, .compare) }
        // The known checksum describes this file and proves it after a power cut.
        var task = task
        if file == .own, let checksum = known.options.checksum {
            task.options.checksum = checksum
            task.options.list = known.options.list
        }
        if file == .own, let signature = known.options.signature { task.options.signature = signature }
        if file == .own, task.options.pieces == nil, let pieces = known.options.pieces { task.options.pieces = pieces }
        return (task, .nothing)
    }
}

extension TaskOptions {
    /// The options without those that a running attempt can apply.
    fileprivate var onTheWire: TaskOptions {
        var options = self
        options.checksum = nil
        options.signature = nil
        options.pieces = nil
        options.list = nil
        options.rateLimit = nil
        options.minFree = nil
        options.maxAttempts = nil
        options.connections = nil
        options.existing = nil
        options.deadline = nil
        options.reuse = nil
        return options
    }
}
