import FKEngine

/// What a session notes while another process runs its tasks, and when it asks its own engine for them: once, as soon
/// as it has taken over and all its requests are answered.
///
/// The former engine may have answered a request and ended before the session read the answer. The own engine then does
/// not perform the request again, and would not run the tasks.
struct FollowedTasks: Equatable {
    /// True once this process is the engine.
    private(set) var isOver = false
    /// True once all requests of the session are answered.
    private(set) var hasReplied = false
    private var hasTakenOver = false
    /// The URLs of the open tasks, for reports after their info files are gone.
    private var urls: [TaskID: String] = [:]

    /// This process is the engine from the start.
    mutating func begin() { isOver = true }

    /// Records the URLs of tasks that the other process will run.
    mutating func record(_ message: EngineMessage, in places: Places) {
        guard !isOver, case .add(let tasks, _, _) = message.request else { return }
        for task in tasks { urls[places.id(of: task)] = task.url }
    }

    mutating func record(_ info: DownloadInfo) {
        if !isOver { urls[info.id] = info.state.isSettled ? nil : info.url }
    }

    /// The URL of an open task; empty if it was not noted.
    func url(of id: TaskID) -> String { urls[id] ?? "" }

    /// - Returns: true if the tasks are to be asked for now.
    mutating func tookOver() -> Bool {
        isOver = true
        hasTakenOver = true
        urls = [:]
        return hasReplied
    }

    /// - Returns: true if the tasks are to be asked for now.
    mutating func replied() -> Bool {
        hasReplied = true
        return hasTakenOver
    }
}
