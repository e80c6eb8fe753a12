import FKMiddleware
import Foundation

/// Pieces with digests from a list (`PieceDigests`): they are compared while the file arrives, and a wrong one is fetched again
/// alone, from another source first. `PieceLedger` decides.
///
/// ```text
/// tick -> due pieces -> read and compared on another thread -> right
///                                                           -> wrong: a hole in the ranges -> a lane of its own
/// last lane -> the rest is compared -> finish | the holes are fetched
/// ```
///
/// The comparison reads the part file and not the body, because a piece may arrive on several connections, in any order, and
/// in several attempts.
extension TaskRun {
    /// The bytes that are compared in one go.
    private static let portion: Int64 = 64 << 20

    /// True if something vouches for the bytes of any source: the digests of pieces, or a digest of the whole file that did not
    /// come from a server. Validators then need not be strong.
    var isVouched: Bool { entry.hasPieceDigests || entry.record.task.option { $0.checksum } != nil }

    /// True if pieces have to be compared before the file is published.
    var hasOpenPieces: Bool { entry.hasPieceDigests && !isWithoutPieces && ledger?.isDone != true }

    /// Opens the ledger once the length of the file is known.
    ///
    /// - Throws: `.changedOnServer` if the file has another number of pieces; `.disk` if the digests are lost and nothing else
    ///   vouches for the file.
    private func openLedger() throws(DownloadError) {
        guard ledger == nil, !isWithoutPieces, let summary = entry.record.task.option({ $0.pieces }),
            let length = entry.record.expected
        else { return }
        guard let digests = PieceDigestFile.read(book.workPath.digestsPath(entry.id), of: summary) else {
            guard entry.record.task.options.checksum != nil else {
                throw DownloadError(
                    .disk, "The digests of the file's pieces are lost: add the list again that has them.")
            }
            appendHistory(by: "piece", "the digests of the pieces are lost: only the whole file is verified")
            return isWithoutPieces = true
        }
        guard let ledger = PieceLedger(digests, length: length) else {
            throw DownloadError(
                .changedOnServer,
                "The file is not the one of the list: it has \(Plural.count(length, "byte")), and the list has "
                    + "\(digests.count) pieces of \(digests.length).")
        }
        self.ledger = ledger
    }

    // MARK: Comparing

    /// To be called once a second.
    func watchPieces() {
        compareArrived()
        startRepairs()
    }

    /// Compares the pieces that have arrived, while others arrive. The result is `piecesCompared`.
    func compareArrived() {
        guard entry.hasPieceDigests, !isEnding, !isComparing, counters != nil, !lanes.isEmpty else { return }
        // An error is reported by `comparePieces`, when no lane is in use.
        try? openLedger()
        guard let ledger else { return }
        entry.foldCounters()
        let due = ledger.due(entry.record.ranges, bytes: Self.portion)
        guard !due.isEmpty else { return }
        isComparing = true
        let (inbox, id, order, part) = (room.inbox, entry.id, order, part)
        room.diskWork.async {
            // A descriptor of its own, because the run may end meanwhile.
            let wrong = Result { () throws(DownloadError) in
                let file = try PartFile(reading: part.name, in: part.folder)
                defer { file.close() }
                return try file.wrongPieces(due, ledger.digests, length: ledger.length)
            }
            inbox.post(
                .pieces(id, PieceResult(order: order, generation: ledger.generation, compared: due, wrong: wrong)))
        }
    }

    /// Pieces were compared while others arrive.
    func piecesCompared(_ result: PieceResult) {
        guard result.order == order else { return }
        isComparing = false
        guard !isEnding, ledger?.generation == result.generation, case .success(let wrong) = result.wrong else {
            return
        }
        take(result.compared, wrong: wrong)
        let dropped = dropWrong(wrong)
        if let error = dropped.failure {
            laneSet.end(.fail(error))
            return lanes.forEach { $0.cancel() }
        }
        startRepairs()
        // Without space for more ranges, the next tick or the end of the lanes continues.
        if dropped.count == wrong.count { compareArrived() }
    }

