/// The process whose engine runs the tasks of a work path.
public enum EngineOwner: Sendable, Hashable {
    /// This downloader runs the tasks. Its middlewares and its settings apply.
    case thisDownloader
    /// Another downloader, usually in another process, runs the tasks. Its middlewares and settings apply.
    ///
    /// - Parameters:
    ///   - pid: the process id, for display; 0 if unknown.
    ///   - host: the host name, for display.
    case process(pid: Int32, host: String)
    /// No downloader runs the tasks. Requests are stored, and the next owner runs them.
    case nobody
}
