import FKMiddleware
import Foundation

/// How a record changes. Whoever holds a task asks for one of these; a test sees to it that nobody assigns the fields
/// behind them elsewhere. The state itself is changed by `Reporter.change` and `TaskRun.end`, which tell others.
extension TaskRecord {
    // MARK: Attempts

    /// An attempt begins.
    mutating func begin(at date: Date) {
        attempts += 1
        started = started ?? date
        error = nil
        waiting = nil
    }

    /// What has begun is no attempt to fetch anything: nothing was asked, or only a finished file was compared.
    mutating func takeBackAttempt() { attempts = max(0, attempts - 1) }

    /// What began as a comparison becomes an attempt after all.
    mutating func beginAgain() { attempts += 1 }

    /// The attempt has failed. Its file has no final name any more.
    mutating func fail(_ error: DownloadError) {
        self.error = error
        path = nil
    }

    /// The task is tried again.
    ///
    /// - Parameter reason: why it waits; nil where it waits for a slot alone.
    mutating func retry(_ reason: Waiting?) { waiting = reason }

    /// The last attempt has failed.
    mutating func giveUp(at date: Date) { finished = date }

    /// The task goes back into the queue without having been tried.
    mutating func putBack() {
        takeBackAttempt()
        path = nil
        finished = nil
    }

    /// The next attempt is the first one, and waits for nothing.
    mutating func freshen() {
        attempts = 0
        error = nil
        waiting = nil
    }

    /// The task has ended, and may run again.
    mutating func reopen() {
        freshen()
        finished = nil
    }

    /// What it waited for is over.
    mutating func stopWaiting() { waiting = nil }

    /// The task is cancelled or trashed: how it failed before does not count any more.
    mutating func drop() {
        error = nil
        waiting = nil
    }

    /// The process of the attempt has ended: a background task goes on by itself, another one when somebody says so.
    mutating func interrupt() {
        state = task.type == .background ? .idle : .suspend
        takeBackAttempt()
        waiting = nil
    }

    // MARK: Bytes

    /// Forgets everything that was received, and what was known of it. The state is left to the caller.
    mutating func dropBytes() {
        ranges = []
        expected = nil
        validator = nil
        source = nil
        partName = nil
        partTime = nil
        pieces = nil
        path = nil
        written = nil
        lengthVerified = nil
    }

    /// The part file is gone or empty; what is known of the file stays.
    mutating func dropRanges() { ranges = [] }

    /// The server sends the file from its beginning.
    mutating func startOver(length: Int64?) {
        ranges = [SavedRange(start: 0, end: length)]
        pieces = nil
        validator = nil
        expected = length
    }

    /// A server has told the length of the file, where it did.
    mutating func learn(length: Int64?) {
        if ranges.isEmpty { ranges = [SavedRange(start: 0, end: length)] }
        expected = length ?? expected
        if ranges.count == 1, ranges[0].end == nil { ranges[0].end = length }
    }

    /// The body of a range without a known end has ended there: that is the end of the file.
    mutating func closeRange(_ index: Int, at position: Int64) {
        ranges[index].end = position
        expected = position
    }

    /// All bytes of the file are there.
    mutating func fill(_ length: Int64) {
        expected = length
        ranges = [SavedRange(start: 0, end: length, position: length)]
    }

    /// A range holds less than the record says: no byte of it from `position` on.
    mutating func shorten(_ index: Int, to position: Int64) {
        ranges[index].position = max(ranges[index].start, position)
        pieces = nil
    }

    /// Brings the ranges into order. Returns false when they are.
    mutating func normalize() -> Bool {
        let normal = SegmentPlanner.normalize(ranges, expected: expected)
        defer { ranges = normal }
        return normal != ranges
    }

    /// One more connection fills the file.
    mutating func divide(into ranges: [SavedRange]) { self.ranges = ranges }

    /// Takes over how far the connections are.
    mutating func fold(_ counters: LiveCounters) {
        for index in ranges.indices { ranges[index].position = ranges[index].clamped(counters.load(index)) }
    }

    /// The checksum of bytes that have come.
    mutating func add(_ piece: PieceChecksum) { pieces = (pieces ?? []) + [piece] }

