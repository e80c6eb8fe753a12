import FKMiddleware

/// One button for a task: what it does is decided by `StateMachine.toggles`.
extension Engine {
    func toggle(_ selector: TaskSelector) async throws -> [VerbResult] {
        try await apply(to: selector, choose: Self.toggled)
    }

    /// Where there is nothing to toggle, resume changes nothing either and says why.
    static func toggled(_ state: DownloadState) -> Verb { StateMachine.toggles(state) ?? .resume }
}
