import FKEngine
import FKMiddleware

/// Applies verbs to tasks. One table decides what a verb does in each state. A verb that does not
/// apply changes nothing, and its result says so.
///
/// Verbs take whatever names tasks (`TaskSelecting`): a URL, a `TaskID`, a `DownloadTask`, a `Barrel`, a state, or all.
///
/// A verb returns when it has taken effect. Called from a request or response middleware, it does not wait for
/// running middlewares: the task has its new state at once, and the rest follows when the middlewares have returned.
/// All members are safe to use from any thread.
public struct Control: Sendable {
    package let engine: any EngineAccess
    /// That of the application; nil for the one of the settings.
    let transport: (any Transport)?

    /// Stops running and waiting tasks and keeps their bytes.
    ///
    /// - Throws: same as every verb here: `.notFound` if there is no such task or barrel, `.invalidURL` for an invalid URL,
    ///   `.cancelled` for a closed downloader.
    @discardableResult
    public func suspend(_ selector: some TaskSelecting) async throws(DownloadError) -> [VerbResult] {
        try await engine.perform(.verb(.suspend, selector.selector))
    }

    /// Resumes suspended tasks, as soon as a slot is free.
    @discardableResult
    public func resume(_ selector: some TaskSelecting) async throws(DownloadError) -> [VerbResult] {
        try await engine.perform(.verb(.resume, selector.selector))
    }

    /// Stops tasks and deletes their unfinished bytes.
    @discardableResult
    public func cancel(_ selector: some TaskSelecting) async throws(DownloadError) -> [VerbResult] {
        try await engine.perform(.verb(.cancel, selector.selector))
    }

    /// Stops running and waiting tasks, resumes suspended ones, and queues failed and cancelled ones again, like a
    /// button with two states (TTDownloadManager). Complete tasks do not change.
    ///
    /// - Returns: one result for each task. `verb` is the verb that was applied; `.resume` if nothing changed.
    @discardableResult
    public func toggle(_ selector: some TaskSelecting) async throws(DownloadError) -> [VerbResult] {
        try await engine.perform(.toggle(selector.selector))
    }

    /// Queues failed and cancelled tasks again, with a fresh count of attempts.
    @discardableResult
    public func retry(_ selector: some TaskSelecting) async throws(DownloadError) -> [VerbResult] {
        try await engine.perform(.verb(.retry, selector.selector))
    }

    /// Gives a task another address (`DownloadTask.relink(to:)`).
    package func relink(_ id: TaskID, to url: String) async throws(DownloadError) {
        _ = try await engine.perform(.line(.relink(id, to: url)))
    }

    // MARK: Rate limits

    /// Sets the rate limit of all tasks of the work path together, or of a barrel's members together. It takes effect at
    /// once, also for running tasks and if another process runs them, and applies until it is changed, also to later
    /// downloaders. It replaces the limits of running commands for their own tasks. The lowest of several limits applies.
    ///
    /// - Parameters:
    ///   - bytesPerSecond: at least 0; nil and 0 remove the limit.
    ///   - barrel: the name of a barrel; nil, the default, limits all tasks.
    /// - Throws: `.invalidArgument` for a negative rate, `.notFound` if there is no such barrel, `.disk` or `.noSpace` if
    ///   the limit cannot be stored, `.cancelled` for a closed downloader.
    public func setRateLimit(_ bytesPerSecond: Int64?, ofBarrel barrel: String? = nil) async throws(DownloadError) {
        _ = try await engine.perform(.line(.limit(rate: bytesPerSecond, barrel: barrel)))
    }

    /// Replaces the limit of all tasks and its daily windows together.
    ///
    /// - Throws: same as `setRateLimit`; `.invalidArgument` for two windows of the same times, and for more than 48.
    package func setStandingLimit(_ limit: StandingLimit) async throws(DownloadError) {
        _ = try await engine.perform(.line(.limit(limit)))
    }

    /// The limit of all tasks with its daily windows.
    ///
    /// - Throws: `.corruptInfo`, `.laterVersion` or `.disk` if it cannot be read.
    package var standingLimit: StandingLimit {
        get async throws(DownloadError) {
            let workPath = WorkPath(await engine.currentConfigure)
            return try await typed { try StandingLimit.stored(in: workPath) }
        }
    }

    /// The limit that `setRateLimit` or `fk limit` has set, in bytes a second; nil for no limit. `Configure.rateLimit` is another one: the
    /// lower of both applies (`DownloadMetrics.rateLimit`).
    ///
    /// - Parameter barrel: the name of a barrel; nil, the default, returns the limit of all tasks.
    /// - Throws: `.notFound` if there is no such barrel, `.corruptInfo`, `.laterVersion` or `.disk` if the limit cannot be
    ///   read.
    public func rateLimit(ofBarrel barrel: String? = nil) async throws(DownloadError) -> Int64? {
        // Every limit is stored when it is set, so no owner has to be asked.
        let workPath = WorkPath(await engine.currentConfigure)
        return try await typed {
            guard let barrel else { return try StandingLimit.read(in: workPath) }
            return try StoreReader(workPath).barrel(barrel).options.rateLimit.flatMap { $0 > 0 ? $0 : nil }
        }
    }

    // MARK: Removing

    /// Forgets tasks in any state and keeps the finished files of complete tasks, which then belong to the application:
    /// the same URL added again is a new task, and the name of its file is taken. Unfinished bytes are
    /// deleted.
    @discardableResult
    public func forget(_ selector: some TaskSelecting) async throws(DownloadError) -> [VerbResult] {
        try await engine.perform(.verb(.forget, selector.selector))
    }

    /// Forgets tasks in any state and deletes every file they wrote, also finished ones.
    @discardableResult
    public func trash(_ selector: some TaskSelecting) async throws(DownloadError) -> [VerbResult] {
        try await engine.perform(.verb(.trash, selector.selector))
    }

    // MARK: Many tasks

    /// Gives many tasks a verb with one request, such as the ids of a selection in a list.
    ///
    /// ```swift
    /// try await downloader.control.apply(.retry, to: selectedIDs)
    /// ```
    ///
    /// - Returns: a result for each id, in order. That of a task that is gone is not `applied`.
    @discardableResult
    public func apply(_ verb: Verb, to ids: [TaskID]) async throws(DownloadError) -> [VerbResult] {
        try await engine.perform(.chosen(ids.map { VerbChoice(id: $0, verb: verb) }))
    }

    /// Gives all tasks that match a query a verb.
    ///
    /// ```swift
    /// var query = RecordQuery()
    /// query.states = [.complete]
    /// query.finished = .distantPast ... Date() - 30 * 86_400
    /// try await downloader.control.apply(.trash, to: query)
    /// ```
    ///
    /// - Returns: a result for each task; empty if none matches.
    /// - Throws: also the errors of `Messager.records(_:)`.
    @discardableResult
    public func apply(_ verb: Verb, to query: RecordQuery) async throws(DownloadError) -> [VerbResult] {
        let ids = try await typed { try await engine.snapshot { try $0.records(query).records.map(\.id) } }
        return ids.isEmpty ? [] : try await apply(verb, to: ids)
    }
}
