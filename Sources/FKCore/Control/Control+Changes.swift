import FKMiddleware
import Foundation

extension Control {
    /// Changes options, mirrors and priorities of existing tasks. Unlike `Builder.prepare`, it starts no task: a suspended
    /// one stays suspended.
    ///
    /// - A waiting task with other options or mirrors is queued anew, with a fresh count of attempts. With another
    ///   priority alone it only gets another place in the queue.
    /// - A running task takes over a new checksum, rate limit, number of attempts, number of connections and
    ///   `options.existing` at once. Any other change starts a new attempt; the bytes are kept if the server serves
    ///   ranges.
    /// - For any other task the change counts when it runs again.
    ///
    /// - Throws: `.notFound` if one of the tasks is missing, `.invalidArgument` for an option outside its range, `.invalidURL`
    ///   or `.unsupportedScheme` for a mirror. No task is changed then. `.cancelled` for a closed downloader.
    public func change(_ changes: [TaskChange]) async throws(DownloadError) {
        _ = try await engine.perform(.change(changes))
    }
}
