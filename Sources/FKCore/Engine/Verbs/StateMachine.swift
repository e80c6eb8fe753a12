import FKMiddleware

/// What each verb does in each state, as one table.
///
/// ```text
///            idle      action    suspend   cancel    error     complete  unknown
/// action     -         -         -         idle      idle      -         -
/// suspend    suspend   suspend   -         -         -         -         -
/// resume     -         -         idle      - (idle)  - (idle)  -         -
/// cancel     cancel    cancel    cancel    -         cancel    -         -
/// retry      -         -         -         idle      idle      -         -
/// trash      unknown   unknown   unknown   unknown   unknown   unknown   -
/// forget     unknown   unknown   unknown   unknown   unknown   unknown   -
/// ```
///
/// `-` changes nothing. `(idle)` applies if the verb is given to all tasks at once: `resume` then also queues
/// cancelled and failed tasks, like FKDownloader's `resumeAllTask`. The scheduler starts an idle task as soon as a
/// slot is free.
package enum StateMachine {
    /// The engine's work for a transition, besides writing the new state.
    package enum Effect: Sendable, Hashable {
        /// Add the task to the ready queue with a fresh count of attempts.
        case queue
        /// Remove it from the queue or stop its transfer. Its bytes are kept.
        case stopKeepingBytes
        /// Remove it from the queue or stop its transfer, and delete its part file.
        case stopDroppingBytes
        /// Stop it and delete every file it wrote, its info file and its callbacks.
        case forget
        /// The same, but the finished file of a complete task stays.
        case forgetKeepingFile
    }

    /// The result of a verb in a state.
    package enum Transition: Sendable, Hashable {
        /// The task gets this state, and the engine performs the effect.
        case to(DownloadState, Effect)
        /// Nothing changes. The reason completes the sentence "The task …".
        case noOp(reason: String)
    }

    /// Decides what a verb does.
    ///
    /// - Parameter forAll: true if the verb was given to all tasks rather than to this one; the default is false.
    package static func decide(_ verb: Verb, in state: DownloadState, forAll: Bool = false) -> Transition {
        if state == .unknown { return .noOp(reason: "is not known here") }
        return switch verb {
        case .action: action(in: state)
        case .suspend: suspend(in: state)
        case .resume: resume(in: state, forAll: forAll)
        case .cancel: cancel(in: state)
        case .retry: retry(in: state)
        case .trash: .to(.unknown, .forget)
        case .forget: .to(.unknown, .forgetKeepingFile)
        }
    }

    private static func action(in state: DownloadState) -> Transition {
        switch state {
        case .cancel, .error: .to(.idle, .queue)
        case .suspend: .noOp(reason: "is suspended: resume it to continue")
        default: nothing("queue", state)
        }
    }

    private static func suspend(in state: DownloadState) -> Transition {
        switch state {
        case .idle, .action: .to(.suspend, .stopKeepingBytes)
        default: nothing("suspend", state)
        }
    }

    private static func resume(in state: DownloadState, forAll: Bool) -> Transition {
        switch state {
        case .suspend: .to(.idle, .queue)
        case .cancel, .error: forAll ? .to(.idle, .queue) : nothing("resume", state, hint: "retry it to start again")
        default: nothing("resume", state)
        }
    }

    private static func cancel(in state: DownloadState) -> Transition {
        switch state {
        case .idle, .action, .suspend, .error: .to(.cancel, .stopDroppingBytes)
        case .complete: nothing("cancel", state, hint: "trash it to delete the file")
        default: nothing("cancel", state)
        }
    }

    private static func retry(in state: DownloadState) -> Transition {
        switch state {
        case .cancel, .error: .to(.idle, .queue)
        case .suspend: nothing("retry", state, hint: "resume it to continue")
        default: nothing("retry", state)
        }
    }

    private static func nothing(_ verb: String, _ state: DownloadState, hint: String? = nil) -> Transition {
        let now =
            switch state {
            case .idle: "is queued already"
            case .action: "is running already"
            case .suspend: "is suspended already"
            case .cancel: "is cancelled already"
            case .error: "has failed"
            case .complete: "is complete already"
            case .unknown: "is not known here"
            }
        return .noOp(reason: "\(now): \(hint ?? "nothing to \(verb)")")
    }
}

extension DownloadState {
    /// The verb that a toggle applies: it stops a running or waiting task and resumes or queues any other; nil if no
    /// verb applies.
    package var toggleVerb: Verb? {
        switch self {
        case .idle, .action: .suspend
        case .suspend: .resume
        case .cancel, .error: .retry
        case .complete, .unknown: nil
        }
    }
}

extension Verb {
    /// True if the verb changes a task in this state.
    package func applies(in state: DownloadState) -> Bool {
        if case .to = StateMachine.decide(self, in: state) { true } else { false }
    }
}
