import FKMiddleware
import Foundation

/// From the last byte to the finished file: verify, final name, response chain.
///
/// ```text
/// length -> digest -> (sync) -> record -> name -> (sync folder) -> response chain -> record of the moved file
/// ```
///
/// It waits only for a digest that was not computed while the bytes arrived, for the comparison of an existing file, for the
/// syncs of `Durability.power`, and for response middlewares. Without any of these, `publishAtOnce` performs the same steps
/// in one call. Confined to the engine.
struct Publisher {
    let run: TaskRun

    private var entry: TaskEntry { run.entry }
    private var room: RunRoom { run.room }
    private var book: TaskBook { run.book }
    private var folder: Folder { run.folder }
    private var part: PartFile { run.part }
    private var durability: Durability { run.configure.durability }

    /// True if nothing has to be waited for: `publishAtOnce` is enough.
    var waitsForNothing: Bool {
        guard durability == .process, !entry.isHandled(by: room.chains.response), !entry.record.isRepair else {
            return false
        }
        if !run.knowsSums { return false }
        let existing = entry.record.task.option { $0.existing }
        // An existing file may have to be compared as well.
        if existing == .skip, entry.hasPieceDigests { return false }
        guard let checksum = entry.expectedDigest else { return true }
        return checksum.algorithm == run.digest?.algorithm && existing != .skip
    }

    /// The same steps without waits. A Swift task for each small file would take 4 % more processor time.
    func publishAtOnce() throws(DownloadError) {
        let status = try inFolder { () throws(DownloadError) in try checkPlaces() }
        let length = Int64(status.st_size)
        try settleLength(length)
        if let checksum = entry.expectedDigest, let digest = run.digest { try compare(digest.hex, checksum) }
        let isCut = length > entry.record.expected ?? length
        if case .existing(let name) = try nameFile(isCut ? nil : status) { try keepExisting(name) }
    }

    /// Publishes the file. It returns once the task has a finished file: this one, or an existing one that is kept.
    ///
    /// - Throws: the error of the attempt; `.cancelled` if the run was stopped.
    func publish(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        try settleLength(part.length)
        try await verify()
        try await run.compareRepaired()
        try await run.settleSums()
        if durability == .power {
            let part = part
            try await run.offThread { () throws(DownloadError) in try part.synchronize() }
            entry.record.setSynced(true)
        }
        if case .existing(let name) = try nameFile() {
            try await run.compareExisting(name, in: folder)
            return try keepExisting(name)
        }
        if durability == .power { try await synchronizeName() }
        try await respond()
    }

    // MARK: Verifying

    /// Cuts the part to the file's length. Bytes behind it come from another program or a power cut.
    ///
    /// - Parameter length: the length of the part.
    /// - Throws: `.incompleteBody` if the part is shorter.
    private func settleLength(_ length: Int64) throws(DownloadError) {
        guard let expected = entry.record.expected else { return }
        if let size = entry.record.task.option({ $0.size }), expected != size {
            run.startAnew()
            throw ResumeRules.wrongSize(expected, size)
        }
        if length > expected { try part.truncate(to: expected) }
        guard length >= expected else {
            throw DownloadError(
                .incompleteBody, "The part file was truncated: it has \(length) of \(expected) bytes.",
                isRetryable: true)
        }
    }

    /// Compares the digest, if the task or the server has one.
    private func verify(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        guard let checksum = entry.expectedDigest else { return }
        let digest: String
        if let known = run.digest, known.algorithm == checksum.algorithm {
            digest = known.hex
        } else if let follower = run.follower, follower.algorithm == checksum.algorithm,
            let length = entry.record.expected
        {
            digest = try await run.offThread { () throws(DownloadError) in try follower.finish(at: length) }
        } else {
            let part = part
            digest = try await run.offThread { () throws(DownloadError) in try part.digest(checksum.algorithm) }
        }
        try compare(digest, checksum)
    }

    private func compare(_ digest: String, _ checksum: Checksum) throws(DownloadError) {
        guard digest != checksum.hex else { return }
        guard !entry.record.isRepair else { throw run.refuseRepair() }
        let name = partlessName
        let aside = try? entry.setAside(part.name, in: folder, part.identity, book) {
            FileNameRules.rejectedName(for: name, id: entry.id, number: $0)
        }
        run.startAnew()
        let whose = entry.record.task.options.checksum == nil ? " as the server tells" : ""
        let place = aside.map { " The bytes were set aside as \($0)." } ?? ""
        // Bytes of an earlier attempt or another mirror may be wrong, so a resumed file is fetched again.
        throw DownloadError(
            .checksumMismatch,
            "The file is not the one expected: its \(checksum.algorithm.rawValue) is \(digest), "
                + "not \(checksum.hex)\(whose).\(place)",
            isRetryable: run.files.isResumed)
    }

    /// The final name: from the task, the server or the URL, in this order.
    private var partlessName: String {
        entry.record.task.fileName
            ?? FileNameRules.name(own: run.urlName, head: run.head ?? entry.record.response)
    }

