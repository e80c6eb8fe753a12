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
extension Transfer {
    // MARK: Comparing

    /// To be called once a second.
    func watchPieces() {
        compareArrived()
        startRepairs()
    }

    /// Compares the pieces that have arrived, while others arrive. The result is `piecesCompared`.
    func compareArrived() {
        // The reader of a stream compares its pieces.
        guard entry.hasPieceDigests, !isStream, !isEnding, !pieces.isComparing, !lanes.isEmpty else { return }
        // An error is reported by `comparePieces`, when no lane is in use.
        try? pieces.open(run)
        guard pieces.ledger != nil else { return }
        entry.foldCounters()
        guard let (ledger, due) = pieces.beginComparing(entry.record.ranges) else { return }
        let (inbox, id, order, file) = (inbox, entry.id, run.order, part.file)
        run.onDisk {
            // A descriptor of its own, because the run may end meanwhile.
            let wrong = Result { () throws(DownloadError) in
                let file = try PartFile(reading: file.name, in: file.folder)
                defer { file.close() }
                return try file.wrongPieces(due, ledger.digests, length: ledger.length)
            }
            inbox.post(
                .pieces(id, PieceResult(order: order, generation: ledger.generation, compared: due, wrong: wrong)))
        }
    }

    /// Pieces were compared while others arrive.
    func piecesCompared(_ result: PieceResult) {
        guard result.order == run.order, pieces.endComparing(result.generation), !isEnding,
            case .success(let wrong) = result.wrong
        else { return }
        pieces.absorb(result.compared, wrong: wrong)
        let dropped = dropWrong(wrong)
        if let error = dropped.failure {
            laneSet.end(.fail(error))
            return cancel()
        }
        startRepairs()
        // Without space for more ranges, the next tick or the end of the lanes continues.
        if dropped.count == wrong.count { compareArrived() }
    }

    /// Compares all pieces that are left, after the last lane has ended.
    ///
    /// - Returns: false if wrong pieces are to be fetched again.
    func areAllPiecesRight(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) -> Bool {
        try pieces.open(run)
        var wrong: [Int] = []
        while let (ledger, due) = pieces.due(entry.record.ranges) {
            let file = part.file
            wrong = try await run.offThread { () throws(DownloadError) in
                try file.wrongPieces(due, ledger.digests, length: ledger.length)
            }
            pieces.absorb(due, wrong: wrong)
            // Wrong pieces are due until they are holes.
            if !wrong.isEmpty { break }
        }
        guard !wrong.isEmpty else {
            guard !pieces.areOpen(of: entry) else {
                throw DownloadError(.incompleteBody, "Pieces of the file are missing.", isRetryable: true)
            }
            return true
        }
        if let error = dropWrong(wrong).failure { throw error }
        if entry.normalizeRanges() { renumberCounters() }
        return false
    }

    /// Makes holes of wrong pieces.
    ///
    /// - Returns: the number of pieces, and the error of a piece that was fetched often enough, or of a source that is not to
    ///   be used any more.
    func dropWrong(_ wrong: [Int]) -> (count: Int, failure: DownloadError?) {
        guard !wrong.isEmpty else { return (0, nil) }
        let running = lanes.compactMap { lane -> (range: Range<Int64>, source: String)? in
            guard let receiver = lane.receiver, let index = lane.index else { return nil }
            // `receiver.digests` belongs to the transport's thread.
            let (start, end) = (receiver.plan.ask.start, part.counters.value(index))
            return end > start ? (start..<end, lane.mirror ?? url) : nil
        }
        var count = 0
        var failure: DownloadError?
        for index in wrong {
            guard let ledger = pieces.ledger, drop(ledger.range(index)) else { break }
            count += 1
            let senders = ledger.sources(of: index, running)
            let usable = sources.count
            let range = ledger.range(index)
            let what =
                "piece \(index + 1) of \(ledger.digests.count) (bytes \(range.lowerBound)-\(range.upperBound - 1)) does not "
                + "have the list's \(ledger.digests.algorithm.rawValue)"
            switch pieces.ledger?.blame(index, senders, usable: usable) {
            case .givenUp(let fetches):
                failure = DownloadError(
                    .checksumMismatch,
                    "The file is not the one of the list: \(what), after \(fetches) attempts at "
                        + (usable == 1 ? "its only server." : "\(usable) servers."),
                    url: senders.first.map(\.masked))
            case .again, nil:
                let from = senders.map(\.masked).joined(separator: " and ")
                run.appendHistory(by: "piece", "\(what)\(from.isEmpty ? "" : ", from \(from)"): it is fetched again")
            }
        }
        reporter.account(entry)
        book.write(entry)
        return (count, failure ?? dropSources())
    }

