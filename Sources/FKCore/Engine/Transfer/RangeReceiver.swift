import FKMiddleware
import Foundation
import Synchronization

/// Writes the body of one response into one range of the part file, directly in the transport's callback.
///
/// It makes no decisions: `ResumeRules` interprets the head. If the info file must be updated before bytes are
/// overwritten, the receiver pauses the transfer until the engine opens the gate.
///
/// ```text
/// head -> ResumeRules -> [compare overlap] -> [gate: engine writes the record] -> limits -> [gather] -> pwrite -> counter
/// ```
///
/// The gate comes after the comparison: the record must not have the validator of another file for the stored bytes.
///
/// Pieces of a fast transfer are gathered and written together. A piece waits for others only until the transport has
/// handed over what it has read, or until the buffer is full.
final class RangeReceiver: TransportHandler, @unchecked Sendable {
    // Sendable because the mutable members belong to the transport's thread until `onEnd` is called, and to the
    // engine afterwards. `isRecorded` always belongs to the engine. `gateIsOpen`, `limit`, `hasHead` and
    // `hasInlineHead` are atomics. The lock of the engine's inbox hands the receiver over.

    /// The end of the response.
    enum Outcome {
        case ended(Result<TransportSummary, DownloadError>)
        /// Status 416 with our own length: nothing was left to fetch.
        case complete(total: Int64)
        /// The same range must be requested in another way. Nothing of the response was kept.
        case askAgain(ResumeRules.Again)
        /// The bytes at the seam differ: the file on the server is another one.
        case seamDiffers
        /// The bytes compared with another mirror's file are a run of one value.
        case seamProvesNothing
    }

    /// The values that are fixed when the request is sent.
    struct Plan {
        var ask: RangeAsk
        var known: ResumeRules.Known
        /// The index of the range and of its live counter; nil until the engine has assigned one.
        var index: Int?
        var segments: Int
        var part: PartFile
        var counters: LiveCounters
        var limits: LimiterSet
        var digest: Checksum.Algorithm?
        /// The maximum length of a body that may be written into an empty part without asking the engine first.
        var inlineLimit: Int64
        /// Compute a checksum of the bytes, for the time until the file is synced.
        var wantsPiece = false
        var clock: any EngineClock
        var echo: EchoMasking
    }

    let plan: Plan
    /// The index of the range and of its live counter. The engine sets it before it opens the gate.
    private(set) var index: Int
    private(set) var head: ResponseHead?
    /// True once there is a head. Safe to read from any thread at any time.
    var isAnswered: Bool { hasHead.load(ordering: .relaxed) }
    private let hasHead = Atomic<Bool>(false)
    /// True if the body is written without asking the engine. Safe to read from any thread. Once it is true, `head`,
    /// `decision` and `askedEngine` no longer change and are safe to read as well.
    var isInline: Bool { hasInlineHead.load(ordering: .acquiring) }
    private let hasInlineHead = Atomic<Bool>(false)
    /// For the engine: the record contains what the head says.
    var isRecorded = false
    private(set) var decision: ResumeRules.HeadDecision?
    /// The length of the whole file, if the head contains it.
    var total: Int64? {
        switch decision {
        case .append(_, _, let total), .startOver(let total): total
        default: nil
        }
    }
    /// The offset after the last byte that `Content-Range` announced; nil for any other response.
    private var announced: Int64? {
        if case .append(_, let until, _) = decision { until } else { nil }
    }
    /// True if the body has ended before the end that its `Content-Range` announced, or another connection's range.
    var isCut: Bool { announced.map { position < min($0, limit.load(ordering: .acquiring)) } ?? false }
    /// True if the end of this response is not known to be the end of the file: it is a part of a file of unknown length.
    var isPart: Bool { announced != nil && total == nil }
    private(set) var outcome: Outcome?
    /// The offset in the file of the next byte.
    private(set) var position: Int64
    /// The offset of the first byte that was written; nil if none was.
    private(set) var start: Int64?
    /// The digest of the file while its bytes arrive in order from 0; nil as soon as they do not, and for a large file.
    private(set) var digester: Digester?
    /// Computes the digest of a large file whose bytes arrive in order from 0.
    private(set) var follower: DigestFollower?
    /// The position up to which the follower may read.
    private var followed: Int64 = 0
    /// The written piece with its checksum.
    var piece: PieceChecksum? {
        pieceStart.map { PieceChecksum(start: $0, end: position, crc32c: wantsSums ? sums.whole : crc.value) }
    }
    /// The checksums of the file's pieces, of the bytes that were written.
    private(set) var sums = PieceSums()
    private var wantsSums = false
    private var pieceStart: Int64?
    private var crc = CRC32C()
    /// True once the gate was needed. The engine has then recorded the head.
    private(set) var askedEngine = false

