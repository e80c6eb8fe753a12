import FKCore
import FKMiddleware
import Foundation

/// A window of the page's list of tasks.
struct TaskQuery: Hashable, Sendable {
    enum Sort: String, Sendable {
        case queue, number, name, host, size, received, percentage, bytesPerSecond, state, created, finished
    }

    static let maxLimit = 1_000

    var barrel: String?
    var states: Set<DownloadState>?
    var text: SearchText?
    var sort = Sort.queue
    var isAscending = true
    var offset = 0
    var limit = 100

    static let members: Set<String> = ["barrel", "states", "text", "sort", "ascending", "offset", "limit"]

    init() {}

    init(_ call: PageCall) throws(RPCError) {
        barrel = try call.text("barrel")
        if let names = try call.texts("states") {
            var states: Set<DownloadState> = []
            for name in names {
                guard let state = DownloadState(rawValue: name), state != .unknown else {
                    throw RPCError("\(call.method): there is no state \(name.visible).")
                }
                states.insert(state)
            }
            self.states = states
        }
        if let text = try call.text("text"), !text.isEmpty { self.text = SearchText(text) }
        if let name = try call.text("sort") {
            guard let sort = Sort(rawValue: name) else {
                throw RPCError("\(call.method): there is no order \(name.visible).")
            }
            self.sort = sort
        }
        if call.has("ascending") { isAscending = try call.truth("ascending") }
        offset = try call.integer("offset", in: 0...Int(Int32.max), or: 0)
        limit = try call.integer("limit", in: 1...Self.maxLimit, or: 100)
    }

    /// A window of a list, with the sums over all of it.
    struct Window {
        var rows: [TaskRow] = []
        var totals = TaskTotals()
        var bytesPerSecond: Int64 = 0
        /// The number of rows that were read for it, for tests.
        var readRows = 0
    }

    /// The matching tasks of the window in their order. The queue, or one state of it, is not read beyond the window.
    func window(of table: inout TaskTable) -> Window {
        if sort == .queue, barrel == nil, text == nil { return queueWindow(of: table) }
        var window = Window()
        var found: [TaskTable.Entry] = []
        func absorb(_ entry: TaskTable.Entry) {
            window.readRows += 1
            guard matches(entry, &table) else { return }
            found.append(entry)
            window.totals.add(entry.row.share)
            window.bytesPerSecond += entry.row.bytesPerSecond
        }
        if sort == .queue {
            for place in Self.queue(of: table) where states?.contains(place.state) ?? true {
                if let entry = table.entries[place.id] { absorb(entry) }
            }
        } else {
            for entry in table.entries.values where states?.contains(entry.row.state) ?? true { absorb(entry) }
            found = ordered(found)
        }
        if !isAscending { found.reverse() }
        window.rows = found.dropFirst(offset).prefix(limit).map(\.row)
        return window
    }

    /// Running, then waiting in their order, then the others, the newest first.
    private static func queue(of table: TaskTable) -> some Sequence<SortedPlaces.Place> {
        [table.active.places, table.waiting.places, table.stopped.places.reversed()].joined()
    }

    private func queueWindow(of table: TaskTable) -> Window {
        var window = Window()
        window.totals = states.map { table.totals.of($0) } ?? table.totals
        window.bytesPerSecond = states?.contains(.action) ?? true ? table.bytesPerSecond : 0
        let lists = [table.active.places, table.waiting.places, table.stopped.places]
        var skipped = 0
        for index in isAscending ? [0, 1, 2] : [2, 1, 0] {
            // The list of ended tasks has the oldest first.
            let isForward = isAscending == (index < 2)
            let places = lists[index]
            for number in places.indices {
                let place = places[isForward ? number : places.count - 1 - number]
                guard states?.contains(place.state) ?? true else { continue }
                skipped += 1
                guard skipped > offset else { continue }
                guard window.rows.count < limit else { return window }
                guard let entry = table.entries[place.id] else { continue }
                window.readRows += 1
                window.rows.append(entry.row)
            }
        }
        return window
    }

    private func matches(_ entry: TaskTable.Entry, _ table: inout TaskTable) -> Bool {
        if let barrel, !entry.row.barrels.contains(barrel) { return false }
        guard let text else { return true }
        return table.contains(text, in: entry)
    }

    // MARK: Order

    private func ordered(_ entries: [TaskTable.Entry]) -> [TaskTable.Entry] {
        switch sort {
        case .queue, .number: ordered(entries) { _ in 0 }
        case .name: ordered(entries) { $0.row.name }
        case .host: ordered(entries) { $0.row.url.site }
        case .size: ordered(entries) { $0.row.expected ?? -1 }
        case .received: ordered(entries) { $0.row.received }
        case .percentage: ordered(entries) { $0.row.fraction }
        case .bytesPerSecond: ordered(entries) { $0.row.bytesPerSecond }
        case .state: ordered(entries) { $0.row.state.rawValue }
        case .created: ordered(entries) { $0.row.created }
        case .finished: ordered(entries) { $0.row.finished ?? .distantFuture }
        }
    }

    /// Sorts keys, because rows are large. Equal keys are ordered by submission number.
    private func ordered<Key: Comparable>(
        _ entries: [TaskTable.Entry], by key: (TaskTable.Entry) -> Key
    ) -> [TaskTable.Entry] {
        var keys: [(key: Key, number: UInt64, index: Int)] = []
        keys.reserveCapacity(entries.count)
        for (index, entry) in entries.enumerated() { keys.append((key(entry), entry.row.number, index)) }
        keys.sort { one, other in
            if one.key != other.key { return one.key < other.key }
            if one.number != other.number { return one.number < other.number }
            return entries[one.index].row.id < entries[other.index].row.id
        }
        return keys.map { entries[$0.index] }
    }
}

extension TaskRow {
    fileprivate var fraction: Double {
        guard let expected, expected > 0 else { return state == .complete ? 1 : 0 }
        return Double(received) / Double(expected)
    }
}
