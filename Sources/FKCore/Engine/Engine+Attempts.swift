import FKMiddleware
import Foundation

/// From a slot to an open part file: what the disk has to say before a server is asked.
extension Engine {
    /// Begins an attempt of a task that has just got a slot.
    func start(_ entry: TaskEntry) {
        entry.record.attempts += 1
        entry.record.started = entry.record.started ?? clock.date
        entry.record.error = nil
        entry.record.waiting = nil
        attemptBegins(entry)
        change(entry, to: .action)
        do throws(DownloadError) {
            try begin(entry)
        } catch {
            // The folder may have gone since it was opened for an earlier task: open it anew, once.
            guard error.code == .destination, folders.forget(folderPath(of: entry)) else {
                return fail(entry, error, resumed: false)
            }
            do throws(DownloadError) { try begin(entry) } catch { fail(entry, error, resumed: false) }
        }
    }

    private func begin(_ entry: TaskEntry) throws(DownloadError) {
        if entry.awaitsProof { return try prove(entry) }
        try fetch(entry)
    }

    func fetch(_ entry: TaskEntry) throws(DownloadError) {
        let folder = try folder(of: entry)
        if isPublished(entry) {
            if chains.response.isEmpty { return complete(entry) }
            try unpublish(entry, in: folder)
        }
        if let name = try existingFile(for: entry, in: folder) { return try settleExisting(entry, name, in: folder) }
        let attempt = try prepareAttempt(entry, in: folder)
        entry.attempt = attempt
        // A task that waits for room does not ask the server each time it looks.
        if entry.record.received > 0, let total = entry.record.expected {
            try reserveRoom(total, for: entry, attempt)
        }
        fetchNext(entry, attempt)
    }

    private func folderPath(of entry: TaskEntry) -> String {
        entry.record.task.directory ?? workPath.filesFolder(entry.id)
    }

    private func folder(of entry: TaskEntry) throws(DownloadError) -> Folder {
        try folders.folder(folderPath(of: entry), now: clock.now)
    }

    /// The file goes back to where it was before it got its final name: a response chain that was interrupted with its
    /// process runs again, or the name could not be synced.
    func unpublish(_ entry: TaskEntry, in folder: Folder) throws(DownloadError) {
        guard let path = entry.record.path, let part = entry.record.partName, entry.record.owns(path) else { return }
        entry.record.path = nil
        // Where a middleware has moved it to another file system, it is copied: no byte is fetched twice.
        if Foundation.rename(path, folder.path(of: part)) == 0 { return }
        guard errno == EXDEV, (try? FileManager.default.moveItem(atPath: path, toPath: folder.path(of: part))) != nil
        else {
            throw DownloadError(system: errno, "take back", path, in: .destination)
        }
    }

    /// The name the task would get, as far as that is known before the server answers, where something bears it.
    ///
    /// - Throws: `.destination` when it is to be replaced and is not a file.
    private func existingFile(for entry: TaskEntry, in folder: Folder) throws(DownloadError) -> String? {
        let policy = entry.record.task.options.existing
        if policy == .rename || policy == nil && entry.record.task.fileName == nil { return nil }
        let name = entry.record.task.fileName ?? FileNameRules.name(url: entry.record.task.url, head: nil)
        if policy == .overwrite {
            try folder.checkReplaceable(name)
            return nil
        }
        return folder.contains(name) && !folder.isLeftover(name, of: entry.id, owner, before: BootID.began)
            ? name : nil
    }

    private func settleExisting(_ entry: TaskEntry, _ name: String, in folder: Folder) throws(DownloadError) {
        let path = folder.path(of: name)
        guard entry.record.task.options.existing == .skip else { throw fileExists(path) }
        let size = try folder.fileLength(name)
        entry.record.path = path
        entry.record.isForeign = true
        entry.record.written = nil
        remember(entry, by: "existing", "\(path) was there already: nothing was fetched")
        entry.record.expected = size
        entry.record.ranges = [SavedRange(start: 0, end: size, position: size)]
        complete(entry)
    }

    func fileExists(_ path: String) -> DownloadError {
        DownloadError(
            .fileExists,
            "\(path) exists and was not made by this task: set `existing` to `.overwrite`, `.rename` or `.skip`, "
                + "or ask for another name.")
    }

