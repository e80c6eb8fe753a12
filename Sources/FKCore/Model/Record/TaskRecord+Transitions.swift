import FKMiddleware
import Foundation

// MARK: - Attempts

extension TaskRecord {
    /// An attempt begins.
    package mutating func begin(at date: Date) {
        own.attempts += 1
        own.started = started ?? date
        own.error = nil
        own.waiting = nil
    }

    /// The attempt does not count: it was stopped, requested nothing, or only compared a finished file.
    package mutating func undoAttempt() { own.attempts = max(0, attempts - 1) }

    /// A failed attempt has received bytes. Attempts are counted from this one if they are more than the task ever had, by at
    /// least `ProgressMark.step`. Bytes that were dropped and fetched again are no progress, so a server that always ends at
    /// the same byte does not keep the task alive.
    package mutating func recordProgress(received: Int64) {
        guard received - (progress?.received ?? 0) >= ProgressMark.step(of: expected) else { return }
        own.progress = ProgressMark(received: received, attempts: max(0, attempts - 1))
    }

    /// The number of attempts since the last progress, including the one that made it.
    package var countedAttempts: Int { max(0, attempts - attemptsBeforeProgress) }

    /// The number of attempts before the last progress, which do not count any more.
    package var attemptsBeforeProgress: Int { progress?.attempts ?? 0 }

    /// A comparison turns into an attempt to fetch the file.
    package mutating func beginAgain() { own.attempts += 1 }

    /// The attempt has failed. Its file has no final name.
    package mutating func fail(_ error: DownloadError) {
        own.error = error
        own.path = nil
    }

    /// The task is not complete at its deadline. Its bytes and the name of its file stay.
    package mutating func expire(_ error: DownloadError, at date: Date) {
        own.error = error
        own.waiting = nil
        own.finished = date
    }

    /// No attempt follows the failed one.
    package mutating func giveUp(at date: Date) { own.finished = date }

    /// The task returns to the queue, and the attempt does not count.
    package mutating func putBack() {
        undoAttempt()
        own.path = nil
        own.finished = nil
    }

    /// Resets the count of attempts. The task waits for nothing.
    package mutating func freshen() {
        own.attempts = 0
        own.progress = nil
        own.error = nil
        own.waiting = nil
    }

    /// A task that has ended may run again.
    package mutating func reopen() {
        freshen()
        own.finished = nil
    }

    /// Why the task waits; nil for nothing, or for a slot only.
    package mutating func setWaiting(_ reason: Waiting?) { own.waiting = reason }

    /// The place of the task in a list over several work paths, for readers of the record.
    package mutating func setNumber(_ number: UInt64) { own.number = number }

    /// The task is cancelled or trashed. Its last error does not count any more.
    package mutating func drop() {
        own.error = nil
        own.waiting = nil
    }

    /// The process of the attempt has ended. A background task is queued; a foreground task is suspended.
    package mutating func interrupt() {
        state = task.type == .background ? .idle : .suspend
        undoAttempt()
        own.waiting = nil
    }
}

// MARK: - Responses

extension TaskRecord {
    /// Stores the validator of the stored bytes.
    ///
    /// - Parameter source: the URL of the validator; nil for the task's own.
    package mutating func adopt(_ validator: Validator, of source: String?) {
        own.validator = validator
        own.source = source
    }

    /// Only a digest proves that the stored bytes, or those that follow them, are of one version.
    package mutating func requireDigest() { own.needsDigest = true }

    /// Stores the digest that binds every source.
    package mutating func bind(to digest: AnnouncedDigest?) { own.announced = digest }

    /// Stores a server's digest of the whole file.
    package mutating func adopt(_ digest: Checksum) { own.validator?.digest = digest }

    mutating func setOffered(_ urls: [String]) { own.offered = urls }

    package mutating func adopt(_ head: ResponseHead) {
        own.response = head
        pass(through: head.via)
    }
}

