import FKMiddleware
import Foundation

/// The payload of an info file: everything about a task that must outlive the process.
///
/// It never contains what a request middleware adds, which is created again on each attempt.
///
/// Its fields change only by the transitions below, which keep them consistent. Five fields are open, because each has
/// one other owner: `state` (`TaskEntry.set`, which reports it), `task` (`TaskControl`), `barrels` (`TaskBook`), and
/// `bootID` and `bytesPerSecond` (the writing of a record).
package struct TaskRecord: Codable, Sendable, Hashable {
    /// The task's id.
    package private(set) var id: TaskID
    /// The description of the task.
    package var task: TaskDescription
    /// The submission number: unique in the work path, ascending.
    package private(set) var number: UInt64
    /// The state of the task.
    package var state: DownloadState
    /// Why the task waits; nil if it does not.
    @Seldom package private(set) var waiting: Waiting?
    /// The ranges of the file, as `SegmentPlanner` divides it.
    package private(set) var ranges: [SavedRange] = []
    /// Checksums of the received bytes as far as they are known, until the file is synced.
    @Seldom package private(set) var pieces: [PieceChecksum]?
    /// The length of the whole file in bytes; nil until a server has reported it.
    package private(set) var expected: Int64?
    /// The validator of the stored bytes; nil without one.
    @Seldom package private(set) var validator: Validator?
    /// The URL that `validator` belongs to; nil for the task's own. Validators of two URLs cannot be compared.
    @Seldom package private(set) var source: String?
    /// True if the stored bytes were joined only because a digest of the task vouched for them (`FileVersion.needsDigest`).
    package private(set) var needsDigest: Bool?
    /// The address that requests use in place of the task's URL, which stays its identity (`Control.relink`); nil
    /// without one.
    @Seldom package private(set) var link: String?
    /// Mirrors that a server has offered for a file with a digest. They follow the task's own in the plan.
    @Seldom package private(set) var offered: [String]?
    /// The number of attempts started so far.
    package private(set) var attempts: Int = 0
    /// The last error; nil without one.
    @Seldom package private(set) var error: DownloadError?
    /// The last response head; nil without one.
    @Seldom package private(set) var response: ResponseHead?
    /// The barrels that the task is a member of.
    package var barrels: [String] = []
    /// The name of the part file in the task's folder; nil without one.
    package private(set) var partName: String?
    /// The time of the part file's last write at the end of an attempt that left bytes in it, in nanoseconds since
    /// 1970. nil while an attempt writes, so that the next engine can tell whether the attempt ended regularly.
    @Seldom package private(set) var partTime: Int64?
    /// The absolute path of the finished file.
    package private(set) var path: String?
    /// The finished file as the task left it, which proves that a file at `path` is the task's own (`owns`). Set just
    /// before the file gets its final name.
    @Seldom package private(set) var written: FileIdentity?
    /// Files of this task that were set aside. They are removed when it completes or is trashed.
    @Seldom package private(set) var setAside: [SetAsideFile]?
    /// The finished file that a refresh or repair is to replace; nil without one.
    @Seldom package private(set) var former: FormerFile?
    /// Absolute paths where the finished file still is after a response middleware has moved it. They are removed
    /// after this record is written.
    @Seldom package private(set) var leftBehind: [String]?
    /// When the task was created.
    package private(set) var created: Date
    /// When its first attempt started.
    package private(set) var started: Date?
    /// When it completed or finally failed.
    package private(set) var finished: Date?
    /// When the application last marked the finished file as used (`Control.markUsed`).
    @Seldom package private(set) var lastUsed: Date?
    /// Bytes per second: smoothed at the last write while the task runs, the average of the last attempt afterwards.
    package var bytesPerSecond: Int64?
    /// True if the file at `path` existed before and only counts as the result. It is never deleted.
    package private(set) var isForeign: Bool?
    /// True if the finished file is synced.
    package private(set) var synced: Bool?
    /// The boot in which `ranges` and `synced` were written. Live counters of another boot are not trusted.
    package var bootID: String?
    /// False if no length or last chunk confirmed the end of the body.
    package private(set) var lengthVerified: Bool?
    /// The history, newest last, at most 8 lines.
    package private(set) var history: [Verdict] = []

    /// Creates the record of a new task.
    ///
    /// - Parameter id: the task's id, if it was computed already; nil, the default, computes it.
    package init(task: TaskDescription, id: TaskID? = nil, number: UInt64, created: Date) {
        self.id = id ?? task.id
        self.task = task
        self.task.startsSuspended = nil
        self.number = number
        state = task.startsSuspended == true ? .suspend : .idle
        self.created = created
    }

    /// True if no attempt was ever made.
    package var isUntouched: Bool {
        started == nil && attempts == 0 && ranges.isEmpty && partName == nil && path == nil
    }

    /// The entry of the plan for the next attempt: 0 is the task's URL, the others are its mirrors. A failed attempt is
    /// followed by the next entry. An interrupted one does not count, and repeats its entry.
    package var nextURLIndex: Int {
        let begun = state == .action || state == .complete ? max(0, attempts - 1) : attempts
        return (begun + firstOfPlan) % plan.count
    }

    /// The URL for the next attempt.
    package var nextURL: String { plan[nextURLIndex] }

    /// The bytes in the part file or the finished file at the last write of the record.
    package var received: Int64 {
        // Inlined, because the record of a task in memory would be copied for a call.
        @inline(__always) get { Self.received(ranges) }
    }

    /// The bytes received in ranges. Static, because the record of a task in memory would be copied for a call.
    private static func received(_ ranges: [SavedRange]) -> Int64 { ranges.reduce(0) { $0 + $1.position - $1.start } }
}

