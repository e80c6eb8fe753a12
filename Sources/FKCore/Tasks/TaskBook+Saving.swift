import FKMiddleware
import Foundation

/// Records on their way to the disk.
extension TaskBook {
    /// Adds a line to the task's history.
    func appendHistory(_ entry: TaskEntry, by: String, _ what: String) {
        entry.appendHistory(by: by, what, at: clock.date)
    }

    /// Writes the record in place. A disk that refuses is reported and the record stays dirty, for the next tick.
    func write(_ entry: TaskEntry) {
        // A task that is being trashed has no record any more, and what another engine owns is not ours to write.
        guard entry.isThere, tenure.mayWrite else { return }
        do throws(DownloadError) {
            try save(entry)
            guard entry.record.leftBehind != nil else { return }
            // A name that is gone goes through the file system's journal, ahead of the record that tells why.
            if schedule.configure.durability == .power { try synchronize(entry) }
            entry.record.removeLeftBehind()
            try save(entry)
        } catch {
            problems.append(error.description)
        }
    }

    /// - Parameter written: the state that is written instead of the task's present one; the ranges are then those of the
    ///   finished file already, which the counters know nothing of.
    ///
    /// - Throws: `.cancelled` without the lock of the work path; `.disk` and the like.
    func save(_ entry: TaskEntry, as written: DownloadState? = nil) throws(DownloadError) {
        guard tenure.mayWrite else { throw DownloadError(.cancelled, "The downloader is closed.") }
        tenure.beat()
        if written == nil { entry.foldCounters() }
        let state = entry.record.state
        // What is yet to be proven stays so in the record: complete, in the boot it was finished in.
        entry.record.state = written ?? entry.standing
        defer { entry.record.state = state }
        // Those that are attached have been written anew.
        let boot = entry.record.bootID
        let dropsCounters =
            boot != nil && boot != BootID.current && !entry.hasCleanCounters
            && entry.run?.counters?.isAttached != true
        if !entry.awaitsProof { entry.record.bootID = BootID.current }
        entry.record.bytesPerSecond = entry.recordedSpeed(in: entry.record.state, now: clock.now)
        do {
            try InfoFile.update(
                workPath.infoPath(entry.id), record: entry.record, handle: &entry.info,
                counters: entry.awaitsProof ? nil : entry.run?.counters, rangesChanged: entry.rangesChanged,
                dropsCounters: dropsCounters, open: entry.run?.openInfo)
        } catch {
            entry.record.bootID = boot
            throw DownloadError(wrapping: error, code: .disk, message: "The info file could not be written.")
        }
        entry.rangesChanged = false
        entry.isDirty = false
        entry.isRecovered = false
    }

    /// Has the record on the disk itself.
    func synchronize(_ entry: TaskEntry) throws(DownloadError) {
        do {
            try InfoFile.synchronize(workPath.infoPath(entry.id))
        } catch {
            throw DownloadError(wrapping: error, code: .disk, message: "The info file could not be synced.")
        }
    }

    /// Opens the live counters of the task's info file.
    func attach(_ counters: LiveCounters, of entry: TaskEntry) throws(DownloadError) {
        guard !counters.isAttached else { return }
        // The counters first: until the record follows, they count for nothing it says.
        entry.hasCleanCounters = false
        do {
            try counters.attach(path: workPath.infoPath(entry.id))
        } catch {
            throw DownloadError(
                wrapping: error, code: .disk, message: "The counters of the info file could not be opened.")
        }
    }

    // MARK: Barrels

    /// Makes a task a member, in its record and in the barrel, which is open.
    func join(_ entry: TaskEntry, barrel name: String) {
        let isMember = !barrels.book.insert(.init(id: entry.id, url: entry.record.task.url), into: name)
        if !isMember { barrels.book.replace(TaskEntry.Account(), by: entry.accounted, in: [name]) }
        guard !entry.record.barrels.containsExactly(name) else { return }
        entry.record.join(name)
        write(entry)
    }

    /// Takes a task out of the barrel. The record is only changed in memory, the barrel's file at the end of the request.
    func leave(_ entry: TaskEntry, barrel name: String) {
        entry.record.leave(name)
        guard (try? barrels.open(name, creating: false)) != nil else { return }
        if barrels.book.remove(entry.id, from: name) {
            barrels.book.replace(entry.accounted, by: TaskEntry.Account(), in: [name])
        }
    }

    // MARK: The application's part of a record

    /// - Returns: how many tasks there are.
    func setAttributes(_ selector: TaskSelector, _ changes: [String: String?]) throws -> Int {
        let entries = try findSome(selector)
        // All or none: what does not fit one of them changes nothing.
        let all = try entries.map { try AttributeRules.applying(changes, to: $0.record.task.attributes) }
        for (entry, attributes) in zip(entries, all) {
            entry.record.task.attributes = attributes
            try save(entry)
        }
        return entries.count
    }

    /// A task that is asked for again keeps its pairs and gets the new ones.
    func addAttributes(of description: TaskDescription, to entry: TaskEntry) throws {
        let attributes = try AttributeRules.applying(description.attributes, to: entry.record.task.attributes)
        guard attributes != entry.record.task.attributes else { return }
        entry.record.task.attributes = attributes
        try save(entry)
    }

    /// - Returns: how many tasks there are.
    func markUsed(_ selector: TaskSelector) throws -> Int {
        let entries = try findSome(selector)
        for entry in entries {
            entry.record.use(at: clock.date)
            try save(entry)
        }
        return entries.count
    }

    func records(_ query: RecordQuery) throws -> RecordPage {
        try query.validate()
        let entries =
            if let name = query.barrel {
                try find(.barrel(name))
            } else if let ids = query.ids {
                try ids.compactMap { try find($0) }
            } else {
                try find(.all)
            }
        let now = clock.now
        return try query.page(
            of: entries.lazy.map { entry in
                entry.refresh()
                var record = DownloadRecord(entry.record)
                record.received = entry.received
                record.bytesPerSecond = entry.recordedSpeed(in: entry.record.state, now: now) ?? 0
                return record
            })
    }
}
