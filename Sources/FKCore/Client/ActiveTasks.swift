import FKEngine
import FKMiddleware

/// The tasks that another process runs, or will try again.
struct ActiveTasks {
    /// The running tasks, in the order in which their attempts began if it is known.
    private(set) var running: [TaskID] = []
    private(set) var retrying: Set<TaskID> = []
    /// The tasks whose attempt has begun and not ended, with the masked URL of the attempt.
    private(set) var attempts: [TaskID: String] = [:]
    /// The places of the last changes of tasks that were trashed: the info file of a running one stays until its run has ended. At
    /// most 1,000.
    private var trashed: [TaskID: ChangeOrder] = [:]
    /// The places of the last changes to running tasks.
    private var orders: [TaskID: ChangeOrder] = [:]

    /// Absorbs a change of state.
    ///
    /// - Returns: false if the last change said already that the task runs: its owner repeats it for each new follower.
    mutating func absorb(_ info: DownloadInfo) -> Bool {
        if info.state == .unknown {
            if trashed.count >= 1_000 { trashed = [:] }
            trashed[info.id] = info.order
        }
        let isKnown = info.state == .action && orders[info.id] != nil
        orders[info.id] = info.state == .action ? info.order.later(than: order(of: info.id)) : nil
        guard !isKnown else { return false }
        running.removeAll { $0 == info.id }
        retrying.remove(info.id)
        record([info])
        return true
    }

    mutating func absorb(_ info: AttemptInfo) {
        attempts[info.id] = if case .began = info.phase { info.url } else { nil }
    }

    /// Records what the info files say now.
    mutating func record(_ infos: [DownloadInfo]) {
        for info in infos {
            if info.state == .action, !running.contains(info.id) { running.append(info.id) }
            if info.state == .idle, info.error != nil { retrying.insert(info.id) }
        }
    }

    /// True for what the info file of a trashed task still says. A task that was added again has a later place.
    func isTrashed(_ info: DownloadInfo) -> Bool { trashed[info.id].map(info.order.isBefore) ?? false }

    /// The place of the last change to a running task.
    func order(of id: TaskID) -> ChangeOrder { orders[id] ?? .unknown }

    /// What ran at a former owner may not run now.
    mutating func forgetRunning() { (running, attempts, orders, trashed) = ([], [:], [:], [:]) }
}
