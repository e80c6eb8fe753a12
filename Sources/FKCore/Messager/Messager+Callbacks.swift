import FKMiddleware
import Foundation

extension Messager {
    /// Registers up to three callbacks of a task, as `addInfo` (KADownloadManager). Registered by URL, they report on every task of
    /// that URL. `response(_:)` and `record(_:)` tell more about a task that has ended.
    ///
    /// - Parameters:
    ///   - queue: same as for `addInfo`.
    ///   - stateChanged: the state at registration, and each later state.
    ///   - progress: bytes received, bytes expected (nil while unknown) and their fraction in 0...1 (nil while unknown), at the polled
    ///     interval while the task runs and once at its end.
    ///   - completion: called once each time the task ends: with the finished file, with the error, or with an error of code
    ///     `.cancelled` after a cancel or trash. An attempt that is followed by another one is not an end. For a task that ended
    ///     before the registration it is called at once.
    /// - Throws: same as `addInfo`.
    public func addCallbacks(
        _ selector: some TaskSelecting, on queue: DispatchQueue? = nil,
        stateChanged: (@Sendable (DownloadState) -> Void)? = nil,
        progress: (@Sendable (_ received: Int64, _ expected: Int64?, _ fraction: Double?) -> Void)? = nil,
        completion: (@Sendable (Result<URL, DownloadError>) -> Void)? = nil
    ) async throws(DownloadError) -> Registration {
        let states = Locked<[TaskID: DownloadState]>([:])
        return try await addInfo(selector, on: queue) { info in
            let previous = states.withLock { states in
                // A trashed task may be created again.
                let previous = states.removeValue(forKey: info.id)
                if info.state != .unknown { states[info.id] = info.state }
                return previous
            }
            let isNews = info.state != previous
            if isNews { stateChanged?(info.state) }
            if !isNews || info.state.isSettled {
                progress?(info.count.received, info.count.expected, info.count.fraction)
            }
            if isNews, let end = info.end { completion?(end) }
        }
    }
}

extension DownloadInfo {
    /// The file or the error of a task that has ended; nil for any other.
    fileprivate var end: Result<URL, DownloadError>? {
        switch state {
        case .complete: .success(URL(fileURLWithPath: path ?? ""))
        case .error: .failure(error ?? DownloadError(.disk, "The task failed.", url: url))
        case .cancel, .unknown:
            .failure(
                DownloadError(
                    .cancelled, "The task was cancelled: retry or add it again.", url: URLMasking.mask(url)))
        case .idle, .action, .suspend: nil
        }
    }
}
