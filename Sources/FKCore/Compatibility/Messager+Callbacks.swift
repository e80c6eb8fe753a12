import FKCore
import FKEngine
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
    ///     interval while the task runs and once when it stops or ends.
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
            if isNews ? info.state.isSettled : info.state == .action {
                progress?(info.count.received, info.count.expected, info.count.fraction)
            }
            if isNews, let end = info.end { completion?(end) }
        }
    }

    /// Adds the task of a builder, or toggles the known one as `Control.toggle`, and registers callbacks: the one call of
    /// TTDownloadManager, for a button that starts, pauses and resumes. A complete task whose file is there does not change;
    /// its callbacks report `.complete` and the file at once. If the file is gone, it is fetched again.
    ///
    /// - Parameters:
    ///   - builder: describes the file. A known task keeps its options, whatever the builder says.
    ///   - queue: same as the other parameters: as for `addCallbacks`.
    /// - Returns: the registration of the callbacks. Releasing it ends them, so assigning that of the next call to the same variable
    ///   replaces them.
    /// - Throws: the errors of `Builder.prepare(in:)` and of `Control.toggle`.
    public func toggle(
        orAdd builder: Builder, on queue: DispatchQueue? = nil,
        stateChanged: (@Sendable (DownloadState) -> Void)? = nil,
        progress: (@Sendable (_ received: Int64, _ expected: Int64?, _ fraction: Double?) -> Void)? = nil,
        completion: (@Sendable (Result<URL, DownloadError>) -> Void)? = nil
    ) async throws(DownloadError) -> Registration {
        let id = engine.workPath.places.id(of: builder.description)
        let known = await info(.id(id))
        let isGone = known.map { $0.state == .complete && ($0.path == nil || $0.hasLostFile) } ?? true
        if isGone {
            let added = try await engine.perform(.add(tasks: [builder.description], barrel: nil, run: true))
            if let error = added[0].error { throw error }
        } else if known?.state != .complete {
            _ = try await engine.perform(.toggle(.id(id)))
        }
        // Behind the verb, so that an earlier failure is not reported again.
        return try await addCallbacks(
            .id(id), on: queue, stateChanged: stateChanged, progress: progress, completion: completion)
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
                    .cancelled, "The task was cancelled: retry or add it again.", url: url.masked))
        case .idle, .action, .suspend: nil
        }
    }
}
