import FKCore
import FKMiddleware
import Foundation

/// The state of `fk watch`: tasks, selection, filter, page. Events and keys change it, `WatchFrame` draws it. A value
/// without clock, terminal and engine.
struct WatchModel: Sendable {
    /// A page of the view.
    enum Page: Sendable, Hashable {
        case list
        case details(TaskID)
        case barrels
        case help
    }

    /// A question or an input in the last line.
    enum Prompt: Sendable, Hashable {
        /// The text of a filter, as typed so far.
        case filter(String)
        /// A verb that waits for y or n.
        case confirm(Verb, [TaskID], name: String)
    }

    /// What the program does after a key.
    enum Effect: Sendable, Hashable {
        case quit
        case request(EngineMessage)
        case load(TaskID)
        /// Changes a barrel's rate limit by one step from its present value.
        ///
        /// - Parameter rate: of the barrel's tasks now, in bytes a second.
        case limitBarrel(String, isRaised: Bool, rate: Double)
        case redraw
        /// Runs what waits in a process of its own.
        case start
    }

    /// The order of the list.
    enum Order: String, Sendable, CaseIterable {
        /// Running tasks, tasks that a person may act on, the queue, and ended tasks.
        case state
        case name
        case size
        case rate
        /// The newest first.
        case age
    }

    struct Task: Sendable {
        var info: DownloadInfo
        /// The position in the order of submission.
        var number: Int
    }

    private(set) var tasks: [TaskID: Task] = [:]
    private(set) var counts: [DownloadState: Int] = [:]
    private(set) var meters = RunMeters()
    /// The bytes that arrived in each second, oldest first.
    private(set) var rates: [Double] = []
    /// nil until it is known, then the process or nil for none.
    private(set) var owner: Int32??
    private(set) var silentEngine: String?
    private(set) var limit: Int64?
    /// A text for the last line, until the next key.
    private(set) var message: String?
    private(set) var isLoaded = false

    var page = Page.list
    var prompt: Prompt?
    var filter = ""
    /// Only members of this barrel are shown; nil for all tasks.
    var barrel: String?
    /// The selected task; nil selects the first one.
    var selection: TaskID?
    /// The first visible line of the list or page.
    var top = 0
    var barrelIndex = 0
    var sorting = Order.state { didSet { order = nil } }
    /// The tasks on which the next verb acts; empty for the selected one.
    var marked: Set<TaskID> = []
    /// The row of the screen where the list begins.
    var firstRow = 0
    /// The lines about the task of the details page.
    private(set) var details: [String] = []

    private var nextNumber = 0
    /// The bytes of each running task when they were last counted.
    private var counted: [TaskID: Int64] = [:]
    private var fetched: Int64 = 0
    private var lastSecond: (time: Int64, fetched: Int64)?
    private var order: [TaskID]?
    /// The most seconds of the graph.
    static let graphLength = 600

    // MARK: Events

    /// Takes an event of the session.
    mutating func apply(_ event: WatchSession.Event, time: Int64) {
        switch event {
        case .all(let infos):
            var old = tasks
            tasks = [:]
            counts = [:]
            order = nil
            isLoaded = true
            for info in infos {
                // What was known before stays in its place.
                let number = old.removeValue(forKey: info.id)?.number
                insert(info, number: number)
            }
            marked.formIntersection(tasks.keys)
            // What arrived unseen would count as the bytes of one moment.
            counted = [:]
        case .changed(let infos):
            for info in infos {
                if info.state == .unknown {
                    remove(info.id)
                } else {
                    insert(info, number: tasks[info.id]?.number)
                    count(info)
                }
            }
        case .progress(let running): progress(running, time: time)
        case .owner(let pid):
            owner = pid
            silentEngine = nil
            guard pid == nil else { return }
            meters = RunMeters()
            counted = [:]
            for task in tasks.values where task.info.state == .action { insert(task.info, number: task.number) }
        case .engineNews(let news, let pid):
            meters = RunMeters()
            meters.isStill = news == .silent
            silentEngine =
                news == .silent ? "Process \(pid) shows no sign of life: kill -CONT \(pid) may continue it." : nil
        case .members, .joined, .left: break
        case .limit(let rate): limit = rate
        case .problem(let text): message = text
        }
    }