    // MARK: The final name

    private func synchronizeName(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        let folder = folder
        do {
            try await run.offThread { () throws(DownloadError) in try folder.synchronize() }
        } catch {
            try run.checkStop()
            // A failed task has no finished file. The next attempt would take it for a foreign one.
            try? run.unpublish(in: folder)
            entry.record.setSynced(false)
            throw error
        }
    }

    /// The result of `nameFile`.
    private enum Naming {
        /// The file has its final name.
        case named
        /// A file with this name existed before and counts instead.
        case existing(String)
    }

    /// Gives the verified file its final name.
    ///
    /// The name is written to the record first. After a crash, the file without the part is then known to be the task's.
    /// With `Durability.power` the order is: bytes, record, name, folder (each synced before the next).
    ///
    /// - Parameter status: the part's, if it was checked just now; nil, the default, checks it.
    private func nameFile(_ status: stat? = nil) throws(DownloadError) -> Naming {
        try inFolder { () throws(DownloadError) in
            if let status { return try rename(status) }
            return try rename(try checkPlaces())
        }
    }

    /// The next attempt looks for the folder itself if it was lost.
    private func inFolder<Value>(_ body: () throws(DownloadError) -> Value) throws(DownloadError) -> Value {
        do throws(DownloadError) {
            return try body()
        } catch {
            if error.code == .destination { room.folders.forget(folder.path) }
            throw error
        }
    }

    /// Checks that the folder and the part are where they were.
    ///
    /// - Returns: the status of the part.
    private func checkPlaces() throws(DownloadError) -> stat {
        try room.folders.checkStillThere(folder)
        return try part.namedStatus()
    }

    private func rename(_ status: stat) throws(DownloadError) -> Naming {
        let renewed = entry.record.renewed(in: folder, book.owner)
        let name = renewed?.name ?? partlessName
        let policy =
            renewed.map { $0.act == .replace ? .overwrite : .rename }
            ?? entry.record.task.option { $0.existing } ?? (entry.record.task.fileName == nil ? .rename : .refuse)
        recordIdentity(FileIdentity(status, born: part.born))
        var number = 0
        // A process that was killed in a rename of two steps has left the part with one of the names, so each is tried.
        let triesAll = policy != .rename || status.st_nlink > 1 || renewed != nil
        while true {
            // The rename itself finds out whether a name is taken. Only a name that was taken before is looked for first.
            if !triesAll, number > 0 || room.names.isKnown(folder.path(of: name)) {
                number = room.names.next(
                    folder.path(of: name), owner: entry.id.short, least: number,
                    look: { folder.place(of: FileNameRules.numbered(name, $0), book.owner) })
            }
            let candidate = FileNameRules.numbered(name, number)
            let path = folder.path(of: candidate)
            entry.record.name(path)
            try saveBeforeRename()
            if durability == .power { try book.synchronize(entry) }
            if renewed?.act == .keepAside, number == 0 { try keepEdited(name) }
            let isNamed = try folder.rename(
                part.name, to: candidate, replacing: policy == .overwrite)
            if isNamed { return .named }
            if try takeBack(candidate) { return .named }
            switch policy {
            // The name was taken since it was checked.
            case .rename, .overwrite: number += 1
            case .refuse: throw run.fileExists(path)
            case .skip: return .existing(candidate)
            }
        }
    }

    /// Somebody has written to the finished file. It is kept under the next free name.
    private func keepEdited(_ name: String) throws(DownloadError) {
        var number = 1
        while try !folder.rename(name, to: FileNameRules.numbered(name, number), replacing: false) { number += 1 }
        book.problems.append(
            "Somebody has written to \(folder.path(of: name)): it was kept as "
                + "\(folder.path(of: FileNameRules.numbered(name, number))).")
    }

    /// Completes the task with a file that existed before. The part is removed.
    private func keepExisting(_ name: String) throws(DownloadError) {
        let path = folder.path(of: name)
        _ = try folder.fileLength(name)
        entry.record.keep(foreign: path)
        // The record written before the rename says nothing of this.
        run.isRecordedComplete = false
        part.remove()
        run.appendHistory(by: "existing", "\(path) was there already: it was kept")
    }

    /// Stores the proof that the file is the task's in the record, and as a mark on the file. With `Durability.power` the record
    /// is synced before the rename, so the file needs no mark.
    private func recordIdentity(_ identity: FileIdentity) {
        entry.record.identify(identity)
        guard durability == .process else { return }
        part.mark(identity, as: entry.id, book.owner)
    }

    /// Takes the name of a file that this task made before a power cut, and whose record was lost. That file is set aside until
    /// the task is complete.
    ///
    /// - Returns: false if the file with that name is not such a file.
    private func takeBack(
        _ name: String
    ) throws(DownloadError) -> Bool {
        guard folder.isLeftover(name, of: entry.id, book.owner, before: BootID.began) else { return false }
        _ = try entry.setAside(name, in: folder, folder.status(of: name).map { FileIdentity($0) }, book) {
            FileNameRules.oldName(for: name, id: entry.id, number: $0)
        }
        try saveBeforeRename()
        if durability == .power { try book.synchronize(entry) }
        return try folder.rename(part.name, to: name, replacing: false)
    }

