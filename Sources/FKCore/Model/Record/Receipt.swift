import FKMiddleware
import Foundation

/// The facts about a task at one moment, as a value that can be stored and sent (MCDownloadManager).
///
/// All of it is in the task's info file, so a receipt is available at any time: while the task runs, after it has
/// completed or failed, after a restart, and in another process.
///
/// ```swift
/// if let receipt = await downloader.messager.receipt("https://example.com/file.zip") {
///     try receipt.archive().write(to: place)
///     try await downloader.control.suspend(.id(receipt.id))
/// }
/// ```
public struct Receipt: Codable, Sendable, Hashable {
    /// The task's id, for `TaskSelector.id`.
    public var id: TaskID
    /// The URL that the task was created with, percent-encoded.
    public var url: String
    /// The path of the finished file; nil until the task is complete.
    public var path: String?
    /// The name of the finished file. Until it is complete, the name that was set, or the one from the URL.
    public var name: String
    /// The state of the task.
    public var state: DownloadState
    /// Bytes in the part file or the finished file.
    public var written: Int64
    /// The length of the file in bytes; nil until a server has reported it.
    public var expected: Int64?
    /// False if nothing marked the end of the body, so that the file may be cut; else nil.
    public var lengthVerified: Bool?
    /// Bytes per second: smoothed while the task runs, otherwise the average of its last attempt; 0 before the first.
    public var bytesPerSecond: Double
    /// The last error, in state `.error` and while a retry is due; else nil.
    public var error: DownloadError?
    /// When the task was created.
    public var created: Date
    /// When the task completed or finally failed; nil until then.
    public var finished: Date?

    /// The finished file; nil until the task is complete.
    public var fileURL: URL? { path.map { URL(fileURLWithPath: $0, isDirectory: false) } }

    /// `written / expected`, in 0...1; nil while the length is unknown. An empty file counts as 1.
    public var fraction: Double? { ByteCount(received: written, expected: expected).fraction }

    /// Creates the receipt of a stored record.
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
        lengthVerified = record.lengthVerified
        bytesPerSecond = Double(record.bytesPerSecond ?? 0)
        error = record.error
        created = record.created
        finished = record.finished
    }

    // MARK: Archive

    /// The receipt as JSON. Times are seconds since 1970, with milliseconds.
    ///
    /// - Throws: `DownloadError` if JSON cannot represent a value; no such value is known.
    public func archive() throws(DownloadError) -> Data {
        try typedNow { Data(try StoreJSON.encode(self)) }
    }

    /// Decodes a receipt from the JSON of `archive()`.
    ///
    /// - Throws: `.corruptInfo` for any other data.
    public init(archive: Data) throws(DownloadError) {
        self = try typedNow { try StoreJSON.decode(Receipt.self, from: [UInt8](archive)) }
    }
}