    private mutating func progress(_ running: [DownloadInfo], time: Int64) {
        guard owner != .some(nil) else { return }
        for info in running where tasks[info.id] != nil {
            insert(info, number: tasks[info.id]?.number)
            count(info)
        }
        meters.look(running, fetched: fetched, time: time)
        guard let last = lastSecond else {
            lastSecond = (time, fetched)
            return
        }
        guard time - last.time >= 1_000_000_000 else { return }
        rates.append(Double(fetched - last.fetched) * 1e9 / Double(time - last.time))
        if rates.count > Self.graphLength { rates.removeFirst(rates.count - Self.graphLength) }
        lastSecond = (time, fetched)
    }

    /// Counts the bytes of a running task since it was last seen, and the last ones of a task that stopped.
    private mutating func count(_ info: DownloadInfo) {
        let last = counted.removeValue(forKey: info.id)
        if info.state == .action { counted[info.id] = info.count.received }
        if let last { fetched += max(0, info.count.received - last) }
    }

    private mutating func insert(_ info: DownloadInfo, number: Int?) {
        var info = info
        // The record of a process that was killed says that its tasks run.
        if info.state == .action, owner == .some(nil) { info.state = .idle }
        if let old = tasks[info.id] {
            counts[old.info.state, default: 1] -= 1
            // An event of the journal does not have it.
            info.maxAttempts = info.maxAttempts ?? old.info.maxAttempts
            info.priority = info.priority ?? old.info.priority
            if sorting != .state || Self.rank(old.info) != Self.rank(info) || old.info.priority != info.priority {
                order = nil
            }
        } else {
            order = nil
        }
        counts[info.state, default: 0] += 1
        tasks[info.id] = Task(info: info, number: number ?? nextNumber)
        if number == nil { nextNumber += 1 }
    }

    private mutating func remove(_ id: TaskID) {
        guard let old = tasks.removeValue(forKey: id) else { return }
        counts[old.info.state, default: 1] -= 1
        counted[id] = nil
        marked.remove(id)
        if selection == id {
            // The task that takes its line.
            let ids = shown()
            let index = ids.firstIndex(of: id)
            selection = index.flatMap { $0 + 1 < ids.count ? ids[$0 + 1] : $0 > 0 ? ids[$0 - 1] : nil }
        }
        order = nil
        if page == .details(id) { page = .list }
    }

    /// Takes the answer to a request.
    mutating func answer(_ reply: EngineReply) {
        switch reply {
        case .verbs(let results):
            guard let result = results.first else { return message = "The task is gone." }
            if results.count > 1 {
                let changed = results.count(where: \.applied)
                return message =
                    "\(changed) of \(results.count) tasks: \(results.first(where: \.applied)?.note ?? result.note)"
            }
            let name = tasks[result.id]?.info.shownName ?? URLMasking.mask(result.url)
            message = "\(name): \(result.note)"
        case .done(let note): message = note
        case .failed(let error): message = error.shortText
        case .added, .limits, .count: break
        }
    }

    /// Takes the lines about a task.
    mutating func show(details lines: [String], of id: TaskID) { if page == .details(id) { details = lines } }

    mutating func say(_ text: String?) { message = text }

    // MARK: The list

    /// Running tasks first, then those that a person may act on, the queue, and ended ones.
    private static func rank(_ info: DownloadInfo) -> Int {
        switch info.state {
        case .action: 0
        case .suspend: 1
        case .error: 2
        case .idle: info.wait?.until != nil ? 3 : 4
        case .cancel: 5
        case .complete: 6
        case .unknown: 7
        }
    }

    /// The tasks that match the filter, in the order of the list. It is computed once after a change.
    mutating func shown() -> [TaskID] {
        if let order { return order }
        let needle = filter.lowercased()
        let state = needle.utf8.count < 3 ? nil : ShownState(beginning: needle)
        var rows: [(name: String, rank: Int64, number: Int, id: TaskID)] = []
        rows.reserveCapacity(tasks.count)
        for (id, task) in tasks where matches(task.info, needle, state) {
            rows.append((sorting == .name ? task.info.shownName.lowercased() : "", place(of: task), task.number, id))
        }
        rows.sort { ($0.name, $0.rank, $0.number) < ($1.name, $1.rank, $1.number) }
        let ids = rows.map(\.id)
        order = ids
        return ids
    }