extension TaskRecord: RecordObject {
    static let blank = TaskRecord(task: .blank, number: 0, created: Date(timeIntervalSince1970: 0))

    /// Every member of the payload. Common members come with a fast form, rare ones go through Foundation's encoder.
    mutating func visitFields<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitHead(&visitor)
        try visitRest(&visitor)
    }

    /// The members of a `RecordHead`.
    mutating func visitHead<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitor.field("id", &id)
        try visitor.field("task", &task)
    }

    mutating func visitRest<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitor.field("number", &number)
        try visitor.field("state", &state)
        try visitor.field("waiting", &_waiting)
        try visitor.field("ranges", &ranges)
        try visitor.field("pieces", &_pieces)
        try visitor.field("expected", &expected)
        try visitor.field("validator", &_validator)
        try visitor.field("source", &_source)
        try visitor.field("needsDigest", &needsDigest)
        try visitor.field("link", &_link)
        try visitor.field("offered", &_offered)
        try visitor.field("attempts", &attempts)
        try visitor.field("error", &_error)
        try visitor.field("response", &_response)
        try visitor.field("barrels", &barrels)
        try visitor.field("partName", &partName)
        try visitor.field("partTime", &_partTime)
        try visitor.field("path", &path)
        try visitor.field("written", &_written)
        try visitor.rare("setAside", &setAside)
        try visitor.field("leftBehind", &_leftBehind)
        try visitor.field("created", &created)
        try visitor.field("started", &started)
        try visitor.field("finished", &finished)
        try visitor.field("lastUsed", &_lastUsed)
        try visitor.field("bytesPerSecond", &bytesPerSecond)
        try visitor.field("isForeign", &isForeign)
        try visitor.field("synced", &synced)
        try visitor.field("bootID", &bootID)
        try visitor.field("lengthVerified", &lengthVerified)
        try visitor.field("history", &history)
        try visitor.rare("former", &former)
    }
}

// MARK: - Attempts

extension TaskRecord {
    /// An attempt begins.
    package mutating func begin(at date: Date) {
        attempts += 1
        started = started ?? date
        error = nil
        waiting = nil
    }

    /// The attempt does not count: it was stopped, requested nothing, or only compared a finished file.
    package mutating func takeBackAttempt() { attempts = max(0, attempts - 1) }

    /// A comparison turns into an attempt to fetch the file.
    package mutating func beginAgain() { attempts += 1 }

    /// The attempt has failed. Its file has no final name.
    package mutating func fail(_ error: DownloadError) {
        self.error = error
        path = nil
    }

    /// Another attempt follows.
    ///
    /// - Parameter reason: why the task waits; nil if it waits for a slot only.
    package mutating func retry(_ reason: Waiting?) { waiting = reason }

