import FKMiddleware
import Foundation

/// From a slot to an open part file: the checks of the disk before the first request.
extension TaskRun {
    func fetch() throws(DownloadError) {
        let folder = try openFolder()
        if entry.record.path != nil, entry.record.isPublished {
            if !entry.isHandled(by: room.chains.response) { return complete() }
            try unpublish(in: folder)
        }
        if let name = try existingFile(in: folder) { return try settleExisting(name, in: folder) }
        use(try prepare(in: folder))
        laneSet = LaneSet(limit: room.limits.connections(of: entry))
        // A task that waits for free space checks it before it sends a request.
        if entry.record.received > 0, let total = entry.record.expected { try reserveRoom(total) }
        if entry.record.isRepair, entry.record.ranges.isEmpty { return wants(.copyDamaged) }
        if let digest = reusableDigest { return wants(.reuse(digest)) }
        fetchNext()
    }

    /// True if further sources may deliver beside the first one.
    var mayUseMirrorsBeside: Bool { !isAlone && mirrorPolicy != .failover }

    /// True if the attempt uses one source, because the whole file is compared at its end or has had another digest than
    /// expected. Several sources would not show which one is wrong.
    var isAlone: Bool {
        entry.record.isRepair || attempt.previousError?.code == .checksumMismatch && entry.record.received == 0
    }

    /// The destination. A task with a folder of its own cannot use the work path.
    private func openFolder() throws(DownloadError) -> Folder {
        let outside = entry.record.task.directory == nil ? nil : book.workPath
        return try room.folders.folder(folderPath, outside: outside, now: clock.now)
    }

    var folderPath: String { entry.record.task.directory ?? book.workPath.filesFolder(entry.id) }

    /// Gives the part's name back to the file, because the response chain was interrupted with its process and runs again, or
    /// because the final name could not be synced.
    func unpublish(in folder: Folder) throws(DownloadError) {
        guard let path = entry.record.path, let part = entry.record.partName else { return }
        if try entry.record.takeBack(path, as: part, in: folder, book.owner) { entry.record.unname() }
    }

    /// The expected final name, if an existing file has it; nil otherwise. The server may still choose another name.
    ///
    /// - Throws: `.destination` if something other than a file would be replaced.
    private func existingFile(in folder: Folder) throws(DownloadError) -> String? {
        let policy = entry.record.task.option { $0.existing }
        if policy == .rename || policy == nil && entry.record.task.fileName == nil { return nil }
        let name = entry.record.task.fileName ?? FileNameRules.name(url: entry.record.task.url, head: nil)
        if policy == .overwrite {
            try folder.checkReplaceable(name)
            return nil
        }
        if entry.record.renewed(in: folder, book.owner)?.name.isExactly(name) == true { return nil }
        return folder.contains(name) && !folder.isLeftover(name, of: entry.id, book.owner, before: BootID.began)
            ? name : nil
    }

    private func settleExisting(_ name: String, in folder: Folder) throws(DownloadError) {
        guard entry.record.task.options.existing == .skip else { throw fileExists(folder.path(of: name)) }
        let options = entry.record.task.options
        if options.checksum != nil || options.pieces != nil { return wants(.keepExisting(name)) }
        try keepExisting(name, in: folder)
    }

    private func keepExisting(_ name: String, in folder: Folder) throws(DownloadError) {
        let path = folder.path(of: name)
        let size = try folder.fileLength(name)
        // Of an earlier attempt, before the file was there.
        if let part = entry.record.partName { folder.removePart(part) }
        entry.record.keep(foreign: path)
        appendHistory(by: "existing", "\(path) was there already: nothing was fetched")
        entry.record.fill(size)
        complete()
    }

    /// Compares the existing file with the task's checksum, and completes the task with it.
    func keepExisting(_ name: String, isolation: isolated (any Actor)? = #isolation) async {
        do throws(DownloadError) {
            let folder = try openFolder()
            try await compareExisting(name, in: folder)
            try keepExisting(name, in: folder)
        } catch {
            if stop != nil { return stopped() }
            fail(error, resumed: false)
        }
    }

    /// Compares an existing file, which is to count as the result, with the task's checksum, or without one with the digests of
    /// its pieces.
    ///
    /// - Throws: `.checksumMismatch` if it differs; `.destination` if it cannot be read; `.cancelled` if the run was
    ///   stopped.
    func compareExisting(
        _ name: String, in folder: Folder, isolation: isolated (any Actor)? = #isolation
    ) async throws(DownloadError) {
        guard let checksum = entry.record.task.options.checksum else {
            return try await comparePieces(name, in: folder)
        }
        _ = try folder.fileLength(name)
        let file = try PartFile(reading: name, in: folder)
        let digest = try await readDigest(of: file, checksum.algorithm)
        guard digest != checksum.hex else { return appendHistory(by: "existing", checksum.matchNote) }
        refuseExisting()
        throw DownloadError(
            .checksumMismatch,
            "\(folder.path(of: name)) was there already and is not the file expected: its "
                + "\(checksum.algorithm.rawValue) is \(digest), not \(checksum.hex). It stays as it is: set `existing` to "
                + "`.overwrite` or `.rename`, or ask for another name.")
    }

