import FKMiddleware
import Foundation

/// The six verbs, as `StateMachine` decides them.
extension Engine {
    /// - Parameter forAll: `resume` then queues cancelled and failed tasks again as well (FKDownloader's resumeAll).
    package func apply(_ verb: Verb, to selector: TaskSelector, forAll: Bool = false) async throws -> [VerbResult] {
        try await apply(to: selector, forAll: forAll) { _ in verb }
    }

    /// - Parameter choose: the verb for a task in that state; asked for all tasks before the first one changes.
    func apply(
        to selector: TaskSelector, forAll: Bool = false, choose: (DownloadState) -> Verb
    ) async throws -> [VerbResult] {
        try beginOperation()
        defer { endOperation() }
        let entries = try find(selector)
        if entries.isEmpty, selector != .all {
            throw DownloadError(.notFound, "There is no task \(selector.name).")
        }
        let chosen = entries.map { (entry: $0, verb: choose($0.standing)) }
        // What is about to be stopped must not get the slot of another one that is.
        for (entry, verb) in chosen where [.suspend, .cancel, .trash].contains(verb) && entry.attempt == nil {
            ready.remove(entry.id)
        }
        // A middleware may wait for this verb, and its attempt for the middleware: nobody waits for one in here.
        var waits = !MiddlewareCall.isInside(ObjectIdentifier(self), .chain)
        var results: [VerbResult] = []
        for (entry, verb) in chosen {
            if entry.isRecovered { write(entry) }
            results.append(await apply(verb, to: entry, forAll: forAll, waits: &waits))
        }
        schedule()
        return results
    }

    /// - Parameter waits: whether to wait for middlewares; set to false once one did not return.
    private func apply(
        _ verb: Verb, to entry: TaskEntry, forAll: Bool, waits: inout Bool
    ) async -> VerbResult {
        let before = entry.standing
        var result = VerbResult(
            id: entry.id, url: entry.record.task.url, verb: verb, before: before, after: before, applied: true, note: ""
        )
        switch StateMachine.decide(verb, in: before, forAll: forAll) {
        case .noOp(let reason):
            result.applied = [.suspend, .cancel].contains(verb) ? await endProof(of: entry) : false
            result.note = result.applied ? "complete: only the comparison of its file has ended" : reason
            return result
        case .to(let after, let effect):
            result.after = after
            result.note = await carryOut(effect, on: entry, to: after, waits: &waits)
        }
        return result
    }

    private func carryOut(
        _ effect: StateMachine.Effect, on entry: TaskEntry, to state: DownloadState, waits: inout Bool
    ) async -> String {
        if effect == .queue {
            entry.record.attempts = 0
            entry.urlIndex = 0
            entry.workIfAny?.previousError = nil
            queue(entry)
            write(entry)
            return isActive ? "queued" : "queued: it starts with the next run"
        }
        withdraw(entry)
        // First of all: a task that is still idle or running would be started again when its slot becomes free.
        change(entry, to: state)
        if effect == .stopDroppingBytes {
            entry.record.error = nil
            entry.record.waiting = nil
        }
        let attempt = entry.attempt
        let stop: Attempt.Stop = effect == .stopKeepingBytes ? .keepingBytes : .droppingBytes
        if await !stopAttempt(of: entry, stop, patiently: waits) { waits = false }
        if entry.attempt != nil, entry.attempt === attempt { return Self.accepted(effect) }
        switch effect {
        case .queue, .stopKeepingBytes:
            write(entry)
            return "suspended, \(ByteSize.format(entry.received)) kept"
        case .stopDroppingBytes:
            // Somebody may have queued it again meanwhile: what runs then is another attempt.
            guard entry.record.state == state else { return "cancelled, unfinished bytes dropped" }
            removePart(of: entry.record)
            dropBytes(of: entry)
            write(entry)
            return "cancelled, unfinished bytes dropped"
        case .forget:
            // An attempt forgets its task when it ends.
            return attempt?.trashNote ?? forget(entry)
        }
    }

    /// What is said while a middleware is at work for the task.
    private static func accepted(_ effect: StateMachine.Effect) -> String {
        let what =
            switch effect {
            case .queue, .stopKeepingBytes: "suspended, its bytes are kept"
            case .stopDroppingBytes: "cancelled, unfinished bytes are dropped"
            case .forget: "forgotten, its files are deleted"
            }
        return "\(what): takes effect when its middleware has returned"
    }

    /// Takes a task out of every queue.
    func withdraw(_ entry: TaskEntry) {
        ready.remove(entry.id)
        alarms.wakes.remove(entry.id)
    }

    private func removePart(of record: TaskRecord) {
        guard let name = record.partName else { return }
        let path = record.task.directory ?? workPath.filesFolder(record.id)
        var status = stat()
        // A folder that is gone is not made again for this.
        guard lstat("\(path)/\(name)", &status) == 0 else { return }
        try? Folder(path: path).removePart(name)
    }

    /// Deletes what this task wrote, and nothing else: a file that was there before, or that is another one by now, stays.
    ///
    /// - Returns: what became of the files.
    private func removeFiles(of record: TaskRecord) -> String {
        var note = "forgotten"
        removePart(of: record)
        if let path = record.path, record.isForeign != true, FileIdentity(path: path) != nil {
            if !record.owns(path) {
                note += "; \(path) stays: it is not the file as this task left it"
            } else if unlink(path) == 0 {
                note += ", deleted \(path)"
            } else if errno != ENOENT {
                note += "; \(path) stays: \(String(cString: strerror(errno)))"
            }
        }
        for file in record.setAside ?? [] { file.remove() }
        let folder = record.task.directory ?? workPath.filesFolder(record.id)
        let name = record.task.fileName ?? FileNameRules.name(url: record.task.url, head: record.response)
        let rejected = "\(folder)/\(FileNameRules.rejectedName(for: name, id: record.id))"
        if record.setAside == nil, record.ownsRejected(rejected) { unlink(rejected) }
        if record.task.directory == nil { rmdir(folder) }
        return note
    }

    /// Deletes the files of a task in state `.unknown`, its info file, and everything in memory.
    ///
    /// - Returns: what became of the files.
    func forget(_ entry: TaskEntry) -> String {
        guard mayWrite else { return "forgotten" }
        let note = removeFiles(of: entry.record)
        unlink(workPath.infoPath(entry.id))
        let barrels = entry.record.barrels
        for name in barrels { leave(entry, barrelNamed: name) }
        entry.isAdmitted = false
        account(entry)
        dropFromMemory(entry)
        taskLimiters[entry.id] = nil
        endListeners(observers.removeAll(.id(entry.id)))
        for name in barrels { endBarrelSequences(name) }
        return note
    }
}

extension TaskSelector {
    /// How messages call the tasks meant.
    package var name: String {
        switch self {
        case .url(let url): URLMasking.mask(url)
        case .id(let id): id.short
        case .barrel(let name): "in barrel \(name)"
        case .all: "at all"
        }
    }
}
