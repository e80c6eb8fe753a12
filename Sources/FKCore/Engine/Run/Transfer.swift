import FKMiddleware
import Foundation

/// From an open part file to the last byte: the connections of one attempt, and what arrives through them. Confined to the
/// engine.
///
/// ```text
/// begin -> lanes: ask -> gate -> body -> next range … -> TaskRun.verify
/// ```
final class Transfer {
    private(set) var part: OpenPart
    private(set) var heads = Heads()
    private(set) var computed = Computed()
    /// The connections.
    var laneSet: LaneSet
    /// The pieces with digests from a list.
    var pieces = Pieces()
    unowned let run: TaskRun
    let entry: TaskEntry
    let inbox: EngineInbox
    private let fetchers: Fetchers
    /// How its bytes come now.
    var fetcher: any Fetcher { fetchers.fetcher(for: entry) }
    unowned let destinations: Destinations
    private let reuse: ReuseIndex
    unowned let rates: RateLimits
    /// The rate limits for all of its connections.
    let limits: LimiterSet
    /// A failure of the local disk, or a refusal by the head stage. It replaces the result of the transfer.
    private(set) var localError: DownloadError?
    /// True if free space is reserved for the missing bytes.
    private var hasRoom = false
    /// True once finished files were deleted for this attempt, as far as they could be.
    private var hasMadeRoom = false
    /// True once the rest of a body whose end nothing showed was requested.
    private(set) var wasAskedForEnd = false

    /// True while no connection is in use, because the reader of a stream has to move first.
    var isParked = false

    var lanes: [Lane] { laneSet.lanes }
    /// True if something vouches for the bytes of any source. A stream is read before its digest is compared, so only digests of
    /// pieces do.
    var isVouched: Bool { isStream ? entry.hasPieceDigests : entry.isVouched }
    var folder: Folder { part.file.folder }
    /// The URL of the attempt: the task's own, or a mirror.
    var url: String { part.url }
    var head: ResponseHead? { heads.last }
    var reporter: Reporter { run.reporter }
    var book: TaskBook { run.book }
    var schedule: Schedule { run.schedule }
    var clock: any EngineClock { run.clock }

    /// True once the lanes are to end.
    var isEnding: Bool { run.stop != nil || laneSet.afterLanes != nil }

    init(
        _ run: TaskRun, _ part: OpenPart, limits: RateLimits, fetchers: Fetchers, inbox: EngineInbox,
        destinations: Destinations, reuse: ReuseIndex
    ) {
        self.run = run
        self.part = part
        self.fetchers = fetchers
        self.inbox = inbox
        self.destinations = destinations
        self.reuse = reuse
        entry = run.entry
        rates = limits
        self.limits = LimiterSet(limits.limiters(for: entry), of: entry.record.number)
        laneSet = LaneSet(limit: fetchers.fetcher(for: entry).connections(limits.connections(of: entry)))
    }

    deinit { limits.leave() }

    // MARK: Beginning

    /// Sends the first request, or takes the bytes from a file that has them.
    func begin() throws(DownloadError) {
        // A task that waits for free space checks it before it sends a request.
        if entry.record.received > 0, let total = entry.record.expected {
            if let work = try room(for: total) { return run.wants(.makeRoom(work, self)) }
            try reserveRoom(total)
        }
        if entry.record.isRepair, entry.record.ranges.isEmpty { return run.wants(.copyDamaged(self)) }
        if let digest = reusableDigest { return run.wants(.reuse(digest, self)) }
        if let path = adoptablePath { return run.wants(.adopt(path, self)) }
        fetchNext()
    }

    /// Requests the first missing range, or ends the transfer if no byte is missing. No lane is in use.
    func fetchNext() {
        guard let lane = firstLane() else {
            if isStream { return park() }
            pieces.dropComparison()
            return run.verify(self)
        }
        aim(lane)
        ask(with: lane)
    }

    /// Wrong pieces are fetched again. Limits may have changed since the last byte.
    func resume() {
        limits.replace(with: rates.limiters(for: entry))
        fetchNext()
    }

