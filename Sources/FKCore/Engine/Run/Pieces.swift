import FKMiddleware

/// The pieces of a file with digests from a list, in one attempt. `PieceLedger` decides about them.
struct Pieces {
    /// The bytes that are compared in one go.
    private static let portion: Int64 = 64 << 20

    /// Nil until the length of the file is known, and for a file without such digests.
    var ledger: PieceLedger?
    /// True if the digests are lost.
    private var isLost = false
    /// `PieceLedger.generation` of the comparison beside the transfer; nil while there is none.
    private var comparing: Int?
    /// How often a piece was dropped because it is wrong.
    var reopens = 0

    /// True if pieces have to be compared before the file is published.
    func areOpen(of entry: TaskEntry) -> Bool { entry.hasPieceDigests && !isLost && ledger?.isDone != true }

    /// Opens the ledger once the length of the file is known.
    ///
    /// - Throws: `.changedOnServer` if the file has another number of pieces; `.disk` if the digests are lost and nothing else
    ///   vouches for the file.
    mutating func open(_ run: TaskRun) throws(DownloadError) {
        let entry = run.entry
        guard ledger == nil, !isLost, let summary = entry.record.task.optionsBox?.value.pieces,
            let length = entry.record.expected
        else { return }
        guard let digests = PieceDigestFile.read(run.book.workPath.digestsPath(entry.id), of: summary) else {
            guard entry.record.task.options.checksum != nil else {
                throw DownloadError(
                    .disk, "The digests of the file's pieces are lost: add the list again that has them.")
            }
            run.appendHistory(by: "piece", "the digests of the pieces are lost: only the whole file is verified")
            return isLost = true
        }
        ledger = PieceLedger(digests, length: length)
        guard ledger == nil else { return }
        throw DownloadError(
            .changedOnServer,
            "The file is not the one of the list: it has \(length.plural("byte")), and the list has "
                + "\(digests.count) pieces of \(digests.length).")
    }

    // MARK: Comparing

    /// True while pieces are compared and others arrive.
    var isComparing: Bool { comparing != nil }

    /// The pieces that are to be compared next; nil if there are none.
    func due(_ ranges: [SavedRange]) -> (ledger: PieceLedger, due: [Int])? {
        guard let ledger, !ledger.isDone else { return nil }
        let due = ledger.due(ranges, bytes: Self.portion)
        return due.isEmpty ? nil : (ledger, due)
    }

    /// Begins a comparison beside the transfer; nil if no piece is due.
    mutating func beginComparing(_ ranges: [SavedRange]) -> (ledger: PieceLedger, due: [Int])? {
        let next = due(ranges)
        comparing = next?.ledger.generation
        return next
    }

    /// Ends a comparison beside the transfer. Returns false if its result is outdated.
    mutating func endComparing(_ generation: Int) -> Bool {
        guard comparing == generation else { return false }
        comparing = nil
        return ledger?.generation == generation
    }

    /// A comparison beside the transfer does not count any more.
    mutating func dropComparison() {
        ledger?.invalidate()
        comparing = nil
    }

    /// These pieces were compared.
    mutating func absorb(_ compared: [Int], wrong: [Int]) {
        let wrong = Set(wrong)
        for index in compared where !wrong.contains(index) { ledger?.pass(index) }
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
