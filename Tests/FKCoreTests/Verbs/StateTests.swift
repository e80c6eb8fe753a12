import TestSupport
import Testing

@Suite("State machine")
struct StateTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var verb: Verb
        var state: DownloadState
        var after: DownloadState?
        var effect: StateMachine.Effect?
        var testDescription: String { "\(verb) in \(state)" }
    }

    /// The whole table: 7 states, 7 verbs. No `after` means that nothing changes.
    static let table: [Row] = [
        .init(verb: .action, state: .idle),
        .init(verb: .action, state: .action),
        .init(verb: .action, state: .suspend),
        .init(verb: .action, state: .cancel, after: .idle, effect: .queue),
        .init(verb: .action, state: .error, after: .idle, effect: .queue),
        .init(verb: .action, state: .complete),
        .init(verb: .action, state: .unknown),

        .init(verb: .suspend, state: .idle, after: .suspend, effect: .stopKeepingBytes),
        .init(verb: .suspend, state: .action, after: .suspend, effect: .stopKeepingBytes),
        .init(verb: .suspend, state: .suspend),
        .init(verb: .suspend, state: .cancel),
        .init(verb: .suspend, state: .error),
        .init(verb: .suspend, state: .complete),
        .init(verb: .suspend, state: .unknown),

        .init(verb: .resume, state: .idle),
        .init(verb: .resume, state: .action),
        .init(verb: .resume, state: .suspend, after: .idle, effect: .queue),
        .init(verb: .resume, state: .cancel),
        .init(verb: .resume, state: .error),
        .init(verb: .resume, state: .complete),
        .init(verb: .resume, state: .unknown),

        .init(verb: .cancel, state: .idle, after: .cancel, effect: .stopDroppingBytes),
        .init(verb: .cancel, state: .action, after: .cancel, effect: .stopDroppingBytes),
        .init(verb: .cancel, state: .suspend, after: .cancel, effect: .stopDroppingBytes),
        .init(verb: .cancel, state: .cancel),
        .init(verb: .cancel, state: .error, after: .cancel, effect: .stopDroppingBytes),
        .init(verb: .cancel, state: .complete),
        .init(verb: .cancel, state: .unknown),

        .init(verb: .retry, state: .idle),
        .init(verb: .retry, state: .action),
        .init(verb: .retry, state: .suspend),
        .init(verb: .retry, state: .cancel, after: .idle, effect: .queue),
        .init(verb: .retry, state: .error, after: .idle, effect: .queue),
        .init(verb: .retry, state: .complete),
        .init(verb: .retry, state: .unknown),

        .init(verb: .trash, state: .idle, after: .unknown, effect: .forget),
        .init(verb: .trash, state: .action, after: .unknown, effect: .forget),
        .init(verb: .trash, state: .suspend, after: .unknown, effect: .forget),
        .init(verb: .trash, state: .cancel, after: .unknown, effect: .forget),
        .init(verb: .trash, state: .error, after: .unknown, effect: .forget),
        .init(verb: .trash, state: .complete, after: .unknown, effect: .forget),
        .init(verb: .trash, state: .unknown),

        .init(verb: .forget, state: .idle, after: .unknown, effect: .forgetKeepingFile),
        .init(verb: .forget, state: .action, after: .unknown, effect: .forgetKeepingFile),
        .init(verb: .forget, state: .suspend, after: .unknown, effect: .forgetKeepingFile),
        .init(verb: .forget, state: .cancel, after: .unknown, effect: .forgetKeepingFile),
        .init(verb: .forget, state: .error, after: .unknown, effect: .forgetKeepingFile),
        .init(verb: .forget, state: .complete, after: .unknown, effect: .forgetKeepingFile),
        .init(verb: .forget, state: .unknown),
    ]

    @Test("does what the table says", arguments: table)
    func row(_ row: Row) {
        switch StateMachine.decide(row.verb, in: row.state) {
        case .to(let state, let effect):
            #expect(state == row.after)
            #expect(effect == row.effect)
        case .noOp(let reason):
            #expect(row.after == nil)
            #expect(!reason.isEmpty)
        }
    }

    @Test("knows every verb in every state")
    func complete() {
        let pairs = Set(Self.table.map { "\($0.verb) \($0.state)" })
        #expect(pairs.count == Verb.allCases.count * DownloadState.allCases.count)
        #expect(Self.table.count == pairs.count)
    }

    @Test("resumes cancelled and failed tasks only when all are meant", arguments: DownloadState.allCases)
    func resumeAll(state: DownloadState) {
        let queued = StateMachine.Transition.to(.idle, .queue)
        let expected = [.suspend, .cancel, .error].contains(state) ? queued : StateMachine.decide(.resume, in: state)
        #expect(StateMachine.decide(.resume, in: state, forAll: true) == expected)
    }

    @Test("is not changed by meaning all for the other verbs", arguments: table.filter { $0.verb != .resume })
    func others(_ row: Row) {
        #expect(
            StateMachine.decide(row.verb, in: row.state, forAll: true) == StateMachine.decide(row.verb, in: row.state))
    }
}
