import FKMiddleware
import Foundation

/// The six verbs, as `StateMachine` decides them.
extension Engine {
    /// - Parameter forAll: `resume` then queues cancelled and failed tasks again as well (FKDownloader's resumeAll).
    package func apply(_ verb: Verb, to selector: TaskSelector, forAll: Bool = false) async throws -> [VerbResult] {
        try await apply(to: selector, forAll: forAll) { _ in verb }
    }

    /// - Parameter choose: the verb for a task in that state.
    func apply(
        to selector: TaskSelector, forAll: Bool = false, choose: (DownloadState) -> Verb
    ) async throws -> [VerbResult] {
        await afterLeftovers()
        try beginOperation()
        defer { endOperation() }
        return await finish(try begin(self.choose(selector, choose), forAll: forAll))
    }

    /// Which verb each task is given. Asked for all tasks before the first one changes.
    func choose(_ selector: TaskSelector, _ choose: (DownloadState) -> Verb) throws -> [VerbChoice] {
        try checkOpen()
        let entries = try find(selector)
        if entries.isEmpty, selector != .all {
            throw DownloadError(.notFound, "There is no task \(selector.name).")
        }
        return entries.map { VerbChoice(id: $0.id, verb: choose($0.standing)) }
    }

    /// Verbs that have changed the states of all their tasks. `finish` waits for what is being stopped.
    struct BegunVerbs {
        var results: [VerbResult] = []
        var stops: [Stop] = []
    }

    struct Stop {
        let place: Int
        let entry: TaskEntry
        let attempt: Attempt
        /// Nil for a comparison, with whose end all is done.
        let effect: StateMachine.Effect?
    }

    /// Decides and changes the states of all tasks at once: nothing else comes in between, and a later request finds what
    /// this one means, however long the attempts take to end.
    func begin(_ choices: [VerbChoice], forAll: Bool) throws -> BegunVerbs {
        try checkOpen()
        var begun = BegunVerbs()
        begun.results.reserveCapacity(choices.count)
        for choice in choices {
            beat()
            if let entry = try find(choice.id) {
                if entry.isRecovered { write(entry) }
                begin(choice.verb, entry, forAll: forAll, &begun)
            } else {
                begun.results.append(
                    VerbResult(
                        id: choice.id, url: "", verb: choice.verb, before: .unknown, after: .unknown, applied: false,
                        note: "is gone already"))
            }
        }
        saveBarrels()
        schedule()
        return begun
    }

    private func begin(_ verb: Verb, _ entry: TaskEntry, forAll: Bool, _ begun: inout BegunVerbs) {
        let before = entry.standing
        let place = begun.results.count
        var result = VerbResult(
            id: entry.id, url: entry.record.task.url, verb: verb, before: before, after: before, applied: true, note: ""
        )
        defer { begun.results.append(result) }
        switch StateMachine.decide(verb, in: before, forAll: forAll) {
        case .noOp(let reason):
            let attempt = entry.attempt
            result.applied = [.suspend, .cancel].contains(verb) ? endProof(of: entry) : false
            result.note = result.applied ? "complete: only the comparison of its file has ended" : reason
            if result.applied, let attempt {
                begun.stops.append(Stop(place: place, entry: entry, attempt: attempt, effect: nil))
            }
        case .to(let after, .queue):
            result.after = after
            result.note = queueAgain(entry)
        case .to(let after, let effect):
            result.after = after
            withdraw(entry)
            // First of all: a task that is still idle or running would be started again when its slot becomes free.
            change(entry, to: after)
            if effect == .stopDroppingBytes {
                entry.record.error = nil
                entry.record.waiting = nil
            }
            if let attempt = signalStop(of: entry, effect == .stopKeepingBytes ? .keepingBytes : .droppingBytes) {
                begun.stops.append(Stop(place: place, entry: entry, attempt: attempt, effect: effect))
            } else {
                result.note = stopped(entry, effect)
            }
        }
    }

    /// Waits until what was stopped has ended, and for a middleware that is at work for it while that may be.
    func finish(_ begun: BegunVerbs) async -> [VerbResult] {
        var results = begun.results
        // A middleware may wait for this verb, and its attempt for the middleware: nobody waits for one in here.
        var waits = !MiddlewareCall.isInside(ObjectIdentifier(self), .chain)
        for stop in begun.stops {
            if waits && !isClosing || !stop.attempt.isInMiddleware { waits = await stop.attempt.ended() && waits }
            guard let effect = stop.effect else { continue }
            if stop.entry.attempt === stop.attempt {
                results[stop.place].note = Self.accepted(effect)
            } else {
                results[stop.place].note = effect == .forget ? stop.attempt.trashNote : stopped(stop.entry, effect)
            }
        }
        guard !begun.stops.isEmpty else { return results }
        saveBarrels()
        schedule()
        return results
    }

    private func queueAgain(_ entry: TaskEntry) -> String {
        entry.record.attempts = 0
        entry.urlIndex = 0
        entry.workIfAny?.previousError = nil
        queue(entry)
        write(entry)
        return isActive ? "queued" : "queued: it starts with the next run"
    }

    /// What is left to do once no attempt of the task runs any more.
    private func stopped(_ entry: TaskEntry, _ effect: StateMachine.Effect) -> String {
        switch effect {
        case .queue, .stopKeepingBytes:
            write(entry)
            return "suspended, \(ByteSize.format(entry.received)) kept"
        case .stopDroppingBytes:
            // Somebody may have queued it again meanwhile: what runs then is another attempt.
            guard entry.record.state == .cancel, entry.attempt == nil else {
                return "cancelled, unfinished bytes dropped"
            }
            removePart(of: entry.record)
            dropBytes(of: entry)
            write(entry)
            return "cancelled, unfinished bytes dropped"
        case .forget:
            // An attempt forgets its task itself when it ends.
            return forget(entry)
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
