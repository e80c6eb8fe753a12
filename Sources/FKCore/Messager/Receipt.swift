import FKMiddleware
import Foundation

/// What is known of a task at one moment, as a value that can be stored and sent (MCDownloadManager).
///
/// Everything in it stands in the task's info file, so there is a receipt at any time: while the task runs, once it is
/// complete or has failed, after a restart, and in another process.
///
/// ```swift
/// if let receipt = await downloader.messager.receipt("https://example.com/file.zip") {
///     try receipt.archive().write(to: place)
///     try await downloader.control.suspend(.id(receipt.id))
/// }
/// ```
public struct Receipt: Codable, Sendable, Hashable {
    /// The task: `TaskSelector.id` takes it.
    public var id: TaskID
    /// The URL the task was built with, percent-encoded.
    public var url: String
    /// The finished file; nil until it is complete.
    public var path: String?
    /// The finished file's name; until then the one asked for, else the one the URL gives.
    public var name: String
    /// Where the task stands.
    public var state: DownloadState
    /// Bytes in the part file or the finished file.
    public var written: Int64
    /// Bytes of the whole file; nil until a server has told it.
    public var expected: Int64?
    /// Bytes a second: smoothed while the task runs, otherwise the average of its last attempt; 0 before the first.
    public var bytesPerSecond: Double
    /// Set in state `.error`, and while a retry is due.
    public var error: DownloadError?
    /// When the task was made.
    public var created: Date
    /// When it was complete or failed for good; nil until then.
    public var finished: Date?

    /// `written / expected` in 0...1; nil while the length is unknown. An empty file counts as 1.
    public var fraction: Double? { ByteCount(received: written, expected: expected).fraction }

    package init(_ record: TaskRecord) {
        id = record.id
        url = record.task.url
        path = record.state == .complete ? record.path : nil
        name =
            path?.lastPathPart ?? record.task.fileName
            ?? FileNameRules.name(url: record.task.url, head: record.response)
        state = record.state
        written = record.received
        expected = record.expected
        bytesPerSecond = Double(record.bytesPerSecond ?? 0)
        error = record.error
        created = record.created
        finished = record.finished
    }

    // MARK: Archive

    /// The receipt as JSON, with times in seconds since 1970, to the millisecond.
    ///
    /// - Throws: nothing that is known of; a `DownloadError` if JSON cannot hold it.
    public func archive() throws -> Data { Data(try StoreJSON.encode(self)) }

    /// Reads what `archive` wrote.
    ///
    /// - Throws: `.corruptInfo` when it is something else.
    public init(archive: Data) throws {
        self = try StoreJSON.decode(Receipt.self, from: [UInt8](archive))
    }

    // MARK: Another process

    /// Receipts out of a work path that may be another process's, in the order of submission. Nothing is changed and no
    /// downloader is needed.
    ///
    /// - Parameter workPath: a file URL; nil takes the default of `Configure`.
    /// - Returns: empty when no task matches. Info files that cannot be read are left out.
    /// - Throws: `.notFound` for a barrel or work path that is not there, `.invalidURL` for a URL that is none,
    ///   `.workPathUnusable` or `.laterVersion`.
    public static func stored(_ selector: TaskSelector = .all, workPath: URL? = nil) throws -> [Receipt] {
        let path = WorkPath(Configure(workPath: workPath).workPath)
        try path.open(create: false)
        let reader = StoreReader(path)
        let records =
            switch selector {
            case .all: reader.records()
            case .id(let id): reader.records([id])
            case .url(let url): reader.records(url: try URLNormalizer.normalize(url))
            case .barrel(let name): reader.records(try reader.barrel(name).members.map(\.id))
            }
        return records.map { Receipt($0) }
    }
}

extension Messager {
    /// The task's receipt now; nil when there is no such task. With several tasks of one URL: the oldest.
    public func receipt(_ selector: TaskSelector) async -> Receipt? { await receipts(selector).first }

    /// The receipts of all matching tasks, in the order of their submission.
    public func receipts(_ selector: TaskSelector = .all) async -> [Receipt] {
        (try? await engine.receipts(selector)) ?? []
    }
}

extension Engine {
    func receipts(_ selector: TaskSelector) throws -> [Receipt] {
        try find(selector).map { entry in
            takeInlineHead(of: entry)
            var receipt = Receipt(entry.record)
            receipt.written = entry.received
            receipt.bytesPerSecond = Double(speedToRecord(of: entry, in: entry.record.state) ?? 0)
            return receipt
        }
    }
}