    /// The task is not complete at its deadline. Its bytes and the name of its file stay.
    package mutating func expire(_ error: DownloadError, at date: Date) {
        self.error = error
        waiting = nil
        finished = date
    }

    /// No attempt follows the failed one.
    package mutating func giveUp(at date: Date) { finished = date }

    /// The task returns to the queue, and the attempt does not count.
    package mutating func putBack() {
        takeBackAttempt()
        path = nil
        finished = nil
    }

    /// Resets the count of attempts. The task waits for nothing.
    package mutating func freshen() {
        attempts = 0
        error = nil
        waiting = nil
    }

    /// A task that has ended may run again.
    package mutating func reopen() {
        freshen()
        finished = nil
    }

    /// The task waits for nothing any more.
    package mutating func stopWaiting() { waiting = nil }

    /// Why the task waits, as readers of the record show it.
    package mutating func show(_ reason: Waiting?) { waiting = reason }

    /// The place of the task in a list over several work paths, for readers of the record.
    package mutating func show(number: UInt64) { self.number = number }

    /// The task is cancelled or trashed. Its last error does not count any more.
    package mutating func drop() {
        error = nil
        waiting = nil
    }

    /// The process of the attempt has ended. A background task is queued; a foreground task is suspended.
    package mutating func interrupt() {
        state = task.type == .background ? .idle : .suspend
        takeBackAttempt()
        waiting = nil
    }
}

// MARK: - Bytes

extension TaskRecord {
    /// Forgets the received bytes and everything known about the file. The caller sets the state.
    package mutating func dropBytes() {
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
        needsDigest = nil
        offered = nil
    }

    /// The part file is missing or empty. What is known about the file stays.
    package mutating func dropRanges() {
        ranges = []
        needsDigest = nil
    }

    /// The server sends the file from its beginning.
    package mutating func startOver(length: Int64?) {
        ranges = [SavedRange(start: 0, end: length)]
        pieces = nil
        validator = nil
        expected = length
        needsDigest = nil
    }

    /// Stores the length of the file that a server reported; nil keeps the known one.
    package mutating func learn(length: Int64?) {
        if ranges.isEmpty { ranges = [SavedRange(start: 0, end: length)] }
        expected = length ?? expected
        if ranges.count == 1, ranges[0].end == nil { ranges[0].end = length }
    }

    /// The body of a whole file without a known end has ended, or that of its rest, so its end is the end of the file.
    package mutating func closeRange(_ index: Int, at position: Int64) {
        ranges[index].end = position
        expected = position
    }

    /// All bytes of the file are there.
    package mutating func fill(_ length: Int64) {
        expected = length
        ranges = [SavedRange(start: 0, end: length, position: length)]
    }

    /// The end of the last received byte. Ranges without bytes may lie behind it, and behind the end of the part file.
    package var heldEnd: Int64 { ranges.lazy.filter { $0.position > $0.start }.map(\.position).max() ?? 0 }

    /// The part file has no bytes of the range from `position` on.
    package mutating func shorten(_ index: Int, to position: Int64) {
        ranges[index].position = max(ranges[index].start, position)
        pieces = nil
    }

    /// Sorts and joins the ranges. Returns false if nothing changed.
    package mutating func normalize() -> Bool {
        let normal = SegmentPlanner.normalize(ranges, expected: expected)
        defer { ranges = normal }
        return normal != ranges
    }

    /// Divides the file into these ranges, one for each connection.
    package mutating func divide(into ranges: [SavedRange]) { self.ranges = ranges }

    /// The bytes of a piece are wrong and count as missing. All other ranges keep their numbers.
    package mutating func reopen(_ piece: Range<Int64>) {
        ranges = SegmentPlanner.reopen(ranges, piece)
        pieces = nil
    }

    /// Stores the position of a connection, clamped to its range.
    package mutating func move(_ index: Int, to position: Int64) {
        ranges[index].position = ranges[index].clamped(position)
    }

    /// Adds the checksum of received bytes.
    package mutating func add(_ piece: PieceChecksum) { pieces = (pieces ?? []) + [piece] }

    /// A body has ended.
    ///
    /// - Parameter isVerified: true if a length or last chunk confirmed the end.
    package mutating func noteEnd(isVerified: Bool) { lengthVerified = isVerified ? nil : false }

