import FKMiddleware
import Foundation

/// From the last byte to the proof that the file is the one expected: pieces of a list, length, digest, the finished file that
/// is repaired, checksums of pieces. It waits only for digests that were not computed while the bytes arrived. Confined to the
/// engine.
struct Verification {
    unowned let run: TaskRun
    let transfer: Transfer

    private var entry: TaskEntry { run.entry }
    private var part: OpenPart { transfer.part }

    /// True if pieces have to be compared with a list's digests.
    var hasOpenPieces: Bool { transfer.pieces.areOpen(of: entry) }

    /// True if nothing has to be waited for, neither here nor to publish the file.
    var waitsForNothing: Bool {
        guard run.configure.durability == .process, !entry.isHandled(by: run.book.chains.response),
            !entry.record.isRepair, !part.isAway, openSums == nil, entry.record.task.optionsBox?.value.signature == nil
        else { return false }
        let existing = entry.record.task.optionsBox?.value.existing
        // An existing file may have to be compared as well.
        if existing == .skip, entry.hasPieceDigests { return false }
        guard let checksum = entry.expectedDigest else { return true }
        return known(checksum.algorithm) != nil && existing != .skip
    }

    /// Compares the remaining pieces, and fetches wrong ones again.
    func comparePieces(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        if try await transfer.areAllPiecesRight() { run.verify(transfer) } else { run.fetchAgain(transfer) }
    }

    /// The same as `verify`, without waits. A Swift task for each small file would take 4 % more processor time.
    ///
    /// - Returns: true if the part was longer than the file, and was cut.
    func verifyAtOnce(length: Int64) throws(DownloadError) -> Bool {
        try settle(length)
        if let checksum = entry.expectedDigest, let digest = known(checksum.algorithm) { try compare(digest, checksum) }
        return length > entry.record.expected ?? length
    }

    /// - Returns: the checksums of the file's pieces.
    /// - Throws: the error of the attempt; `.cancelled` if the run was stopped.
    func verify(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) -> [UInt32] {
        try settle(part.file.length)
        try await compareDigest()
        try await compareSignature()
        if let sums = try await compareRepaired() { return sums }
        return try await settleSums()
    }

    /// Cuts the part to the file's length. Bytes behind it come from another program or a power cut.
    ///
    /// - Parameter length: the length of the part.
    /// - Throws: `.incompleteBody` if the part is shorter.
    private func settle(_ length: Int64) throws(DownloadError) {
        guard let expected = entry.record.expected else { return }
        if let size = entry.record.task.optionsBox?.value.size, expected != size {
            let failure = ResumeRules.wrongSize(expected, size)
            run.startAnew(because: failure)
            throw failure
        }
        if length > expected { try part.file.truncate(to: expected) }
        guard length >= expected else {
            throw DownloadError(
                .incompleteBody, "The part file was truncated: it has \(length) of \(expected) bytes.",
                isRetryable: true)
        }
        settleSmallSum(expected)
    }

    /// Reads a small file whose checksum is not known as a whole: an earlier attempt has received a part of it, and may have
    /// ended in a kill. A file that cannot be read has no checksum, and one with a digest needs none.
    private func settleSmallSum(_ length: Int64) {
        guard length > 0, length <= PieceSums.pieceLength, !entry.record.isRepair, entry.expectedDigest == nil,
            PieceChecksum.covering(entry.record.pieces, length: length)?.count != 1,
            let sum = try? part.file.sums([nil], length: length).first
        else { return }
        entry.record.confirm([PieceChecksum(start: 0, end: length, crc32c: sum)])
    }

    /// Compares the digest, if the task or the server has one.
    private func compareDigest(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        guard let checksum = entry.expectedDigest else { return }
        let digest: String
        if let known = known(checksum.algorithm) {
            digest = known
        } else if checksum.algorithm == .crc32c, let table = openSums, let length = entry.record.expected {
            let file = part.file
            digest = try await run.offThread { () throws(DownloadError) in
                PieceSums.whole(try file.sums(table, length: length), length: length)
            }
        } else if let follower = transfer.computed.follower, follower.algorithm == checksum.algorithm,
            let length = entry.record.expected
        {
            digest = try await run.offThread { () throws(DownloadError) in try follower.finish(at: length) }
        } else {
            let file = part.file
            digest = try await run.offThread { () throws(DownloadError) in try file.digest(checksum.algorithm) }
        }
        try compare(digest, checksum)
    }

