import FKMiddleware

/// One button for a task: what it does is decided by `StateMachine.toggles`.
extension Engine {
    func toggle(_ selector: TaskSelector) async throws -> [VerbResult] {
        // Where there is nothing to toggle, resume changes nothing either and says why.
        try await apply(to: selector) { StateMachine.toggles($0) ?? .resume }
    }
}
