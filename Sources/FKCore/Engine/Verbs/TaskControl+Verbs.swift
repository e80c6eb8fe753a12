import FKMiddleware
import Foundation

/// The verbs, as `StateMachine` decides them.
extension TaskControl {
    /// Chooses the verb for each selected task, before the first one changes.
    package func choose(_ selector: TaskSelector, _ choose: (DownloadState) -> Verb) throws -> [VerbChoice] {
        try ownership.checkOpen()
        return try book.findSome(selector).map { entry in
            let state = entry.verbState
            return VerbChoice(id: entry.id, verb: choose(state), url: entry.record.task.url, chosenIn: state)
        }
    }

    /// Verbs whose tasks have their new states. `finish` waits for the runs that stop.
    struct StartedVerbs {
        /// One result for each task.
        var results: [VerbResult] = []
        /// The runs that stop.
        var stops: [Stop] = []
    }

    /// A run that a verb stops.
    package struct Stop {
        /// The position of the task's result.
        package let position: Int
        package let entry: TaskEntry
        let run: TaskRun
        /// The effect of the verb; nil for a comparison, which only has to end.
        package let effect: StateMachine.Effect?
    }

    /// Changes the states of all tasks and writes them. Nothing else happens in between: a later request finds the new
    /// states, however long the attempts take to end.
    func begin(_ choices: [VerbChoice], forAll: Bool) throws -> StartedVerbs {
        try ownership.checkOpen()
        var started = StartedVerbs()
        started.results.reserveCapacity(choices.count)
        for choice in choices {
            ownership.beat()
            let entry = try book.find(choice.id)
            if let before = choice.performedIn {
                started.results.append(Self.result(of: choice, performedIn: before, on: entry))
            } else if let entry, choice.number ?? entry.record.number == entry.record.number {
                book.writeRecovery(entry)
                begin(choice.verb, entry, forAll: forAll, &started)
                book.unload(choice.id)
            } else {
                let before = choice.verb.isForgetting ? choice.chosenIn : nil
                started.results.append(Self.result(of: choice, performedIn: before ?? .unknown, on: nil))
            }
        }
        barrels.save()
        return started
    }

    private func begin(_ verb: Verb, _ entry: TaskEntry, forAll: Bool, _ started: inout StartedVerbs) {
        let before = entry.verbState
        let position = started.results.count
        var result = VerbResult(
            id: entry.id, url: entry.record.task.url, verb: verb, before: before, after: before, applied: true, note: ""
        )
        defer { started.results.append(result) }
        let undeletable = verb == .trash ? reasonToKeep(entry) : nil
        switch StateMachine.decide(verb, in: before, forAll: forAll) {
        case .noOp where verb == .retry && entry.record.hasLostFile:
            entry.record.endOverwriting()
            fetchAgain(entry)
            result.after = entry.verbState
            result.note = "its file is gone or has another length: queued"
        case .noOp(let reason):
            let run = entry.taskRun
            result.applied = [.suspend, .cancel].contains(verb) ? endProof(of: entry) : false
            result.note = result.applied ? "complete: only the comparison of its file has ended" : reason
            if result.applied, let run {
                started.stops.append(Stop(position: position, entry: entry, run: run, effect: nil))
            }
        case .to where undeletable != nil:
            result.applied = false
            result.note = "\(entry.record.path ?? "") cannot be deleted: \(undeletable ?? ""). The task stays"
        case .to(let after, .queue):
            result.after = after
            queue(entry)
            result.note = schedule.isActive ? "queued" : "queued: it starts with the next run"
        case .to(let after, let effect):
            result.after = after
            schedule.withdraw(entry.id)
            // The state comes first: an idle or running task would start again when its slot is released.
            reporter.change(entry, to: after)
            if effect == .stopDroppingBytes {
                entry.record.drop()
            }
            // Decided now, because a file may get its final name while its run stops.
            entry.kept.hasFinished = effect == .forgetKeepingFile && before == .complete
            entry.kept.hasRenewed = effect == .forgetKeepingFile
            if let run = entry.taskRun {
                run.signalStop(effect == .stopKeepingBytes ? .keepingBytes : .droppingBytes)
                // Written before the run has ended: a kill meanwhile must not lose the verb.
                book.write(entry)
                started.stops.append(Stop(position: position, entry: entry, run: run, effect: effect))
            } else {
                result.note = stopped(entry, effect)
            }
        }
    }

    /// Why the finished file of a task cannot be deleted; nil if it can, or if there is none to delete.
    private func reasonToKeep(_ entry: TaskEntry) -> String? {
        guard entry.verbState == .complete, entry.taskRun == nil, entry.record.isForeign != true,
            let path = entry.record.path, path.existsOnDisk, access(path.folderPart, W_OK) != 0
        else { return nil }
        return String(cString: strerror(errno))
    }

