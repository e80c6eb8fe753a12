import FKMiddleware
import Foundation

/// The verbs, as `StateMachine` decides them.
extension TaskControl {
    /// Which verb each task is given. Asked for all tasks before the first one changes.
    func choose(_ selector: TaskSelector, _ choose: (DownloadState) -> Verb) throws -> [VerbChoice] {
        try tenure.checkOpen()
        return try book.findSome(selector).map { VerbChoice(id: $0.id, verb: choose($0.standing)) }
    }

    /// Verbs that have changed the states of all their tasks. `finish` waits for what is being stopped.
    struct BegunVerbs {
        var results: [VerbResult] = []
        var stops: [Stop] = []
    }

    struct Stop {
        let place: Int
        let entry: TaskEntry
        let run: TaskRun
        /// Nil for a comparison, with whose end all is done.
        let effect: StateMachine.Effect?
    }

    /// Decides and changes the states of all tasks at once: nothing else comes in between, and a later request finds what
    /// this one means, however long the attempts take to end.
    func begin(_ choices: [VerbChoice], forAll: Bool) throws -> BegunVerbs {
        try tenure.checkOpen()
        var begun = BegunVerbs()
        begun.results.reserveCapacity(choices.count)
        for choice in choices {
            tenure.beat()
            if let entry = try book.find(choice.id) {
                book.writeRecovery(entry)
                begin(choice.verb, entry, forAll: forAll, &begun)
            } else {
                begun.results.append(
                    VerbResult(
                        id: choice.id, url: "", verb: choice.verb, before: .unknown, after: .unknown, applied: false,
                        note: "is gone already"))
            }
        }
        barrels.save()
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
            let run = entry.run
            result.applied = [.suspend, .cancel].contains(verb) ? endProof(of: entry) : false
            result.note = result.applied ? "complete: only the comparison of its file has ended" : reason
            if result.applied, let run {
                begun.stops.append(Stop(place: place, entry: entry, run: run, effect: nil))
            }
        case .to(let after, .queue):
            result.after = after
            queue(entry)
            result.note = schedule.isActive ? "queued" : "queued: it starts with the next run"
        case .to(let after, let effect):
            result.after = after
            schedule.withdraw(entry.id)
            // First of all: a task that is still idle or running would be started again when its slot becomes free.
            reporter.change(entry, to: after)
            if effect == .stopDroppingBytes {
                entry.record.drop()
            }
            // Decided now: the file of a run that is being stopped has its final name before the task is complete.
            entry.keepsFile = effect == .forgetKeepingFile && before == .complete
            if let run = entry.run {
                run.signalStop(effect == .stopKeepingBytes ? .keepingBytes : .droppingBytes)
                begun.stops.append(Stop(place: place, entry: entry, run: run, effect: effect))
            } else {
                result.note = stopped(entry, effect)
            }
        }
    }

    /// Waits until what was stopped has ended, and for a middleware that is at work for it while that may be.
    func finish(
        _ begun: BegunVerbs, isolation: isolated (any Actor)? = #isolation
    ) async -> [VerbResult] {
        var results = begun.results
        // A middleware may wait for this verb, and its attempt for the middleware: nobody waits for one in here.
        var waits = !isInChain
        for stop in begun.stops {
            if waits && !tenure.isClosing || !stop.run.isInMiddleware { waits = await stop.run.ended() && waits }
            guard let effect = stop.effect else { continue }
            if stop.entry.run === stop.run {
                results[stop.place].note = Self.accepted(effect)
            } else {
                let note = stop.run.forgottenNote
                results[stop.place].note = effect.isForgetting ? note : stopped(stop.entry, effect)
            }
        }
        if !begun.stops.isEmpty { barrels.save() }
        return results
    }

    /// What is left to do once no attempt of the task runs any more.
    private func stopped(_ entry: TaskEntry, _ effect: StateMachine.Effect) -> String {
        switch effect {
        case .queue, .stopKeepingBytes:
            book.write(entry)
            return "suspended, \(ByteSize.format(entry.received)) kept"
        case .stopDroppingBytes:
            // Somebody may have queued it again meanwhile: what runs then is another attempt.
            guard entry.record.state == .cancel, entry.run == nil else {
                return "cancelled, unfinished bytes dropped"
            }
            entry.record.removePart(of: book.workPath)
            dropBytes(of: entry)
            book.write(entry)
            return "cancelled, unfinished bytes dropped"
        case .forget, .forgetKeepingFile:
            // An attempt forgets its task itself when it ends.
            return room.forget(entry)
        }
    }

    /// What is said while a middleware is at work for the task.
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

extension StateMachine.Effect {
    fileprivate var isForgetting: Bool { self == .forget || self == .forgetKeepingFile }
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