    private func comparePieces(
        _ name: String, in folder: Folder, isolation: isolated (any Actor)? = #isolation
    ) async throws(DownloadError) {
        let options = entry.record.task.options
        guard let summary = options.pieces,
            let pieces = PieceDigestFile.read(book.workPath.digestsPath(entry.id), of: summary)
        else { return }
        let path = folder.path(of: name)
        let fault = try await offThread { () throws(DownloadError) in try FileVerifier.fault(of: path, pieces) }
        guard let fault else {
            return appendHistory(by: "existing", "its pieces have the list's \(pieces.algorithm.rawValue)")
        }
        refuseExisting()
        throw DownloadError(
            .checksumMismatch,
            "\(path) was there already and is not the file expected: \(fault). It stays as it is: set `existing` to "
                + "`.overwrite` or `.rename`, or ask for another name.")
    }

    func fileExists(_ path: String) -> DownloadError {
        DownloadError(
            .fileExists,
            "\(path) exists and was not made by this task: set `existing` to `.overwrite`, `.rename` or `.skip`, "
                + "or ask for another name.")
    }

    /// Opens the part file and compares it with the record.
    private func prepare(in folder: Folder) throws(DownloadError) -> Files {
        let part: PartFile
        if let held = try heldPart(in: folder) {
            part = held
            if isEdited(part) {
                appendHistory(by: "resume", "somebody has written to the part file: starting again")
                try part.truncate(to: 0)
                entry.remakeRanges { $0.dropRanges() }
            }
            if entry.record.version.isUnproven {
                appendHistory(
                    by: "resume",
                    "the digest that vouched for bytes of several versions was taken away: starting again")
                try part.truncate(to: 0)
                entry.remakeRanges { $0.dropRanges() }
            }
            let length = entry.record.ranges.isEmpty ? 0 : part.openedLength
            for (index, range) in entry.record.ranges.enumerated()
            where range.position > max(range.start, length) {
                appendHistory(by: "resume", "the part file is shorter than recorded: \(Plural.count(length, "byte"))")
                entry.record.shorten(index, to: length)
            }
            for (index, range) in entry.record.ranges.enumerated() {
                guard let hole = part.hole(in: range.start..<range.position) else { continue }
                appendHistory(by: "resume", "the part file has a hole at byte \(hole) that is recorded as received")
                entry.record.shorten(index, to: hole)
            }
            _ = entry.normalizeRanges()
        } else {
            entry.record.dropRanges()
            part = try newPart(in: folder)
        }
        entry.record.openPart()
        return Files(
            folder: folder, part: part, counters: LiveCounters(entry.record.ranges),
            isResumed: entry.record.received > 0, url: entry.nextURL)
    }

    /// True if the part file was written to after the task's last attempt: it is shorter, or has another time. A shorter file
    /// may have been written anew, so its bytes need not be the task's. If a digest is known, the digest decides.
    private func isEdited(_ part: PartFile) -> Bool {
        guard let time = entry.record.partTime,
            part.openedLength < entry.record.heldEnd || !FileIdentity.isSameTime(part.openedTime, time)
        else { return false }
        guard entry.expectedDigest != nil || entry.hasPieceDigests else { return true }
        entry.record.noteNeedsDigest()
        return false
    }

    /// The part file with the received bytes; nil if there are none, or if the file is missing or not the task's own
    /// (`PartHolder`).
    private func heldPart(in folder: Folder) throws(DownloadError) -> PartFile? {
        guard !entry.record.ranges.isEmpty else { return nil }
        let name = entry.record.partName ?? ""
        if let part = try PartFile.reopened(in: folder, name: name, written: entry.record.written) {
            return part
        }
        if case .another(let reason) = folder.holder(of: name) {
            appendHistory(by: "resume", "\(folder.path(of: name)) \(reason): starting again under another name")
        } else {
            appendHistory(by: "resume", "the part file is gone: starting again")
        }
        return nil
    }

    /// An empty part file with the usual part name, or with another one if a foreign file has that name.
    private func newPart(in folder: Folder) throws(DownloadError) -> PartFile {
        let final = entry.record.task.fileName ?? urlName
        let usual = FileNameRules.partName(for: final, id: entry.id)
        // An interrupted attempt may have left one with another name.
        for name in [entry.record.partName, usual].compactMap(\.self) {
            entry.record.usePart(name)
            if let part = try emptyPart(name, in: folder) { return part }
        }
        for _ in 0..<8 {
            // The record comes first: after a crash nothing else knows the name.
            let name = FileNameRules.partName(for: final, id: entry.id, prefix: Folder.randomDigits())
            entry.record.usePart(name)
            try book.save(entry)
            if let part = try emptyPart(name, in: folder) { return part }
        }
        throw DownloadError(.destination, "No part file can be made in \(folder.path): its names are taken.")
    }

    /// Creates the part file, or empties the one of an earlier attempt; nil if a foreign file has the name.
    private func emptyPart(_ name: String, in folder: Folder) throws(DownloadError) -> PartFile? {
        if let part = try PartFile.made(in: folder, name: name) { return part }
        guard let part = try PartFile.reopened(in: folder, name: name) else {
            if case .another(let reason) = folder.holder(of: name) {
                appendHistory(by: "part", "\(folder.path(of: name)) \(reason): it stays, and another name is used")
            }
            return nil
        }
        guard part.openedLength > 0 else { return part }
        guard entry.isNew else {
            try part.truncate(to: 0)
            return part
        }
        // Its info file was lost. The bytes may still be of use, so they are kept.
        part.close()
        let final = entry.record.task.fileName ?? FileNameRules.name(url: entry.record.task.url, head: nil)
        let kept = try entry.keep(name, in: folder, for: final)
        book.problems.append("A part file without an info file was kept as \(kept).")
        return try PartFile.made(in: folder, name: name)
    }
}

extension Checksum {
    /// The line of the history for a finished or existing file that has this checksum.
    var matchNote: String { "the finished file has the \(algorithm.rawValue) asked for" }
}
