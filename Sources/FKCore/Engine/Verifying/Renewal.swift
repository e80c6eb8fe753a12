import FKMiddleware
import Foundation

extension TaskControl {
    /// Fetches finished files again. Tasks in other states are left out, except those whose refresh or repair has not ended. A
    /// suspended one continues with the bytes that it has, if the same bytes of the file are asked for.
    ///
    /// The file stays as it is, under its name, until the new one is whole. Of a file with known damage the damaged bytes are
    /// fetched into a copy (`TaskRun.copyDamaged`), from a mirror first, if there is one; otherwise the whole file is fetched. A
    /// file that was replaced by another program's stays, and the new one gets another name.
    ///
    /// - Returns: the number of files.
    package func renew(_ renewals: [Renewal], group: Int32?) throws -> Int {
        try tenure.checkOpen()
        var count = 0
        for renewal in renewals {
            guard let entry = try book.find(renewal.id), entry.run == nil, entry.record.mayRenew else { continue }
            entry.awaitsProof = false
            let isRepair = isRepairable(entry.record.ofFinished, renewal)
            let damaged = isRepair ? renewal.damaged : nil
            count += 1
            if entry.record.state == .suspend, entry.record.former?.damaged == damaged {
                join(entry, group: group)
                queue(entry)
                continue
            }
            entry.record.removePart(of: book.workPath)
            entry.record.renew(damaged: damaged)
            entry.dropBytes()
            let bytes = renewal.damaged.reduce(0) { $0 + $1.end - $1.start }
            book.appendHistory(
                entry, by: "repair",
                isRepair
                    ? "\(Plural.count(bytes, "damaged byte")) of the file are fetched again"
                    : "the file is fetched again")
            reporter.account(entry)
            join(entry, group: group)
            queue(entry)
        }
        return count
    }

    /// False if the whole file has to be fetched.
    private func isRepairable(_ record: TaskRecord, _ renewal: Renewal) -> Bool {
        guard let path = record.path, let length = record.expected, renewal.ranges(length: length) != nil else {
            return false
        }
        let folder = record.task.directory ?? book.workPath.filesFolder(record.id)
        return path.folderPart.isExactly(folder)
            && [.replace, .keepAside].contains(record.claim(path, book.owner).act(.repair))
    }
}

// MARK: - The checksums of pieces

extension TaskRun {
    /// False if pieces of the file have to be read for their checksums.
    var knowsSums: Bool {
        guard let length = entry.record.expected, PieceFile.isFor(length: length) else { return true }
        return !sums.table(length: length).contains(nil)
    }

    /// Reads the pieces that did not arrive as a whole in this attempt, before the file gets its name. A file that cannot be
    /// read has no sums.
    ///
    /// - Throws: `.cancelled` if the run was stopped.
    func settleSums(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        guard finishedSums == nil, let length = entry.record.expected, PieceFile.isFor(length: length) else { return }
        let table = sums.table(length: length)
        guard table.contains(nil) else { return }
        let part = part
        finishedSums = try? await offThread { () throws(DownloadError) in try part.sums(table, length: length) }
        try checkStop()
    }

    /// Reads the file again if a response middleware has changed it.
    ///
    /// - Parameter received: the file before the chain.
    /// - Throws: `.cancelled` if the run was stopped.
    func settleChangedSums(
        since received: FileIdentity?, isolation: isolated (any Actor)? = #isolation
    ) async throws(DownloadError) {
        guard let path = entry.record.path, let written = entry.record.written, PieceFile.isFor(length: written.length),
            received?.matches(written) != true
        else { return }
        let length = written.length
        let result = try? await offThread { () throws(DownloadError) in
            let file = try PartFile(reading: path.lastPathPart, in: try Folder(path: path.folderPart))
            defer { file.close() }
            return try file.sums([UInt32?](repeating: nil, count: PieceSums.count(length)), length: length)
        }
        try checkStop()
        finishedSums = result ?? []
    }

    /// Writes the checksums of the finished file's pieces. Without space for them, the file has none.
    func writeSums() {
        guard let length = entry.record.expected, PieceFile.isFor(length: length), entry.record.isForeign != true,
            let written = entry.record.written, written.length == length
        else { return }
        let table = finishedSums ?? sums.table(length: length).compactMap(\.self)
        guard table.count == PieceSums.count(length) else { return }
        do {
            try PieceFile(identity: written, sums: table).write(book.workPath.piecesPath(entry.id))
        } catch {
            book.problems.append("The checksums of \(entry.record.path ?? "a file") could not be kept: \(error)")
        }
    }
}

extension PartFile {
    /// The checksums of all pieces. Those that are known are taken over, the others are read.
    fileprivate func sums(_ table: [UInt32?], length: Int64) throws(DownloadError) -> [UInt32] {
        var sums: [UInt32] = []
        sums.reserveCapacity(table.count)
        for (index, known) in table.enumerated() {
            if let known {
                sums.append(known)
                continue
            }
            let range = PieceSums.range(index, of: length)
            let bytes = try bytes(at: range.lowerBound, count: Int(range.upperBound - range.lowerBound))
            guard bytes.count == range.count else {
                throw DownloadError(.disk, "\(path) is shorter than \(Plural.count(length, "byte")).")
            }
            sums.append(bytes.withUnsafeBytes { CRC32C.checksum($0) })
        }
        return sums
    }
}
