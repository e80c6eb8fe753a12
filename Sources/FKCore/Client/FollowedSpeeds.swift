import FKEngine
import Foundation

/// The speeds of tasks that another process runs, and the times of their last bytes, measured from their info files.
package struct FollowedSpeeds {
    private struct Look {
        var meter = SpeedMeter()
        var attempt: Int
        var received: Int64
        var lastByte: Date?
    }

    private var looks: [TaskID: Look] = [:]

    package init() {}

    /// The info with its measured speed, and the time of its last byte if one arrived between two measurements. A task that is
    /// no longer running is removed from the table.
    package mutating func measured(_ info: DownloadInfo) -> DownloadInfo {
        guard info.state == .action else {
            looks[info.id] = nil
            return info
        }
        var info = info
        var look =
            looks[info.id]
            ?? Look(attempt: info.attempts, received: info.count.received, lastByte: info.lastByteAt)
        look.meter.add(time: Int64(DispatchTime.now().uptimeNanoseconds), bytes: info.count.received)
        if info.count.received > look.received { look.lastByte = Date() }
        (look.attempt, look.received) = (info.attempts, info.count.received)
        looks[info.id] = look
        info.bytesPerSecond = look.meter.bytesPerSecond
        info.lastByteAt = look.lastByte
        return info
    }

    /// A change from the journal, not older than the last measurement. The journal has the beginning of an attempt, and the info
    /// file may have been read after that.
    package func latest(_ change: DownloadInfo) -> DownloadInfo {
        guard change.state == .action, let look = looks[change.id], look.attempt == change.attempts else {
            return change
        }
        var info = change
        info.count.received = max(change.count.received, look.received)
        return info
    }
}
