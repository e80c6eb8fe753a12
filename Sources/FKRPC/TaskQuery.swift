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
    var text: String?
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
                    throw RPCError("\(call.method): there is no state \(Escaping.visible(name)).")
                }
                states.insert(state)
            }
            self.states = states
        }
        if let text = try call.text("text"), !text.isEmpty { self.text = text.lowercased() }
        if let name = try call.text("sort") {
            guard let sort = Sort(rawValue: name) else {
                throw RPCError("\(call.method): there is no order \(Escaping.visible(name)).")
            }
            self.sort = sort
        }
        if call.has("ascending") { isAscending = try call.truth("ascending") }
        offset = try call.integer("offset", in: 0...Int(Int32.max), or: 0)
        limit = try call.integer("limit", in: 1...Self.maxLimit, or: 100)
    }

    func matches(_ row: TaskRow) -> Bool {
        if let states, !states.contains(row.state) { return false }
        if let barrel, !row.barrels.contains(barrel) { return false }
        guard let text else { return true }
        return row.name.lowercased().contains(text) || URLMasking.mask(row.url).lowercased().contains(text)
            || row.barrels.contains { $0.lowercased().contains(text) }
    }

    /// The matching tasks in their order.
    func rows(of table: TaskTable) -> [TaskRow] {
        if sort == .queue {
            let ids =
                table.active.places.map(\.id) + table.waiting.places.map(\.id)
                + table.stopped.places.reversed().map(\.id)
            let rows = ids.compactMap { table.rows[$0] }.filter(matches)
            return isAscending ? rows : rows.reversed()
        }
        var rows: [TaskRow] = []
        for row in table.rows.values where matches(row) { rows.append(row) }
        return rows.sorted { isAscending ? isBefore($0, $1) : isBefore($1, $0) }
    }

    private func isBefore(_ one: TaskRow, _ other: TaskRow) -> Bool {
        switch sort {
        case .queue, .number: break
        case .name: if one.name != other.name { return one.name < other.name }
        case .host:
            let (a, b) = (URLParts.site(of: one.url), URLParts.site(of: other.url))
            if a != b { return a < b }
        case .size: if one.expected != other.expected { return one.expected ?? -1 < other.expected ?? -1 }
        case .received: if one.received != other.received { return one.received < other.received }
        case .percentage: if one.fraction != other.fraction { return one.fraction < other.fraction }
        case .bytesPerSecond:
            if one.bytesPerSecond != other.bytesPerSecond { return one.bytesPerSecond < other.bytesPerSecond }
        case .state: if one.state != other.state { return one.state.rawValue < other.state.rawValue }
        case .created: if one.created != other.created { return one.created < other.created }
        case .finished:
            let (a, b) = (one.finished ?? .distantFuture, other.finished ?? .distantFuture)
            if a != b { return a < b }
        }
        return (one.number, one.id) < (other.number, other.id)
    }
}

extension TaskRow {
    fileprivate var fraction: Double {
        guard let expected, expected > 0 else { return state == .complete ? 1 : 0 }
        return Double(received) / Double(expected)
    }
}

/// The sums over rows.
struct RowSums {
    var received: Int64 = 0
    var expected: Int64 = 0
    var isExpectedKnown = true
    var bytesPerSecond: Int64 = 0
    var states: [DownloadState: Int] = [:]

    init(_ rows: some Sequence<TaskRow>) {
        for row in rows {
            received &+= row.received
            if let length = row.expected { expected &+= length } else { isExpectedKnown = false }
            bytesPerSecond &+= row.bytesPerSecond
            states[row.state, default: 0] += 1
        }
    }
}
