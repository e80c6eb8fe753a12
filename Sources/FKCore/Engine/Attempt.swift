import FKMiddleware
import Foundation

/// One try to fetch what is missing of a task. Confined to the engine.
final class Attempt {
    enum Stop {
        /// Suspended, or the engine closes: bytes stay.
        case keepingBytes
        /// Cancelled or trashed.
        case droppingBytes
    }

    let folder: Folder
    let part: PartFile
    let counters: LiveCounters
    /// Bytes were there when it began.
    let isResumed: Bool
    /// The URL it fetches from: the task's own, or a mirror.
    let url: String
    var operation: (any TransportOperation)?
    var receiver: RangeReceiver?
    /// A request or response chain at work.
    var chain: Task<Void, Never>?
    /// Set once somebody wants it to end; what runs is then abandoned as soon as it reports back.
    var stop: Stop?
    /// Who waits for it to have ended.
    var whenEnded: [CheckedContinuation<Void, Never>] = []
    /// How often the same range was asked for in another way; 2 at most.
    var asksAgain = 0
    /// What the last request asked for.
    var lastAsk = RangeAsk()
    /// What the next one asks for, where the server's answer to the last one demands another way.
    var nextAsk: RangeAsk?
    /// Digest of the whole file, where its bytes came in order.
    var digest: (algorithm: Checksum.Algorithm, hex: String)?
    /// The record on disk says that the task is complete.
    var isRecordedComplete = false
    /// A failure of our own disk, which counts instead of how the transfer ended.
    var diskError: DownloadError?
    /// The head of the last response, with all of its fields.
    var head: ResponseHead?

    init(folder: Folder, part: PartFile, counters: LiveCounters, isResumed: Bool, url: String) {
        self.folder = folder
        self.part = part
        self.counters = counters
        self.isResumed = isResumed
        self.url = url
    }
}
