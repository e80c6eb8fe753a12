import FKMiddleware
import Foundation
import Synchronization

/// Writes the body of one response into one range of the part file, directly in the transport's callback.
///
/// It makes no decisions: `ResumeRules` interprets the head. If the info file must be updated before bytes are
/// overwritten, the receiver pauses the transfer until the engine opens the gate.
///
/// ```text
/// head -> ResumeRules -> [look for a web page] -> [compare overlap] -> [gate: engine writes the record] -> limits -> [gather] -> pwrite -> counter
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
    /// True while it waits for the reader of a stream. Safe to read from any thread.
    var isHeld: Bool { waitsForReader.load(ordering: .relaxed) }
    private let waitsForReader = Atomic<Bool>(false)
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
    /// A body that may be a web page in the place of the file; nil once its first bytes have shown that it is none.
    private var look: Look?
    /// First bytes that were looked at, and are written once the gate is open.
    private var seen: [UInt8] = []

    /// The first bytes of a body that may be a web page.
    private struct Look {
        /// The error for a page.
        var error: DownloadError
        var held: [UInt8] = []
        /// True if the part file is empty.
        var isFresh: Bool
        /// The length of the body; nil if it is unknown.
        var length: Int64?
    }

    /// The number of compared or written bytes that the transport offers again, before new ones.
    private var handled = 0
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
        wantsSums = plan.part.ring == nil && (total ?? .max) > PieceSums.pieceLength
        if position == 0, plan.part.ring == nil, let algorithm = plan.digest ?? ServerDigest.parse(head)?.algorithm,
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
        if let decision, let error = ResumeRules.suspicion(of: head, decision, ask: plan.ask, known: plan.known) {
            isUncompared = true
            look = Look(error: error, isFresh: isFresh, length: length)
            return
        }
        beginWriting(isFresh: isFresh, length: length)
    }

    /// Opens the gate for a small body, or asks the engine for it.
    private func beginWriting(isFresh: Bool, length: Int64?) {
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
        if let verdict = refusal?.append(bytes) { return verdict }
        if let verdict = lookAt(bytes) ?? compare(bytes) { return verdict }
        guard gateIsOpen.load(ordering: .acquiring) else { return .pause(nil) }
        if !seen.isEmpty {
            let first = seen
            seen = []
            let verdict = first.withUnsafeBytes { write($0) }
            guard case .consumed = verdict else { return verdict }
        }
        return pass(bytes)
    }

    /// Writes the bytes that the rate limits let through. The rest is offered again later, with the bytes before it.
    private func pass(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict {
        var done = min(handled, bytes.count)
        while done < bytes.count {
            guard let wanted = room(for: bytes.count - done) else {
                if case .fail(let error) = writeGathered() { return .fail(error) }
                handled = done
                return .pause(nil)
            }
            switch plan.limits.spend(wanted, now: plan.clock.now) {
            case .wait(let seconds):
                handled = done
                return .pause(.seconds(seconds))
            case .bytes(let count):
                let verdict = keep(UnsafeRawBufferPointer(rebasing: bytes[done..<done + count]))
                guard case .consumed = verdict else { return verdict }
                done += count
            }
        }
        handled -= min(handled, bytes.count)
        return .consumed
    }

    /// The number of bytes that the window of a stream has room for, at most `count`; nil if the reader has to move first.
    private func room(for count: Int) -> Int? {
        guard let ring = plan.part.ring else { return count }
        let place = position + Int64(gathered?.bytes.count ?? 0)
        // The end of the range comes first: bytes behind it are dropped.
        let room = isEnd(place) ? .max : ring.room(at: place)
        waitsForReader.store(room <= 0, ordering: .relaxed)
        return room > 0 ? Int(min(Int64(count), room)) : nil
    }

    /// Writes the bytes, or gathers them with others.
    private func keep(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict {
        if gathered == nil {
            // A short piece, or the last one of the range, has nothing to wait for.
            guard isToldOfWaits, bytes.count == Self.fullPiece, !isEnd(position + Int64(bytes.count)) else {
                return write(bytes)
            }
        }
        return gather(bytes)
    }

    /// Looks at the first bytes of a body that may be a web page, and begins to write once they are none. nil if there is nothing
    /// to look at any more.
    private func lookAt(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict? {
        guard let look else { return nil }
        let first = look.held + bytes.prefix(PageRules.lookedAt - look.held.count)
        let isAll = look.length.map { Int64(look.held.count + bytes.count) >= $0 } ?? false
        switch PageRules.isPage(first, isAll: isAll) {
        case nil:
            self.look?.held = first
            return .consumed
        case true?: return .fail(look.error)
        case false?:
            self.look = nil
            seen = look.held
            isUncompared = false
            beginWriting(isFresh: look.isFresh, length: look.length)
            // The engine may have opened the gate already. Otherwise these bytes are offered again.
            return nil
        }
    }

    /// A body has ended before its first bytes have shown what it is. An empty one is a file; what begins as a page does is one.
    private func endLook(_ result: Result<TransportSummary, DownloadError>) {
        guard let look else { return }
        guard case .success = result else { return }
        if look.held.isEmpty, look.isFresh {
            isUncompared = false
        } else {
            outcome = .ended(.failure(look.error))
        }
    }

    /// Compares the bytes before the seam, and asks the engine once they are equal. nil if there is nothing to compare.
    private func compare(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict? {
        guard seam != nil else { return nil }
        switch seam?.feed(bytes) {
        case .needsMore: return .consumed
        case .equal(let newBytesAt):
            seam = nil
            isUncompared = false
            handled = newBytesAt
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
        endLook(result)
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
