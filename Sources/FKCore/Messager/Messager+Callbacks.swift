import FKMiddleware
import Foundation

/// The three callbacks of a task (KADownloadManager). Each may be left out.
///
/// They run like those of `Messager.addInfo`: on one serial queue, never on the main thread.
public struct TaskCallbacks: Sendable {
    /// The state the task is in when the callbacks are registered, and then each other one it gets into.
    public var stateChanged: (@Sendable (DownloadState) -> Void)?
    /// Bytes received, bytes expected (nil while the length is unknown), and their fraction 0...1 (nil likewise), at the
    /// polled interval while the task runs and once at its end.
    public var progress: (@Sendable (_ received: Int64, _ expected: Int64?, _ fraction: Double?) -> Void)?
    /// Once each time the task ends: with the finished file, with why it failed, or with an error of the code
    /// `.cancelled` when it was cancelled or trashed. Attempts that are followed by another one are no end. A task that
    /// had ended already is told at once.
    public var completion: (@Sendable (Result<URL, DownloadError>) -> Void)?

    /// No callback at all by default.
    public init(
        stateChanged: (@Sendable (DownloadState) -> Void)? = nil,
        progress: (@Sendable (_ received: Int64, _ expected: Int64?, _ fraction: Double?) -> Void)? = nil,
        completion: (@Sendable (Result<URL, DownloadError>) -> Void)? = nil
    ) {
        self.stateChanged = stateChanged
        self.progress = progress
        self.completion = completion
    }

    /// - Parameter previous: the state in the info before; nil for the first one.
    func tell(_ info: DownloadInfo, previous: DownloadState?) {
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
    /// Registers the three callbacks of a task; `removeInfo` ends them. Registered by URL they hear of every task of it.
    ///
    /// - Throws: as `addInfo`.
    @discardableResult
    public func addCallbacks(_ selector: TaskSelector, _ callbacks: TaskCallbacks) async throws -> Registration {
        let states = Locked<[TaskID: DownloadState]>([:])
        return try await addInfo(selector) { info in
            let previous = states.withLock { states in
                // A trashed task may be made again.
                let previous = states.removeValue(forKey: info.id)
                if info.state != .unknown { states[info.id] = info.state }
                return previous
            }
            callbacks.tell(info, previous: previous)
        }
    }
}