    /// Stops using the sources that send too many wrong pieces, while there are others.
    private func dropSources() -> DownloadError? {
        for (source, count) in pieces.ledger?.wrongOf ?? [:] where count >= PieceLedger.patience && !source.isEmpty {
            guard sources.count > 1, sources.contains(source) else { continue }
            let reason = "\(count) of its pieces have not the list's digest"
            guard source == url else {
                refuseMirror(source, reason)
                for lane in lanes where lane.mirror == source { unwant(lane) }
                continue
            }
            return DownloadError(
                .checksumMismatch, "The server sends another file than the list's: \(reason).",
                url: source.masked, isRetryable: true)
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
        guard count + 4 <= part.counters.count else { return false }
        let received = entry.record.received
        entry.record.reopen(piece)
        run.attempt.discard(received - entry.record.received)
        for (index, range) in entry.record.ranges.enumerated()
        where index >= count || range.position < part.counters.value(index) {
            part.counters.store(index, range.position)
        }
        spoil(piece)
        return true
    }

    /// The counters get the positions of ranges that were sorted and joined. No lane is in use.
    private func renumberCounters() {
        for (index, range) in entry.record.ranges.enumerated() { part.counters.store(index, range.position) }
    }

    /// Remembers which source has sent the bytes of a response.
    func recordOrigin(of receiver: RangeReceiver, _ lane: Lane) {
        guard let start = receiver.digests.start else { return }
        if lane.mirror != nil { run.attempt.combine() }
        guard entry.hasPieceDigests else { return }
        // An error is reported by `comparePieces`, when no lane is in use.
        try? pieces.open(run)
        pieces.ledger?.record(start..<max(start, receiver.position), from: lane.mirror ?? url)
    }

    // MARK: Fetching again

    /// The sources that may be asked: the URL of the attempt, then the mirrors.
    private var sources: [String] { [url] + laneSet.mirrors.usable }

    /// Lets a lane that fills a hole ask another source. No other lane is in use.
    func aim(_ lane: Lane) {
        guard let ledger = pieces.ledger, let index = lane.index, entry.record.ranges.indices.contains(index) else {
            return
        }
        useMirrors()
        let range = entry.record.ranges[index]
        let offset = range.position
        guard laneSet.isHole(range), ledger.isFetchedAgain(offset), let source = source(for: offset) else { return }
        lane.mirror = source == url ? nil : source
        lane.repairs = offset
    }

    private func source(for offset: Int64) -> String? {
        let open = sources.filter {
            schedule.hosts.isOpen($0 == url ? entry.host : $0.site, for: asker, now: clock.now)
        }
        return pieces.ledger?.source(for: offset, among: open.isEmpty ? sources : open)
    }

    /// Starts a lane for each hole, beside the others: one more than the file may have, so that a wrong piece does not wait for
    /// the end of a large range. A file with a single connection waits.
    func startRepairs() {
        guard let ledger = pieces.ledger, !isEnding, !lanes.isEmpty, connectionLimit != .fixed(1) else { return }
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
        pieces.ledger?.fail(offset, at: source)
        guard source != url else { return false }
        refuseMirror(source, error.message)
        return true
    }
}
