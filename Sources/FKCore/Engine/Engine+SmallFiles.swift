import FKMiddleware
import Foundation

/// Small files whose bodies are written without the engine being asked first ("Inline small files" in Docs/Architecture.md):
/// how others see them meanwhile.
///
/// A fast one has ended before anybody looks, and costs nothing here. One that is looked at has its head taken over in memory;
/// one that takes its time is recorded and counted on the disk, once a second, as the gate does it for a large one.
extension Engine {
    /// Nanoseconds an attempt has to be old for its small file to be recorded while it comes.
    private static let slow: Int64 = 500_000_000

    /// Takes the head of an inline body over into the record in memory.
    func takeInlineHead(of entry: TaskEntry) {
        guard let attempt = entry.attempt, !attempt.isEnding, let receiver = inlineReceiver(of: attempt),
            !receiver.isRecorded
        else { return }
        // Nothing of the part is touched: the only error would come from there.
        try? adopt(receiver, entry, attempt)
    }

    private func inlineReceiver(of attempt: Attempt) -> RangeReceiver? {
        guard attempt.lanes.count == 1, let lane = attempt.lanes.first, lane.claim == nil, lane.mirror == nil,
            let receiver = lane.receiver, receiver.isInline
        else { return nil }
        return receiver
    }

    /// Once a second. What cannot be written now is tried again the next time: the body does not wait for it.
    func recordSlowSmallFiles() {
        let now = clock.now
        for entry in running.values {
            guard let attempt = entry.attempt, !attempt.isEnding, !attempt.counters.isAttached,
                let start = entry.workIfAny?.start?.time, now - start >= Self.slow, inlineReceiver(of: attempt) != nil
            else { continue }
            takeInlineHead(of: entry)
            // The counters first: the record on the disk has no range yet that they could count for.
            entry.hasCleanCounters = false
            entry.workIfAny?.openInfo = nil
            guard (try? attach(attempt.counters, entry)) != nil else { continue }
            write(entry)
            account(entry)
        }
    }

    func attach(_ counters: LiveCounters, _ entry: TaskEntry) throws(DownloadError) {
        guard !counters.isAttached else { return }
        do {
            try counters.attach(path: workPath.infoPath(entry.id))
        } catch {
            throw DownloadError(
                wrapping: error, code: .disk, message: "The counters of the info file could not be opened.")
        }
    }
}