    /// How a body has ended.
    ///
    /// - Parameter isVerified: a length or last chunk confirmed its end.
    mutating func noteEnd(isVerified: Bool) { lengthVerified = isVerified ? nil : false }

    // MARK: What servers say

    /// - Parameter source: the URL that the validator is of; nil for the task's own.
    mutating func adopt(_ validator: Validator, of source: String?) {
        self.validator = validator
        self.source = source
    }

    /// A digest of the whole file that a server told.
    mutating func adopt(_ digest: Checksum) { validator?.digest = digest }

    /// The head of the last response.
    mutating func adopt(_ head: ResponseHead) { response = head }

    // MARK: Files

    /// The attempt writes to the part file of that name.
    mutating func usePart(_ name: String) { partName = name }

    /// The part file is open: its time says nothing any more.
    mutating func openPart() {
        partTime = nil
        if ranges.isEmpty { pieces = nil }
    }

    /// The attempt leaves a part file that was last written to then.
    mutating func leavePart(_ time: Int64?) { partTime = time }

    /// There is no part file any more.
    mutating func forgetPart() { partName = nil }

    /// The file is about to get that name.
    mutating func name(_ path: String) { self.path = path }

    /// The file has no final name.
    mutating func unname() { path = nil }

    /// A file that was there already counts as the result.
    mutating func keep(foreign path: String) {
        self.path = path
        isForeign = true
        written = nil
    }

    /// What shows that the file is the task's.
    mutating func identify(_ file: FileIdentity?) { written = file }

    /// The finished file is on the disk itself.
    mutating func noteSynced() {
        synced = true
        pieces = nil
    }

    /// The bytes are on the disk itself, or not after all.
    mutating func setSynced(_ isSynced: Bool) { synced = isSynced ? true : nil }

    /// The result was somebody else's file, or one that is fetched again.
    mutating func forgetResult() {
        isForeign = nil
        synced = nil
    }

    /// The finished file of another boot is whole, or nobody can say that it is not.
    mutating func prove() {
        noteSynced()
        error = nil
        waiting = nil
    }

    /// The finished file is not what was received.
    mutating func forgetFile() {
        dropBytes()
        finished = nil
    }

    /// A record that said `complete` before the file had its name, and whose boot is over: what is on the disk counts.
    mutating func unfinish() {
        state = .action
        self = applyingLiveCounters([])
        path = nil
        finished = nil
        state = task.type == .background ? .idle : .suspend
    }

    /// - Parameter paths: where else the finished file is; removed once this is written.
    mutating func leaveBehind(_ paths: [String]) { leftBehind = paths.isEmpty ? nil : paths }

    /// Removes the places from which response middlewares have moved the file.
    mutating func removeLeftBehind() {
        for path in leftBehind ?? [] { unlink(path) }
        leftBehind = nil
    }

    /// The file was moved aside.
    mutating func setAside(_ file: SetAsideFile) { setAside = (setAside ?? []) + [file] }

    /// Removes an earlier file of that name.
    mutating func removeSetAside(_ path: String) {
        setAside?.first { $0.path.isExactly(path) }?.remove()
        setAside?.removeAll { $0.path.isExactly(path) }
    }

    /// Removes what was moved aside, unless somebody has written to it. Returns false when there was nothing.
    mutating func removeSetAside() -> Bool {
        guard let files = setAside else { return false }
        for file in files { file.remove() }
        setAside = nil
        return true
    }

    // MARK: Around the download

    /// Adds a line to the history, which keeps the newest eight.
    mutating func note(_ verdict: Verdict) {
        history.append(verdict)
        if history.count > 8 { history.removeFirst() }
    }

    /// Requests go to another address, or to the task's own URL again.
    mutating func relink(to address: String) { link = address.isExactly(task.url) ? nil : address }

    mutating func join(_ barrel: String) { barrels.append(barrel) }

    mutating func leave(_ barrel: String) { barrels.removeAll { $0.isExactly(barrel) } }

    /// The application uses the finished file.
    mutating func use(at date: Date) { lastUsed = date }
}
