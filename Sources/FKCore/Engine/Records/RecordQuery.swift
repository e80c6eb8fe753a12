import FKMiddleware
import Foundation

/// Selects and orders records, and divides them into pages.
///
/// A record must meet every condition that is set. The default matches all records, in the order of submission.
///
/// ```swift
/// var query = RecordQuery()
/// query.states = [.complete]
/// query.text = "holiday"
/// query.sort = .size
/// query.ascending = false
/// query.limit = 50
/// let page = try await downloader.messager.records(query)
/// ```
public struct RecordQuery: Codable, Sendable, Hashable {
    /// The sort key. The submission number decides between equal and between unknown values. Unknown values come last
    /// in both directions.
    public enum Sort: String, Codable, Sendable, Hashable, CaseIterable {
        /// The submission number. The default.
        case number
        /// The file name, compared in lower case.
        case name
        /// The host of the URL.
        case host
        /// The state, in the order of `DownloadState`.
        case state
        /// The length of the file in bytes.
        case size
        /// The received bytes.
        case received
        /// The received share.
        case percentage
        /// The time of creation.
        case created
        /// The time of completion or final failure.
        case finished
        /// The time of the last use.
        case lastUsed = "last-used"
        /// The start order of waiting tasks with `QueueOrder.fifo`: priority, then submission.
        case queue
    }

    /// Only tasks in one of these states; nil, the default, for any state.
    public var states: Set<DownloadState>?
    /// Only these tasks, for applications that store ids; nil, the default, for all.
    public var ids: Set<TaskID>?
    /// Only members of this barrel; nil, the default, for all tasks.
    public var barrel: String?
    /// Only tasks whose URL has this host, compared without case; nil, the default, for any host.
    public var host: String?
    /// Only files with a length in this range, in bytes. Files of unknown length do not match. nil, the default, for
    /// any.
    public var size: ClosedRange<Int64>?
    /// Only tasks that were created in this range of time; nil, the default, for any.
    public var created: ClosedRange<Date>?
    /// Only tasks that completed or finally failed in this range of time; nil, the default, for any.
    public var finished: ClosedRange<Date>?
    /// Only tasks whose file was last used in this range of time; nil, the default, for any.
    public var lastUsed: ClosedRange<Date>?
    /// Only records that contain this text in the URL, a mirror, the name or an attribute's value, compared without
    /// case; nil, the default, for any.
    public var text: String?
    /// Only records with all of these pairs. The default is none.
    public var attributes: [String: String] = [:]
    /// Only files with one of these extensions, without the dot, compared without case; nil, the default, for any.
    public var formats: Set<String>?

    /// The sort key. The default is `.number`.
    public var sort: Sort = .number
    /// The sort direction. The default is true.
    public var ascending = true
    /// The number of matching records to skip, at least 0. The default is 0.
    public var offset = 0
    /// The maximum number of records, at least 1; nil, the default, for all.
    public var limit: Int?

    /// Creates a query that matches every record.
    public init() {}

    /// Checks the numbers. `page(of:)` calls it.
    ///
    /// - Throws: `.invalidArgument` for an offset below 0 or a limit below 1.
    package func validate() throws(DownloadError) {
        guard offset >= 0 else {
            throw DownloadError(.invalidArgument, "The offset of a query is 0 or more, not \(offset).")
        }
        if let limit, limit < 1 {
            throw DownloadError(.invalidArgument, "The limit of a query is 1 or more, not \(limit).")
        }
    }

    /// True if the record meets every condition.
    package func matches(_ record: DownloadRecord) -> Bool {
        if let states, !states.contains(record.state) { return false }
        if let ids, !ids.contains(record.id) { return false }
        if let barrel, !record.barrels.containsExactly(barrel) { return false }
        if let host, host.lowercased() != record.host { return false }
        if let size { guard let known = record.size, size.contains(known) else { return false } }
        if let created, !created.contains(record.created) { return false }
        guard Self.holds(finished, record.finished), Self.holds(lastUsed, record.lastUsed) else { return false }
        if let formats, !formats.contains(where: { $0.lowercased() == record.format }) { return false }
        if !attributes.allSatisfy({ record.attributes[$0.key] == $0.value }) { return false }
        return text.map { Self.contains($0, record) } ?? true
    }

