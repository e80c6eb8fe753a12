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

    struct Sample {
        var time: Int64
        var received: Int64
        /// Lanes through which bytes came.
        var lanes: Int
    }

    enum AfterLanes {
        /// The attempt has failed.
        case fail(DownloadError)
        /// The bytes held are of no use, or ranges are not: one connection asks so.
        case restart(RangeAsk)
    }

    let folder: Folder
    let part: PartFile
    let counters: LiveCounters
    /// Bytes were there when it began.
    let isResumed: Bool
    /// The rate limits that hold for all of its connections.
    let limits: LimiterSet
    /// The URL it fetches from: the task's own, or a mirror.
    let url: String
    /// The connections at work; the first one began alone.
    private(set) var lanes: [Lane] = []
    private var lastLane = 0
    /// The response chain at work.
    var chain: Task<Void, Never>?
    /// Set once somebody wants it to end; what runs is then abandoned as soon as it reports back.
    var stop: Stop?
    /// Verbs that wait for it to have ended, and for how many ticks the longest has waited.
    private var waiters: [CheckedContinuation<Bool, Never>] = []
    private var ticksWaited = 0
    private var isOver = false
    /// What became of the files of its task, which was trashed meanwhile.
    var trashNote = "forgotten"
    /// What happens once the last lane has ended.
    var afterLanes: AfterLanes?
    /// How many lanes it may have.
    var growth = LaneGrowth(limit: .fixed(1))
    /// Where else several connections may fetch from.
    var mirrors: MirrorSources
    /// The beginning of the step that `growth` measures.
    var sample: Sample?
    /// Digest of the whole file, where its bytes came in order.
    var digest: (algorithm: Checksum.Algorithm, hex: String)?
    /// The record on disk says that the task is complete.
    var isRecordedComplete = false
    /// A failure of our own disk, which counts instead of how the transfer ended.
    var diskError: DownloadError?
    /// What is missing of the file is taken into account where others ask for room.
    var hasRoom = false
    /// The head of the last response, with all of its fields.
    var head: ResponseHead?

    init(
        folder: Folder, part: PartFile, counters: LiveCounters, isResumed: Bool, url: String, plan: [String],
        limiters: [RateLimiter] = []
    ) {
        limits = LimiterSet(limiters)
        self.folder = folder
        self.part = part
        self.counters = counters
        self.isResumed = isResumed
        self.url = url
        mirrors = MirrorSources(own: url, plan: plan)
    }

    /// A request or response middleware is at work for it.
    var isInMiddleware: Bool { chain != nil || lanes.contains { $0.chain != nil } }

    // MARK: Waiting for the end

    /// Waits until nothing of it runs any more; to be called once it was told to stop.
    ///
    /// - Returns: false where the wait was given up because of a middleware that does not return.
    @discardableResult
    func ended(isolation: isolated (any Actor)? = #isolation) async -> Bool {
        if isOver { return true }
        return await withCheckedContinuation { waiters.append($0) }
    }

    func end() {
        isOver = true
        waiters.forEach { $0.resume(returning: true) }
        waiters = []
    }

    /// Lets go who waits for a middleware: that may be waiting for them.
    func releaseWaiters() {
        guard isInMiddleware else { return }
        waiters.forEach { $0.resume(returning: false) }
        waiters = []
    }

    /// Once a second.
    func releaseLongWaiters() {
        guard !waiters.isEmpty, isInMiddleware else { return ticksWaited = 0 }
        ticksWaited += 1
        if ticksWaited > Self.patience { releaseWaiters() }
    }

    /// Seconds for which a verb waits for a middleware.
    private static let patience = 5

    func addLane() -> Lane {
        lastLane += 1
        let lane = Lane(number: lastLane)
        lanes.append(lane)
        return lane
    }

    func remove(_ lane: Lane) { lanes.removeAll { $0 === lane } }

    func lane(of receiver: RangeReceiver) -> Lane? { lanes.first { $0.receiver === receiver } }

    func lane(number: Int) -> Lane? { lanes.first { $0.number == number } }

    /// The lane that fills this range.
    func lane(filling index: Int) -> Lane? { lanes.first { $0.index == index } }
}
