import FKMiddleware
import Foundation

/// Small files whose bodies are written without the engine being asked first ("Inline small files" in Docs/Architecture.md):
/// how others see them meanwhile.
///
/// A fast one has ended before anybody looks, and costs nothing here. One that is looked at has its head taken over in memory;
/// one that takes its time is recorded and counted on the disk, once a second, as the gate does it for a large one.
extension TaskRun {
    /// Nanoseconds an attempt has to be old for its small file to be recorded while it comes.
    private static let slow: Int64 = 500_000_000

    /// Takes the head of an inline body over into the record in memory.
    func takeInlineHead() {
        guard !isEnding, let receiver = inlineReceiver, !receiver.isRecorded else { return }
        // Nothing of the part is touched: the only error would come from there.
        try? adopt(receiver)
    }

    private var inlineReceiver: RangeReceiver? {
        guard lanes.count == 1, let lane = lanes.first, lane.claim == nil, lane.mirror == nil,
            let receiver = lane.receiver, receiver.isInline
        else { return nil }
        return receiver
    }

    /// Once a second. What cannot be written now is tried again the next time: the body does not wait for it.
    func recordSlowSmallFile() {
        guard !isEnding, let counters, !counters.isAttached, clock.now - began >= Self.slow, inlineReceiver != nil
        else { return }
        takeInlineHead()
        openInfo = nil
        guard (try? book.attach(counters, of: entry)) != nil else { return }
        book.write(entry)
        reporter.account(entry)
    }

    // MARK: Free space

    /// Looks whether the rest of a file of that length fits beside what other tasks have begun, and promises it to the task.
    ///
    /// - Throws: `.noSpace`.
    func reserveRoom(_ total: Int64) throws(DownloadError) {
        try room.disk(for: entry, in: folder)?.check(
            total - min(total, part.occupied), folder: folder.path, isResumed: entry.received > 0)
        hasRoom = true
    }

    /// Its part file is on that device.
    func isOn(_ device: dev_t?) -> Bool { counters != nil && folder.device == device }
}