    /// The SHA-256 by which a finished file may take the place of a download; nil if none may.
    private var reusableDigest: String? {
        let task = entry.record.task
        guard !isStream, task.optionsBox?.value.reuse == true, entry.record.received == 0,
            let checksum = task.optionsBox?.value.checksum, checksum.algorithm == .sha256
        else { return nil }
        return checksum.hex
    }

    /// Takes the bytes from a finished file with this digest, or fetches them.
    func reuse(_ digest: String, isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        let (file, index, workPath) = (part.file, reuse, book.workPath)
        let found = try await run.offThread { () throws(DownloadError) in
            try index.fill(file, with: digest, in: workPath)
        }
        guard let found else {
            if let path = adoptablePath { return try await adopt(path) }
            return fetchNext()
        }
        entry.remakeRanges { $0.fill(found.length) }
        part.counters.store(0, found.length)
        computed.adopt(sha256: digest)
        entry.record.record(0..<found.length, from: "file://\(found.path)")
        run.appendHistory(by: "reuse", "\(found.path) has the same bytes: nothing was fetched")
        run.verify(self)
    }

    /// The part file has the bytes of a damaged one. The damaged ranges are missing.
    func continueCopy(_ ranges: [SavedRange]) {
        let length = part.file.length
        entry.remakeRanges { record in
            record.repair(with: ranges)
            for index in ranges.indices where ranges[index].position > length { record.shorten(index, to: length) }
        }
        countRanges()
        fetchNext()
    }

    /// The ranges of the record have bytes that this attempt has copied to the part file.
    func countRanges() {
        part.counters = LiveCounters(entry.record.ranges)
        part.isResumed = true
        reporter.account(entry)
    }

    // MARK: What arrives

    /// A response was recorded.
    func record(head: ResponseHead) { heads.last = head }

    /// A response has failed.
    func record(refused head: ResponseHead?) { heads.refused = head }

    /// This error replaces the result of the transfer.
    func fail(_ error: DownloadError) { localError = error }

    func recordAskedForEnd() { wasAskedForEnd = true }

    /// The server sends the file from its beginning, and the stored bytes do not count.
    func restart(_ receiver: RangeReceiver) {
        computed.restart()
        laneSet.holes = []
        pieces.ledger?.restart()
        part.counters.store(0, receiver.position)
        receiver.assign(index: 0)
        laneSet.lane(of: receiver)?.index = 0
    }

    /// A response has ended.
    ///
    /// - Parameter isIntact: false if bytes were dropped since its request.
    func adopt(_ receiver: RangeReceiver, isIntact: Bool) {
        entry.foldCounters()
        if isIntact, let piece = receiver.piece { entry.record.add(piece) }
        computed.merge(receiver.digests.sums)
    }

    /// A body has ended, at the end of the file if the digest is to be known.
    func adoptDigest(of receiver: RangeReceiver) { computed.adoptDigest(of: receiver) }

    /// These bytes are fetched again. What was computed over them does not count.
    func spoil(_ piece: Range<Int64>) {
        computed.spoil(piece)
        pieces.reopens += 1
        if !laneSet.holes.contains(piece) { laneSet.holes.append(piece) }
    }

    // MARK: Small files

    /// The age of an attempt, in nanoseconds, from which its small file is recorded while it arrives.
    private static let slow: Int64 = 500_000_000

