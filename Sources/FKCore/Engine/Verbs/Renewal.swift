import FKMiddleware
import Foundation

extension TaskControl {
    /// Fetches finished files again. Tasks in other states are left out, except those whose refresh or repair has not ended. A
    /// suspended or waiting one continues with the bytes that it has, if the same bytes of the file are asked for. One with
    /// `isRestored` is complete again.
    ///
    /// The file stays as it is, under its name, until the new one is whole. Of a file with known damage the damaged bytes are
    /// fetched into a copy (`Transfer.copyDamaged`), from a mirror first, if there is one; otherwise the whole file is fetched. A
    /// file that was replaced by another program's stays, and the new one gets another name.
    ///
    /// - Returns: the number of files.
    package func renew(_ renewals: [Renewal], group: Int32?) throws -> Int {
        try ownership.checkOpen()
        var count = 0
        for renewal in renewals {
            guard let entry = try book.find(renewal.id), entry.run == nil, entry.record.mayRenew else { continue }
            // Another command has had it repaired already.
            if let seen = renewal.seen, entry.record.ofFinished.written?.matches(seen) != true { continue }
            if renewal.isRestored == true {
                restore(entry)
                continue
            }
            entry.awaitsProof = false
            let isRepair = isRepairable(entry.record.ofFinished, renewal)
            let damaged = isRepair ? renewal.damaged : nil
            count += 1
            if [.suspend, .idle].contains(entry.record.state), entry.record.former?.damaged == damaged {
                join(entry, group: group)
                queue(entry)
                continue
            }
            entry.record.removePart(of: book.workPath, book.owner)
            entry.record.renew(damaged: damaged)
            entry.dropBytes()
            let bytes = renewal.damaged.reduce(0) { $0 + $1.end - $1.start }
            book.appendHistory(
                entry, by: "repair",
                isRepair
                    ? "\(bytes.plural("damaged byte")) of the file are fetched again"
                    : "the file is fetched again")
            reporter.account(entry)
            join(entry, group: group)
            queue(entry)
        }
        return count
    }

    /// The finished file is right: a refresh or repair of it that has not ended counts no more.
    private func restore(_ entry: TaskEntry) {
        guard let former = entry.record.former, entry.record.state != .complete, former.path.existsOnDisk else {
            return
        }
        entry.record.removePart(of: book.workPath, book.owner)
        entry.dropBytes()
        entry.record.restoreFinished(former)
        schedule.withdraw(entry.id)
        book.appendHistory(entry, by: "repair", "the finished file is right: it is not fetched again")
        reporter.change(entry, to: .complete)
        book.write(entry)
    }

    /// False if the whole file has to be fetched.
    private func isRepairable(_ record: TaskRecord, _ renewal: Renewal) -> Bool {
        guard record.changed == nil, let path = record.path, let length = record.expected,
            renewal.ranges(length: length) != nil
        else {
            return false
        }
        return path.folderPart.isExactly(book.workPath.destination(of: record))
            && [.replace, .keepAside].contains(record.claim(path, book.owner).act(.repair))
    }
}

// MARK: - The checksums of pieces

extension PartFile {
    /// The checksums of all pieces. Those that are known are taken over, the others are read.
    func sums(_ table: [UInt32?], length: Int64) throws(DownloadError) -> [UInt32] {
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
                throw DownloadError(.disk, "\(path) is shorter than \(length.plural("byte")).")
            }
            sums.append(bytes.withUnsafeBytes { CRC32C.checksum($0) })
        }
        return sums
    }
}
