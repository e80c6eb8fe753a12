/// Where a task stands. The names are FKDownloader's.
///
/// ```text
/// prepare -> idle -> action -> complete
///             ^  \      |  \-> error
///             |   \     v
///             +--- suspend      cancel (from action, suspend, idle, error)
/// ```
public enum DownloadState: String, Codable, Sendable, CaseIterable, Hashable {
    /// The task is being described and is not queued yet.
    case prepare
    /// Queued: waiting for a slot, for a retry to become due, or for an engine to run.
    case idle
    /// Holding a slot: its request is being prepared, sent or answered.
    case action
    /// Stopped by the user; its bytes are kept.
    case suspend
    /// Stopped by the user; its unfinished bytes are dropped.
    case cancel
    /// Ended in failure; the error says why.
    case error
    /// The file is whole and stands under its final name.
    case complete
    /// Nothing is known about the task.
    case unknown

    /// True when the task stays in this state until somebody gives a verb.
    public var isSettled: Bool {
        switch self {
        case .suspend, .cancel, .error, .complete, .unknown: true
        case .prepare, .idle, .action: false
        }
    }
}
