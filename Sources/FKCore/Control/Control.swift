import FKMiddleware

/// Gives verbs to tasks. Which verb does what in which state is decided by one table (`StateMachine`); a verb that does
/// not apply changes nothing and says so in its result.
///
/// A selector is a URL (as a string literal), a `TaskID`, a barrel, or all.
///
/// A verb returns when it has taken effect. Inside a request or response middleware it does not wait for middlewares at work:
/// the task is in its new state, and the rest follows when they have returned.
public struct Control: Sendable {
    let engine: Engine

    /// Queues cancelled and failed tasks again (FKDownloader's `actionRequest`).
    ///
    /// - Throws: like every verb here, `.notFound` when no task matches, `.invalidURL` for a URL that is none.
    @discardableResult
    public func action(_ selector: TaskSelector) async throws -> [VerbResult] {
        try await engine.apply(.action, to: selector)
    }

    /// Stops running and waiting tasks; their bytes are kept.
    @discardableResult
    public func suspend(_ selector: TaskSelector) async throws -> [VerbResult] {
        try await engine.apply(.suspend, to: selector)
    }

    /// Suspends every task of the work path.
    @discardableResult
    public func suspendAll() async throws -> [VerbResult] { try await suspend(.all) }

    /// Lets suspended tasks go on: at once when a slot is free, else when one is.
    @discardableResult
    public func resume(_ selector: TaskSelector) async throws -> [VerbResult] {
        try await engine.apply(.resume, to: selector)
    }

    /// Resumes suspended tasks, and queues cancelled and failed ones again.
    ///
    /// - Returns: the results of the tasks it changed.
    @discardableResult
    public func resumeAll() async throws -> [VerbResult] {
        try await engine.apply(.resume, to: .all, forAll: true).filter(\.applied)
    }

    /// Stops tasks and drops their unfinished bytes.
    @discardableResult
    public func cancel(_ selector: TaskSelector) async throws -> [VerbResult] {
        try await engine.apply(.cancel, to: selector)
    }

    /// Cancels every task of the work path that is not complete.
    @discardableResult
    public func cancelAll() async throws -> [VerbResult] { try await cancel(.all) }

    /// Stops what runs or waits, lets suspended tasks go on, and queues failed and cancelled ones again: what one button
    /// for a task does (TTDownloadManager). A complete task stays as it is.
    ///
    /// - Returns: one result for each task; `verb` is what the toggle came to, `.resume` where it changed nothing.
    @discardableResult
    public func toggle(_ selector: TaskSelector) async throws -> [VerbResult] { try await engine.toggle(selector) }

    /// Queues failed and cancelled tasks again, with a fresh count of attempts.
    @discardableResult
    public func retry(_ selector: TaskSelector) async throws -> [VerbResult] {
        try await engine.apply(.retry, to: selector)
    }

    /// Forgets tasks in any state and deletes every file they wrote, finished ones included.
    @discardableResult
    public func trash(_ selector: TaskSelector) async throws -> [VerbResult] {
        try await engine.apply(.trash, to: selector)
    }

    /// Forgets every task of the work path and deletes every file they wrote, finished ones included.
    @discardableResult
    public func trashAll() async throws -> [VerbResult] { try await trash(.all) }
}