    /// Opens the part file and compares it with what the record says is in it.
    private func prepareAttempt(_ entry: TaskEntry, in folder: Folder) throws(DownloadError) -> Attempt {
        let part: PartFile
        if let held = try heldPart(of: entry, in: folder) {
            part = held
            if isEdited(part, entry) {
                remember(entry, by: "resume", "somebody has written to the part file: starting again")
                try part.truncate(to: 0)
                entry.record.ranges = []
                entry.rangesChanged = true
            }
            let length = entry.record.ranges.isEmpty ? 0 : part.openedLength
            for (index, range) in entry.record.ranges.enumerated() where range.position > length {
                remember(entry, by: "resume", "the part file is shorter than recorded: \(Plural.count(length, "byte"))")
                entry.record.ranges[index].position = max(range.start, length)
                entry.record.pieces = nil
            }
            for (index, range) in entry.record.ranges.enumerated() {
                guard let hole = part.hole(in: range.start..<range.position) else { continue }
                remember(entry, by: "resume", "the part file has a hole at byte \(hole) that is recorded as received")
                entry.record.ranges[index].position = hole
            }
            let normal = SegmentPlanner.normalize(entry.record.ranges, expected: entry.record.expected)
            if normal != entry.record.ranges {
                entry.record.ranges = normal
                entry.rangesChanged = true
            }
        } else {
            entry.record.ranges = []
            part = try newPart(for: entry, in: folder)
        }
        entry.record.partTime = nil
        if entry.record.ranges.isEmpty { entry.record.pieces = nil }
        let attempt = Attempt(
            folder: folder, part: part, counters: LiveCounters(entry.record.ranges),
            isResumed: entry.record.received > 0,
            url: entry.nextURL, plan: [entry.record.task.url] + entry.record.task.mirrors,
            limiters: limiters(for: entry))
        attempt.growth = LaneGrowth(limit: connections(of: entry))
        return attempt
    }

    /// Whether the part file was written to since the task's last attempt has ended. A shorter one shows what is gone, and
    /// a digest will find out by itself; only what neither would show is judged by the file's time.
    private func isEdited(_ part: PartFile, _ entry: TaskEntry) -> Bool {
        guard let time = entry.record.partTime, expectedDigest(of: entry) == nil,
            part.openedLength >= entry.record.ranges.map(\.position).max() ?? 0
        else { return false }
        return !FileIdentity.isSameTime(part.openedTime, time)
    }

    /// The part file with the bytes that the record tells of; nil when there are none, or when the file is gone or is not
    /// the task's own (`PartHolder`).
    private func heldPart(of entry: TaskEntry, in folder: Folder) throws(DownloadError) -> PartFile? {
        guard !entry.record.ranges.isEmpty else { return nil }
        let name = entry.record.partName ?? ""
        if let part = try PartFile.reopened(in: folder, name: name, written: entry.record.written) {
            return part
        }
        if case .another(let reason) = folder.holder(of: name) {
            remember(entry, by: "resume", "\(folder.path(of: name)) \(reason): starting again under another name")
        } else {
            remember(entry, by: "resume", "the part file is gone: starting again")
        }
        return nil
    }

    /// An empty part file under the task's usual part name, or under another one where somebody else has taken that.
    private func newPart(for entry: TaskEntry, in folder: Folder) throws(DownloadError) -> PartFile {
        let task = entry.record.task
        let final = task.fileName ?? FileNameRules.name(url: task.url, head: nil)
        let usual = FileNameRules.partName(for: final, id: entry.id)
        // An attempt that was interrupted may have left one under another name.
        for name in [entry.record.partName, usual].compactMap(\.self) {
            entry.record.partName = name
            if let part = try emptyPart(name, for: entry, in: folder) { return part }
        }
        for _ in 0..<8 {
            // Written down first: nobody would find a file of such a name again.
            let name = FileNameRules.partName(for: final, id: entry.id, prefix: Folder.randomDigits())
            entry.record.partName = name
            try save(entry)
            if let part = try emptyPart(name, for: entry, in: folder) { return part }
        }
        throw DownloadError(.destination, "No part file can be made in \(folder.path): its names are taken.")
    }

    /// Makes the part file, or empties the one that an earlier attempt has left; nil when the name is somebody else's.
    private func emptyPart(
        _ name: String, for entry: TaskEntry, in folder: Folder
    ) throws(DownloadError) -> PartFile? {
        if let part = try PartFile.made(in: folder, name: name) { return part }
        guard let part = try PartFile.reopened(in: folder, name: name) else {
            if case .another(let reason) = folder.holder(of: name) {
                remember(entry, by: "part", "\(folder.path(of: name)) \(reason): it stays, and another name is used")
            }
            return nil
        }
        guard part.openedLength > 0 else { return part }
        guard entry.isNew else {
            try part.truncate(to: 0)
            return part
        }
        // Its info file was lost: somebody may still want the bytes.
        part.close()
        let final = entry.record.task.fileName ?? FileNameRules.name(url: entry.record.task.url, head: nil)
        let kept = try keep(name, in: folder, for: final, entry.id)
        problems.append("A part file without an info file was kept as \(kept).")
        return try PartFile.made(in: folder, name: name)
    }
}
