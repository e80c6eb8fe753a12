import FKMiddleware
import Foundation

/// The tasks of a work path, in memory and on disk, and the only writer of their info files.
///
/// ```text
/// made    -> in memory -> parked (waits, only on disk)           -> in memory
/// on disk -> loaded, recovered -^   resting (ended, or not run)  -> in memory
/// ```
///
/// A parked task has 20 bytes in the ready queue, a resting one 1 here, its id 42 (`TaskIDPool`), and a task in memory 1,100.
///
/// Confined to the engine. `onLoad` and `onLost` report tasks to the other rooms.
package final class TaskBook {
    package let workPath: WorkPath
    let ownership: Ownership
    let problems: Problems
    package let barrels: Barrels
    let schedule: Schedule
    package let chains: MiddlewareChains
    /// Marks finished files as files of this work path.
    package let owner: FileOwner
    /// The stored form of places.
    let places: Places
    private let numbers: SubmissionCounter
    /// The number of tasks that stay in memory in any state.
    let crowd: Int
    /// The number of tasks in memory beyond which those leave it that have ended or may not run. An application asks for them
    /// again. A command does not, and each waiting task that stays in their place need not be read when it starts.
    let endedCrowd: Int

    /// Called when a task was read from the disk and recovered. `isFinished` is true if its file had the final name, but its
    /// record did not say so.
    var onLoad: (_ entry: TaskEntry, _ isFinished: Bool) -> Void = { _, _ in }
    /// Called when a queued task cannot be read any more.
    var onLost: (_ id: TaskID, _ group: Int32) -> Void = { _, _ in }

    package internal(set) var tasks = TaskMap<TaskEntry>()
    /// The bytes of all updates of records so far.
    var savedBytes = 0
    /// The tasks of each URL, in memory or on disk; nil before the first search by URL.
    private var urls: URLTable?
    private var texts = SharedTexts()
    /// Tasks that are only on disk because they have ended, or may not run.
    var resting = RestingTasks()
    /// The first submission number that this engine issues.
    private let firstNumber: UInt64
    /// True once every record of the work path was read into the memory.
    private(set) var hasLoadedAll = false
    /// When all records were last asked for, in the time of `clock.now`.
    private var lastAllAsked: Int64 = 0
    /// True once every record was read, so that each task is in memory, parked or resting.
    private var hasSeenAll = false
    /// True while info files of new tasks are written. Other additions wait.
    private var isMaking = false
    private var whenMade: [CheckedContinuation<Void, Never>] = []

    /// - Parameter crowd: the number of tasks in memory beyond which tasks that wait or have ended leave it.
    init(
        _ workPath: WorkPath, ownership: Ownership, problems: Problems, barrels: Barrels, schedule: Schedule,
        chains: MiddlewareChains, crowd: Int
    ) throws {
        self.workPath = workPath
        self.ownership = ownership
        self.problems = problems
        self.barrels = barrels
        self.schedule = schedule
        self.chains = chains
        self.crowd = crowd
        endedCrowd = crowd > Self.tasksInMemory ? crowd : crowd / 4
        owner = FileOwner(of: workPath.root)
        places = workPath.places
        numbers = try SubmissionCounter(workPath)
        firstNumber = numbers.upcoming
    }

    package var clock: any EngineClock { schedule.clock }
    package subscript(id: TaskID) -> TaskEntry? { tasks[id] }

    /// Returns the stored copy of a text that many tasks have in common.
    package func shared(_ text: String) -> String { texts.shared(text) }

    // MARK: Finding

    /// The task with that id, in memory or on disk; nil if there is none.
    package func find(_ id: TaskID) throws -> TaskEntry? {
        guard ownership.mayWrite else { return lookUp(id) }
        if let entry = tasks[id] ?? reload(id) { return entry }
        if hasLoadedAll || hasSeenAll { return nil }
        return load(id)
    }

    /// The selected tasks, oldest first.
    package func find(_ selector: TaskSelector) throws -> [TaskEntry] {
        guard ownership.mayWrite else { return try lookUp(selector) }
        switch selector.kind {
        case .id(let id): return try find(id).map { [$0] } ?? []
        case .url(let text): return try entries(of: text.normalizedURL())
        case .barrel(let name): return try barrels.ids(name).compactMap { try find($0) }
        case .state(let state):
            try loadAll()
            return tasks.values.filter { $0.verbState == state }.sorted { $0.record.number < $1.record.number }
        case .all:
            try loadAll()
            return tasks.values.sorted { $0.record.number < $1.record.number }
        }
    }

    /// The selected tasks, oldest first.
    ///
    /// - Throws: `.notFound` if there are none, except for `.all` and `.state`.
    package func findSome(_ selector: TaskSelector) throws -> [TaskEntry] {
        let entries = try find(selector)
        guard !entries.isEmpty || selector.mayBeEmpty else {
            throw DownloadError(.notFound, "There is no task \(selector.name).")
        }
        return entries
    }

    /// The ids of the selected tasks, oldest first; a barrel's in the order in which its members joined. No more tasks than
    /// before stay in memory. For `.all` and `.barrel` an id may have no task.
    package func ids(_ selector: TaskSelector) throws -> [TaskID] {
        guard ownership.mayWrite, !hasLoadedAll else { return try find(selector).map(\.id) }
        switch selector.kind {
        case .barrel(let name): return try barrels.ids(name)
        case .all:
            let ids = try workPath.allTaskIDs()
            guard ids.count > crowd else { return try find(selector).map(\.id) }
            var order = RecordOrder(RecordQuery())
            StoreReader(workPath).readNumbers(ids) { order.add(number: $1, at: Int32($0)) }
            return order.places().map { ids[Int($0)] }
        case .state(let state):
            let ids = try workPath.allTaskIDs()
            guard ids.count > crowd else { return try find(selector).map(\.id) }
            var order = RecordOrder(RecordQuery())
            for (place, id) in ids.enumerated() {
                // What its record says counts after its recovery.
                guard let entry = try find(id) else { continue }
                if entry.verbState == state { order.add(number: entry.record.number, at: Int32(place)) }
                unload(id)
            }
            return order.places().map { ids[Int($0)] }
        case .id, .url: return try find(selector).map(\.id)
        }
    }

    /// Reads every record of the work path once, and keeps in memory what does not rest.
    ///
    /// - Parameter seen: called for each task that was not known, before it may leave the memory.
    /// - Throws: `.disk` if a folder of the work path cannot be listed.
    func seeAll(_ seen: (TaskEntry) -> Void) throws {
        guard !hasLoadedAll, !hasSeenAll, ownership.mayWrite else { return }
        for id in try listedIDs() where !knows(id) {
            guard let entry = load(id) else { continue }
            seen(entry)
            unload(id)
        }
        hasSeenAll = true
    }

    /// The tasks that can still run, oldest first. It reads no file once every task was seen.
    package func openIDs() throws -> TaskIDTable {
        var open = TaskIDTable(reusesNumbers: false)
        guard hasSeenAll, !hasLoadedAll, ownership.mayWrite else {
            for entry in try find(.all) where !entry.record.state.isSettled { open.insert(entry.id) }
            return open
        }
        // In 24 bytes for each: the ids are not copied.
        var found = TaskIDTable(reusesNumbers: false)
        var order: [(number: UInt64, place: Int32)] = []
        for (id, number) in schedule.ready.all where tasks[id] == nil { order.append((number, found.insert(id))) }
        for entry in tasks.values where !entry.record.state.isSettled {
            order.append((entry.record.number, found.insert(entry.id)))
        }
        order.sort { $0.number < $1.number }
        for (_, place) in order { open.insert(found.id(of: place)) }
        return open
    }

    /// The tasks with that normalized URL, oldest first.
    private func entries(of url: String) throws -> [TaskEntry] {
        let table = try urls ?? makeURLTable()
        urls = table
        let found = try table.candidates(url).compactMap { id -> TaskEntry? in
            guard let entry = try find(id) else { return nil }
            if entry.record.task.url.isExactly(url) { return entry }
            unload(id)
            return nil
        }
        return found.sorted { $0.record.number < $1.record.number }
    }

    /// The tasks of each URL. If there are more tasks than stay in memory, only their URLs are kept.
    private func makeURLTable() throws -> URLTable {
        let ids = try hasLoadedAll ? [] : workPath.allTaskIDs()
        if ids.count <= crowd { try loadAll() }
        var table = URLTable()
        for entry in tasks.values { table.insert(entry.id, entry.record.task.url) }
        if !hasLoadedAll {
            StoreReader(workPath).readAll(ids.filter { tasks[$0] == nil }, problem: { _ in }) {
                table.insert($1.id, $1.task.url)
            }
        }
        return table
    }

    /// Lets tasks leave the memory again, some time after all were asked for.
    func unloadIdle() {
        guard hasLoadedAll, tasks.count > crowd, ownership.mayWrite, clock.now - lastAllAsked >= Self.patience else {
            return
        }
        hasLoadedAll = false
        hasSeenAll = true
        for id in Array(tasks.keys) { unload(id) }
    }

    /// Nanoseconds after which tasks leave the memory that were read because all were asked for.
    private static let patience: Int64 = 10_000_000_000

    /// The ids of all tasks on the disk. Files beside info files that are gone are removed, but not while tasks are being made:
    /// their digests are written before their info files.
    private func listedIDs() throws -> [TaskID] { try isMaking ? workPath.allTaskIDs() : workPath.sweptTaskIDs() }

    /// Reads every record of the work path that is not in memory yet.
    ///
    /// - Throws: `.disk` if a folder of the work path cannot be listed.
    package func loadAll() throws {
        lastAllAsked = clock.now
        guard !hasLoadedAll, ownership.mayWrite else { return }
        for id in try listedIDs() where tasks[id] == nil && reload(id) == nil { load(id) }
        hasLoadedAll = true
    }

    /// Reads and recovers a task.
    @discardableResult
    private func load(_ id: TaskID) -> TaskEntry? {
        guard let entry = read(id) else { return nil }
        insert(entry)
        onLoad(entry, recover(entry))
        return entry
    }

    /// Reads a task without adding it to the tasks in memory. An unreadable info file goes to the quarantine.
    ///
    /// - Parameter open: keeps the info file open.
    package func read(_ id: TaskID, open: OpenInfoFile? = nil) -> TaskEntry? {
        ownership.beat()
        let path = workPath.infoPath(id)
        do {
            var contents = try InfoFile.read(path, places: places, open: open)
            // The id is computed from URL and destination, so another task cannot have the same name.
            // A record that this engine has made has the id of its description. A record in a base may have the id of its
            // former place.
            let isOwn = contents.record.number >= firstNumber
            guard contents.record.id == id, isOwn || hasID(id, contents.record.task) else {
                throw DownloadError(.corruptInfo, "The info file \(path) holds another task.")
            }
            // A task of this engine without an attempt has no part file. A killed engine may have left one without a record
            // of the attempt.
            let isNew = isOwn && contents.record.isUntouched
            contents.record.apply(contents.counters)
            return entry(contents.record, contents.handle, isNew: isNew)
        } catch let error as DownloadError where error.code == .notFound {
            return nil
        } catch let error as DownloadError where error.code == .corruptInfo {
            problems.append(Quarantine.move(path, in: workPath, because: error, now: clock.date))
        } catch {
            problems.append(DownloadError(wrapping: error, code: .disk, message: "\(error)"))
        }
        return nil
    }

    private func hasID(_ id: TaskID, _ task: TaskDescription) -> Bool {
        places.id(of: task) == id || task.directory.flatMap(places.base) != nil
    }

    // MARK: In memory

    /// Makes the entry of a task. `insert` adds it.
    package func entry(_ record: consuming TaskRecord, _ info: InfoHandle, isNew: Bool) -> TaskEntry {
        TaskEntry(record: record, info: info, isNew: isNew) { texts.site(of: $0) }
    }

    /// `site` of a URL.
    package func site(of url: String) -> String { texts.site(of: url) }

    package func insert(_ entry: TaskEntry) {
        texts.share(entry)
        tasks[entry.id] = entry
        urls?.insert(entry.id, entry.record.task.url)
    }

    /// Removes a task with its info file.
    package func remove(_ entry: TaskEntry) {
        unlink(workPath.infoPath(entry.id))
        if entry.record.expected ?? .max > PieceSums.pieceLength { unlink(workPath.piecesPath(entry.id)) }
        if entry.hasPieceDigests { unlink(workPath.digestsPath(entry.id)) }
        tasks[entry.id] = nil
        urls?.remove(entry.id)
    }

    // MARK: Making

    /// Waits until no other portion of new tasks is being made. Between the write of its info file and its entry in memory, a
    /// task is neither new nor known: a second request would create it twice.
    func beginMaking(isolation: isolated (any Actor)? = #isolation) async {
        while isMaking { await withCheckedContinuation { whenMade.append($0) } }
        isMaking = true
    }

    func endMaking() {
        isMaking = false
        for waiting in whenMade { waiting.resume() }
        whenMade = []
    }

    /// True for a task in memory, or a parked or resting one. It reads no file.
    package func knows(_ id: TaskID) -> Bool { tasks[id] != nil || isParked(id) || isRetired(id) }

    /// The record of a new task.
    ///
    /// - Throws: `.noSpace` or `.disk` if no number can be reserved.
    func newRecord(_ task: TaskDescription, _ id: TaskID, barrel: String?) throws -> TaskRecord {
        var record = TaskRecord(task: task, id: id, number: try numbers.next(), created: clock.date)
        if let barrel { record.barrels = [barrel] }
        return record
    }

    /// Creates a task whose creation was interrupted, or whose info file was just moved to the quarantine.
    func makeAgain(
        _ task: TaskDescription, _ id: TaskID, barrel: String?
    ) throws -> (record: TaskRecord, info: InfoHandle) {
        let path = workPath.infoPath(id)
        try InfoFile.removeUnwritten(path)
        let record = try newRecord(task, id, barrel: barrel)
        do {
            return (record, try InfoFile.create(at: path, record: record, places: places))
        } catch let error as DownloadError where error.code == .fileExists {
            // The file is of a later version or in a base without a folder, or the disk does not let it be removed.
            _ = try InfoFile.read(path, places: places)
            throw DownloadError(.corruptInfo, "The info file of the task cannot be read: \(path).")
        }
    }

    /// Releases the reserved numbers that were not used.
    package func close() {
        if ownership.mayWrite { numbers.close() }
    }
}
