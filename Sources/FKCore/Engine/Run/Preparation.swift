import FKMiddleware
import Foundation

/// From a slot to an open part file: the checks of the disk before the first request. It has no state.
struct Preparation {
    let run: TaskRun
    let destinations: Destinations

    var entry: TaskEntry { run.entry }
    var book: TaskBook { run.book }

    /// Opens the part file and sends the first request.
    func begin() throws(DownloadError) {
        do throws(DownloadError) {
            try fetch()
        } catch {
            // The folder may have been removed since it was opened for an earlier task. It is opened again, once.
            guard error.code == .destination, destinations.folders.forget(folderPath) else { throw error }
            try fetch()
        }
    }

    private func fetch() throws(DownloadError) {
        let folder = try openFolder()
        if entry.record.path != nil, entry.record.isPublished {
            if !entry.isHandled(by: book.chains.response) { return run.complete() }
            try entry.unpublish(in: folder, book.owner)
        }
        if let name = try existingFile(in: folder) { return try settleExisting(name, in: folder) }
        try run.transfer(to: try openPart(in: folder)).begin()
    }

    /// The destination. A task with a folder of its own cannot use the work path.
    private func openFolder() throws(DownloadError) -> Folder {
        let outside = entry.record.task.directory == nil ? nil : book.workPath
        return try destinations.folders.folder(folderPath, outside: outside, now: run.clock.now)
    }

    private var folderPath: String { entry.record.task.directory ?? book.workPath.filesFolder(entry.id) }

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
        guard entry.record.task.options.existing == .skip else { throw .fileExists(folder.path(of: name)) }
        let options = entry.record.task.options
        if options.checksum != nil || options.pieces != nil || options.signature != nil {
            return run.wants(.keepExisting(name))
        }
        try keepExisting(name, in: folder)
    }

    private func keepExisting(_ name: String, in folder: Folder) throws(DownloadError) {
        let path = folder.path(of: name)
        let size = try folder.fileLength(name)
        // Of an earlier attempt, before the file was there.
        if let part = entry.record.partName { folder.removePart(part) }
        entry.record.keep(foreign: path)
        run.appendHistory(by: "existing", "\(path) was there already: nothing was fetched")
        entry.record.fill(size)
        run.complete()
    }

    /// Compares the existing file with the task's checksum, and completes the task with it.
    func keepExisting(_ name: String, isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        let folder = try openFolder()
        try await run.compareExisting(name, in: folder)
        try keepExisting(name, in: folder)
    }

    /// Opens the part file and compares it with the record.
    private func openPart(in folder: Folder) throws(DownloadError) -> OpenPart {
        let part: PartFile
        if let held = try heldPart(in: folder) {
            part = held
            if isEdited(part) {
                run.appendHistory(by: "resume", "somebody has written to the part file: starting again")
                try part.truncate(to: 0)
                entry.remakeRanges { $0.dropRanges() }
            }
            if entry.record.version.isUnproven {
                run.appendHistory(
                    by: "resume",
                    "the digest that vouched for bytes of several versions was taken away: starting again")
                try part.truncate(to: 0)
                entry.remakeRanges { $0.dropRanges() }
            }
            let length = entry.record.ranges.isEmpty ? 0 : part.openedLength
            for (index, range) in entry.record.ranges.enumerated()
            where range.position > max(range.start, length) {
                let bytes = Plural.count(length, "byte")
                run.appendHistory(by: "resume", "the part file is shorter than recorded: \(bytes)")
                entry.record.shorten(index, to: length)
            }
            for (index, range) in entry.record.ranges.enumerated() {
                guard let hole = part.hole(in: range.start..<range.position) else { continue }
                run.appendHistory(by: "resume", "the part file has a hole at byte \(hole) that is recorded as received")
                entry.record.shorten(index, to: hole)
            }
            _ = entry.normalizeRanges()
        } else {
            entry.record.dropRanges()
            part = try newPart(in: folder)
        }
        entry.record.openPart()
        return OpenPart(part, of: entry)
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
            run.appendHistory(by: "resume", "\(folder.path(of: name)) \(reason): starting again under another name")
        } else {
            run.appendHistory(by: "resume", "the part file is gone: starting again")
        }
        return nil
    }

    /// An empty part file with the usual part name, or with another one if a foreign file has that name.
    private func newPart(in folder: Folder) throws(DownloadError) -> PartFile {
        let final = entry.record.task.fileName ?? run.urlName
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
                run.appendHistory(by: "part", "\(folder.path(of: name)) \(reason): it stays, and another name is used")
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
        book.problems.append("A part file without an info file was kept as \(kept).", code: .fileExists)
        return try PartFile.made(in: folder, name: name)
    }
}