    /// The bytes before the seam, requested again for comparison.
    private var seam: TailComparison?
    /// True until the bytes before the seam have been compared. The head then says nothing about the stored bytes.
    private(set) var isUncompared = false
    /// The number of compared bytes that the transport offers again after the gate.
    private var compared = 0
    /// Bytes that have arrived and are not in the part file yet; nil if there are none.
    private var gathered: GatherBuffer?
    /// True once the transport has announced a wait, so it announces every one and bytes may be gathered until then.
    private var isToldOfWaits = false

    /// Set if the head had an error status.
    private var refusal: RefusedAnswer?
    private let gateIsOpen = Atomic<Bool>(false)
    private let limit = Atomic<Int64>(.max)
    private let onGate: @Sendable (RangeReceiver) -> Void
    private let onEnd: @Sendable (RangeReceiver) -> Void

    /// Creates a receiver for one response.
    ///
    /// - Parameters:
    ///   - onGate: called on the transport's thread when the engine must record the head and then call `openGate()`.
    ///   - onEnd: called on the transport's thread exactly once, last.
    init(
        plan: Plan, onGate: @escaping @Sendable (RangeReceiver) -> Void,
        onEnd: @escaping @Sendable (RangeReceiver) -> Void
    ) {
        self.plan = plan
        index = plan.index ?? -1
        self.onGate = onGate
        self.onEnd = onEnd
        position = plan.ask.start
    }

    /// Assigns another range. Allowed only while the gate is closed.
    func assign(index: Int) { self.index = index }

    /// Allows writing, after the engine has recorded the head. Call the operation's `resume()` afterwards.
    func openGate() { gateIsOpen.store(true, ordering: .releasing) }

    /// Moves the end of the range (exclusive) when another connection takes its second half. Safe to call from any
    /// thread.
    func setLimit(_ end: Int64) { limit.store(end, ordering: .releasing) }

    // MARK: TransportHandler, on the transport's thread

    func transport(didReceive head: ResponseHead) throws(DownloadError) {
        let decision = ResumeRules.decide(head: head, ask: plan.ask, known: plan.known, segments: plan.segments)
        self.head = head
        self.decision = decision
        hasHead.store(true, ordering: .relaxed)
        switch decision {
        case .append(let skip, let until, let total):
            position = plan.ask.start
            limit.store(until ?? total ?? .max, ordering: .relaxed)
            try prepare(
                head, isFresh: position == 0, overlap: skip, length: (until ?? total).map { $0 - position })
        case .startOver(let total):
            position = 0
            limit.store(total ?? .max, ordering: .relaxed)
            let isFresh = plan.ask.start == 0
            try prepare(head, isFresh: isFresh, overlap: 0, length: total)
        case .complete(let total):
            outcome = .complete(total: total)
            throw Self.stopped
        case .askAgain(let again):
            outcome = .askAgain(again)
            throw Self.stopped
        case .refuse(let error) where error.code == .httpStatus:
            refusal = RefusedAnswer(error)
        case .refuse(let error):
            throw error
        }
    }

    private func prepare(_ head: ResponseHead, isFresh: Bool, overlap: Int64, length: Int64?) throws(DownloadError) {
        wantsSums = (total ?? .max) > PieceSums.pieceLength
        if position == 0, let algorithm = plan.digest ?? ServerDigest.parse(head)?.algorithm,
            algorithm != .gitBlob || total != nil, algorithm != .crc32c || !wantsSums
        {
            if let total, total >= DigestFollower.minLength {
                follower = DigestFollower(algorithm, length: total, of: plan.part)
            } else {
                digester = Digester(algorithm, length: total ?? 0)
            }
        }
        if overlap > 0 {
            isUncompared = true
            let held = try plan.part.bytes(at: plan.ask.start - overlap, count: Int(overlap))
            guard held.count == Int(overlap) else {
                outcome = .seamDiffers
                throw Self.stopped
            }
            if Set(held).count < 2, isSampleTrusted(head) {
                outcome = .seamProvesNothing
                throw Self.stopped
            }
            seam = TailComparison(held: held)
            return
        }
        if isFresh, let length, length <= plan.inlineLimit {
            gateIsOpen.store(true, ordering: .relaxed)
            hasInlineHead.store(true, ordering: .releasing)
        } else {
            askedEngine = true
            onGate(self)
        }
    }

    /// True if the bytes at the seam are the only reason to join. They must then differ between files, so a run of one
    /// value is not enough.
    private func isSampleTrusted(_ head: ResponseHead) -> Bool {
        plan.known.whenUnknown == .trustSample && plan.known.joins(head) == .unknown
    }

