import FKMiddleware
import Foundation

/// From the verified bytes to the finished file: final name, response chain. Confined to the engine.
///
/// ```text
/// (part to the destination) -> (sync) -> record -> name -> (sync folder) -> response chain -> record of the moved file
/// ```
///
/// It waits only for the comparison of an existing file, for the copy of a part on another file system, for the syncs of
/// `Durability.power`, and for response middlewares.
/// Without any of these, `publishAtOnce` performs the same steps in one call.
final class Publication {
    private enum State {
        /// The record on disk does not say that the task is complete.
        case open
        /// It says so already.
        case recorded
        /// Response middlewares run. The record is written after them.
        case responding
    }

    private(set) var part: OpenPart
    let heads: Heads
    private unowned let run: TaskRun
    private let entry: TaskEntry
    private unowned let book: TaskBook
    private unowned let destinations: Destinations
    private let durability: Configure.Durability
    private var state = State.open
    /// The checksums of the file's pieces.
    private var sums: [UInt32] = []
    /// The file whose checksums are on the disk; nil if there are none.
    private var sumsOf: FileIdentity?

    private var folder: Folder { part.home }
    var isResponding: Bool { state == .responding }

    init(_ run: TaskRun, _ part: OpenPart, _ heads: Heads, _ destinations: Destinations) {
        self.run = run
        self.part = part
        self.heads = heads
        self.destinations = destinations
        entry = run.entry
        book = run.book
        durability = run.configure.durability
    }

    /// Publishes the file if nothing has to be waited for.
    ///
    /// - Parameters:
    ///   - status: the part's, if it was checked just now; nil checks it.
    ///   - sums: the checksums of its pieces.
    func publishAtOnce(_ status: stat?, _ sums: [UInt32]) throws(DownloadError) {
        self.sums = sums
        if case .existing(let name) = try nameFile(status) { try keepExisting(name) }
        complete()
    }

    /// Publishes the file. The task is complete with this file, or with an existing one that is kept.
    ///
    /// - Throws: the error of the attempt; `.cancelled` if the run was stopped.
    func publish(_ sums: [UInt32], isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        self.sums = sums
        if part.isAway {
            _ = try checkPlaces()
            part.file = try await part.broughtHome(by: run, entry.record.partKey(book.owner))
            entry.record.bringPartHome()
        }
        if durability == .power {
            let file = part.file
            try await run.offThread { () throws(DownloadError) in try file.synchronize() }
            entry.record.setSynced(true)
        }
        if case .existing(let name) = try nameFile() {
            try await run.compareExisting(name, in: folder)
            try keepExisting(name)
            return complete()
        }
        if durability == .power { try await synchronizeName() }
        try await respond()
        complete()
    }

    private func complete() {
        writeSums()
        if let adopted = entry.record.adopted, !adopted.isInUse, adopted.path.existsOnDisk {
            book.problems.append(
                "\(adopted.path) was not continued, because nothing proved its bytes. It stays as it is, and the whole file was fetched.",
                code: .fileExists)
        }
        run.complete(isRecorded: state == .recorded)
    }

    /// Writes the checksums of the finished file's pieces, before the file gets its name: a kill in between loses nothing, because
    /// sums of another file do not count. A response middleware may have moved the file. Without space for them, the file has
    /// none.
    private func writeSums() {
        guard sumsOf != entry.record.written, let length = entry.record.expected, PieceFile.isFor(length: length),
            entry.record.isForeign != true,
            let written = entry.record.written, written.length == length, sums.count == PieceSums.count(length)
        else { return }
        do {
            try PieceFile(identity: written, sums: sums).write(book.workPath.piecesPath(entry.id))
            sumsOf = written
        } catch {
            book.problems.append("The checksums of \(entry.record.path ?? "a file") could not be kept: \(error)")
        }
    }

    // MARK: The final name