    /// The verbs as they are performed after a kill. Verbs whose effect is on disk only give their results. The others
    /// are repeated: a trash that waits for a run, and changes that the disk refused.
    func remaining(of started: StartedVerbs) -> [VerbChoice] {
        started.results.map { result in
            let entry = result.before == result.after ? nil : book[result.id]
            guard let entry, entry.unsaved.isDirty || !entry.isThere else {
                return VerbChoice(id: result.id, verb: result.verb, performedIn: result.before, url: result.url)
            }
            return VerbChoice(
                id: result.id, verb: result.verb, number: entry.record.number, url: result.url, chosenIn: result.before)
        }
    }

    /// The result of a verb that an earlier engine has performed.
    private static func result(
        of choice: VerbChoice, performedIn before: DownloadState, on entry: TaskEntry?
    ) -> VerbResult {
        var result = VerbResult(
            id: choice.id, url: choice.url ?? entry?.record.task.url ?? "", verb: choice.verb, before: before,
            after: before,
            applied: false, note: "")
        switch StateMachine.decide(choice.verb, in: before) {
        case .noOp(let reason): result.note = reason
        case .to(let after, let effect):
            result.after = after
            result.applied = true
            result.note =
                switch effect {
                case .queue: "queued"
                case .stopKeepingBytes: suspendedNote(entry?.received ?? 0)
                case .stopDroppingBytes: cancelledNote
                case .forget, .forgetKeepingFile: "forgotten"
                }
        }
        return result
    }

    private static func suspendedNote(_ received: Int64) -> String {
        "suspended, \(ByteSize.format(received)) kept"
    }

    private static let cancelledNote = "cancelled, unfinished bytes dropped"

    /// Waits until the stopped runs have ended. It waits for a running middleware only where that is allowed.
    func finish(
        _ started: StartedVerbs, isolation: isolated (any Actor)? = #isolation
    ) async -> [VerbResult] {
        var results = started.results
        // Called from a middleware, this must not wait for one: the attempt may wait for that middleware.
        var waits = !isInChain
        for stop in started.stops {
            if waits && !ownership.isClosing || !stop.run.isInMiddleware { waits = await stop.run.ended() && waits }
            guard let effect = stop.effect else { continue }
            if stop.entry.run === stop.run {
                results[stop.position].note = Self.accepted(effect)
            } else {
                let note = stop.run.forgottenNote
                results[stop.position].note = effect.isForgetting ? note : stopped(stop.entry, effect)
            }
        }
        if !started.stops.isEmpty { barrels.save() }
        return results
    }

    /// Performs the rest of a verb once no attempt of the task runs.
    ///
    /// - Returns: the note of the verb's result.
    private func stopped(_ entry: TaskEntry, _ effect: StateMachine.Effect) -> String {
        switch effect {
        case .queue, .stopKeepingBytes:
            book.write(entry)
            return Self.suspendedNote(entry.received)
        case .stopDroppingBytes:
            // A task that was queued again has a newer attempt, whose bytes are kept.
            guard entry.record.state == .cancel, entry.run == nil else { return Self.cancelledNote }
            entry.record.removePart(of: book.workPath, book.owner)
            dropBytes(of: entry)
            book.write(entry)
            return Self.cancelledNote
        case .forget, .forgetKeepingFile:
            // An attempt forgets its task itself when it ends.
            return reporter.remove(entry)
        }
    }

    /// The note of a verb whose task still has a running middleware.
    private static func accepted(_ effect: StateMachine.Effect) -> String {
        let what =
            switch effect {
            case .queue, .stopKeepingBytes: "suspended, its bytes are kept"
            case .stopDroppingBytes: "cancelled, unfinished bytes are dropped"
            case .forget: "forgotten, its files are deleted"
            case .forgetKeepingFile: "forgotten, its unfinished bytes are deleted"
            }
        return "\(what): takes effect when its middleware has returned"
    }
}

extension Verb {
    fileprivate var isForgetting: Bool { self == .forget || self == .trash }
}

extension StateMachine.Effect {
    fileprivate var isForgetting: Bool { self == .forget || self == .forgetKeepingFile }
}

extension TaskSelector {
    /// The selected tasks in messages.
    package var name: String {
        switch kind {
        case .url(let url): url.masked
        case .id(let id): id.short
        case .barrel(let name): "in barrel \(name)"
        case .state(let state): "in state \(state.rawValue)"
        case .all: "at all"
        }
    }

    /// True if the selector may match no task without an error.
    var mayBeEmpty: Bool {
        switch kind {
        case .state, .all: true
        case .url, .id, .barrel: false
        }
    }
}