// MARK: - Files

extension TaskRecord {
    /// The attempt writes to the part file with this name, in this folder; nil for the destination.
    package mutating func usePart(_ name: String, in folder: String?) {
        (own.partName, own.partFolder) = (name, folder)
    }

    /// The part file is in the destination.
    package mutating func bringPartHome() { own.partFolder = nil }

    /// The part file is open, so its time proves nothing any more.
    package mutating func openPart() {
        own.partTime = nil
        if ranges.isEmpty { own.pieces = nil }
    }

    /// The attempt leaves a part file with this time of its last write.
    package mutating func leavePart(_ time: Int64?) { own.partTime = time }

    /// The task has no part file any more.
    package mutating func forgetPart() { (own.partName, own.partFolder) = (nil, nil) }

    /// The file is about to get this final name.
    package mutating func name(_ path: String) { own.path = path }

    /// The file has no final name.
    package mutating func dropPath() { own.path = nil }

    /// A file that existed before counts as the result.
    package mutating func keep(foreign path: String) {
        own.path = path
        own.isForeign = true
        own.written = nil
    }

    /// Stores the identity that proves the file to be the task's.
    package mutating func identify(_ file: FileIdentity?) { own.written = file }

    /// All bytes are received. The caller sets the state.
    package mutating func finish(received: Int64, at date: Date) {
        let size = expected ?? received
        own.ranges = [SavedRange(start: 0, end: size, position: size, synced: synced == true ? size : 0)]
        own.expected = size
        own.pieces = PieceChecksum.covering(pieces, length: size)
        if synced == true { dropPieces() }
        own.finished = date
        own.error = nil
        own.waiting = nil
        own.needsDigest = nil
        own.completedBy = Version.text
    }

    package mutating func recordSynced() {
        own.synced = true
        dropPieces()
    }

    /// The file is synced. The checksum of a small one stays, for `fk verify`; a large one has a `PieceFile`.
    private mutating func dropPieces() {
        if expected ?? .max > PieceSums.pieceLength || pieces?.count != 1 { own.pieces = nil }
    }

    /// The bytes are synced, or the sync has failed.
    package mutating func setSynced(_ isSynced: Bool) { own.synced = isSynced ? true : nil }

    /// The result was a foreign file, or is fetched again.
    package mutating func forgetResult() {
        own.isForeign = nil
        own.synced = nil
    }

    /// The finished file of another boot is complete, or nothing proves the opposite.
    package mutating func prove() {
        recordSynced()
        own.error = nil
        own.waiting = nil
    }

    /// The finished file is missing or differs from the received bytes.
    package mutating func forgetFile() {
        dropBytes()
        own.finished = nil
    }

    /// A record of another boot says `complete`, but its file has no final name: only synced bytes count.
    package mutating func unfinish() {
        state = .action
        apply([])
        own.path = nil
        own.finished = nil
        state = task.type == .background ? .idle : .suspend
    }

    /// - Parameter paths: the other places of the finished file, removed after this record is written.
    package mutating func leaveBehind(_ paths: [String]) { own.leftBehind = paths.isEmpty ? nil : paths }

    package mutating func setAside(_ file: SetAsideFile) { own.setAside = (setAside ?? []) + [file] }

    /// The finished file stays until another fetch replaces it.
    ///
    /// - Parameter damaged: the bytes to fetch; nil for the whole file.
    package mutating func renew(damaged: [Renewal.Damage]?) {
        if former == nil, let path {
            own.former = FormerFile(
                path: path, expected: expected, written: written, validator: validator, source: source, pieces: pieces,
                finished: finished, isForeign: isForeign, trace: trace, changed: changed)
        }
        own.former?.damaged = damaged
        dropBytes()
        // A refresh asks for the version of now.
        if damaged == nil { own.announced = nil }
        own.isForeign = nil
        own.synced = nil
        own.finished = nil
        endOverwriting()
    }

