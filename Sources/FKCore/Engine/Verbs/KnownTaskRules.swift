import FKMiddleware

/// Decides what happens to an existing task that is requested again, by `Downloader.add`, `download`, `fk get` or `fk barrel
/// add`.
///
/// `TaskDescription.joined` decides what is stored: a command replaces the orders, a call of the library those that it names, and
/// facts such as a digest stay. `resume`, `retry` and `fk run` name nothing. Folder and name are part of the identity: with
/// others it is another task.
///
/// | state | file | asked with | then |
/// | --- | --- | --- | --- |
/// | waiting | | nothing new | no change |
/// | waiting | | other options | it is queued anew with a fresh count of attempts |
/// | running | | nothing new | no change |
/// | running | | other limits, checksum, signature, attempts, connections, `existing` | the running attempt applies them |
/// | running | | no digest, and the stored bytes need one | a new attempt starts at byte 0 |
/// | running | | other options | a new attempt starts at once; bytes are kept if the server serves ranges |
/// | suspended, cancelled, failed | | any options | it is queued |
/// | complete | its own | a checksum, a signature or digests of pieces | the file is compared now |
/// | complete | its own | a limit it exceeds | refused |
/// | complete | its own | other options | stored for the next fetch; the file and its checksum stay |
/// | complete | another's, kept by `.skip` | `.skip` | as with its own file |
/// | complete | another's, kept by `.skip` | other options | fetched |
/// | complete | missing | any options | fetched |
/// | complete | its own | another digest, entity tag or length, of the task's list as it is now | fetched; the file stays until the new one is whole |
/// | complete | its own | another entity tag or length, and no digest | refused |
/// | any but complete | | another digest than the stored one | refused, unless it is of the task's list |
/// | any | | another name, if the name is not part of its identity | refused |
///
/// With `TaskWords.keepsState`, as `Downloader.add` asks with `queued: false`, nothing is queued or fetched: the options are stored,
/// and the state stays. Waiting and running tasks take the options as above.
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
        /// The finished file is compared with the request's checksum, signature and digests of pieces first. If it differs, nothing is stored.
        case compare
        /// The task discards its finished file from the record and is queued.
        case fetchAgain
        /// The list has another version of the file, which is fetched. The finished file stays until it is whole.
        case renew
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
                "The name of a known task cannot change from \"\(old.visible)\" to "
                    + "\"\(name.visible)\": trash the task first, or name a folder of its own.",
                url: known.url.masked)
        }
        if state == .complete { return try complete(known, asked, file, length) }
        var task = try known.joined(with: asked)
        if task.fileName == nil { task.fileName = asked.fileName }
        switch state {
        case .idle: return (task, task == known ? .nothing : .requeue)
        case .action: return (task, running(known, task))
        case .suspend, .cancel, .error, .complete:
            return (task, asked.words.contains(.keepsState) ? .nothing : .queue)
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
        _ known: TaskDescription, _ asked: TaskDescription, _ file: File, _ length: Int64?
    ) throws(DownloadError) -> (TaskDescription, Effect) {
        let proof = asked.hasOptions && asked.options.hasProof
        var task = try known.joined(with: asked, isProven: proof && file != .gone)
        if task.fileName == nil { task.fileName = asked.fileName }
        guard file == .own || file == .foreign && task.options.existing == .skip else {
            task = try known.joined(with: asked)
            if task.fileName == nil { task.fileName = asked.fileName }
            return (task, asked.words.contains(.keepsState) ? .nothing : .fetchAgain)
        }
        if let maxSize = task.options.maxSize, let length, length > maxSize {
            throw DownloadError(
                .tooLarge, "The finished file has \(length) bytes, and \(maxSize) are allowed. It stays as it is.",
                url: known.url.masked)
        }
        let isNew = known.isNewVersion(asked)
        let hasOther =
            asked.optionsBox?.value.checksum.map { new in
                known.optionsBox?.value.checksum.map { $0.algorithm == new.algorithm && $0 != new } ?? false
            } ?? false
        let hasOtherLength = length.flatMap { length in task.options.size.map { $0 != length } } ?? false
        let hasOtherTag =
            asked.optionsBox?.value.entityTag.map { new in
                known.optionsBox?.value.entityTag.map { Validator.opaque($0) != Validator.opaque(new) } ?? false
            } ?? false
        if isNew, hasOther || hasOtherLength || hasOtherTag { return (task, .renew) }
        if let size = task.options.size, let length, hasOtherLength {
            throw DownloadError(
                .checksumMismatch,
                "The finished file has \(length) bytes, and the one expected has \(size). It stays as it is"
                    + (asked.attributes[ListedVersion.attribute] == nil ? ": trash the task to fetch it again." : "."),
                url: known.url.masked,
                remedy: asked.attributes[ListedVersion.attribute] == nil ? nil : .readListAgain)
        }
        // An equal digest proves that only the tag is another one.
        if hasOtherTag, !proof {
            throw DownloadError(
                .changedOnServer, "The list names another version of the finished file, which stays as it is.",
                url: known.url.masked, remedy: .readListAgain)
        }
        return (task, proof ? .compare : .nothing)
    }
}

extension TaskOptions {
    /// True if something says what the bytes of the file are.
    package var hasProof: Bool { checksum != nil || signature != nil || pieces != nil }

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
        options.runSeconds = nil
        options.reuse = nil
        return options
    }
}