    /// Writes the record before the rename. With a response chain, it contains the final name. Without one, it is already the
    /// record of the complete task (`TaskRecord.isRenameMissing`), which saves a second write. With `Durability.power` this
    /// record is synced: a record written after the rename could be lost, although the task was reported as complete.
    private func saveBeforeRename() throws(DownloadError) {
        guard !entry.isHandled(by: room.chains.response) else {
            run.openInfo = run.openInfo ?? OpenInfoFile()
            return try book.save(entry)
        }
        entry.foldCounters()
        let ranges = entry.record.ranges
        entry.record.finish(received: entry.received, at: run.clock.date)
        do {
            try book.save(entry, as: .complete)
            try run.openInfo?.closeWritten()
        } catch {
            entry.record.divide(into: ranges)
            throw DownloadError(wrapping: error, code: .disk, message: "The info file could not be written.")
        }
        // The file is one range now. If the rename fails, its counter has the received bytes.
        run.files.counters.store(0, entry.record.expected ?? 0)
        run.isRecordedComplete = true
    }

    // MARK: The response chain

    private func respond(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        let chain = entry.middlewares(of: room.chains.response)
        guard !chain.isEmpty, let context = entry.context, let path = entry.record.path else { return }
        // A chain that was registered just now may move the file. The record is then written again.
        run.isRecordedComplete = false
        let received = entry.record.written
        let response = DownloadResponse(
            task: context, response: (run.head ?? entry.record.response)?.httpURLResponse,
            fileURL: URL(fileURLWithPath: path))
        run.isResponding = true
        let workPath = book.workPath
        let (end, notes) = await MiddlewareCall.inChain(of: room.engine, entry.id) {
            await ResponseChainEnd.run(chain, response, workPath)
        }
        run.isResponding = false
        notes.forEach(run.note)
        takePlace(from: end.response)
        try run.checkStop()
        if let failure = end.downloadError { throw reject(failure) }
        try await run.settleChangedSums(since: received)
        // With `Durability.power` the new name of the file is synced before the record contains it.
        guard durability == .power, entry.record.leftBehind != nil, let path = entry.record.path else { return }
        do {
            try await run.offThread { () throws(DownloadError) in try Folder(path: path.folderPart).synchronize() }
        } catch {
            try run.checkStop()
            throw reject(error)
        }
    }

    /// Rejects the file: it loses its final name, and the next attempt fetches it from the beginning.
    private func reject(_ failure: DownloadError) -> DownloadError {
        let place = setAsideRejected()
        entry.removeLeftBehind()
        run.startAnew()
        var failure = failure
        failure.underlying = failure.underlying ?? place
        return failure
    }

    private func setAsideRejected() -> String? {
        guard let path = entry.record.path, let written = entry.record.written,
            entry.record.claim(path, book.owner).act(.reject) == .move, let folder = try? Folder(path: path.folderPart)
        else { return nil }
        let name = path.lastPathPart
        let aside = try? entry.setAside(name, in: folder, written, book) {
            FileNameRules.rejectedName(for: name, id: entry.id, number: $0)
        }
        return aside.map { "the file was set aside as \($0)" }
    }

    /// Stores the place of the file after the response chain, and its places to remove.
    ///
    /// The present file counts as the task's, also if a middleware has changed it. A moved file is in two places for a while:
    /// the old one is removed after the record contains the new one, so a killed process leaves at least one. At the old
    /// place only the moved file is removed; a file that another program has put there stays, and so does one of another
    /// length, which cannot be a copy. After a stopped chain, a new file at the same path is not taken for a middleware's.
    private func takePlace(from response: DownloadResponse) {
        let (oldPath, old) = (entry.record.path, entry.record.written)
        if let path = response.fileURL?.path { entry.record.name(path) }
        guard let path = entry.record.path else { return }
        let file = FileIdentity(path: path)
        let isSamePath = oldPath?.isExactly(path) == true
        if run.stop == nil || !isSamePath || file?.inode == old?.inode { entry.record.identify(file) }
        let left = response.leftBehind.map(\.path).compactMap { other -> SetAsideFile? in
            guard !FileNames.isOneName(path, other), let there = FileIdentity(path: other) else { return nil }
            let left = SetAsideFile(path: other, written: there)
            if FileNames.areOfOneFile(path, other) { return left }
            if oldPath?.isExactly(other) == true {
                if old.map({ there.inode == $0.inode && there.isOne(with: $0) != false }) ?? true { return left }
                book.problems.append("\(other) stays: it is another file than the one that was moved to \(path).")
                return nil
            }
            if [old?.length, file?.length].contains(there.length) { return left }
            book.problems.append("\(other) stays: it is no copy of \(path), because their lengths differ.")
            return nil
        }
        entry.leaveBehind(left)
    }
}
