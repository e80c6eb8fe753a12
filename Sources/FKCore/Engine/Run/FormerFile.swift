import FKMiddleware
import Foundation

extension TaskRecord {
    /// The name of the finished file that this fetch replaces, in the folder of the new one, and what to do with it; nil if
    /// there is no such file, or if it now belongs to another task or program.
    package func renewed(in folder: Folder, _ owner: FileOwner) -> (name: String, act: FileClaim.Act)? {
        guard let former, former.path.folderPart.isExactly(folder.path) else { return nil }
        // The state may be that of the record before the rename.
        var record = self
        record.restore(former)
        let act = record.claim(former.path, owner).act(isRepair ? .repair : .refresh)
        return act == .replace || act == .keepAside ? (former.path.lastPathPart, act) : nil
    }
}

extension DownloadError {
    /// The bytes that a repair has received do not belong to the finished file.
    static let otherVersion = DownloadError(
        .changedOnServer,
        "The damaged file stays as it was: the server has another version; fetch it anew with refresh, or "
            + "forget the task and add it again.")
}

/// A repair: the finished file is copied, the damaged bytes are fetched into the copy, and the copy replaces the file if all of
/// its bytes are the ones that were received first.
extension Transfer {
    /// Copies the damaged file to the empty part file, and fetches the damaged bytes. Without the file, or without anything that
    /// would prove the repaired one, the whole file is fetched.
    func copyDamaged(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        guard let former = entry.record.former, let length = former.expected, let damaged = former.damaged,
            let ranges = Renewal(entry.id, damaged: damaged.map { $0.start..<$0.end }).ranges(length: length),
            entry.record.renewed(in: part.home, book.owner) != nil, hasProof(of: former)
        else {
            run.appendHistory(by: "repair", "the damaged file is gone or unknown: the whole file is fetched")
            entry.record.fetchWhole()
            return fetchNext()
        }
        // A killed process leaves its part file; the record has the name.
        try book.save(entry)
        try await copy(former.path.lastPathPart)
        continueCopy(ranges)
    }

    private func hasProof(of former: FormerFile) -> Bool {
        former.validator?.digest != nil || entry.isVouched || entry.record.pieceSums(in: book.workPath) != nil
    }

    private func copy(_ name: String, isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        let source = try PartFile(reading: name, in: part.home)
        let part = part.file
        defer { source.close() }
        do throws(DownloadError) {
            let isCloned = try await run.offThread { () throws(DownloadError) in
                FileClone.clone(source.descriptor, to: part.descriptor)
            }
            if isCloned { return }
            try reserveRoom(source.openedLength)
            try await run.offThread { () throws(DownloadError) in try part.fill(from: source) }
        } catch {
            // The record says nothing of these bytes, so they must not stay, least of all on a full disk.
            try? part.truncate(to: 0)
            throw error
        }
    }
}

extension TaskRecord {
    /// The checksums of the pieces of the finished file, as it was received.
    func pieceSums(in workPath: WorkPath) -> [PieceChecksum]? {
        guard let former else { return nil }
        var record = self
        record.restore(former)
        return FileVerifier(workPath).pieces(of: record)
    }
}
