import FKMiddleware
import Foundation

/// The tasks of a work path: those in memory, those that rest on disk, and the only writer of their info files.
///
/// ```text
/// made    -> in memory -> parked (waits, on disk alone)  -> in memory
/// on disk -> loaded, recovered -^   retired (has ended)  -> in memory
/// ```
///
/// Confined to the engine. What follows for others from a task that is found goes out through `onLoad` and `onLost`.
final class TaskBook {
    let workPath: WorkPath
    let tenure: Tenure
    let problems: Problems
    let barrels: Barrels
    let schedule: Schedule
    let chains: MiddlewareChains
    /// Marks finished files as those of this work path.
    let owner: FileOwner
    private let numbers: SubmissionCounter
    /// Tasks that wait or have ended may leave the memory.
    private let mayRest: Bool

    /// A task has just been read from the disk, as its last engine left it.
    var onLoad: (_ entry: TaskEntry, _ isFinished: Bool) -> Void = { _, _ in }
    /// A task that waited in the queue cannot be read any more.
    var onLost: (_ id: TaskID, _ group: Int32) -> Void = { _, _ in }

    private(set) var tasks = TaskMap<TaskEntry>()
    /// Known tasks by URL, usually one; nil until somebody asks by URL for the first time.
    private var tasksByURL: ExactMap<[TaskID]>?
    private var texts = SharedTexts()
    /// Finished tasks that are on disk alone.
    private var retired = TaskIDTable()
    /// Every record of the work path has been read.
    private(set) var hasLoadedAll = false
    /// Info files of tasks that are not in memory yet are being written; who wants to add as well waits for its turn.
    private var isMaking = false
    private var whenMade: [CheckedContinuation<Void, Never>] = []

    /// - Parameter mayRest: only in an engine that runs chosen tasks, the command line's: an application asks for all of
    ///   its tasks again and again.
    init(
        _ workPath: WorkPath, tenure: Tenure, problems: Problems, barrels: Barrels, schedule: Schedule,
        chains: MiddlewareChains, mayRest: Bool
    ) {
        self.workPath = workPath
        self.tenure = tenure
        self.problems = problems
        self.barrels = barrels
        self.schedule = schedule
        self.chains = chains
        self.mayRest = mayRest
        owner = FileOwner(of: workPath.root)
        numbers = SubmissionCounter(workPath)
    }

    var clock: any EngineClock { schedule.clock }

    subscript(id: TaskID) -> TaskEntry? { tasks[id] }

    /// A text that many tasks have in common, once.
    func shared(_ text: String) -> String { texts.shared(text) }

    // MARK: Finding

    /// A task in memory or on disk; nil when there is none of that id.
    func find(_ id: TaskID) throws -> TaskEntry? {
        guard tenure.mayWrite else { return lookUp(id) }
        if let entry = tasks[id] ?? unrest(id) { return entry }
        if hasLoadedAll { return nil }
        return load(id)
    }

    func find(_ selector: TaskSelector) throws -> [TaskEntry] {
        guard tenure.mayWrite else { return try lookUp(selector) }
        switch selector {
        case .id(let id):
            return try find(id).map { [$0] } ?? []
        case .url(let text):
            let url = try URLNormalizer.normalize(text)
            loadAll()
            if tasksByURL == nil {
                var byURL = ExactMap<[TaskID]>()
                for entry in tasks.values { byURL[entry.record.task.url, default: []].append(entry.id) }
                tasksByURL = byURL
            }
            return (tasksByURL?[url] ?? []).compactMap { tasks[$0] }.sorted { $0.record.number < $1.record.number }
        case .barrel(let name):
            return try barrels.members(name).compactMap { try find($0.id) }
        case .all:
            loadAll()
            return tasks.values.sorted { $0.record.number < $1.record.number }
        }
    }

    /// The same, where it is an error to find none.
    ///
    /// - Throws: `.notFound`.
    func findSome(_ selector: TaskSelector) throws -> [TaskEntry] {
        let entries = try find(selector)
        guard !entries.isEmpty || selector == .all else {
            throw DownloadError(.notFound, "There is no task \(selector.name).")
        }
        return entries
    }

    /// Reads every record of the work path that is not in memory yet.
    func loadAll() {
        guard !hasLoadedAll, tenure.mayWrite else { return }
        for id in workPath.allTaskIDs() where tasks[id] == nil && unrest(id) == nil { load(id) }
        hasLoadedAll = true
    }

    /// Brings a task back into memory as its last engine left it.
    @discardableResult
    private func load(_ id: TaskID) -> TaskEntry? {
        guard let entry = read(id, isNew: false) else { return nil }
        insert(entry)
        onLoad(entry, recover(entry))
        return entry
    }

    /// Reads a task as it is on disk, or quarantines an info file nobody can read. It is not in memory afterwards.
    ///
    /// - Parameter open: keeps the info file open.
    func read(_ id: TaskID, isNew: Bool, open: OpenInfoFile? = nil) -> TaskEntry? {
        tenure.beat()
        let path = workPath.infoPath(id)
        do {
            let contents = try InfoFile.read(path, open: open)
            // The id is made of URL and destination: neither can be another one under the same name.
            guard contents.record.id == id, contents.record.task.id == id else {
                throw DownloadError(.corruptInfo, "The info file \(path) holds another task.")
            }
            return TaskEntry(
                record: contents.record.applyingLiveCounters(contents.counters), info: contents.handle, isNew: isNew)
        } catch let error as DownloadError where error.code == .notFound {
            return nil
        } catch let error as DownloadError where error.code == .corruptInfo {
            problems.append(Quarantine.move(path, in: workPath, because: error, now: clock.date).message)
        } catch {
            problems.append("\(error)")
        }
        return nil
    }