    private func synchronizeName(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        let folder = folder
        do {
            try await run.offThread { () throws(DownloadError) in try folder.synchronize() }
        } catch {
            try run.checkStop()
            // A failed task has no finished file. The next attempt would take it for a foreign one.
            try? entry.unpublish(in: folder, book.owner)
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
        let status = if let status { status } else { try checkPlaces() }
        return try inFolder { () throws(DownloadError) in try rename(status) }
    }

    /// The next attempt looks for the folder itself if it was lost.
    private func inFolder<Value>(_ body: () throws(DownloadError) -> Value) throws(DownloadError) -> Value {
        do throws(DownloadError) {
            return try body()
        } catch {
            if error.code == .destination { destinations.folders.forget(folder.path) }
            throw error
        }
    }

    /// Checks that the folder and the part are where they were.
    ///
    /// - Returns: the status of the part.
    func checkPlaces() throws(DownloadError) -> stat {
        try inFolder { () throws(DownloadError) in
            try destinations.folders.checkStillThere(folder)
            return try part.file.namedStatus()
        }
    }

    /// Gives the part the time of the server's version if the options want it. It has to come before the record knows the file's
    /// identity.
    ///
    /// - Returns: the status afterwards; nil if nothing was changed.
    private func applyServerTime() -> stat? {
        guard entry.record.task.optionsBox?.value.remoteTime == true,
            let date = entry.record.validator?.lastModified.flatMap({ HTTPDate.parse($0) }),
            (0...Double(Int32.max) * 4).contains(date.timeIntervalSince1970)
        else { return nil }
        part.file.setTime(Int64(date.timeIntervalSince1970) * 1_000_000_000)
        return try? part.file.namedStatus()
    }

    private func rename(_ status: stat) throws(DownloadError) -> Naming {
        let status = applyServerTime() ?? status
        let renewed = entry.record.renewed(in: folder, book.owner)
        var name = renewed?.name ?? finalName()
        let policy =
            renewed.map { $0.act == .replace ? .overwrite : .rename }
            ?? (entry.record.mayReplace(adopted: folder.path(of: name)) ? .overwrite : nil)
            ?? entry.record.task.optionsBox?.value.existing
            ?? (entry.record.task.fileName == nil || entry.record.adopted != nil ? .rename : .refuse)
        recordIdentity(FileIdentity(status, born: part.file.born))
        part.file.open(forOthers: status)
        // Until the old file is replaced, its checksums stay.
        if renewed == nil { writeSums() }
        var number = 0
        // A process that was killed in a rename of two steps has left the part with one of the names, so each is tried.
        let triesAll = policy != .rename || status.st_nlink > 1 || renewed != nil
        while true {
            // The rename itself finds out whether a name is taken. Only a name that was taken before is looked for first.
            if !triesAll, number > 0 || destinations.names.isKnown(folder.path(of: name)) {
                number = destinations.names.next(
                    folder.path(of: name), owner: entry.id.short, least: number,
                    look: { folder.place(of: FileNameRules.numbered(name, $0), book.owner) })
            }
            let candidate = FileNameRules.numbered(name, number)
            let path = folder.path(of: candidate)
            entry.record.name(path)
            try saveBeforeRename()
            if durability == .power { try book.synchronize(entry) }
            if renewed?.act == .keepAside, number == 0 { try keepEdited(name) }
            do throws(DownloadError) {
                if try folder.rename(part.file.name, to: candidate, replacing: policy == .overwrite) { return .named }
            } catch {
                // The bytes are there, and only the name that the server or the URL chose is refused.
                guard renewed == nil, entry.record.task.fileName == nil, folder.useStricterNames(for: name, error)
                else {
                    throw error
                }
                (name, number) = (finalName(), 0)
                continue
            }
            if try reclaim(candidate) { return .named }
            switch policy {
            // The name was taken since it was checked.
            case .rename, .overwrite: number += 1
            case .refuse: throw .fileExists(path)
            case .skip: return .existing(candidate)
            }
        }
    }

    /// The final name. One that the server or the URL chose has no characters that the file system is known to refuse.
    private func finalName() -> String {
        let wanted = run.finalName(heads.last)
        let name = entry.record.task.fileName == nil ? folder.fitted(wanted) : wanted
        if !name.isExactly(wanted), let character = FileNameParts.refused(in: wanted, onlyASCII: true) {
            run.appendHistory(
                by: "name", "the file system refuses '\(character)' in \"\(wanted)\": the file is named \(name)")
        }
        return name
    }

    /// Somebody has written to the finished file. It is kept under the next free name.
    private func keepEdited(_ name: String) throws(DownloadError) {
        var number = 1
        while try !folder.rename(name, to: FileNameRules.numbered(name, number), replacing: false) { number += 1 }
        book.problems.append(
            "Somebody has written to \(folder.path(of: name)): it was kept as "
                + "\(folder.path(of: FileNameRules.numbered(name, number))).", code: .fileExists)
    }

    /// Completes the task with a file that existed before. The part is removed.
    private func keepExisting(_ name: String) throws(DownloadError) {
        let path = folder.path(of: name)
        let size = try folder.fileLength(name)
        entry.record.keep(foreign: path)
        entry.remakeRanges { $0.fill(size) }
        if sumsOf != nil { unlink(book.workPath.piecesPath(entry.id)) }
        // The record written before the rename says nothing of this.
        state = .open
        part.file.remove()
        let began = entry.record.started?.timeIntervalSince1970 ?? .infinity
        guard let status = folder.status(of: name), Double(status.changeTime) / 1e9 > began else {
            return run.appendHistory(by: "existing", "\(path) was there already: it was kept")
        }
        run.appendHistory(by: "existing", "\(path) appeared during the download: it was kept")
        book.problems.append(
            "\(path) appeared during the download: it was kept as it is, and the bytes that were fetched were dropped.",
            code: .fileExists)
    }

    /// Stores the proof that the file is the task's in the record, and as a mark on the file. With `Durability.power` the record
    /// is synced before the rename, so the file needs no mark.
    private func recordIdentity(_ identity: FileIdentity) {
        entry.record.identify(identity)
        // A synced file has no mark, and a part has.
        guard durability == .process else { return FileOwner.clear(part.file.descriptor) }
        part.file.mark(identity, as: entry.id, book.owner)
    }

    /// Reclaims the name of a file that this task made before a power cut, and whose record was lost. That file is set aside until
    /// the task is complete.
    ///
    /// - Returns: false if the file with that name is not such a file.
    private func reclaim(_ name: String) throws(DownloadError) -> Bool {
        guard folder.isLeftover(name, of: entry.id, book.owner, before: BootID.began) else { return false }
        _ = try entry.setAside(name, in: folder, folder.status(of: name).map { FileIdentity($0) }, book) {
            FileNameRules.oldName(for: name, id: entry.id, number: $0)
        }
        try saveBeforeRename()
        if durability == .power { try book.synchronize(entry) }
        return try folder.rename(part.file.name, to: name, replacing: false)
    }

    /// Writes the record before the rename. With a response chain, it contains the final name. Without one, it is already the
    /// record of the complete task (`TaskRecord.isRenameMissing`), which saves a second write. With `Durability.power` this
    /// record is synced: a record written after the rename could be lost, although the task was reported as complete.
    private func saveBeforeRename() throws(DownloadError) {
        guard !entry.isHandled(by: book.chains.response) else {
            run.keepInfoOpen()
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
        part.counters.store(0, entry.record.expected ?? 0)
        state = .recorded
    }

    // MARK: The response chain

    private func respond(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        let chain = entry.middlewares(of: book.chains.response)
        guard !chain.isEmpty, let path = entry.record.path else { return }
        let received = entry.record.written
        let response = DownloadResponse(
            task: entry.context, response: (heads.last ?? entry.record.response)?.httpURLResponse,
            fileURL: URL(fileURLWithPath: path))
        // A chain that was registered just now may move the file. The record is then written again.
        state = .responding
        let workPath = book.workPath
        let file = ReceivedFile(path, received, entry.id, book.owner)
        let end = await run.inChain { await ResponseChainEnd.run(chain, response, workPath, file) }
        state = .open
        adoptPlace(from: end.response, isAnothers: end.received?.isAnothers == true)
        if entry.record.written.map({ received?.matches($0) != true }) ?? true { entry.record.recordChange() }
        try run.checkStop()
        if let failure = end.downloadError { throw reject(failure) }
        try await settleChange(by: end.received?.changers ?? [], end.received)
        // With `Durability.power` the new name of the file is synced before the record contains it.
        guard durability == .power, entry.record.leftBehind != nil, let path = entry.record.path else { return }
        do {
            try await run.offThread { () throws(DownloadError) in try Folder(path: path.folderPart).synchronize() }
        } catch {
            try run.checkStop()
            throw reject(error)
        }
    }

    /// The CRC-32C of the received file; nil if it is not known.
    private func receivedSum(_ length: Int64) -> String? {
        if !sums.isEmpty { return PieceSums.whole(sums, length: length) }
        guard let pieces = PieceChecksum.covering(entry.record.pieces, length: length) else { return nil }
        var crc = CRC32C()
        var end: Int64 = 0
        for piece in pieces {
            guard piece.start == end else { return nil }
            crc.append(piece.crc32c, count: piece.end - piece.start)
            end = piece.end
        }
        return Digester.hex(withUnsafeBytes(of: crc.value.bigEndian) { Array($0) })
    }

    /// Reads the file again if a response middleware may have changed it. A copy has the bytes that were received. The digests of
    /// other bytes are of no use: the record then says who has changed the file, and keeps the checksum of what is there now.
    ///
    /// - Throws: `.cancelled` if the run was stopped.
    private func settleChange(
        by names: [String], _ file: ReceivedFile?, isolation: isolated (any Actor)? = #isolation
    ) async throws(DownloadError) {
        guard !names.isEmpty, let file, let path = entry.record.path else { return }
        let by = names.reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }.joined(separator: ", ")
        let result = try? await run.offThread { () throws(DownloadError) in
            var sums: [UInt32] = []
            return (try FileChange.read(path, by: by, &sums), sums)
        }
        try run.checkStop()
        guard let (change, found) = result else {
            sums = []
            return
        }
        let isSame = change.length == entry.record.expected && change.crc32c == receivedSum(change.length)
        if isSame, !file.isAnothers {
            sums = found
            return
        }
        sums = []
        entry.record.change(change)
        run.appendHistory(
            by: by,
            file.isAnothers
                ? "names \(path), which was there before: it counts as the result, and stays when the task is trashed"
                : "changed the file, which has \(change.length.plural("byte")) now")
    }

    /// Rejects the file: it loses its final name, and the next attempt fetches it from the beginning.
    private func reject(_ failure: DownloadError) -> DownloadError {
        let place = setAsideRejected()
        entry.removeLeftBehind()
        var failure = failure
        failure.underlying = failure.underlying ?? place
        run.startAnew(because: failure)
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
    ///
    /// - Parameter isAnothers: true if the file that the chain has named was there before.
    private func adoptPlace(from response: DownloadResponse, isAnothers: Bool) {
        let (oldPath, old) = (entry.record.path, entry.record.written)
        if let path = response.fileURL?.path { entry.record.name(path) }
        guard let path = entry.record.path else { return }
        let file = FileIdentity(path: path)
        let isSamePath = oldPath?.isExactly(path) == true
        if isAnothers {
            entry.record.keep(foreign: path)
        } else if run.stop == nil || !isSamePath || file?.inode == old?.inode {
            entry.record.identify(file)
        }
        let left = response.leftBehind.map(\.path).compactMap { other -> SetAsideFile? in
            guard !FileNames.isOneName(path, other), let there = FileIdentity(path: other) else { return nil }
            let reason =
                FileNames.areOfOneFile(path, other)
                ? nil : there.staysBehind(oldPath?.isExactly(other) == true, old, now: file, at: path)
            guard let reason else { return SetAsideFile(path: other, written: there) }
            book.problems.append("\(other) stays: \(reason).", code: .fileExists)
            return nil
        }
        entry.leaveBehind(left)
    }
}
