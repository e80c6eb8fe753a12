import FKMiddleware

/// What a request uses of the engine that performs it.
package protocol RequestHost: Actor {
    var control: TaskControl { get }
    var book: TaskBook { get }
    var limits: RateLimits { get }
    var programs: RegisteredPrograms { get }
    var currentConfigure: Configure { get }

    /// Writes changes of tasks for a follower that asks (`ChangeJournal`).
    func openChanges()
    /// Applies a changed configuration.
    func update(_ configure: Configure) throws
    /// Makes or finds tasks, a portion at a time, and queues them.
    func add(
        _ descriptions: [TaskDescription], _ barrel: String?, run: Bool, _ group: Int32?
    ) async throws -> TaskControl.Addition
    /// The answer to an addition, at once or after the comparison of finished files.
    func started(_ addition: TaskControl.Addition) throws -> StartedRequest
    /// Applies the chosen verbs.
    ///
    /// - Parameter forAll: true makes `resume` also queue cancelled and failed tasks (FKDownloader's resumeAll).
    func started(_ choices: [VerbChoice], forAll: Bool) throws -> StartedRequest
}
