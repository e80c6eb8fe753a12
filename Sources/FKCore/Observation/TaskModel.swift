import FKEngine
import FKMiddleware
import Foundation
import Observation

/// A task for a view: values on the main actor that change as the task does.
///
/// ```swift
/// struct TaskRow: View {
///     let model: TaskModel
///     var body: some View { ProgressView(model.name, value: model.info?.fraction) }
/// }
/// ```
///
/// It follows the task in every state, also after it has ended and was queued again, until the model is released. It
/// works with SwiftUI and with everything else that uses `Observation`.
@MainActor
@Observable
public final class TaskModel: Identifiable {
    /// The task that the model follows.
    public nonisolated let task: DownloadTask
    /// The task's id.
    public nonisolated var id: TaskID { task.id }
    /// The latest report; nil until the first one, and if there never was such a task.
    public private(set) var info: DownloadInfo?
    /// The error of the last verb of this model; nil if it was accepted.
    public private(set) var verbError: DownloadError?

    /// The name that the URL gives.
    private nonisolated let urlName: String
    @ObservationIgnored private var following: Task<Void, Never>?
    /// The last verb; the next one waits for it.
    @ObservationIgnored private var lastVerb: Task<Void, Never>?

    /// Creates a model, which follows the task from now on.
    public init(_ task: DownloadTask) {
        self.task = task
        urlName = FileNameRules.name(url: task.url, head: nil)
        following = Task { [weak self] in
            for await info in task.downloader.messager.changes(.id(task.id)) { self?.info = info }
        }
    }

    deinit { following?.cancel() }

    // MARK: Values

    /// The state; `.unknown` until the first report and for a task that is gone.
    public var state: DownloadState { info?.state ?? .unknown }
    /// A name to show: `DownloadInfo.fileName`; until the first report the one that the URL gives, and for a task that is gone.
    public var name: String { info?.fileName ?? urlName }
    /// True if `suspend()` applies: the task runs or waits for its turn.
    public var canSuspend: Bool { [.idle, .action].contains(state) }
    /// True if `start()` applies: the task is suspended, failed or cancelled.
    public var canStart: Bool { [.suspend, .error, .cancel].contains(state) }

    // MARK: Verbs

    /// Stops the task and keeps its bytes. Like every verb here, it returns at once; `info` and `verbError` show the
    /// result. Verbs take effect in order.
    public func suspend() { give { task throws(DownloadError) in try await task.suspend() } }

    /// Resumes a suspended task, and queues a failed or cancelled one again.
    public func start() {
        give { task throws(DownloadError) in
            let result = try await task.resume()
            return result.applied ? result : try await task.retry()
        }
    }

    /// Stops the task and deletes its unfinished bytes.
    public func cancel() { give { task throws(DownloadError) in try await task.cancel() } }

    /// Forgets the task and deletes every file it wrote.
    public func trash() { give { task throws(DownloadError) in try await task.trash() } }

    /// Forgets the task and keeps its finished file.
    public func forget() { give { task throws(DownloadError) in try await task.forget() } }

    private func give(_ verb: @escaping @Sendable (DownloadTask) async throws(DownloadError) -> VerbResult) {
        lastVerb = Task { [weak self, task, lastVerb] in
            await lastVerb?.value
            do throws(DownloadError) {
                _ = try await verb(task)
                self?.verbError = nil
            } catch {
                self?.verbError = error
            }
        }
    }
}
