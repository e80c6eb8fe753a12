import FKMiddleware
import Foundation

/// Small files whose bodies are written without asking the engine ("Inline small files" in Docs/Architecture.md).
///
/// A fast one needs nothing here. A snapshot of a task stores the head in the record in memory. A slow one is written to its
/// info file once a second, as the gate does for a large file.
extension TaskRun {
    /// The age of an attempt, in nanoseconds, from which its small file is recorded while it arrives.
    private static let slow: Int64 = 500_000_000

    /// Stores the head of an inline body in the record in memory.
    func takeInlineHead() {
        guard !isEnding, let receiver = inlineReceiver, !receiver.isRecorded else { return }
        // Only changes of the part can fail, and there are none.
        try? adopt(receiver)
    }

    private var inlineReceiver: RangeReceiver? {
        guard lanes.count == 1, let lane = lanes.first, lane.claim == nil, lane.mirror == nil,
            let receiver = lane.receiver, receiver.isInline
        else { return nil }
        return receiver
    }

    /// Records a slow small file. To be called once a second. A failed write is repeated the next time; the body does not
    /// wait for it.
    func recordSlowSmallFile() {
        guard !isEnding, let counters, !counters.isAttached, clock.now - attempt.began >= Self.slow,
            inlineReceiver != nil
        else { return }
        takeInlineHead()
        openInfo = nil
        guard (try? book.attach(counters, of: entry)) != nil else { return }
        book.write(entry)
        reporter.account(entry)
    }

    // MARK: Free space

    /// Reserves free space for the missing bytes of a file.
    ///
    /// - Throws: `.noSpace` if they do not fit beside what other tasks have reserved.
    func reserveRoom(_ total: Int64) throws(DownloadError) {
        try room.disk(for: entry, in: folder)?.check(
            total - min(total, part.occupied), folder: folder.path, isResumed: entry.received > 0)
        hasRoom = true
    }

    /// True if the part file is on that device.
    func isOn(_ device: dev_t?) -> Bool { counters != nil && folder.device == device }
}
