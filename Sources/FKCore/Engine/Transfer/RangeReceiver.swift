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
    // engine afterwards. `isRecorded` always belongs to the engine. `signals` are atomics. The lock of the engine's
    // inbox hands the receiver over.

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

    /// What the transport's thread and the engine's tell each other.
    private struct Signals: ~Copyable {
        let hasHead = Atomic<Bool>(false)
        let hasInlineHead = Atomic<Bool>(false)
        let waitsForReader = Atomic<Bool>(false)
        let gateIsOpen = Atomic<Bool>(false)
        /// The end of the range (exclusive).
        let limit = Atomic<Int64>(.max)
    }

    let plan: Plan
    /// The index of the range and of its live counter. The engine sets it before it opens the gate.
    private(set) var index: Int
    private(set) var head: ResponseHead?
    /// True once there is a head. Safe to read from any thread at any time.
    var isAnswered: Bool { signals.hasHead.load(ordering: .relaxed) }
    /// True if the body is written without asking the engine. Safe to read from any thread. Once it is true, `head`,
    /// `decision` and `askedEngine` no longer change and are safe to read as well.
    var isInline: Bool { signals.hasInlineHead.load(ordering: .acquiring) }
    /// For the engine: the record contains what the head says.
    var isRecorded = false
    private(set) var decision: ResumeRules.HeadDecision?
    /// True while it waits for the reader of a stream. Safe to read from any thread.
    var isHeld: Bool { signals.waitsForReader.load(ordering: .relaxed) }
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
    var isCut: Bool { announced.map { position < min($0, signals.limit.load(ordering: .acquiring)) } ?? false }
    /// True if the end of this response is not known to be the end of the file: it is a part of a file of unknown length.
    var isPart: Bool { announced != nil && total == nil }
    private(set) var outcome: Outcome?
    /// The offset in the file of the next byte.
    private(set) var position: Int64
    /// What is computed over the written bytes.
    private(set) var digests = BodyDigests()
    /// The written piece with its checksum.
    var piece: PieceChecksum? {
        guard plan.wantsPiece, let start = digests.start else { return nil }
        return PieceChecksum(start: start, end: position, crc32c: digests.whole)
    }
    /// True once the gate was needed. The engine has then recorded the head.
    private(set) var askedEngine = false

    /// What the first bytes have to show before any is written.
    private var first = FirstBytes()
    /// True until they have shown it. The head then says nothing about the stored bytes.
    var isUncompared: Bool { first.isUndecided }
    /// The number of compared or written bytes that the transport offers again, before new ones.
    private var handled = 0
    /// Bytes that have arrived and are not in the part file yet; nil if there are none.
    private var gathered: GatherBuffer?
    /// True once the transport has announced a wait, so it announces every one and bytes may be gathered until then.
    private var isToldOfWaits = false

    /// Set if the head had an error status.
    private var refusal: RefusedAnswer?
    private let signals = Signals()
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
    func openGate() { signals.gateIsOpen.store(true, ordering: .releasing) }

    /// Moves the end of the range (exclusive) when another connection takes its second half. Safe to call from any
    /// thread.
    func setLimit(_ end: Int64) { signals.limit.store(end, ordering: .releasing) }

    // MARK: TransportHandler, on the transport's thread

    func transport(didReceive head: ResponseHead) throws(DownloadError) {
        let decision = ResumeRules.decide(head: head, ask: plan.ask, known: plan.known, segments: plan.segments)
        self.head = head
        self.decision = decision
        signals.hasHead.store(true, ordering: .relaxed)
        switch decision {
        case .append(let skip, let until, let total):
            position = plan.ask.start
            signals.limit.store(until ?? total ?? .max, ordering: .relaxed)
            try prepare(
                head, isFresh: position == 0, overlap: skip, length: (until ?? total).map { $0 - position })
        case .startOver(let total):
            position = 0
            signals.limit.store(total ?? .max, ordering: .relaxed)
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
        digests.begin(plan, head, at: position, total: total)
        if overlap > 0 {
            first.beginComparison()
            let held = try plan.part.bytes(at: plan.ask.start - overlap, count: Int(overlap))
            guard held.count == Int(overlap) else {
                outcome = .seamDiffers
                throw Self.stopped
            }
            if Set(held).count < 2, isSampleTrusted(head) {
                outcome = .seamProvesNothing
                throw Self.stopped
            }
            first.compare(with: held)
            return
        }
        if let decision, let error = ResumeRules.suspicion(of: head, decision, ask: plan.ask, known: plan.known) {
            first.look(for: .init(error: error, isFresh: isFresh, length: length))
            return
        }
        beginWriting(isFresh: isFresh, length: length)
    }

    /// Opens the gate for a small body, or asks the engine for it.
    private func beginWriting(isFresh: Bool, length: Int64?) {
        if isFresh, let length, length <= plan.inlineLimit {
            signals.gateIsOpen.store(true, ordering: .relaxed)
            signals.hasInlineHead.store(true, ordering: .releasing)
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
        if let verdict = look(at: bytes) { return verdict }
        guard signals.gateIsOpen.load(ordering: .acquiring) else { return .pause(nil) }
        let seen = first.drainSeen()
        if !seen.isEmpty {
            let verdict = seen.withUnsafeBytes { write($0) }
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
        signals.waitsForReader.store(room <= 0, ordering: .relaxed)
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

    /// Looks at the first bytes, and asks the engine once they may be written. nil if there is nothing to look at any more.
    private func look(at bytes: UnsafeRawBufferPointer) -> BodyVerdict? {
        // After a decision the engine may have opened the gate already. Otherwise these bytes are offered again.
        switch first.look(at: bytes) {
        case .nothing: return nil
        case .needsMore: return .consumed
        case .isPage(let error): return .fail(error)
        case .isFile(let page):
            beginWriting(isFresh: page.isFresh, length: page.length)
            return nil
        case .joins(let newBytesAt):
            handled = newBytesAt
            askedEngine = true
            onGate(self)
            return nil
        case .differs:
            outcome = .seamDiffers
            return .fail(Self.stopped)
        }
    }

    func transportWillWait() throws(DownloadError) {
        isToldOfWaits = true
        if case .fail(let error) = writeGathered() { throw error }
    }

    private func isEnd(_ position: Int64) -> Bool { position >= signals.limit.load(ordering: .acquiring) }

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
        let room = signals.limit.load(ordering: .acquiring) - position
        let isExcess = Int64(bytes.count) > room
        if isExcess { bytes = UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(max(0, room)))) }
        if let size = plan.known.size, position + Int64(bytes.count) > size {
            return .fail(ResumeRules.wrongSize(position + Int64(bytes.count), size, isAtLeast: true))
        }
        if let maxSize = plan.known.maxSize, position + Int64(bytes.count) > maxSize {
            return .fail(
                DownloadError(
                    .tooLarge,
                    "The server sends more than the limit of \(maxSize.plural("byte")).",
                    remedy: .raiseMaxSize))
        }
        if !bytes.isEmpty {
            do {
                try plan.part.write(bytes, at: position)
            } catch {
                return .fail(error)
            }
            let place = position
            position += Int64(bytes.count)
            // A piece that is not full is the last one available, and the next one may take long.
            plan.counters.store(index, position, moreFollows: bytes.count == Self.fullPiece)
            digests.add(bytes, at: place, wantsPiece: plan.wantsPiece)
        }
        return isExcess ? .enough : .consumed
    }

    func transportDidFinish(_ result: Result<TransportSummary, DownloadError>) {
        if let refusal { outcome = .ended(.failure(refusal.explained(by: head, plan.echo))) }
        if case .success = result, let error = first.end() { outcome = .ended(.failure(error)) }
        // The bytes that arrived before the end count, whatever the end is.
        let last = writeGathered()
        if outcome == nil {
            if case .success = result, case .fail(let error) = last {
                outcome = .ended(.failure(error))
            } else {
                outcome = .ended(result)
            }
        }
        if case .failure = result { digests.follower?.abandon() }
        onEnd(self)
    }

    /// The size in bytes of libcurl's pieces when a body arrives faster than it is read. TLS records have the same
    /// size.
    private static let fullPiece = 16 << 10

    private static let stopped = DownloadError(.cancelled, "The response was not needed.")
}