    /// The record with the real positions of its ranges.
    ///
    /// - In the boot of the record, counters are as reliable as the part file, because the page cache survives the
    ///   process. Each position is advanced to its counter if that is within the range.
    /// - In another boot, the page cache is lost. Each position falls back to the synced one.
    ///
    /// A complete record is returned unchanged, because its bytes are not in a part file any more.
    package func applyingLiveCounters(_ counters: [Int64], bootID current: String = BootID.current) -> TaskRecord {
        var record = self
        record.apply(counters, bootID: current)
        return record
    }

    /// The same in place.
    package mutating func apply(_ counters: [Int64], bootID current: String = BootID.current) {
        guard state != .complete else { return }
        let isOfThisBoot = bootID == current
        for (index, range) in ranges.enumerated() {
            if !isOfThisBoot {
                ranges[index].position = max(range.start, min(range.position, range.synced))
            } else if index < counters.count {
                ranges[index] = range.advanced(to: counters[index])
            }
        }
        // The file's own time may be lost with the page cache. The positions above count only synced bytes.
        if !isOfThisBoot {
            partTime = nil
            pieces = nil
        }
    }
}

// MARK: - Responses

extension TaskRecord {
    /// Stores the validator of the stored bytes.
    ///
    /// - Parameter source: the URL of the validator; nil for the task's own.
    package mutating func adopt(_ validator: Validator, of source: String?) {
        self.validator = validator
        self.source = source
    }

    /// Only a digest proves that the stored bytes, or those that follow them, are of one version.
    package mutating func noteNeedsDigest() { needsDigest = true }

    /// Stores a server's digest of the whole file.
    package mutating func adopt(_ digest: Checksum) { validator?.digest = digest }

    /// Stores the mirrors that servers have offered.
    mutating func setOffered(_ urls: [String]) { offered = urls }

    /// Stores the head of the last response.
    package mutating func adopt(_ head: ResponseHead) { response = head }
}

// MARK: - Files

extension TaskRecord {
    /// The attempt writes to the part file with this name.
    package mutating func usePart(_ name: String) { partName = name }

    /// The part file is open, so its time proves nothing any more.
    package mutating func openPart() {
        partTime = nil
        if ranges.isEmpty { pieces = nil }
    }

    /// The attempt leaves a part file with this time of its last write.
    package mutating func leavePart(_ time: Int64?) { partTime = time }

    /// The task has no part file any more.
    package mutating func forgetPart() { partName = nil }

    /// The file is about to get this final name.
    package mutating func name(_ path: String) { self.path = path }

    /// The file has no final name.
    package mutating func unname() { path = nil }

    /// A file that existed before counts as the result.
    package mutating func keep(foreign path: String) {
        self.path = path
        isForeign = true
        written = nil
    }

    /// Stores the identity that proves the file to be the task's.
    package mutating func identify(_ file: FileIdentity?) { written = file }

    /// All bytes are received. The caller sets the state.
    package mutating func finish(received: Int64, at date: Date) {
        let size = expected ?? received
        ranges = [SavedRange(start: 0, end: size, position: size, synced: synced == true ? size : 0)]
        expected = size
        pieces = PieceChecksum.covering(pieces, length: size)
        if synced == true { dropPieces() }
        finished = date
        error = nil
        waiting = nil
        needsDigest = nil
    }

    /// The finished file is synced.
    package mutating func noteSynced() {
        synced = true
        dropPieces()
    }

    /// The file is synced. The checksum of a small one stays, for `fk verify`; a large one has a `PieceFile`.
    private mutating func dropPieces() {
        if expected ?? .max > PieceSums.pieceLength || pieces?.count != 1 { pieces = nil }
    }

    /// The bytes are synced, or the sync has failed.
    package mutating func setSynced(_ isSynced: Bool) { synced = isSynced ? true : nil }

    /// The result was a foreign file, or is fetched again.
    package mutating func forgetResult() {
        isForeign = nil
        synced = nil
    }

    /// The finished file of another boot is complete, or nothing proves the opposite.
    package mutating func prove() {
        noteSynced()
        error = nil
        waiting = nil
    }

    /// The finished file is missing or differs from the received bytes.
    package mutating func forgetFile() {
        dropBytes()
        finished = nil
    }

