import Foundation

/// Speeds of tasks that another process runs, measured from what their info files show.
package struct FollowedSpeeds {
    private var meters: [TaskID: SpeedMeter] = [:]

    package init() {}

    /// The info with its speed; a task that does not run any more is forgotten.
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
}
