import Foundation

/// The speeds of tasks that another process runs, measured from their info files.
package struct FollowedSpeeds {
    private var meters: [TaskID: SpeedMeter] = [:]

    /// Creates an empty table.
    package init() {}

    /// The info with its measured speed. A task that is no longer running is removed from the table.
    package mutating func measured(_ info: DownloadInfo) -> DownloadInfo {
        guard info.state == .action else {
            meters[info.id] = nil
            return info
        }
        var info = info
        meters[info.id, default: SpeedMeter()].add(
            time: Int64(DispatchTime.now().uptimeNanoseconds), bytes: info.count.received)
        info.bytesPerSecond = meters[info.id]?.bytesPerSecond ?? 0
        return info
    }

    /// The sum of the last measured speeds of these tasks.
    func sum(of ids: some Sequence<TaskID>) -> Double {
        ids.reduce(0) { $0 + (meters[$1]?.bytesPerSecond ?? 0) }
    }
}