    private static func holds(_ range: ClosedRange<Date>?, _ date: Date?) -> Bool {
        guard let range else { return true }
        return date.map(range.contains) ?? false
    }

    private static func contains(_ text: String, _ record: DownloadRecord) -> Bool {
        guard !text.isEmpty else { return true }
        let fields = [[record.name, record.url], record.mirrors, Array(record.attributes.values)].joined()
        return fields.contains { $0.range(of: text, options: .caseInsensitive) != nil }
    }

    // MARK: Order

    /// True if `a` comes before `b`.
    package func isOrdered(_ a: DownloadRecord, _ b: DownloadRecord) -> Bool {
        if sort == .number { return ascending ? a.number < b.number : a.number > b.number }
        return isOrdered(key(of: a), a.number, before: key(of: b), b.number)
    }

    /// A value that records are ordered by.
    enum SortKey: Comparable, Sendable {
        case integer(Int64)
        case fraction(Double)
        case text(String)
    }

    /// The value of a record to sort by; nil for an unknown one, and for the submission number.
    func key(of record: DownloadRecord) -> SortKey? {
        switch sort {
        case .number: nil
        case .name: .text(record.name.lowercased())
        case .host: .text(record.host)
        case .state: .integer(Self.rank(record.state))
        case .size: record.size.map(SortKey.integer)
        case .received: .integer(record.received)
        case .percentage: record.fraction.map(SortKey.fraction)
        case .created: .fraction(record.created.timeIntervalSinceReferenceDate)
        case .finished: record.finished.map { .fraction($0.timeIntervalSinceReferenceDate) }
        case .lastUsed: record.lastUsed.map { .fraction($0.timeIntervalSinceReferenceDate) }
        case .queue: .integer(Int64(-record.priority))
        }
    }

    private static func rank(_ state: DownloadState) -> Int64 {
        Int64(DownloadState.allCases.firstIndex(of: state) ?? 0)
    }

    /// True if a record with the value and number `a` comes before one with `b`.
    func isOrdered(_ left: SortKey?, _ a: UInt64, before right: SortKey?, _ b: UInt64) -> Bool {
        switch (left, right) {
        case (let left?, let right?) where left != right: ascending ? left < right : left > right
        case (_?, nil): true
        case (nil, _?): false
        default: a < b
        }
    }

    /// True if every record matches.
    package var isUnconditional: Bool {
        var plain = RecordQuery()
        (plain.sort, plain.ascending, plain.offset, plain.limit) = (.number, ascending, offset, limit)
        return plain == self
    }

    /// The page of these records.
    ///
    /// - Parameter records: in any order. Records that do not match are left out.
    /// - Throws: same as `validate`.
    package func page(of records: some Sequence<DownloadRecord>) throws(DownloadError) -> RecordPage {
        try validate()
        let matching = records.filter(matches).sorted(by: isOrdered)
        let rest = matching.dropFirst(offset)
        return RecordPage(
            records: Array(limit.map { rest.prefix($0) } ?? rest), total: matching.count, query: self)
    }
}

/// One page of the records that match a query.
public struct RecordPage: Codable, Sendable, Hashable {
    /// The records of the page, in the query's order.
    public var records: [DownloadRecord]
    /// The number of all matching records.
    public var total: Int
    /// The query that this page answers.
    package var query: RecordQuery

    /// The query for the next page; nil on the last page.
    public var next: RecordQuery? {
        let end = query.offset + records.count
        guard end < total, !records.isEmpty else { return nil }
        var next = query
        next.offset = end
        return next
    }
}
