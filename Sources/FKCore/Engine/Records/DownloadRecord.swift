import FKMiddleware
import FKStore
import Foundation

/// Everything stored about a task, as a value to show, search and sort (`RecordQuery`), to store and to send.
///
/// All of it is in the task's info file, so a record is available at any time: while the task runs, after it has
/// completed or failed, after a restart, and in another process.
public struct DownloadRecord: Codable, Sendable, Hashable, Identifiable {
    /// The task's id.
    public var id: TaskID
    /// The submission number: unique in the work path, ascending.
    public var number: UInt64
    /// The URL that the task was created with, percent-encoded.
    package var url: String
    /// The URLs that are tried after `url`.
    public var mirrors: [String]
    /// The host of `url`, in lower case and without its port; empty if the URL has none.
    public var host: String
    /// The name of the finished file. Until it is complete, the name that was set, or the one from the server or the
    /// URL.
    public var name: String
    /// The extension of `name` in lower case, without the dot; empty if it has none.
    public var format: String
    /// The media type that the server reported, in lower case and without parameters; nil while unknown.
    public var mimeType: String?
    /// The length of the file in bytes; nil until a server has reported it.
    package var size: Int64?
    /// Bytes in the part file or the finished file.
    package var received: Int64
    /// False if nothing marked the end of the body, so that the file may be cut; else nil.
    public var lengthVerified: Bool?
    /// The state of the task.
    package var state: DownloadState
    /// The last error, in state `.error` and while a retry is due; else nil.
    package var error: DownloadError?
    /// Whether the task continues automatically in a new engine.
    public var downloadType: DownloadType
    /// Tasks with a higher priority start earlier.
    public var priority: Int
    /// The application's own key-value pairs.
    public var attributes: [String: String]
    /// The barrels that the task is a member of.
    package var barrels: [String]
    /// The number of attempts started so far.
    package var attempts: Int
    /// Bytes per second: smoothed while the task runs, otherwise the average of its last attempt; 0 before the first.
    public var bytesPerSecond: Int64
    /// When the task was created.
    public var created: Date
    /// When its first attempt started; nil before that.
    public var started: Date?
    /// When the task completed or finally failed; nil until then.
    public var finished: Date?
    /// When the application last marked the file as used (`Control.markUsed`); nil if it never did.
    public var lastUsed: Date?
    /// The path of the finished file; nil until the task is complete.
    package var path: String?
    /// The path that the file will have as far as is known now; nil if its folder is not known.
    package var destination: String?
    /// The path of the unfinished file; nil while there is none.
    package var partPath: String?

    /// The unfinished file; nil while there is none. With several connections it has gaps: its length says nothing about
    /// the bytes that have arrived.
    public var partURL: URL? { partPath.map { URL(fileURLWithPath: $0, isDirectory: false) } }

    /// The URL, state, byte counts, error and file of the task, as `Messager.info` reports them.
    public var info: DownloadInfo {
        var info = DownloadInfo(id: id, url: url, state: state, count: ByteCount(received: received, expected: size))
        (info.error, info.attempts, info.barrels) = (error, attempts, barrels)
        (info.path, info.knownName) = (path, name)
        if state == .action { info.bytesPerSecond = Double(bytesPerSecond) }
        return info
    }

    /// `received / size`, in 0...1; nil while the length is unknown. An empty file counts as 1.
    package var fraction: Double? { ByteCount(received: received, expected: size).fraction }

    /// Creates the public record of a stored one.
    ///
    /// - Parameter workPath: tells where an unfinished file without a folder is; nil, the default, leaves out `partURL`.
    package init(_ record: TaskRecord, in workPath: WorkPath? = nil) {
        id = record.id
        number = record.number
        url = record.task.url
        mirrors = record.task.mirrors
        host = Self.host(of: record.task.url)
        path = record.state == .complete ? record.path : nil
        let folder = workPath?.destination(of: record) ?? record.task.directory
        partPath = path == nil ? folder.flatMap(record.partPath) : nil
        name = record.presentName
        format = Self.format(of: name)
        mimeType = record.mimeType
        destination = folder?.path(of: name)
        size = record.expected
        received = record.received
        lengthVerified = record.lengthVerified
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

    /// The host of a URL, without userinfo and port.
    package static func host(of url: String) -> String {
        let host = URLParts(url).hostPort
        if host.hasPrefix("["), let end = host.firstIndex(of: "]") { return String(host[...end]).lowercased() }
        return host.split(separator: ":", omittingEmptySubsequences: false).first.map { $0.lowercased() } ?? ""
    }

    package static func format(of name: String) -> String {
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return "" }
        return name[name.index(after: dot)...].lowercased()
    }

    fileprivate static func mediaType(_ value: String) -> String? {
        let type = value.prefix { $0 != ";" && $0 != "," }.trimmingCharacters(in: .whitespaces).lowercased()
        return type.isEmpty ? nil : type
    }
}

extension TaskRecord {
    /// The name of the finished file. Until it is complete, the name that was set, or the one from the server or the URL.
    package var presentName: String {
        (state == .complete ? path?.lastPathPart : nil) ?? task.fileName
            ?? FileNameRules.name(url: task.url, head: response)
    }

    /// The media type that the server reported, in lower case and without parameters; nil while unknown.
    package var mimeType: String? { response?["Content-Type"].flatMap(DownloadRecord.mediaType) }

    /// The received part of the file in per cent, rounded down; nil while the length is unknown.
    package var percentage: Int64? {
        ByteCount(received: received, expected: expected).fraction.map { Int64($0 * 100) }
    }

    /// The path of the finished file, or the one that it will have: the folder and `presentName`.
    package func destination(in workPath: WorkPath) -> String {
        (state == .complete ? path : nil) ?? workPath.destination(of: self).path(of: presentName)
    }
}

extension DownloadRecord: CustomStringConvertible {
    /// The id, the state, the name and the URL, with the secrets of the URL masked.
    public var description: String { "DownloadRecord(\(id.short), \(state), \(name), \(url.masked))" }
}
