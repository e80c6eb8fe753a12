import FKMiddleware
import Foundation

/// Writes records to the disk.
extension TaskBook {
    /// Adds a line to the task's history.
    package func appendHistory(_ entry: TaskEntry, by: String, _ what: String) {
        entry.appendHistory(by: by, what, at: clock.date)
    }

    /// Writes the record. On an error it reports the problem, and the record stays dirty for the next tick.
    package func write(_ entry: TaskEntry) {
        // A trashed task has no record any more, and the work path may belong to another engine.
        guard entry.isThere, ownership.mayWrite else { return }
        do throws(DownloadError) {
            try save(entry)
            guard entry.record.leftBehind != nil else { return }
            // The file system may write the removal of a name before the record that explains it.
            if schedule.configure.durability == .power { try synchronize(entry) }
            entry.removeLeftBehind()
            try save(entry)
        } catch {
            problems.append(error)
        }
    }

    /// Writes the record.
    ///
    /// - Parameters:
    ///   - written: the state to write instead of the present one; the default is nil. The ranges are then those of the
    ///     finished file, and the counters are ignored.
    /// - Throws: `.cancelled` without the lock of the work path; `.disk` and the like.
    package func save(
        _ entry: TaskEntry, as written: DownloadState? = nil
    ) throws(DownloadError) {
        guard ownership.mayWrite else { throw DownloadError(.cancelled, "The downloader is closed.") }
        ownership.beat()
        if written == nil { entry.foldCounters() }
        let state = entry.record.state
        // A file that awaits its proof stays complete in the record, with the boot in which it was finished.
        entry.record.state = written ?? entry.verbState
        defer { entry.record.state = state }
        // Attached counters were written in this boot.
        let boot = entry.record.bootID
        let dropsCounters =
            boot != nil && boot != BootID.current && !entry.unsaved.hasCleanCounters
            && entry.run?.counters?.isAttached != true
        if !entry.awaitsProof { entry.record.bootID = BootID.current }
        entry.record.bytesPerSecond = entry.recordedSpeed(in: entry.record.state, now: clock.now)
        do {
            savedBytes += try InfoFile.update(
                workPath.infoPath(entry.id), record: &entry.record, places: places, handle: &entry.info,
                counters: entry.awaitsProof ? nil : entry.run?.counters, rangesChanged: entry.unsaved.rangesChanged,
                dropsCounters: dropsCounters, open: entry.run?.openInfo)
        } catch {
            entry.record.bootID = boot
            throw DownloadError(wrapping: error, code: .disk, message: "The info file could not be written.")
        }
        entry.recordSaved()
    }

    /// Syncs the record.
    package func synchronize(_ entry: TaskEntry) throws(DownloadError) {
        do {
            try InfoFile.synchronize(workPath.infoPath(entry.id))
        } catch {
            throw DownloadError(wrapping: error, code: .disk, message: "The info file could not be synced.")
        }
    }

    /// Opens the live counters of the task's info file.
    package func attach(_ counters: LiveCounters, of entry: TaskEntry) throws(DownloadError) {
        guard !counters.isAttached else { return }
        // The counters come first. They are invalid until the record follows.
        entry.recordCounters()
        do {
            try counters.attach(path: workPath.infoPath(entry.id))
        } catch {
            throw DownloadError(
                wrapping: error, code: .disk, message: "The counters of the info file could not be opened.")
        }
    }

    // MARK: Barrels

    /// Makes a task a member, in its record and in the open barrel.
    package func join(_ entry: TaskEntry, barrel name: String) {
        let isMember = !barrels.book.insert(.init(id: entry.id, url: entry.record.task.url), into: name)
        if !isMember { barrels.book.replace(TaskTotals.Share(), by: entry.accounted, in: [name]) }
        guard !entry.record.barrels.containsExactly(name) else { return }
        entry.record.join(name)
        write(entry)
    }

    /// Removes a task from the barrel. The record changes only in memory, the barrel's file at the end of the request.
    package func leave(_ entry: TaskEntry, barrel name: String) {
        entry.record.leave(name)
        guard (try? barrels.open(name, creating: false)) != nil else { return }
        if barrels.book.remove(entry.id, from: name) {
            barrels.book.replace(entry.accounted, by: TaskTotals.Share(), in: [name])
        }
    }

    // MARK: The application's part of a record

    /// Changes attributes of the selected tasks.
    ///
    /// - Returns: the number of tasks.
    package func setAttributes(_ selector: TaskSelector, _ changes: [String: String?]) throws -> Int {
        let entries = try findSome(selector)
        // All or none: an invalid change of one task changes none.
        let all = try entries.map { try $0.record.task.attributes.changingAttributes(changes) }
        for (entry, attributes) in zip(entries, all) {
            entry.record.task.attributes = attributes
            try save(entry)
        }
        return entries.count
    }

    /// Adds the attributes of a repeated request to those of the task.
    func add(_ attributes: [String: String], to entry: TaskEntry) throws {
        let attributes = try entry.record.task.attributes.changingAttributes(attributes)
        guard attributes != entry.record.task.attributes else { return }
        entry.record.task.attributes = attributes
        try save(entry)
    }

    /// Records the present time as the last use of the selected tasks.
    ///
    /// - Returns: the number of tasks.
    package func markUsed(_ selector: TaskSelector) throws -> Int {
        let entries = try findSome(selector)
        for entry in entries {
            entry.record.markUsed(at: clock.date)
            try save(entry)
        }
        return entries.count
    }

    /// The page of records that a query asks for, with the live values of running tasks.
    package func records(_ query: RecordQuery) throws -> RecordPage {
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
                var record = DownloadRecord(entry.record, in: self.workPath)
                record.received = entry.received
                record.bytesPerSecond = entry.recordedSpeed(in: entry.record.state, now: now) ?? 0
                return record
            })
    }
}
