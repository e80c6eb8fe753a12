import FKCore
import FKMiddleware
import Foundation

/// The state of `fk watch`: tasks, selection, filter, page. Events and keys change it, `WatchFrame` draws it. A value
/// without clock, terminal and engine.
struct WatchModel: Sendable {
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
        /// Changes the rate limit of all tasks or of a barrel by one step from the one in force.
        ///
        /// - Parameter rate: of these tasks now, in bytes a second.
        case limit(barrel: String?, isRaised: Bool, rate: Double)
        case redraw
        /// Runs what waits in a process of its own.
        case start
    }

    enum Order: String, Sendable, CaseIterable {
        /// Running tasks, tasks that a person may act on, the queue, and ended tasks.
        case state
        case name
        case size
        case rate
        /// The newest first.
        case age
    }

    /// The tasks, and the process that runs them.
    private(set) var watched = WatchedTasks()
    /// A text for the last line, until the next key.
    private(set) var message: String?

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

    private var order: [TaskID]?

    // MARK: Events

    mutating func apply(_ event: WatchSession.Event, time: Int64) {
        switch event {
        case .changed(let infos): leave(infos.filter { $0.state == .unknown }.map(\.id))
        case .all(let infos): leave(Array(Set(watched.tasks.keys).subtracting(infos.map(\.id))))
        case .problem(let text): message = text
        default: break
        }
        let change = watched.apply(event, time: time)
        if change.isOfOrder || change.isAny && sorting != .state { order = nil }
        if case .all = event { marked.formIntersection(watched.tasks.keys) }
    }

    /// Waits that are over are no reasons any more.
    mutating func endWaits(at now: Date) { if watched.endWaits(at: now) { order = nil } }

    /// These tasks are gone.
    private mutating func leave(_ ids: [TaskID]) {
        let gone = Set(ids)
        guard !gone.isEmpty else { return }
        marked.subtract(gone)
        if let selected = selection, gone.contains(selected) {
            // The task that takes its line.
            let ids = shown()
            selection = ids.firstIndex(of: selected).flatMap { index in
                ids[index...].first { !gone.contains($0) } ?? ids[..<index].last { !gone.contains($0) }
            }
        }
        if case .details(let id) = page, gone.contains(id) { page = .list }
    }

    mutating func answer(_ reply: EngineReply) {
        switch reply {
        case .verbs(let results):
            guard let result = results.first else { return message = "The task is gone." }
            if results.count > 1 {
                let changed = results.filter(\.applied)
                let notes = (changed.isEmpty ? results : changed).map(\.note)
                return message = "\(changed.count) of \(results.count) tasks: \(Self.sum(of: notes))"
            }
            let name = watched.tasks[result.id]?.info.shownName ?? result.url.masked
            message = "\(name): \(result.note)"
        case .done(let note): message = note
        case .failed(let error): message = error.shortText
        case .added, .limits, .count: break
        }
    }

    /// The notes about several tasks in one line. Each begins with what became of a task; its bytes follow a comma.
    private static func sum(of notes: [String]) -> String {
        guard Set(notes).count > 1 else { return notes.first ?? "" }
        var counts: [(text: String, count: Int)] = []
        for text in notes.map({ String($0.prefix { $0 != "," }) }) {
            if let index = counts.firstIndex(where: { $0.text == text }) {
                counts[index].count += 1
            } else {
                counts.append((text, 1))
            }
        }
        return counts.count == 1 ? counts[0].text : counts.map { "\($0.count) \($0.text)" }.joined(separator: ", ")
    }

    mutating func show(details lines: [String], of id: TaskID) { if page == .details(id) { details = lines } }

    mutating func say(_ text: String?) { message = text }

    // MARK: The list

    /// The tasks that match the filter, in the order of the list. It is computed once after a change.
    mutating func shown() -> [TaskID] {
        if let order { return order }
        let needle = filter.lowercased()
        let state = needle.utf8.count < 3 ? nil : ShownState(beginning: needle)
        var rows: [(name: String, rank: Int64, number: Int, id: TaskID)] = []
        rows.reserveCapacity(watched.tasks.count)
        for (id, task) in watched.tasks where matches(task.info, needle, state) {
            rows.append((sorting == .name ? task.info.shownName.lowercased() : "", place(of: task), task.number, id))
        }
        rows.sort { ($0.name, $0.rank, $0.number) < ($1.name, $1.rank, $1.number) }
        let ids = rows.map(\.id)
        order = ids
        return ids
    }

    /// The first key of the order, beside the name.
    private func place(of task: WatchedTasks.Task) -> Int64 {
        switch sorting {
        case .name: return 0
        case .size: return -(task.info.count.expected ?? task.info.count.received)
        case .rate: return task.info.state == .action ? -Int64(task.info.bytesPerSecond) - 1 : 0
        case .age: return -Int64(task.number)
        case .state:
            let rank = Int64(WatchedTasks.rank(task.info)) << 44
            return WatchedTasks.isQueued(task.info) ? rank - Int64(task.info.priority ?? 0) : rank
        }
    }

    /// Moves the selected task in the queue, past the next one that is shown.
    ///
    /// - Returns: the tasks with another priority; nil if it cannot be moved.
    mutating func moveInQueue(down: Bool) -> [TaskChange]? {
        guard sorting == .state, let index = selectedIndex() else { return nil }
        let ids = shown()
        let next = index + (down ? 1 : -1)
        guard ids.indices.contains(next), let changes = watched.moveInQueue(ids[index], to: ids[next]) else {
            return nil
        }
        selection = ids[index]
        order = nil
        return changes
    }

    private func matches(_ info: DownloadInfo, _ needle: String, _ state: ShownState?) -> Bool {
        if let barrel, !info.barrels.containsExactly(barrel) { return false }
        guard !needle.isEmpty else { return true }
        return info.shownName.lowercased().contains(needle)
            || info.url.masked.lowercased().contains(needle)
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
        if case .details(let id) = page { return watched.tasks[id]?.info }
        let ids = shown()
        return selectedIndex().flatMap { watched.tasks[ids[$0]]?.info }
    }

    mutating func select(index: Int) {
        let ids = shown()
        guard !ids.isEmpty else { return }
        selection = ids[min(max(0, index), ids.count - 1)]
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
