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
            let paths =
                entry.record.partFolders(home: book.workPath.destination(of: entry.record))
                + (run.configure.partsFolder.map { [$0.path] } ?? [])
            guard error.code == .destination, !paths.filter({ destinations.folders.forget($0) }).isEmpty else {
                throw error
            }
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
        try open(book.workPath.destination(of: entry.record), isOwn: entry.record.task.directory == nil)
    }

    private func open(_ path: String, isOwn: Bool = false) throws(DownloadError) -> Folder {
        try destinations.folders.folder(path, outside: isOwn ? nil : book.workPath, now: run.clock.now)
    }

    /// The folder for part files; nil if it is the destination.
    private func partsFolder(besides home: Folder) throws(DownloadError) -> Folder? {
        guard let path = run.configure.partsFolder?.path else { return nil }
        let folder = try open(path)
        return folder.isOne(with: home) ? nil : folder
    }

    /// The expected final name, if an existing file has it; nil otherwise. The server may still choose another name.
    ///
    /// - Throws: `.destination` if something other than a file would be replaced.
    private func existingFile(in folder: Folder) throws(DownloadError) -> String? {
        let policy = entry.record.task.optionsBox?.value.existing
        if policy == .rename || policy == nil && entry.record.task.fileName == nil { return nil }
        let name = entry.record.task.fileName ?? FileNameRules.name(url: entry.record.task.url, head: nil)
        if policy == .overwrite {
            try folder.checkReplaceable(name)
            return nil
        }
        if entry.record.renewed(in: folder, book.owner)?.name.isExactly(name) == true { return nil }
        // The finished file takes the name of the adopted one, or another.
        if let adopted = entry.record.task.optionsBox?.value.adoptPath,
            FileNames.areOfOneFile(folder.path(of: name), adopted)
        {
            return nil
        }
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
        entry.record.removePart(of: book.workPath, book.owner)
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
            if let ring = entry.feed?.ring { return stream(PartFile(held, in: ring), home: folder) }
            part = held
            if isEdited(part) {
                run.appendHistory(by: "resume", "somebody has written to the part file: starting again")
                entry.tellReaders()
                try part.truncate(to: 0)
                entry.remakeRanges { $0.dropRanges() }
            }
            if entry.record.version.isUnproven {
                run.appendHistory(
                    by: "resume",
                    "the digest that vouched for bytes of several versions was taken away: starting again")
                entry.tellReaders()
                try part.truncate(to: 0)
                entry.remakeRanges { $0.dropRanges() }
            }
            let length = entry.record.ranges.isEmpty ? 0 : part.openedLength
            for (index, range) in entry.record.ranges.enumerated()
            where range.position > max(range.start, length) {
                let bytes = length.plural("byte")
                run.appendHistory(by: "resume", "the part file is shorter than recorded: \(bytes)")
                entry.remakeRanges { $0.shorten(index, to: length) }
            }
            for (index, range) in entry.record.ranges.enumerated() {
                guard let hole = part.hole(in: range.start..<range.position) else { continue }
                run.appendHistory(by: "resume", "the part file has a hole at byte \(hole) that is recorded as received")
                entry.remakeRanges { $0.shorten(index, to: hole) }
            }
            _ = entry.normalizeRanges()
        } else {
            if entry.record.ranges.isEmpty {
                entry.record.dropRanges()
            } else {
                entry.tellReaders()
                entry.remakeRanges { $0.dropRanges() }
            }
            part = try newPart(in: folder)
        }
        if let ring = entry.feed?.ring { return stream(PartFile(part, in: ring), home: folder) }
        entry.record.openPart()
        return OpenPart(part, home: folder, of: entry, run.schedule.hosts.policies)
    }

    /// The part file of a stream has its window. The length of the file, its time and its holes say nothing.
    private func stream(_ part: PartFile, home: Folder) -> OpenPart {
        _ = entry.normalizeRanges()
        entry.record.openPart()
        return OpenPart(part, home: home, of: entry, run.schedule.hosts.policies)
    }

    /// True if the part file was written to after the task's last attempt: it is shorter, or has another time. A shorter file
    /// may have been written anew, so its bytes need not be the task's. If a digest is known, the digest decides.
    private func isEdited(_ part: PartFile) -> Bool {
        guard let time = entry.record.partTime,
            part.openedLength < entry.record.heldEnd || !FileIdentity.isSameTime(part.openedTime, time)
        else { return false }
        guard entry.expectedDigest != nil || entry.hasPieceDigests else { return true }
        entry.record.requireDigest()
        return false
    }

    /// The part file with the received bytes; nil if there are none, or if the file is missing or not the task's own
    /// (`PartClaim`).
    private func heldPart(in home: Folder) throws(DownloadError) -> PartFile? {
        guard !entry.record.ranges.isEmpty else { return nil }
        let name = entry.record.partName ?? ""
        if let folder = try recordedFolder(of: name, besides: home) {
            guard let part = try heldPart(name, in: folder) else { return nil }
            // A copy that was interrupted.
            home.removePart(name, entry.record.partKey(book.owner))
            return part
        } else if let part = try heldPart(name, in: home) {
            entry.record.bringPartHome()
            return part
        } else if !home.contains(name) {
            run.appendHistory(by: "resume", "the part file is gone: starting again")
        }
        return nil
    }

    /// The recorded folder of the part, if it has it; nil for the destination.
    private func recordedFolder(of name: String, besides home: Folder) throws(DownloadError) -> Folder? {
        guard let path = entry.record.partFolder, path.path(of: name).existsOnDisk else { return nil }
        let folder = try open(path)
        return folder.isOne(with: home) ? nil : folder
    }

    private func heldPart(_ name: String, in folder: Folder) throws(DownloadError) -> PartFile? {
        let (claim, file) = try folder.openPart(name, entry.record.partKey(book.owner))
        if claim.allows(.adopt) { return file }
        file?.close()
        if let reason = claim.reason {
            run.appendHistory(by: "resume", "\(folder.path(of: name)) \(reason): starting again under another name")
        }
        return nil
    }

    /// An empty part file with the usual part name, or with another one if a foreign file has that name there or in the
    /// destination.
    ///
    /// - Throws: `.destination` for a name that the task asks for and the file system refuses, before a byte is fetched.
    private func newPart(in home: Folder) throws(DownloadError) -> PartFile {
        let folder = try partsFolder(besides: home)
        let asked = entry.record.task.fileName
        let final = asked ?? run.urlName
        while true {
            if let asked, !home.fitted(asked).isExactly(asked), let refusal = home.refusal(of: asked, EINVAL) {
                throw refusal
            }
            do throws(DownloadError) {
                return try newPart(in: home, folder, for: folder?.fitted(home.fitted(final)) ?? home.fitted(final))
            } catch {
                guard [home, folder ?? home].contains(where: { $0.useStricterNames(for: final, error) }) else {
                    throw error
                }
            }
        }
    }

    private func newPart(in home: Folder, _ folder: Folder?, for final: String) throws(DownloadError) -> PartFile {
        // An interrupted attempt may have left one with another name, or in another folder.
        entry.record.removePart(of: book.workPath, book.owner)
        // A part in another folder is brought to the destination, where another work path must not have its name.
        let first = folder == nil && home.takesMarks && book.owner.workPath != nil ? 0 : 1
        for number in first...9 {
            let name =
                switch number {
                case 0: FileNameRules.partName(for: final, id: entry.id)
                case 1: FileNameRules.partName(for: final, id: entry.id, workPath: book.owner.digits)
                default:
                    FileNameRules.partName(
                        for: "\(Folder.randomDigits())-\(final)", id: entry.id, workPath: book.owner.digits)
                }
            entry.record.usePart(name, in: folder?.path)
            // The record comes first: after a crash nothing else knows the name or the folder.
            if number > first || folder != nil { try book.save(entry) }
            guard let name = entry.record.partName, let part = try emptyPart(name, in: home) else { continue }
            guard let folder else { return part }
            part.remove()
            part.close()
            if let part = try emptyPart(name, in: folder) { return part }
        }
        throw DownloadError(
            .destination, "No part file can be made in \((folder ?? home).path): its names are taken.")
    }

    /// Creates the part file, or empties the one of an earlier attempt; nil if the name is another owner's, or if the file needs
    /// a name that says whose it is.
    private func emptyPart(_ name: String, in folder: Folder) throws(DownloadError) -> PartFile? {
        let key = entry.record.partKey(book.owner)
        if let part = try PartFile.made(in: folder, name: name, key) { return part }
        let (claim, file) = try folder.openPart(name, key)
        guard let file else {
            if let reason = claim.reason {
                run.appendHistory(by: "part", "\(folder.path(of: name)) \(reason): it stays, and another name is used")
            }
            if case .foreign(let reason) = claim {
                book.problems.append(
                    "\(folder.path(of: name)) \(reason): it stays, and the unfinished file has another name.",
                    code: .fileExists)
            }
            return nil
        }
        if claim.allows(.shorten), file.openedLength == 0 || !entry.isNew {
            try file.truncate(to: 0)
            return file
        }
        // Its info file was lost, or nothing tells whose it is. The bytes may still be of use, so they are kept.
        defer { file.close() }
        let final = entry.record.task.fileName ?? FileNameRules.name(url: entry.record.task.url, head: nil)
        let kept = try entry.keep(name, in: folder, for: final)
        book.problems.append(
            "A file was in the place of the unfinished \(folder.path(of: final)), and nothing says whose it is: it is \(kept) now.",
            code: .fileExists)
        return try PartFile.made(in: folder, name: name, key)
    }
}