    func transport(didReceive bytes: UnsafeRawBufferPointer) -> BodyVerdict {
        if let verdict = refusal?.take(bytes) { return verdict }
        if let verdict = compare(bytes) { return verdict }
        guard gateIsOpen.load(ordering: .acquiring) else { return .pause(nil) }
        if let seconds = plan.limits.take(bytes.count, now: plan.clock.now) {
            return .pause(.seconds(seconds))
        }
        let known = min(compared, bytes.count)
        compared -= known
        let bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(known))
        if bytes.isEmpty { return .consumed }
        if gathered == nil {
            // A short piece, or the last one of the range, has nothing to wait for.
            guard isToldOfWaits, bytes.count == Self.fullPiece, !isEnd(position + Int64(bytes.count)) else {
                return write(bytes)
            }
        }
        return gather(bytes)
    }

    /// Compares the bytes before the seam, and asks the engine once they are equal. nil if there is nothing to compare.
    private func compare(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict? {
        guard seam != nil else { return nil }
        switch seam?.feed(bytes) {
        case .needsMore: return .consumed
        case .equal(let newBytesAt):
            seam = nil
            isUncompared = false
            compared = newBytesAt
            askedEngine = true
            onGate(self)
            // The engine may have opened the gate already. Otherwise these bytes are offered again.
            return nil
        default:
            outcome = .seamDiffers
            return .fail(Self.stopped)
        }
    }

    func transportWillWait() throws(DownloadError) {
        isToldOfWaits = true
        if case .fail(let error) = writeGathered() { throw error }
    }

    private func isEnd(_ position: Int64) -> Bool { position >= limit.load(ordering: .acquiring) }

    /// Keeps the bytes until the buffer is full, the range ends, or the transport waits.
    private func gather(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict {
        var bytes = bytes
        while !bytes.isEmpty {
            let buffer = gathered ?? .taken()
            gathered = buffer
            bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(buffer.append(bytes, start: position)))
            if buffer.room(start: position) == 0 || isEnd(position + Int64(buffer.bytes.count)) {
                let verdict = writeGathered()
                guard case .consumed = verdict else { return verdict }
            }
        }
        return .consumed
    }

    private func writeGathered() -> BodyVerdict {
        guard let gathered else { return .consumed }
        self.gathered = nil
        defer { gathered.giveBack() }
        return write(gathered.bytes)
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict {
        var bytes = bytes
        let room = limit.load(ordering: .acquiring) - position
        let isExcess = Int64(bytes.count) > room
        if isExcess { bytes = UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(max(0, room)))) }
        if let size = plan.known.size, position + Int64(bytes.count) > size {
            return .fail(ResumeRules.wrongSize(position + Int64(bytes.count), size, isAtLeast: true))
        }
        if let maxSize = plan.known.maxSize, position + Int64(bytes.count) > maxSize {
            return .fail(
                DownloadError(
                    .tooLarge,
                    "The server sends more than the limit of \(Plural.count(maxSize, "byte")).",
                    remedy: .raiseMaxSize))
        }
        if !bytes.isEmpty {
            do {
                try plan.part.write(bytes, at: position)
            } catch {
                return .fail(error)
            }
            if plan.wantsPiece {
                if pieceStart == nil { pieceStart = position }
                if !wantsSums { crc.update(bytes) }
            }
            if start == nil { start = position }
            if wantsSums { sums.add(bytes, at: position) }
            position += Int64(bytes.count)
            // A piece that is not full is the last one available, and the next one may take long.
            plan.counters.store(index, position, moreFollows: bytes.count == Self.fullPiece)
            digester?.update(bytes)
            if let follower, position - followed >= DigestFollower.step {
                followed = position
                follower.advance(to: position)
            }
        }
        return isExcess ? .enough : .consumed
    }

    func transportDidFinish(_ result: Result<TransportSummary, DownloadError>) {
        if let refusal { outcome = .ended(.failure(refusal.explained(by: head, plan.echo))) }
        // The bytes that arrived before the end count, whatever the end is.
        let last = writeGathered()
        if outcome == nil {
            if case .success = result, case .fail(let error) = last {
                outcome = .ended(.failure(error))
            } else {
                outcome = .ended(result)
            }
        }
        if case .failure = result { follower?.abandon() }
        onEnd(self)
    }

    /// The size in bytes of libcurl's pieces when a body arrives faster than it is read. TLS records have the same
    /// size.
    private static let fullPiece = 16 << 10

    private static let stopped = DownloadError(.cancelled, "The response was not needed.")
}
