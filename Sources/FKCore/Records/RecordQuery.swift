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
    public func validate() throws(DownloadError) {
        guard offset >= 0 else {
            throw DownloadError(.invalidArgument, "The offset of a query is 0 or more, not \(offset).")
        }
        if let limit, limit < 1 {
            throw DownloadError(.invalidArgument, "The limit of a query is 1 or more, not \(limit).")
        }
    }

    /// True if the record meets every condition.
    public func matches(_ record: DownloadRecord) -> Bool {
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
    public func isOrdered(_ a: DownloadRecord, _ b: DownloadRecord) -> Bool {
        switch sort {
        case .number: ascending ? a.number < b.number : a.number > b.number
        case .name: decide(a.name.lowercased(), b.name.lowercased(), a, b)
        case .host: decide(a.host, b.host, a, b)
        case .state: decide(Self.rank(a.state), Self.rank(b.state), a, b)
        case .size: decide(a.size, b.size, a, b)
        case .received: decide(a.received, b.received, a, b)
        case .percentage: decide(a.fraction, b.fraction, a, b)
        case .created: decide(a.created, b.created, a, b)
        case .finished: decide(a.finished, b.finished, a, b)
        case .lastUsed: decide(a.lastUsed, b.lastUsed, a, b)
        case .queue: decide(-a.priority, -b.priority, a, b)
        }
    }

    private static func rank(_ state: DownloadState) -> Int { DownloadState.allCases.firstIndex(of: state) ?? 0 }

    private func decide<Value: Comparable>(
        _ left: Value?, _ right: Value?, _ a: DownloadRecord, _ b: DownloadRecord
    ) -> Bool {
        switch (left, right) {
        case (let left?, let right?) where left != right: ascending ? left < right : left > right
        case (_?, nil): true
        case (nil, _?): false
        default: a.number < b.number
        }
    }

    /// The page of these records.
    ///
    /// - Parameter records: in any order. Records that do not match are left out.
    /// - Throws: same as `validate`.
    public func page(of records: some Sequence<DownloadRecord>) throws(DownloadError) -> RecordPage {
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
    public var query: RecordQuery

    /// The query for the next page; nil on the last page.
    public var next: RecordQuery? {
        let end = query.offset + records.count
        guard end < total, !records.isEmpty else { return nil }
        var next = query
        next.offset = end
        return next
    }
}