    /// Compares all pieces that are left, after the last lane has ended. It then finishes the file, or fetches wrong pieces
    /// again.
    func comparePieces(isolation: isolated (any Actor)? = #isolation) async {
        do throws(DownloadError) {
            try openLedger()
            ledger?.invalidate()
            var wrong: [Int] = []
            while let ledger, !ledger.isDone {
                let due = ledger.due(entry.record.ranges, bytes: Self.portion)
                guard !due.isEmpty else { break }
                let part = part
                wrong = try await offThread { () throws(DownloadError) in
                    try part.wrongPieces(due, ledger.digests, length: ledger.length)
                }
                take(due, wrong: wrong)
                // Wrong pieces are due until they are holes.
                if !wrong.isEmpty { break }
            }
            guard !wrong.isEmpty else {
                guard !hasOpenPieces else {
                    throw DownloadError(.incompleteBody, "Pieces of the file are missing.", isRetryable: true)
                }
                return finishSoon()
            }
            if let error = dropWrong(wrong).failure { throw error }
            if entry.normalizeRanges() { renumberCounters() }
            fetchNext()
        } catch {
            if stop != nil { return stopped() }
            fail(error)
        }
    }

    private func take(_ compared: [Int], wrong: [Int]) {
        let wrong = Set(wrong)
        for index in compared where !wrong.contains(index) { ledger?.pass(index) }
    }

    /// Makes holes of wrong pieces.
    ///
    /// - Returns: the number of pieces, and the error of a piece that was fetched often enough, or of a source that is not to
    ///   be used any more.
    private func dropWrong(_ wrong: [Int]) -> (count: Int, failure: DownloadError?) {
        guard !wrong.isEmpty else { return (0, nil) }
        let running = lanes.compactMap { lane -> (range: Range<Int64>, source: String)? in
            guard let receiver = lane.receiver, let index = lane.index else { return nil }
            // `receiver.start` belongs to the transport's thread.
            let (start, end) = (receiver.plan.ask.start, files.counters.value(index))
            return end > start ? (start..<end, lane.mirror ?? url) : nil
        }
        var count = 0
        var failure: DownloadError?
        for index in wrong {
            guard let ledger, drop(ledger.range(index)) else { break }
            count += 1
            let senders = ledger.sources(of: index, running)
            let usable = sources.count
            let range = ledger.range(index)
            let what =
                "piece \(index + 1) of \(ledger.digests.count) (bytes \(range.lowerBound)-\(range.upperBound - 1)) does not "
                + "have the list's \(ledger.digests.algorithm.rawValue)"
            switch self.ledger?.blame(index, senders, usable: usable) {
            case .givenUp(let fetches):
                failure = DownloadError(
                    .checksumMismatch,
                    "The file is not the one of the list: \(what), after \(fetches) attempts at "
                        + (usable == 1 ? "its only server." : "\(usable) servers."),
                    url: senders.first.map(URLMasking.mask))
            case .again, nil:
                let from = senders.map(URLMasking.mask).joined(separator: " and ")
                appendHistory(by: "piece", "\(what)\(from.isEmpty ? "" : ", from \(from)"): it is fetched again")
            }
        }
        reporter.account(entry)
        book.write(entry)
        return (count, failure ?? dropSources())
    }

    /// Stops using the sources that send too many wrong pieces, while there are others.
    private func dropSources() -> DownloadError? {
        for (source, count) in ledger?.wrongOf ?? [:] where count >= PieceLedger.patience && !source.isEmpty {
            guard sources.count > 1, sources.contains(source) else { continue }
            let reason = "\(count) of its pieces have not the list's digest"
            guard source == url else {
                refuseMirror(source, reason)
                for lane in lanes where lane.mirror == source { unwant(lane) }
                continue
            }
            return DownloadError(
                .checksumMismatch, "The server sends another file than the list's: \(reason).",
                url: URLMasking.mask(source), isRetryable: true)
        }
        return nil
    }

