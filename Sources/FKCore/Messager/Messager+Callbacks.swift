import FKMiddleware
import Foundation

/// Three callbacks of a task (KADownloadManager). Each is optional.
///
/// They run like callbacks of `Messager.addInfo`: on one serial queue of the library, or on a queue of the application.
public struct TaskCallbacks: Sendable {
    /// The state at registration, and each later state.
    public var stateChanged: (@Sendable (DownloadState) -> Void)?
    /// Bytes received, bytes expected (nil while unknown) and their fraction in 0...1 (nil while unknown), at the
    /// polled interval while the task runs and once at its end.
    public var progress: (@Sendable (_ received: Int64, _ expected: Int64?, _ fraction: Double?) -> Void)?
    /// Called once each time the task ends: with the finished file, with the error, or with an error of code
    /// `.cancelled` after a cancel or trash. An attempt that is followed by another one is not an end. For a task
    /// that ended before the registration it is called at once.
    public var completion: (@Sendable (Result<URL, DownloadError>) -> Void)?

    /// Creates the callbacks; the default for each is nil.
    public init(
        stateChanged: (@Sendable (DownloadState) -> Void)? = nil,
        progress: (@Sendable (_ received: Int64, _ expected: Int64?, _ fraction: Double?) -> Void)? = nil,
        completion: (@Sendable (Result<URL, DownloadError>) -> Void)? = nil
    ) {
        self.stateChanged = stateChanged
        self.progress = progress
        self.completion = completion
    }

    /// Calls the callbacks that this info concerns.
    ///
    /// - Parameter previous: the state in the previous info; nil for the first one.
    func call(_ info: DownloadInfo, previous: DownloadState?) {
        let isNews = info.state != previous
        if isNews { stateChanged?(info.state) }
        if !isNews || info.state.isSettled {
            progress?(info.count.received, info.count.expected, info.count.fraction)
        }
        guard isNews, let completion else { return }
        switch info.state {
        case .complete: completion(.success(URL(fileURLWithPath: info.path ?? "")))
        case .error: completion(.failure(info.error ?? DownloadError(.disk, "The task failed.", url: info.url)))
        case .cancel, .unknown:
            let url = URLMasking.mask(info.url)
            completion(.failure(DownloadError(.cancelled, "The task was cancelled: retry or add it again.", url: url)))
        case .prepare, .idle, .action, .suspend: break
        }
    }
}

extension Messager {
    /// Registers the three callbacks of a task; `removeInfo` removes them. Registered by URL, they report on every
    /// task of that URL.
    ///
    /// - Parameter queue: same as for `addInfo`.
    /// - Throws: same as `addInfo`.
    @discardableResult
    public func addCallbacks(
        _ selector: some TaskSelecting, on queue: DispatchQueue? = nil, _ callbacks: TaskCallbacks
    ) async throws(DownloadError) -> Registration {
        let states = Locked<[TaskID: DownloadState]>([:])
        return try await addInfo(selector, on: queue) { info in
            let previous = states.withLock { states in
                // A trashed task may be created again.
                let previous = states.removeValue(forKey: info.id)
                if info.state != .unknown { states[info.id] = info.state }
                return previous
            }
            callbacks.call(info, previous: previous)
        }
    }
}
