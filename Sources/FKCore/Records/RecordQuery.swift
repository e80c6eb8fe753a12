import FKMiddleware
import Foundation

/// Which records are wanted, in which order, and which page of them.
///
/// Every condition that is set must hold. The defaults take all records in the order of submission.
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
    /// What records are sorted by. Where two are alike, and with nothing known of one, the submission number decides;
    /// what is not known comes last in either direction.
    public enum Sort: String, Codable, Sendable, Hashable, CaseIterable {
        /// Submission: the default.
        case number
        case name
        case host
        case state
        case size
        case received
        case percentage
        case created
        case finished
        case lastUsed = "last-used"
        /// The order in which waiting tasks start with `QueueOrder.fifo`: priority, then submission.
        case queue
    }

    /// Only tasks in one of these states; nil: in any.
    public var states: Set<DownloadState>?
    /// Only these tasks, for records whose ids the application keeps; nil: all.
    public var ids: Set<TaskID>?
    /// Only members of this barrel.
    public var barrel: String?
    /// Only tasks whose URL has this host, compared without case.
    public var host: String?
    /// Only files of so many bytes; what has no known size is left out.
    public var size: ClosedRange<Int64>?
    /// Only tasks made within this time.
    public var created: ClosedRange<Date>?
    /// Only tasks that were complete or failed within this time.
    public var finished: ClosedRange<Date>?
    /// Only tasks whose file was used within this time.
    public var lastUsed: ClosedRange<Date>?
    /// Only records that hold this text in URL, mirrors, name or an attribute's value; without case.
    public var text: String?
    /// Only records with all of these pairs.
    public var attributes: [String: String] = [:]
    /// Only files with one of these extensions, without the dot and without case; nil: any.
    public var formats: Set<String>?

    /// Default: `.number`.
    public var sort: Sort = .number
    /// Default: true.
    public var ascending = true
    /// So many of the matching records are passed over, 0 or more. Default 0.
    public var offset = 0
    /// At most so many records, 1 or more; nil: all.
    public var limit: Int?

    /// Takes every record.
    public init() {}

    /// - Throws: `.invalidArgument` for an offset below 0 or a limit below 1.
    public func validate() throws(DownloadError) {
        guard offset >= 0 else {
            throw DownloadError(.invalidArgument, "The offset of a query is 0 or more, not \(offset).")
        }
        if let limit, limit < 1 {
            throw DownloadError(.invalidArgument, "The limit of a query is 1 or more, not \(limit).")
        }
    }

    /// Whether a record meets every condition.
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

    /// Whether `a` comes before `b`.
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
    /// - Parameter records: in any order; those that do not match are left out.
    /// - Throws: what `validate` throws.
    public func page(of records: some Sequence<DownloadRecord>) throws(DownloadError) -> RecordPage {
        try validate()
        let matching = records.filter(matches).sorted(by: isOrdered)
        let rest = matching.dropFirst(offset)
        return RecordPage(
            records: Array(limit.map { rest.prefix($0) } ?? rest), total: matching.count, query: self)
    }
}

/// One page of the records that a query found.
public struct RecordPage: Codable, Sendable, Hashable {
    /// In the query's order.
    public var records: [DownloadRecord]
    /// How many records match in all.
    public var total: Int
    /// The query this is the answer to.
    public var query: RecordQuery

    /// The query for the page after this one; nil for the last one.
    public var next: RecordQuery? {
        let end = query.offset + records.count
        guard end < total, !records.isEmpty else { return nil }
        var next = query
        next.offset = end
        return next
    }
}