    /// The first key of the order, beside the name.
    private func place(of task: Task) -> Int64 {
        switch sorting {
        case .name: return 0
        case .size: return -(task.info.count.expected ?? task.info.count.received)
        case .rate: return task.info.state == .action ? -Int64(task.info.bytesPerSecond) - 1 : 0
        case .age: return -Int64(task.number)
        case .state:
            let rank = Int64(Self.rank(task.info)) << 44
            return Self.isQueued(task.info) ? rank - Int64(task.info.priority ?? 0) : rank
        }
    }

    private static func isQueued(_ info: DownloadInfo) -> Bool { info.state == .idle && info.wait?.until == nil }

    /// Moves the selected task in the queue, past the next one that is shown.
    ///
    /// - Returns: the tasks with another priority; nil if it cannot be moved.
    mutating func moveInQueue(down: Bool) -> [TaskChange]? {
        guard sorting == .state, let index = selectedIndex() else { return nil }
        let ids = shown()
        let next = index + (down ? 1 : -1)
        guard ids.indices.contains(next), [ids[index], ids[next]].allSatisfy({ Self.isQueued(tasks[$0]!.info) }) else {
            return nil
        }
        let queue = tasks.filter { Self.isQueued($0.value.info) }.map { id, task in
            QueueMove.Element(id: id, priority: task.info.priority ?? 0, number: UInt64(task.number))
        }.sorted { ($1.priority, $0.number) < ($0.priority, $1.number) }
        guard let from = queue.firstIndex(where: { $0.id == ids[index] }),
            let to = queue.firstIndex(where: { $0.id == ids[next] })
        else { return nil }
        selection = ids[index]
        return QueueMove.priorities(queue, from: from, to: to).map { id, priority in
            tasks[id]?.info.priority = priority
            order = nil
            var change = TaskChange(id)
            change.priority = priority
            return change
        }
    }

    private func matches(_ info: DownloadInfo, _ needle: String, _ state: ShownState?) -> Bool {
        if let barrel, !info.barrels.containsExactly(barrel) { return false }
        guard !needle.isEmpty else { return true }
        return info.shownName.lowercased().contains(needle)
            || URLMasking.mask(info.url).lowercased().contains(needle)
            || (state != nil && ShownState(info.state) == state)
            || info.barrels.contains { $0.lowercased().contains(needle) }
    }

    /// Changes the filter. The selection stays where it is shown.
    mutating func setFilter(_ text: String, barrel: String? = nil) {
        filter = text
        self.barrel = barrel
        order = nil
        let ids = shown()
        if let selected = selection, !ids.contains(selected) { selection = nil }
        top = 0
    }

    /// The position of the selected task; nil in an empty list.
    mutating func selectedIndex() -> Int? {
        let ids = shown()
        guard !ids.isEmpty else { return nil }
        return selection.flatMap { ids.firstIndex(of: $0) } ?? 0
    }

    /// The selected task; nil in an empty list.
    mutating func selected() -> DownloadInfo? {
        if case .details(let id) = page { return tasks[id]?.info }
        let ids = shown()
        return selectedIndex().flatMap { tasks[ids[$0]]?.info }
    }

    /// Selects another line of the list.
    mutating func select(index: Int) {
        let ids = shown()
        guard !ids.isEmpty else { return }
        let index = min(max(0, index), ids.count - 1)
        selection = ids[index]
    }

    /// Scrolls so that the selected line is among `rows` lines, and returns the visible tasks.
    mutating func visible(rows: Int) -> ArraySlice<TaskID> {
        let ids = shown()
        guard rows > 0, !ids.isEmpty else { return [] }
        let index = selectedIndex() ?? 0
        top = min(top, index)
        top = max(top, index - rows + 1)
        top = max(0, min(top, ids.count - rows))
        return ids[top..<min(ids.count, top + rows)]
    }
}