    /// The permission to replace another file was for the first download.
    package mutating func endOverwriting() {
        if task.optionsBox?.value.existing == .overwrite { task.options.existing = .rename }
    }

    /// Version 1.0 has the finished file that a refresh replaces among the files set aside.
    mutating func restoreFormer() {
        let folder = task.directory
        guard
            let file = setAside?.first(where: {
                !isHiddenAside($0.path.lastPathPart)
                    && folder?.isExactly($0.path.folderPart) ?? $0.path.folderPart.lastPathPart.isExactly(id.hex)
            })
        else { return }
        own.setAside?.removeAll { $0 == file }
        own.former = former ?? FormerFile(path: file.path, expected: file.written.length, written: file.written)
    }

    /// The finished file before a refresh or repair counts.
    package mutating func restore(_ former: FormerFile) {
        own.path = former.path
        own.expected = former.expected
        own.written = former.written
        own.validator = former.validator
        own.source = former.source
        own.pieces = former.pieces
        own.finished = former.finished
        own.isForeign = former.isForeign
        own.trace = former.trace
        own.changed = former.changed
    }

    /// The finished file before a refresh or repair is the file of the task again. The caller sets the state.
    package mutating func restoreFinished(_ former: FormerFile) {
        restore(former)
        finish(received: former.expected ?? 0, at: former.finished ?? Date())
        own.former = nil
        own.announced = nil
        own.attempts = 0
        own.progress = nil
    }

    /// The part file has the bytes of the damaged file, and these ranges.
    package mutating func repair(with ranges: [SavedRange]) {
        own.ranges = ranges
        own.expected = former?.expected
        own.validator = former?.validator
        own.source = former?.source
        own.trace = former?.trace
    }

    /// A file cannot be repaired by its damaged bytes alone.
    package mutating func fetchWhole() { own.former?.damaged = [] }

    /// The file has the bytes that were received first.
    package mutating func confirm(_ pieces: [PieceChecksum]?) { own.pieces = pieces }

    /// Forgets the earlier files with this name, and returns them.
    package mutating func forgetSetAside(_ path: String) -> [SetAsideFile] {
        let files = (setAside ?? []).filter { $0.path.isExactly(path) }
        own.setAside?.removeAll { $0.path.isExactly(path) }
        return files
    }

    /// The task is complete: forgets the replaced file and the files that were moved aside. Returns the latter, and nil if there
    /// was neither.
    package mutating func forgetSetAside() -> [SetAsideFile]? {
        guard setAside != nil || former != nil else { return nil }
        defer { (own.setAside, own.former) = (nil, nil) }
        return setAside ?? []
    }
}

// MARK: - Around the download

extension TaskRecord {
    /// Adds a line to the history, which keeps the newest eight.
    package mutating func appendHistory(_ line: HistoryLine) {
        own.history.append(line)
        if history.count > 8 { own.history.removeFirst() }
    }

    /// Adds a line to the history, and removes an earlier one that says the same. Only the last state that a program received
    /// is kept.
    package mutating func recordDecision(_ line: HistoryLine) {
        let told = HistoryLine.told
        own.history.removeAll {
            $0.by == line.by
                && ($0.what == line.what || $0.what.hasPrefix(told) && line.what.hasPrefix(told))
        }
        appendHistory(line)
    }

    /// The same folder for the file, as a shared copy of its text.
    package mutating func place(in directory: String) { own.task.directory = directory }

    /// Requests use another address, or the task's own URL again.
    package mutating func relink(to address: String) { own.link = address.isExactly(task.url) ? nil : address }

    package mutating func join(_ barrel: String) { barrels.append(barrel) }

    package mutating func leave(_ barrel: String) { barrels.removeAll { $0.isExactly(barrel) } }

    /// The application uses the finished file.
    package mutating func markUsed(at date: Date) { own.lastUsed = date }
}