    // MARK: In memory

    func insert(_ entry: TaskEntry) {
        texts.share(entry)
        tasks[entry.id] = entry
        tasksByURL?[entry.record.task.url, default: []].append(entry.id)
    }

    private func drop(_ entry: TaskEntry) {
        tasks[entry.id] = nil
        tasksByURL?[entry.record.task.url]?.removeAll { $0 == entry.id }
        if tasksByURL?[entry.record.task.url]?.isEmpty == true { tasksByURL?[entry.record.task.url] = nil }
    }

    /// Removes a task with its info file.
    func remove(_ entry: TaskEntry) {
        unlink(workPath.infoPath(entry.id))
        drop(entry)
    }

    // MARK: Resting

    /// So many tasks stay in memory, whatever they do.
    static let tasksInMemory = 1_000

    /// Once somebody has asked for all, nothing rests any more.
    private var isCrowded: Bool { mayRest && !hasLoadedAll && tasks.count > Self.tasksInMemory }

    /// A new task that found no slot leaves the memory; it stays in the queue and counts as open.
    func park(_ id: TaskID) {
        guard isCrowded, let entry = tasks[id], entry.isNew, entry.isOpen, entry.run == nil,
            entry.record.state == .idle,
            entry.record.attempts == 0, !entry.isDirty, schedule.ready.contains(id)
        else { return }
        drop(entry)
    }

    /// A task that is complete or has failed leaves the memory.
    func retire(_ entry: TaskEntry) {
        guard isCrowded, entry.run == nil, entry.record.state == .complete || entry.record.state == .error,
            !entry.awaitsProof, !entry.isDirty, !entry.isRecovered, !entry.isOpen, tasks[entry.id] === entry
        else { return }
        retired.insert(entry.id)
        drop(entry)
    }

    /// Brings a resting task back as it was; nil when it does not rest or its info file cannot be read.
    func unrest(_ id: TaskID) -> TaskEntry? {
        if isParked(id) { return unpark(id, group: schedule.ready.group(of: id)) }
        guard retired.remove(id) != nil, let entry = read(id, isNew: false) else { return nil }
        entry.isAdmitted = true
        entry.accounted = entry.account
        insert(entry)
        return entry
    }

    /// Brings a waiting task back, also one that has just been taken out of the queue.
    ///
    /// - Parameters:
    ///   - group: of which it is queued.
    ///   - open: keeps its info file open, for one that starts now.
    func unpark(_ id: TaskID, group: Int32, open: OpenInfoFile? = nil) -> TaskEntry? {
        guard let entry = read(id, isNew: true, open: open) else {
            // Reported already: it will never run.
            schedule.ready.remove(id)
            onLost(id, group)
            return nil
        }
        entry.isAdmitted = true
        entry.isOpen = true
        entry.group = group
        entry.accounted = entry.account
        insert(entry)
        return entry
    }

    /// True for a waiting task without looking at the disk: nothing else is queued without being in memory.
    func isParked(_ id: TaskID) -> Bool { tasks[id] == nil && schedule.ready.contains(id) }

    /// True for a finished task without looking at the disk.
    func isRetired(_ id: TaskID) -> Bool { retired.contains(id) }

    // MARK: Making

    /// One portion at a time: between its info file and its entry in memory a task is neither new nor known, and a second
    /// asking for it would make it twice.
    func beginMaking(isolation: isolated (any Actor)? = #isolation) async {
        while isMaking { await withCheckedContinuation { whenMade.append($0) } }
        isMaking = true
    }

    func endMaking() {
        isMaking = false
        for waiting in whenMade { waiting.resume() }
        whenMade = []
    }

    /// True for a task in memory, or one that rests. Does not look at the disk.
    func knows(_ id: TaskID) -> Bool { tasks[id] != nil || isParked(id) || isRetired(id) }

    /// The record of a new task.
    ///
    /// - Throws: `.noSpace` or `.disk` when no number can be reserved.
    func newRecord(_ task: TaskDescription, _ id: TaskID, barrel: String?) throws -> TaskRecord {
        var record = TaskRecord(task: task, id: id, number: try numbers.next(), created: clock.date)
        if let barrel { record.barrels = [barrel] }
        return record
    }

    /// Of a task whose making was interrupted, or whose info file has just gone to the quarantine.
    func makeAgain(
        _ task: TaskDescription, _ id: TaskID, barrel: String?
    ) throws -> (record: TaskRecord, info: InfoHandle) {
        let path = workPath.infoPath(id)
        try InfoFile.removeUnwritten(path)
        let record = try newRecord(task, id, barrel: barrel)
        do {
            return (record, try InfoFile.create(at: path, record: record))
        } catch let error as DownloadError where error.code == .fileExists {
            // Of a later version, or held by a disk that does not let it go.
            throw DownloadError(.corruptInfo, "The info file of the task cannot be read: \(path).")
        }
    }

    /// Gives back the numbers that were reserved and not used.
    func close() {
        if tenure.mayWrite { numbers.close() }
    }
}
