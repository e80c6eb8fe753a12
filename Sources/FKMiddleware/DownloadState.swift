/// The state of a task. The names are FKDownloader's.
///
/// ```text
/// idle -> action -> complete
///  ^  \      |  \-> error
///  |   \     v
///  +--- suspend      cancel (from action, suspend, idle, error)
/// ```
///
/// FKDownloader's `prepare` is not among them: a task that was added is queued.
public enum DownloadState: String, Codable, Sendable, CaseIterable, Hashable {
    /// Queued: the task waits for a slot, for a retry to become due, or for an engine.
    case idle
    /// Running: the task holds a slot while its request is prepared, sent or answered.
    case action
    /// Suspended by the user. The bytes are kept.
    case suspend
    /// Cancelled by the user. Unfinished bytes are deleted.
    case cancel
    /// Failed. The task's error gives the reason.
    case error
    /// The file is complete and has its final name.
    case complete
    /// No such task is known.
    case unknown

    /// True when only a verb can change the state.
    public var isSettled: Bool {
        switch self {
        case .suspend, .cancel, .error, .complete, .unknown: true
        case .idle, .action: false
        }
    }
}