    /// Stores the head of an inline body in the record in memory ("Inline small files" in Docs/Architecture.md).
    func drainInlineHead() {
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

    /// Records a slow small file, as the gate does for a large one. To be called once a second. A failed write is repeated the
    /// next time; the body does not wait for it.
    func recordSlowSmallFile() {
        guard !isEnding, !part.counters.isAttached, clock.now - run.attempt.began >= Self.slow, inlineReceiver != nil
        else { return }
        drainInlineHead()
        run.closeInfo()
        guard (try? book.attach(part.counters, of: entry)) != nil else { return }
        book.write(entry)
        reporter.account(entry)
    }

    // MARK: Free space

    /// Reserves free space for the missing bytes of a file.
    ///
    /// - Throws: `.noSpace` if they do not fit beside what other tasks have reserved.
    func reserveRoom(_ total: Int64) throws(DownloadError) {
        for (folder, bytes) in needs(total, held: part.file.occupied) {
            try destinations.disk(for: entry, in: folder)?.check(
                bytes, folder: folder.path, isResumed: entry.received > 0)
        }
        hasRoom = true
    }

    /// Claims the file's part of the disk budget.
    ///
    /// - Returns: the work that makes room; nil if the file fits.
    /// - Throws: `.noSpace` for a file that can never fit.
    func room(for total: Int64) throws(DownloadError) -> (@Sendable () -> Result<TrimmedFiles, DownloadError>)? {
        guard let budget = destinations.budget, schedule.configure.diskBudget != nil, !isStream else { return nil }
        var shortage: DiskTrim.Shortage?
        // Once: where trimming was not enough, the disk has its say.
        if !hasMadeRoom {
            for (folder, bytes) in needs(total, held: part.file.occupied) where bytes > 0 {
                guard let spare = destinations.disk(for: entry, in: folder)?.spare, spare < bytes,
                    let device = folder.device
                else { continue }
                shortage = .init(
                    device: UInt64(truncatingIfNeeded: device), bytes: bytes.subtractingReportingOverflow(spare).0)
            }
        }
        return try budget.room(for: total, of: entry, shortage: shortage)
    }

    /// Makes room, and begins.
    func makeRoom(
        _ work: @escaping @Sendable () -> Result<TrimmedFiles, DownloadError>,
        isolation: isolated (any Actor)? = #isolation
    ) async throws(DownloadError) {
        let run = run
        let result = await withCheckedContinuation { continuation in
            run.onDisk { continuation.resume(returning: work()) }
        }
        try recordTrimmed(result, for: entry.record.expected ?? 0)
        try run.checkStop()
        try begin()
    }

    /// Records what was deleted.
    ///
    /// - Throws: `.noSpace` if the file does not fit now.
    func recordTrimmed(_ result: Result<TrimmedFiles, DownloadError>, for total: Int64) throws(DownloadError) {
        hasMadeRoom = true
        if case .success(let trimmed) = result, !trimmed.isEmpty {
            run.appendHistory(by: "disk budget", trimmed.summary)
        }
        try destinations.budget?.trimmed(result, for: total, of: entry)
    }

    /// The missing bytes for which free space is reserved on that device.
    func reservedBytes(on device: dev_t?) -> Int64 {
        guard hasRoom else { return 0 }
        let needs = needs(entry.record.expected ?? 0, held: entry.received)
        return needs.reduce(0) { $0 + ($1.0.device == device ? $1.1 : 0) }
    }

    /// The bytes that the file will still take in each folder. On another file system than the part, the destination gets a copy.
    private func needs(_ total: Int64, held: Int64) -> [(Folder, Int64)] {
        if let ring = part.file.ring { return [(folder, max(0, min(total, ring.size) - part.file.occupied))] }
        let ofPart = (folder, max(0, total - held))
        return part.home.device == folder.device ? [ofPart] : [ofPart, (part.home, total)]
    }

    // MARK: Limits

    /// Applies other rate limits. Transfers that pause under the former ones continue.
    func use(_ limiters: [RateLimiter]) {
        limits.replace(with: limiters)
        lanes.forEach { $0.request.operation?.resume() }
    }

    /// The number of connections that the file may have.
    var connectionLimit: ConnectionLimit { fetcher.connections(rates.connections(of: entry)) }

    /// Set while the system has its request.
    var systemWait: Waiting? { fetchers.systemWait(of: entry.id, run.configure.networks) }

    /// How the bytes of a lane come now.
    func fetcher(of lane: Lane) -> any Fetcher { lane.trial == nil ? fetcher : fetchers.usual }

    // MARK: Stopping

    /// Ends all lanes, and the reading of the part file.
    func abandon() {
        cancel()
        part.file.abandon()
        computed.follower?.abandon()
    }

    func cancel() { lanes.forEach { $0.cancel() } }
}