    /// Verifies the signature, if the task has one.
    private func compareSignature(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        guard let signature = entry.record.task.optionsBox?.value.signature else { return }
        let path = part.file.path
        let fault = try await run.offThread { () throws(DownloadError) in try signature.fault(ofFile: path) }
        if let fault { throw try refuse(fault) }
        run.appendHistory(by: "signature", signature.matchNote)
    }

    /// The digest of the file, if it was computed while the bytes arrived.
    private func known(_ algorithm: Checksum.Algorithm) -> String? {
        if let digest = transfer.computed.digest, digest.algorithm == algorithm { return digest.hex }
        guard algorithm == .crc32c, let length = entry.record.expected, length > PieceSums.pieceLength, openSums == nil
        else { return nil }
        let sums = knownSums
        return sums.count == PieceSums.count(length) ? PieceSums.whole(sums, length: length) : nil
    }

    private func compare(_ digest: String, _ checksum: Checksum) throws(DownloadError) {
        guard digest != checksum.hex else { return }
        let isServers = entry.record.task.options.checksum == nil
        throw try refuse(
            "its \(checksum.algorithm.rawValue) is \(digest), not \(checksum.hex)\(isServers ? " as the server tells" : "")",
            isServers: isServers)
    }

    /// Sets the bytes aside, so that the next attempt fetches the file from byte 0.
    ///
    /// - Parameter isServers: true if the server's digest was compared; the default is false.
    private func refuse(_ fault: String, isServers: Bool = false) throws(DownloadError) -> DownloadError {
        guard !entry.record.isRepair else { throw run.refuseRepair(part) }
        let name = run.finalName(transfer.heads.last)
        let file = part.file
        // Another file may have taken the part's name.
        _ = try file.namedStatus()
        let aside = try? entry.setAside(file.name, in: file.folder, file.identity, run.book) {
            FileNameRules.rejectedName(for: name, id: entry.id, number: $0)
        }
        let place = aside.map { " The bytes were set aside as \($0)." } ?? ""
        // Bytes of an earlier attempt or another mirror may be wrong, so a resumed file is fetched again. The digest of a
        // server comes with the bytes: they were damaged on the way, and are fetched again once.
        let failure = DownloadError(
            .checksumMismatch, "The file is not the one expected: \(fault).\(place)",
            isRetryable: part.isResumed || isServers && run.attempt.previousError?.code != .checksumMismatch)
        run.startAnew(because: failure)
        return failure
    }

    /// Compares the repaired file with what is known of the finished one: its pieces, otherwise its digest. The task's own digests
    /// were compared before.
    ///
    /// - Returns: the checksums of its pieces, if they were known.
    /// - Throws: `.changedOnServer` if it differs; `.cancelled` if the run was stopped.
    private func compareRepaired(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) -> [UInt32]?
    {
        guard entry.record.isRepair, !entry.isVouched, let former = entry.record.former else { return nil }
        let pieces = entry.record.pieceSums(in: run.book.workPath)
        let (file, digest) = (part.file, former.validator?.digest)
        let isSame = try await run.offThread { () throws(DownloadError) in
            if let pieces { return try file.matches(pieces) }
            guard let digest else { return false }
            return try file.digest(digest.algorithm) == digest.hex
        }
        guard isSame, entry.record.expected == former.expected else { throw run.refuseRepair(part) }
        entry.record.confirm(former.pieces)
        guard let pieces, pieces.count == PieceSums.count(former.expected ?? 0) else { return nil }
        return pieces.map(\.crc32c)
    }

    // MARK: Checksums of pieces

    /// The checksums of the pieces that arrived as a whole in this attempt, and of no others.
    var knownSums: [UInt32] {
        guard let length = entry.record.expected, PieceFile.isFor(length: length) else { return [] }
        return transfer.computed.sums.table(length: length).compactMap(\.self)
    }

    /// The checksums of the pieces, if some have to be read; nil otherwise.
    private var openSums: [UInt32?]? {
        guard let length = entry.record.expected, PieceFile.isFor(length: length) else { return nil }
        let table = transfer.computed.sums.table(length: length)
        return table.contains(nil) ? table : nil
    }

    /// Reads the pieces that did not arrive as a whole in this attempt, before the file gets its name. A file that cannot be
    /// read has no sums.
    private func settleSums(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) -> [UInt32] {
        guard let table = openSums, let length = entry.record.expected else { return knownSums }
        let file = part.file
        let sums = try? await run.offThread { () throws(DownloadError) in try file.sums(table, length: length) }
        try run.checkStop()
        return sums ?? []
    }
}
