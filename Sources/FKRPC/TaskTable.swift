import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// All tasks of the work path in memory, in aria2's three orders: running, waiting, stopped. The engine's reports keep it up
/// to date, so that a list costs no query: a window of a list reads the rows that it shows, and the sums are kept.
package struct TaskTable {
    /// A row with the bytes that a search looks through. A change replaces it.
    final class Entry {
        let row: TaskRow
        /// Made by the first search; nil before.
        fileprivate var searchText: SearchText?

        init(_ row: TaskRow, searchText: SearchText? = nil) {
            self.row = row
            self.searchText = searchText
        }
    }

    /// All rows by id.
    package struct Rows {
        fileprivate let entries: [TaskID: Entry]
        package subscript(_ id: TaskID) -> TaskRow? { entries[id]?.row }
        package var keys: some Collection<TaskID> { entries.keys }
        /// All rows, in no order.
        package var values: some Collection<TaskRow> { entries.values.lazy.map(\.row) }
    }

    /// A change of state that is reported to clients.
    package struct Change: Sendable, Hashable {
        package var gid: UInt64
        package var id: TaskID
        /// The state before; nil for a new task.
        package var before: DownloadState?
        package var after: DownloadState
    }

    private(set) var entries: [TaskID: Entry] = [:]
    /// The number of rows with a name in a folder, by its path. Failed and removed tasks do not count.
    private var names: [String: Int] = [:]
    private var idOfGID: [UInt64: TaskID] = [:]
    /// All gids, ascending, for prefixes.
    private var gids: [UInt64] = []
    private(set) var active = SortedPlaces()
    private(set) var waiting = SortedPlaces()
    private(set) var stopped = SortedPlaces()
    private(set) var totals = TaskTotals()
    /// The sum of the speeds of the running tasks.
    package private(set) var bytesPerSecond: Int64 = 0
    /// The number of search texts that were made, for tests.
    private(set) var madeSearchTexts = 0
    /// The number of waiting tasks by their reasons, as far as they are known.
    package private(set) var waits: [Waiting.Reason: Int] = [:]
    /// Grows with each new or forgotten task and each change of state.
    package private(set) var revision: UInt64 = 0
    /// The number of tasks that have ended, in this process.
    private(set) var endedCount = 0
    /// Counts begun tasks, for the order of the running ones.
    private var begun: Int64 = 0

    package init() {}

    package var rows: Rows { Rows(entries: entries) }
    package var count: Int { entries.count }
    package var states: [DownloadState: Int] { totals.states }

    // MARK: Finding

    package func id(ofGID gid: UInt64) -> TaskID? { idOfGID[gid] }

    /// The tasks whose gids begin with these digits; at most two.
    package func ids(ofGIDPrefix digits: String) -> [TaskID] {
        guard let number = GID.number(digits) else { return [] }
        let shift = UInt64(64 - 4 * digits.utf8.count)
        let first = number << shift
        let last = first | ((1 << shift) &- 1)
        var index = self.index(ofGID: first)
        var found: [TaskID] = []
        while index < gids.count, gids[index] <= last, found.count < 2 {
            if let id = idOfGID[gids[index]] { found.append(id) }
            index += 1
        }
        return found
    }

    /// True if a task has this name in this folder, or will have it.
    func isTaken(_ name: String, in directory: String) -> Bool { names["\(directory)/\(name)"] != nil }

    /// True if the name, the address or a barrel of the task contains the text.
    mutating func contains(_ text: SearchText, in entry: Entry) -> Bool {
        if let made = entry.searchText { return made.contains(text) }
        let made = SearchText(of: entry.row)
        entry.searchText = made
        madeSearchTexts += 1
        return made.contains(text)
    }

    private func index(ofGID gid: UInt64) -> Int {
        var low = 0
        var high = gids.count
        while low < high {
            let middle = (low + high) / 2
            if gids[middle] < gid { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The waiting tasks in their order, for `QueueMove`.
    var queue: [QueueMove.Element] {
        waiting.places.compactMap { place in
            entries[place.id].map { QueueMove.Element(id: place.id, priority: $0.row.priority, number: $0.row.number) }
        }
    }

    /// The place of a waiting task in the queue; nil for another task.
    func queuePlace(of id: TaskID) -> Int? {
        guard let row = entries[id]?.row, row.state.isQueued, let place = row.place else { return nil }
        return waiting.index(of: place)
    }

    // MARK: Changing

    /// Adds a task, or replaces its row.
    ///
    /// - Parameter info: a report that is newer or older than the record and decides about state and progress; nil, the
    ///   default, takes them from the record.
    @discardableResult
    package mutating func insert(_ record: TaskRecord, as info: DownloadInfo? = nil, now: Date = Date()) -> Change? {
        let before = entries[record.id]?.row
        var row = TaskRow(record)
        if let info { row.absorb(info, now: now) }
        if let before {
            row.finished = row.finished ?? (before.state == row.state ? before.finished : nil)
        } else {
            row.gid = freeGID(row)
            add(gid: row.gid, row.id)
        }
        row.gid = before?.gid ?? row.gid
        return replace(before, by: row)
    }

    /// Adds a refused download. It has ended and has no task.
    mutating func add(refused row: TaskRow) -> Change? {
        var row = row
        row.gid = freeGID(row)
        add(gid: row.gid, row.id)
        return replace(nil, by: row)
    }

    /// The gid of a new row: its own, the beginning of its id, or the next free one. Another task may have it, by an imported list or
    /// because it was made anew with another name.
    private func freeGID(_ row: TaskRow) -> UInt64 {
        idOfGID[row.gid] == nil ? row.gid : freeGID(from: row.id)
    }

    /// The beginning of the id, or the next number that no other task has.
    func freeGID(from id: TaskID) -> UInt64 {
        var gid = id.leadingWord
        while let other = idOfGID[gid], other != id { gid &+= 1 }
        return gid
    }

    /// Reads what a request has changed besides the state from a record: place in the queue, addresses, folder and name. The
    /// state comes with the reports, which keep their order. An unknown task is added as a waiting one.
    package mutating func update(_ record: TaskRecord) {
        guard let before = entries[record.id]?.row else {
            insert(record)
            if let row = entries[record.id]?.row, row.state != .suspend { _ = set(.idle, of: record.id) }
            return
        }
        let now = TaskRow(record)
        var row = before
        row.number = now.number
        row.priority = now.priority
        row.url = now.url
        row.mirrors = now.mirrors
        row.barrels = now.barrels
        _ = replace(before, by: row)
    }

    /// Absorbs the progress of a running task. Ignored for a task that is no longer running.
    package mutating func progress(_ info: DownloadInfo) {
        guard let before = entries[info.id]?.row, before.state == .action, info.state == .action else { return }
        var row = before
        row.absorb(info, now: before.created)
        _ = replace(before, by: row)
    }

    /// Absorbs a report about a known task; nil if it is unknown, or if only its progress has changed.
    package mutating func absorb(_ info: DownloadInfo, now: Date = Date()) -> Change? {
        guard let before = entries[info.id]?.row else { return nil }
        if info.state == .unknown { return remove(info.id) }
        var row = before
        row.absorb(info, now: now)
        return replace(before, by: row)
    }

    /// Applies the result of a verb before its report arrives.
    package mutating func set(_ state: DownloadState, of id: TaskID, now: Date = Date()) -> Change? {
        guard let before = entries[id]?.row else { return nil }
        if state == .unknown { return remove(id) }
        guard before.state != state else { return nil }
        var row = before
        row.state = state
        row.bytesPerSecond = 0
        row.connections = 0
        row.finished = state.isEnded ? now : nil
        if state == .cancel {
            row.received = 0
            row.error = nil
        }
        return replace(before, by: row)
    }

    @discardableResult
    package mutating func remove(_ id: TaskID) -> Change? {
        guard let row = entries.removeValue(forKey: id)?.row else { return nil }
        leave(row)
        count(row, nil)
        count(row.waiting, -1)
        rename(row.takenPath, nil)
        if idOfGID[row.gid] == id {
            idOfGID[row.gid] = nil
            let index = index(ofGID: row.gid)
            if index < gids.count, gids[index] == row.gid { gids.remove(at: index) }
        }
        revision += 1
        return Change(gid: row.gid, id: id, before: row.state, after: .unknown)
    }

    private mutating func add(gid: UInt64, _ id: TaskID) {
        guard idOfGID.updateValue(id, forKey: gid) == nil else { return }
        gids.insert(gid, at: index(ofGID: gid))
    }

    private mutating func replace(_ before: TaskRow?, by after: TaskRow) -> Change? {
        var row = after
        let isMoved =
            before == nil || before?.state != row.state || before?.priority != row.priority
            || before?.number != row.number
        if isMoved {
            if let before { leave(before) }
            row.place = enter(row)
            revision += 1
        } else {
            row.place = before?.place
        }
        let known = entries[row.id]
        let isSameText = known.map { $0.row.name == row.name && $0.row.url == row.url && $0.row.barrels == row.barrels }
        entries[row.id] = Entry(row, searchText: isSameText == true ? known?.searchText : nil)
        count(before, row)
        count(before?.waiting, -1)
        count(row.waiting, 1)
        if before?.keepsName != row.keepsName || before?.name != row.name || before?.directory != row.directory {
            rename(before?.takenPath, row.takenPath)
        }
        guard before?.state != row.state else { return nil }
        if row.state.isEnded, before != nil { endedCount += 1 }
        return Change(gid: row.gid, id: row.id, before: before?.state, after: row.state)
    }

    private mutating func count(_ old: TaskRow?, _ new: TaskRow?) {
        totals.replace(old?.share ?? TaskTotals.Share(), by: new?.share ?? TaskTotals.Share())
        bytesPerSecond += (new?.bytesPerSecond ?? 0) - (old?.bytesPerSecond ?? 0)
    }

    private mutating func count(_ waiting: Waiting?, _ difference: Int) {
        if let waiting { waits[waiting.reason, default: 0] += difference }
    }

    private mutating func rename(_ old: String?, _ new: String?) {
        if let old, let count = names[old] { names[old] = count > 1 ? count - 1 : nil }
        if let new { names[new, default: 0] += 1 }
    }

    private static func order(of state: DownloadState) -> WritableKeyPath<Self, SortedPlaces> {
        state == .action ? \.active : state.isEnded ? \.stopped : \.waiting
    }

    private mutating func leave(_ row: TaskRow) {
        if let place = row.place { self[keyPath: Self.order(of: row.state)].remove(place) }
    }

    private mutating func enter(_ row: TaskRow) -> SortedPlaces.Place {
        var place = SortedPlaces.Place(major: 0, minor: row.number, id: row.id, state: row.state)
        if row.state == .action {
            begun += 1
            place.major = begun
        } else {
            place.major =
                row.state.isEnded
                ? Int64((row.finished ?? row.created).timeIntervalSince1970 * 1_000) : -Int64(row.priority)
        }
        self[keyPath: Self.order(of: row.state)].insert(place)
        return place
    }
}

extension TaskRow {
    /// True if no other task may take the name of its file.
    fileprivate var keepsName: Bool { state != .error && state != .cancel }
    /// The path that is taken; nil if the name is free.
    fileprivate var takenPath: String? { keepsName ? directory.map { "\($0)/\(name)" } : nil }
}
