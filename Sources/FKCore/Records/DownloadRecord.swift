import FKMiddleware
import Foundation

/// All that is kept of a task, as a value to show, search and sort (`RecordQuery`).
public struct DownloadRecord: Codable, Sendable, Hashable, Identifiable {
    /// The task's id.
    public var id: TaskID
    /// Submission number: unique in the work path, ascending.
    public var number: UInt64
    /// The URL the task was built with, percent-encoded.
    public var url: String
    /// The URLs tried after it.
    public var mirrors: [String]
    /// The host of `url`, in lower case, without its port; empty where the URL has none.
    public var host: String
    /// The finished file's name; until then the one asked for, else the one the server or the URL gives.
    public var name: String
    /// The extension of `name` in lower case, without the dot; empty where it has none.
    public var format: String
    /// The media type the server told, in lower case and without parameters; nil while none is known.
    public var mimeType: String?
    /// Bytes of the whole file; nil until a server has told it.
    public var size: Int64?
    /// Bytes in the part file or the finished file.
    public var received: Int64
    /// Where the task stands.
    public var state: DownloadState
    /// Set in state `.error`, and while a retry is due.
    public var error: DownloadError?
    /// Whether it goes on by itself after a restart.
    public var downloadType: DownloadType
    /// Higher starts earlier.
    public var priority: Int
    /// The application's own pairs.
    public var attributes: [String: String]
    /// The barrels it is a member of.
    public var barrels: [String]
    /// Attempts begun so far.
    public var attempts: Int
    /// Smoothed while it runs, else the average of the last attempt; 0 before the first.
    public var bytesPerSecond: Int64
    /// When the task was made.
    public var created: Date
    /// When its first attempt began.
    public var started: Date?
    /// When it was complete or failed for good.
    public var finished: Date?
    /// When the application last said that it used the file (`Control.markUsed`).
    public var lastUsed: Date?
    /// The finished file; nil until it is complete.
    public var path: String?

    /// `received / size` in 0...1; nil while the length is unknown. An empty file counts as 1.
    public var fraction: Double? { ByteCount(received: received, expected: size).fraction }

    /// `fraction` in percent.
    public var percentage: Double? { fraction.map { $0 * 100 } }

    package init(_ record: TaskRecord) {
        id = record.id
        number = record.number
        url = record.task.url
        mirrors = record.task.mirrors
        host = Self.host(of: record.task.url)
        path = record.state == .complete ? record.path : nil
        name =
            path?.lastPathPart ?? record.task.fileName
            ?? FileNameRules.name(url: record.task.url, head: record.response)
        format = Self.format(of: name)
        mimeType = record.response?["Content-Type"].flatMap(Self.mediaType)
        size = record.expected
        received = record.received
        state = record.state
        error = record.error
        downloadType = record.task.type
        priority = record.task.priority
        attributes = record.task.attributes
        barrels = record.barrels
        attempts = record.attempts
        bytesPerSecond = record.bytesPerSecond ?? 0
        created = record.created
        started = record.started
        finished = record.finished
        lastUsed = record.lastUsed
    }

    /// Without userinfo and port.
    static func host(of url: String) -> String {
        let host = URLParts(url).hostPort
        if host.hasPrefix("["), let end = host.firstIndex(of: "]") { return String(host[...end]).lowercased() }
        return host.split(separator: ":", omittingEmptySubsequences: false).first.map { $0.lowercased() } ?? ""
    }

    static func format(of name: String) -> String {
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return "" }
        return name[name.index(after: dot)...].lowercased()
    }

    private static func mediaType(_ value: String) -> String? {
        let type = value.prefix { $0 != ";" && $0 != "," }.trimmingCharacters(in: .whitespaces).lowercased()
        return type.isEmpty ? nil : type
    }
}