    /// The bytes of a piece are to be fetched again.
    ///
    /// - Returns: false if the file has too many ranges. Without lanes they are joined first.
    private func drop(_ piece: Range<Int64>) -> Bool {
        entry.foldCounters()
        if lanes.isEmpty, entry.normalizeRanges() { renumberCounters() }
        let count = entry.record.ranges.count
        guard count + 4 <= files.counters.count else { return false }
        entry.record.reopen(piece)
        for (index, range) in entry.record.ranges.enumerated()
        where index >= count || range.position < files.counters.value(index) {
            files.counters.store(index, range.position)
        }
        // What was computed over the wrong bytes does not count.
        sums.spoil(piece)
        digest = nil
        follower = nil
        reopens += 1
        if !laneSet.holes.contains(piece) { laneSet.holes.append(piece) }
        return true
    }

    /// The counters get the positions of ranges that were sorted and joined. No lane is in use.
    private func renumberCounters() {
        for (index, range) in entry.record.ranges.enumerated() { files.counters.store(index, range.position) }
    }

    /// Remembers which source has sent the bytes of a response.
    func noteOrigin(of receiver: RangeReceiver, _ lane: Lane) {
        guard let start = receiver.start else { return }
        if lane.mirror != nil { noteCombined() }
        guard entry.hasPieceDigests else { return }
        // An error is reported by `comparePieces`, when no lane is in use.
        try? openLedger()
        ledger?.note(start..<max(start, receiver.position), from: lane.mirror ?? url)
    }

    // MARK: Fetching again

    /// The sources that may be asked: the URL of the attempt, then the mirrors.
    private var sources: [String] { [url] + laneSet.mirrors.usable }

    /// Lets a lane that fills a hole ask another source. No other lane is in use.
    func aim(_ lane: Lane) {
        guard let ledger, let index = lane.index, entry.record.ranges.indices.contains(index) else { return }
        useMirrors()
        let range = entry.record.ranges[index]
        let offset = range.position
        guard laneSet.isHole(range), ledger.isFetchedAgain(offset), let source = source(for: offset) else { return }
        lane.mirror = source == url ? nil : source
        lane.repairs = offset
    }

    private func source(for offset: Int64) -> String? {
        let open = sources.filter { schedule.hosts.isOpen($0 == url ? entry.host : HostName.site($0), now: clock.now) }
        return ledger?.source(for: offset, among: open.isEmpty ? sources : open)
    }

    /// Starts a lane for each hole, beside the others: one more than the file may have, so that a wrong piece does not wait for
    /// the end of a large range. A file with a single connection waits.
    func startRepairs() {
        guard let ledger, !isEnding, !lanes.isEmpty, room.limits.connections(of: entry) != .fixed(1) else { return }
        for (index, range) in entry.record.ranges.enumerated() {
            guard lanes.count <= laneSet.growth.limit else { return }
            guard laneSet.isHole(range), ledger.isFetchedAgain(range.position), laneSet.lane(filling: index) == nil,
                let source = source(for: range.position)
            else { continue }
            let lane = laneSet.repair(index, at: range.position, from: source == url ? nil : source)
            guard acquirePermit(for: lane) else {
                laneSet.remove(lane)
                continue
            }
            ask(with: lane)
        }
    }

    /// A source could not serve a piece. Another one is asked, until all have failed.
    ///
    /// - Returns: false if there is no other one.
    func repairFailed(_ lane: Lane, at offset: Int64, _ error: DownloadError) -> Bool {
        let source = lane.mirror ?? url
        ledger?.fail(offset, at: source)
        guard source != url else { return false }
        refuseMirror(source, error.message)
        return true
    }
}

/// Pieces that were compared while others arrive.
struct PieceResult: Sendable {
    /// `TaskRun.order` of the run that asked.
    var order: UInt64
    /// `PieceLedger.generation` at the beginning.
    var generation: Int
    var compared: [Int]
    /// Those that differ.
    var wrong: Result<[Int], DownloadError>
}