    /// A record of another boot says `complete`, but its file has no final name: only synced bytes count.
    package mutating func unfinish() {
        state = .action
        apply([])
        path = nil
        finished = nil
        state = task.type == .background ? .idle : .suspend
    }

    /// - Parameter paths: the other places of the finished file, removed after this record is written.
    package mutating func leaveBehind(_ paths: [String]) { leftBehind = paths.isEmpty ? nil : paths }

    /// The file was moved aside.
    package mutating func setAside(_ file: SetAsideFile) { setAside = (setAside ?? []) + [file] }

    /// The finished file stays until another fetch replaces it.
    ///
    /// - Parameter damaged: the bytes to fetch; nil for the whole file.
    package mutating func renew(damaged: [Renewal.Damage]?) {
        if former == nil, let path {
            former = FormerFile(
                path: path, expected: expected, written: written, validator: validator, source: source, pieces: pieces,
                finished: finished, isForeign: isForeign)
        }
        former?.damaged = damaged
        dropBytes()
        isForeign = nil
        synced = nil
        finished = nil
        // The permission to replace another file was for the first download.
        if task.option({ $0.existing }) == .overwrite { task.options.existing = .rename }
    }

    /// Version 1.0 has the finished file that a refresh replaces among the files set aside.
    mutating func takeFormer() {
        let folder = task.directory
        guard
            let file = setAside?.first(where: {
                !isHiddenAside($0.path.lastPathPart)
                    && folder?.isExactly($0.path.folderPart) ?? $0.path.folderPart.lastPathPart.isExactly(id.hex)
            })
        else { return }
        setAside?.removeAll { $0 == file }
        former = former ?? FormerFile(path: file.path, expected: file.written.length, written: file.written)
    }

    /// The finished file before a refresh or repair counts.
    package mutating func restore(_ former: FormerFile) {
        path = former.path
        expected = former.expected
        written = former.written
        validator = former.validator
        source = former.source
        pieces = former.pieces
        finished = former.finished
        isForeign = former.isForeign
    }

    /// The part file has the bytes of the damaged file, and these ranges.
    package mutating func repair(with ranges: [SavedRange]) {
        self.ranges = ranges
        expected = former?.expected
        validator = former?.validator
        source = former?.source
    }

    /// A file cannot be repaired by its damaged bytes alone.
    package mutating func fetchWhole() { former?.damaged = [] }

    /// The file has the bytes that were received first.
    package mutating func confirm(_ pieces: [PieceChecksum]?) { self.pieces = pieces }

    /// Forgets the earlier files with this name, and returns them.
    package mutating func forgetSetAside(_ path: String) -> [SetAsideFile] {
        let files = (setAside ?? []).filter { $0.path.isExactly(path) }
        setAside?.removeAll { $0.path.isExactly(path) }
        return files
    }

    /// The task is complete: forgets the replaced file and the files that were moved aside. Returns the latter, and nil if there
    /// was neither.
    package mutating func forgetSetAside() -> [SetAsideFile]? {
        guard setAside != nil || former != nil else { return nil }
        defer { (setAside, former) = (nil, nil) }
        return setAside ?? []
    }
}

// MARK: - Around the download

extension TaskRecord {
    /// Adds a line to the history, which keeps the newest eight.
    package mutating func appendHistory(_ verdict: Verdict) {
        history.append(verdict)
        if history.count > 8 { history.removeFirst() }
    }

    /// Adds a line to the history, and removes an earlier one that says the same. Of the states that a program was told
    /// only the last one stays.
    package mutating func noteDecision(_ verdict: Verdict) {
        let told = Verdict.told
        history.removeAll {
            $0.by == verdict.by
                && ($0.what == verdict.what || $0.what.hasPrefix(told) && verdict.what.hasPrefix(told))
        }
        appendHistory(verdict)
    }

    /// Requests use another address, or the task's own URL again.
    package mutating func relink(to address: String) { link = address.isExactly(task.url) ? nil : address }

    /// The task becomes a member of the barrel.
    package mutating func join(_ barrel: String) { barrels.append(barrel) }

    /// The task leaves the barrel.
    package mutating func leave(_ barrel: String) { barrels.removeAll { $0.isExactly(barrel) } }

    /// The application uses the finished file.
    package mutating func use(at date: Date) { lastUsed = date }
}
