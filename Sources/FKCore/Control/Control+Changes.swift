import FKEngine
import FKMiddleware
import Foundation

extension Control {
    /// Changes options, mirrors and priority of an existing task; what is nil, the default, stays. Unlike `Downloader.add`, it
    /// starts nothing: a suspended task stays suspended.
    ///
    /// - A waiting task with other options or mirrors is queued anew, with a fresh count of attempts. With another
    ///   priority alone it only gets another place in the queue.
    /// - A running task takes over a new checksum, rate limit, number of attempts, number of connections and
    ///   `options.existing` at once. Any other change starts a new attempt; the bytes are kept if the server serves
    ///   ranges.
    /// - For any other task the change counts when it runs again.
    ///
    /// - Parameters:
    ///   - options: replace all stored ones.
    ///   - mirrors: replace the stored ones; percent-encoded where needed.
    ///   - priority: tasks with a higher one start earlier.
    /// - Throws: `.notFound` if there is no such task, `.invalidArgument` for an option outside its range, `.invalidURL` or
    ///   `.unsupportedScheme` for a mirror. Nothing is changed then. `.cancelled` for a closed downloader.
    public func change(
        _ id: TaskID, options: TaskOptions? = nil, mirrors: [String]? = nil, priority: Int? = nil
    ) async throws(DownloadError) {
        var change = TaskChange(id)
        (change.options, change.mirrors, change.priority) = (options, mirrors, priority)
        try await self.change([change])
    }

    /// Changes several tasks, or none if one of the changes cannot be made.
    ///
    /// - Throws: the errors of `change(_:options:mirrors:priority:)`.
    package func change(_ changes: [TaskChange]) async throws(DownloadError) {
        _ = try await engine.perform(.line(.change(changes)))
    }
}
