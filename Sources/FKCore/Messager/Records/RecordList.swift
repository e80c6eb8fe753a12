import FKEngine
import FKMiddleware

/// The records of many tasks in one order. They are read from the disk a portion at a time, as often as they are asked for,
/// because a million records take a gigabyte and their ids 32 MB. The records of a short list are kept.
///
/// A task that changes while the list is in use is shown as it is when its turn comes, and a task that is gone by then is
/// left out.
package final class RecordList {
    private let reader: StoreReader
    private let ids: [TaskID]
    /// The places in `ids` of the listed tasks, in order.
    private var places: [Int32] = []
    private var kept: [TaskRecord]? = []
    private let problem: (DownloadError) -> Void
    private let keptCount: Int
    private let portionCount: Int
    /// True once every record was read, with its problems reported.
    private var hasReported: Bool

    /// The number of records that are kept, and of those that are read at once.
    package static let usual = (kept: 4_096, portion: 8_192)

    package var count: Int { places.count }
    package var isEmpty: Bool { places.isEmpty }

    /// The tasks of a work path that match a query, in its order and within its limits.
    ///
    /// - Parameters:
    ///   - query: the default matches all tasks, in the order of submission. Its `ids` and `barrel` are not used.
    ///   - ids: the tasks to look at; nil, the default, for all.
    ///   - keptCount: the number of records that are kept.
    ///   - portionCount: the number of records that are read at once.
    ///   - problem: called once for each unreadable info file.
    /// - Throws: `.invalidArgument` for an invalid query.
    package init(
        _ reader: StoreReader, _ query: RecordQuery = .init(), ids: [TaskID]? = nil,
        keptCount: Int = RecordList.usual.kept,
        portionCount: Int = RecordList.usual.portion, problem: @escaping (DownloadError) -> Void = { _ in }
    ) throws {
        try query.validate()
        self.keptCount = keptCount
        self.portionCount = portionCount
        self.reader = reader
        self.ids = try ids ?? reader.allTaskIDs()
        self.problem = problem
        var query = query
        query.ids = nil
        query.barrel = nil
        // Where only the order is needed, long lists are not parsed for it.
        hasReported = !query.isUnconditional || self.ids.count <= keptCount
        var order = RecordOrder(query)
        if hasReported {
            reader.readAll(self.ids, problem: problem) { place, record in
                guard order.add(record, at: Int32(place)) else { return }
                keep(record)
            }
        } else {
            kept = nil
            reader.readNumbers(self.ids) { place, number in order.add(number: number, at: Int32(place)) }
        }
        places = order.places()
        sortKept()
    }

    /// The existing tasks among these ids, in the order given.
    ///
    /// - Parameters:
    ///   - seen: called once for each record, in order, before the list is used.
    ///   - problem: called once for each unreadable info file.
    package init(
        _ reader: StoreReader, inOrder ids: [TaskID], problem: @escaping (DownloadError) -> Void = { _ in },
        seen: (TaskRecord) -> Void
    ) {
        self.reader = reader
        self.ids = ids
        self.problem = problem
        (keptCount, portionCount) = Self.usual
        hasReported = true
        places.reserveCapacity(ids.count)
        reader.readAll(ids, problem: problem) { place, record in
            seen(record)
            places.append(Int32(place))
            keep(record)
        }
    }

    private func keep(_ record: TaskRecord) {
        kept?.append(record)
        if let count = kept?.count, count > keptCount { kept = nil }
    }

    /// The kept records are in the order in which they were read.
    private func sortKept() {
        guard let records = kept else { return }
        let found = Dictionary(records.map { ($0.id, $0) }) { first, _ in first }
        kept = places.compactMap { found[ids[Int($0)]] }
    }

    /// Passes all records to `body`, a portion at a time.
    package func forEachPortion(_ body: ([TaskRecord]) throws -> Void) rethrows {
        if let kept {
            if !kept.isEmpty { try body(kept) }
            return
        }
        for start in stride(from: 0, to: places.count, by: portionCount) {
            let portion = places[start..<min(start + portionCount, places.count)].map { ids[Int($0)] }
            var records: [TaskRecord] = []
            records.reserveCapacity(portion.count)
            reader.readAll(portion, problem: hasReported ? { _ in } : problem) { _, record in records.append(record) }
            if !records.isEmpty { try body(records) }
        }
        hasReported = true
    }

    package func forEach(_ body: (TaskRecord) throws -> Void) rethrows {
        try forEachPortion { for record in $0 { try body(record) } }
    }
}
