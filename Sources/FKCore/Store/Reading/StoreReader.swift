import FKMiddleware
import Foundation

/// Reads a work path without owning its engine, for `fk list`, `fk info` and other processes.
///
/// It changes nothing. Unreadable info files are skipped and reported; only the engine moves them.
package struct StoreReader: Sendable {
    package let workPath: WorkPath

    /// The shards whose tasks count as well; nil for the work path alone.
    private let shards: ShardedTasks?

    /// The work paths whose engine is stopped or hung.
    private var silent: Set<WorkPath> = []

    /// Creates a reader. It reads no info files yet.
    package init(_ workPath: WorkPath) {
        self.workPath = workPath
        shards = nil
    }

    /// Creates a reader that adds the tasks of the work path's shards.
    ///
    /// - Throws: `.disk` if the folder of the shards cannot be listed.
    package init(withShardsOf workPath: WorkPath) throws {
        self.workPath = workPath
        shards = try ShardedTasks(workPath)
    }

    /// The ids of all tasks, in no particular order.
    ///
    /// - Throws: `.disk` if a folder cannot be listed.
    package func allTaskIDs() throws -> [TaskID] { try shards?.allTaskIDs() ?? workPath.allTaskIDs() }

    /// The work path that has the record of a task.
    package func home(of id: TaskID) -> WorkPath { shards?.home(of: id) ?? workPath }

    /// The record of a task as it is stored.
    package func storedText(of id: TaskID) throws -> String { try InfoFile.rawPayload(home(of: id).infoPath(id)) }

    /// True if an engine runs tasks of this reader.
    package var isEngineRunning: Bool {
        EngineLock.isHeld(workPath) || shards?.workPaths.contains(where: EngineLock.isHeld) ?? false
    }

    /// Looks for engines that are stopped or hung. From now on, their tasks have no speed.
    ///
    /// - Returns: the processes of these engines.
    package mutating func findSilentEngines() -> [EngineLock.Holder] {
        var holders: [EngineLock.Holder] = []
        for path in [workPath] + (shards?.workPaths ?? []) {
            guard let holder = EngineLock.silentHolder(path) else { continue }
            silent.insert(path)
            holders.append(holder)
        }
        return holders
    }

    /// True if the engine that has a task is stopped or hung, as `findSilentEngines` found.
    package func isSilent(_ id: TaskID) -> Bool { silent.contains(home(of: id)) }

    /// A task as it is now, with live counters applied. A task that a dead engine left running is shown as waiting
    /// for an engine.
    ///
    /// - Throws: `.notFound`, `.corruptInfo`, `.laterVersion` or `.disk`; `.destination` for a base that has no folder here.
    package func record(_ id: TaskID) throws -> TaskRecord {
        do {
            let home = home(of: id)
            return present(
                try home.withPlaces { try InfoFile.read(home.infoPath(id), places: $0) }, engineWaits()[home])
        } catch let error as DownloadError where error.code == .notFound {
            throw DownloadError(.notFound, "There is no task \(id.short).")
        }
    }

    /// The tasks that meet a condition, in the order of submission. Other tasks are not kept in memory.
    ///
    /// - Parameter problem: called for each unreadable info file.
    /// - Throws: same as `allTaskIDs`.
    package func records(
        where isWanted: (TaskRecord) -> Bool = { _ in true }, problem: (DownloadError) -> Void = { _ in }
    ) throws -> [TaskRecord] {
        read(try allTaskIDs(), containing: nil, problem: problem, where: isWanted)
    }

    /// The existing tasks among these ids, in the order given; for the members of a barrel.
    package func records(_ ids: some Sequence<TaskID>, problem: (DownloadError) -> Void = { _ in }) -> [TaskRecord] {
        var records: [TaskRecord] = []
        readAll(Array(ids), problem: problem) { records.append($1) }
        return records
    }

    /// The tasks of a URL in the order of submission: several if it has several destinations.
    ///
    /// - Parameter url: percent-encoded, as in the records.
    /// - Throws: same as `allTaskIDs`.
    package func records(url: String, problem: (DownloadError) -> Void = { _ in }) throws -> [TaskRecord] {
        // The payload contains the URL unchanged, so files without its bytes need no parsing.
        read(try allTaskIDs(), containing: Array(url.utf8), problem: problem) { $0.task.url.isExactly(url) }
    }

    /// The suspended tasks among these ids, in the order given. The other records are searched and not parsed.
    package func suspended(_ ids: [TaskID]) -> [TaskRecord] {
        var records: [TaskRecord] = []
        readAll(ids, containing: Array("\"state\":\"suspend\"".utf8), problem: { _ in }) { _, record in
            if record.state == .suspend { records.append(record) }
        }
        return records
    }

    /// The tasks whose finished file was there before (`ExistingFilePolicy.skip`), and that meet a condition. The other records are searched
    /// and not parsed.
    ///
    /// - Throws: same as `allTaskIDs`.
    package func recordsOfForeignFiles(where isWanted: (TaskRecord) -> Bool) throws -> [TaskRecord] {
        read(try allTaskIDs(), containing: Array("\"isForeign\":true".utf8), problem: { _ in }) {
            $0.isForeign == true && isWanted($0)
        }
    }

    /// The tasks among these ids that have another address than their URL, in the order given. The other records are searched and not
    /// parsed.
    package func relinked(_ ids: [TaskID]) -> [TaskRecord] {
        var records: [TaskRecord] = []
        readAll(ids, containing: Array("\"link\":\"".utf8), problem: { _ in }) { _, record in
            if record.link != nil { records.append(record) }
        }
        return records
    }

    /// The tasks that a selector names, in the order of submission; a barrel's in the order in which they joined.
    ///
    /// - Throws: `.invalidURL` for an invalid URL, `.notFound` if there is no such barrel.
    package func records(matching selector: TaskSelector) throws -> [TaskRecord] {
        switch selector.kind {
        case .all: try records()
        case .state(let state): try records().filter { $0.state == state }
        case .id(let id): records([id])
        case .url(let url): try records(url: url.normalizedURL())
        case .barrel(let name): records(try barrelIDs(name).ids)
        }
    }

    /// The only task whose id starts with these digits.
    ///
    /// - Parameter prefix: 4 to 64 hexadecimal digits in either case.
    /// - Throws: `.invalidArgument` for fewer digits, for other characters, and for several matching ids, which it
    ///   lists; `.notFound`; the errors of `record`.
    package func record(idPrefix prefix: String) throws -> TaskRecord {
        let prefix = prefix.lowercased()
        guard Self.isIDPrefix(prefix) else {
            throw DownloadError(.invalidArgument, "The beginning of an id has 4 to 64 hexadecimal digits.")
        }
        let ids = try (shards?.taskIDs(prefix: prefix) ?? workPath.taskIDs(prefix: prefix)).sorted()
        guard let id = ids.first else { throw DownloadError(.notFound, "There is no task \(prefix).") }
        guard ids.count == 1 else {
            let list = ids.prefix(8).map(\.short).joined(separator: ", ")
            throw DownloadError(
                .invalidArgument,
                "\(ids.count) tasks begin with \(prefix): \(list)\(ids.count > 8 ? ", …" : ""). Give more digits.")
        }
        return try record(id)
    }

    /// True for 4 to 64 hexadecimal digits.
    package static func isIDPrefix(_ text: String) -> Bool {
        (4...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0 | 0x20) }
    }

    /// The tasks that a user named: by a URL, or by 4 or more digits of an id.
    ///
    /// - Throws: `.notFound`, and for an id the errors of `record(idPrefix:)`.
    package func records(named text: String) throws -> [TaskRecord] {
        if Self.isIDPrefix(text) { return [try record(idPrefix: text)] }
        let records = try records(url: text)
        guard !records.isEmpty else { throw DownloadError(.notFound, "There is no task of that URL.", url: text) }
        return records
    }

    // MARK: Barrels

    /// The names of all barrels, sorted.
    ///
    /// - Throws: `.disk` if a folder cannot be listed.
    package func barrelNames() throws -> [String] { try shards?.barrelNames() ?? BarrelFile.list(in: workPath) }

    /// Reads a barrel.
    ///
    /// - Throws: `.notFound`, `.corruptInfo`, `.laterVersion` or `.disk`.
    package func barrel(_ name: String) throws -> BarrelRecord {
        try shards?.barrel(name) ?? BarrelFile.read(name, in: workPath)
    }

    /// Passes the id and the bytes of the URL of each member of a barrel to `body`, in the order in which they joined. What
    /// was collected counts only if no error is thrown.
    ///
    /// - Returns: the barrel without members.
    /// - Throws: same as `barrel`.
    package func forEachMember(
        of name: String, _ body: (TaskID, UnsafeBufferPointer<UInt8>) -> Void
    ) throws -> BarrelRecord {
        if var divided = try shards?.barrel(name) {
            for member in divided.members { Array(member.url.utf8).withUnsafeBufferPointer { body(member.id, $0) } }
            divided.members = []
            return divided
        }
        return try BarrelFile.scan(name, in: workPath) { id, url, _ in body(id, url) }
    }

    /// Reads a barrel without the URLs of its members, which take two thirds of its memory.
    ///
    /// - Returns: the barrel without members, and their ids in the order in which they joined.
    /// - Throws: same as `barrel`.
    package func barrelIDs(_ name: String) throws -> (barrel: BarrelRecord, ids: [TaskID]) {
        if let barrel = try shards?.barrel(name) { return (barrel, barrel.members.map(\.id)) }
        var ids: [TaskID] = []
        let barrel = try BarrelFile.scan(name, in: workPath, began: { ids.reserveCapacity($0) }) { id, _, _ in
            ids.append(id)
        }
        return (barrel, ids)
    }

    /// Reads the records of a barrel's members, some at a time, so that memory does not grow with the barrel. Those of a divided
    /// barrel have their ids in memory.
    ///
    /// - Parameter body: receives at most 1,024 records, in the order in which the members joined. Info files that cannot be read
    ///   are left out.
    /// - Returns: the barrel without members.
    /// - Throws: same as `barrel`; the error of `body`.
    package func forEachRecord(
        ofBarrel name: String, problem: (DownloadError) -> Void, _ body: ([TaskRecord]) throws -> Void
    ) throws -> BarrelRecord {
        var ids: [TaskID] = []
        func pass() throws {
            try body(records(ids, problem: problem))
            ids.removeAll(keepingCapacity: true)
        }
        func add(_ id: TaskID) throws {
            ids.append(id)
            if ids.count == 1_024 { try pass() }
        }
        let barrel: BarrelRecord
        if let divided = try shards?.barrel(name) {
            barrel = divided
            for member in divided.members { try add(member.id) }
        } else {
            barrel = try BarrelFile.scan(name, in: workPath) { id, _, _ in try add(id) }
        }
        try pass()
        return barrel
    }

    // MARK: Inside

    private func read(
        _ ids: [TaskID], containing bytes: [UInt8]?, problem: (DownloadError) -> Void,
        where isWanted: (TaskRecord) -> Bool
    ) -> [TaskRecord] {
        var records: [TaskRecord] = []
        readAll(ids, containing: bytes, problem: problem) { if isWanted($1) { records.append($1) } }
        return records.sorted { ($0.number, $0.id) < ($1.number, $1.id) }
    }

    /// The number of info files that justifies a second thread.
    private static let block = 512

    /// Reads info files on as many threads as there are processors, and returns them in the order of `ids`.
    ///
    /// - Parameters:
    ///   - bytes: leaves out records without these bytes; nil, the default, reads all.
    ///   - found: receives the place of a task in `ids`, and its record.
    package func readAll(
        _ ids: [TaskID], containing bytes: [UInt8]? = nil, problem: (DownloadError) -> Void,
        found: (Int, TaskRecord) -> Void
    ) {
        let waits = engineWaits()
        inBlocks(ids, { read($0, containing: bytes, waits) }) { place, result in
            switch result {
            case .success(let record): if let record { found(place, record) }
            // Removed since the folder was read.
            case .failure(let error): if error.code != .notFound { problem(error) }
            }
        }
    }

    /// Reads the submission numbers of tasks, in the order of `ids`. An unreadable task has the highest number.
    package func readNumbers(_ ids: [TaskID], found: (Int, UInt64) -> Void) {
        inBlocks(
            ids,
            { id in
                // The order of a divided list is that of its own work path.
                number(of: id, in: workPath) ?? (shards == nil ? nil : number(of: id, in: home(of: id))) ?? .max
            }, found)
    }

    /// Reads on all processors, and passes the results on in order.
    private func inBlocks<Value: Sendable>(
        _ ids: [TaskID], _ read: @Sendable (TaskID) -> Value, _ found: (Int, Value) -> Void
    ) {
        let blocks = stride(from: 0, to: ids.count, by: Self.block).map { ids[$0..<min($0 + Self.block, ids.count)] }
        // In groups, so that unwanted records do not accumulate.
        for group in stride(from: 0, to: blocks.count, by: 16).map({ blocks[$0..<min($0 + 16, blocks.count)] }) {
            var place = group.first?.startIndex ?? 0
            for results in Array(group).mappedInParallel({ $0.map(read) }) {
                for result in results {
                    found(place, result)
                    place += 1
                }
            }
        }
    }

    private func read(
        _ id: TaskID, containing bytes: [UInt8]?, _ waits: [WorkPath: WaitNotice]
    ) -> Result<TaskRecord?, DownloadError> {
        do {
            let home = home(of: id)
            let found = try home.withPlaces {
                try InfoFile.read(home.infoPath(id), places: $0, containing: bytes)
            }
            guard let contents = found else { return .success(nil) }
            var record = present(contents, waits[home])
            // The order of a divided list is that of its own work path.
            if home != workPath, let listed = number(of: id, in: workPath) { record.setNumber(listed) }
            return .success(record)
        } catch {
            return .failure(DownloadError(wrapping: error, code: .disk, message: "A task cannot be read."))
        }
    }

    private func number(of id: TaskID, in workPath: WorkPath) -> UInt64? {
        InfoFile.number(in: workPath.infoPath(id), places: workPath.places)
    }

    /// The notices of the engines about waiting tasks. A work path without an engine has none.
    private func engineWaits() -> [WorkPath: WaitNotice] {
        var notices = shards?.waitNotices() ?? (EngineLock.isHeld(workPath) ? [workPath: workPath.waitNotice] : [:])
        for path in silent { notices[path]?.rates = nil }
        for path in notices.keys {
            // The clock of a file server may differ, and that of the kernel's file times is some milliseconds late.
            let slack = NetworkFileSystem.hasOwnClock(path.root) ? 0.1 : 5
            notices[path]?.since = EngineLock.holder(path)?.started.addingTimeInterval(-slack)
        }
        return notices
    }

    /// True for a record that an earlier engine has left as running: the present one, which began later, has not written it.
    private func isLeft(_ id: TaskID, since: Date?) -> Bool {
        guard let since, let file = FileIdentity(path: home(of: id).infoPath(id)) else { return false }
        return Double(file.time) / 1e9 < since.timeIntervalSince1970
    }

    private func present(_ contents: InfoContents, _ waits: WaitNotice?) -> TaskRecord {
        var record = contents.record.applyingLiveCounters(contents.counters)
        record.generation = contents.handle.generation
        if record.isRenameMissing {
            record.state = .action
            record.dropPath()
        }
        if let waits, record.state != .action || !isLeft(record.id, since: waits.since) {
            record.setWaiting(waits.waiting(of: record, now: Date()))
            // The record has the speed of its last write, which may be long ago.
            if record.state == .action { record.bytesPerSecond = waits.rate(of: record.id) }
        } else if record.state == .action {
            record.state = .idle
            record.setWaiting(Waiting(.engine))
        } else if record.state == .idle, record.waiting == nil {
            record.setWaiting(Waiting(.engine))
        }
        return record
    }
}
