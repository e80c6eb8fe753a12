import Foundation

/// Writes one line, or one entry with fields, for each event of a task: request, state change with its reason, progress, end.
///
/// One instance serves all three chains:
///
/// ```swift
/// let log = LogMiddleware(level: .progress)
/// chains.register(request: log, priority: .max)     // sees the request as it is sent
/// chains.register(download: log)
/// chains.register(response: log)
/// ```
///
/// It never writes user names, passwords, query values or header values. It escapes control characters.
public struct LogMiddleware: RequestMiddleware, DownloadMiddleware, ResponseMiddleware {
    /// How much is written. Each level includes the levels before it.
    public enum Level: Int, Sendable, Comparable, CaseIterable {
        /// Failures only.
        case error
        /// Also requests, state changes and ends. The default.
        case info
        /// Also byte counts, at the polled interval.
        case progress

        /// Levels with fewer lines come first.
        public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    /// The position in each chain. The default is 100.
    public let priority: Int
    /// How much is written. The default is `.info`.
    public let level: Level
    private let write: @Sendable (Entry) -> Void

    /// An event, for a logger with fields of its own.
    ///
    /// ```swift
    /// let log = LogMiddleware(entries: { entry in logger.log(entry.text, entry.fields) })
    /// ```
    ///
    /// No text has a user name, a password, a query value or a header value, and control characters are escaped.
    public struct Entry: Sendable, Hashable {
        /// `.error` for a failure, `.progress` for byte counts, else `.info`.
        public let level: Level
        /// What happened, without the task.
        public let text: String
        /// The values of the event: `id`, `url` and `attempt`, and, where they are known, `method`, `state`, `code`, `status`,
        /// `received`, `expected` and `file`. An attempt that is followed by another one has `state` `idle` and the reason in `code`.
        public let fields: [String: String]

        /// The line that `init(level:priority:write:)` writes: the short id, the URL, and the text.
        public var line: String {
            "\(fields["id", default: ""].prefix(12)) \(fields["url", default: ""]) \(text)"
        }
    }

    /// Creates the middleware.
    ///
    /// - Parameters:
    ///   - level: how much is written; the default is `.info`.
    ///   - priority: the position in each chain; the default is 100.
    ///   - write: receives each line without its line feed, from any thread. The default writes to standard error.
    public init(
        level: Level = .info, priority: Int = 100,
        write: @escaping @Sendable (String) -> Void = LogMiddleware.toStandardError
    ) {
        self.init(level: level, priority: priority, entries: { write($0.line) })
    }

    /// Creates the middleware for a logger with levels and fields.
    ///
    /// - Parameters:
    ///   - level: how much is written; the default is `.info`.
    ///   - priority: the position in each chain; the default is 100.
    ///   - entries: receives each event, from any thread.
    public init(level: Level = .info, priority: Int = 100, entries: @escaping @Sendable (Entry) -> Void) {
        self.level = level
        self.priority = priority
        write = entries
    }

    /// Writes a line to standard error in one call, so that lines of several threads do not mix.
    @Sendable public static func toStandardError(_ line: String) {
        try? FileHandle.standardError.write(contentsOf: Data((line + "\n").utf8))
    }

    /// Writes the attempt and returns the request unchanged. It never throws.
    public func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        let names = (request.allHTTPHeaderFields ?? [:]).keys.sorted().joined(separator: ", ")
        let url = request.url.map { $0.absoluteString.masked } ?? "-"
        let method = request.httpMethod ?? "GET"
        record(.info, task, ["method": method]) {
            "attempt \(task.attempt): \(method) \(url)" + (names.isEmpty ? "" : " with \(names)")
        }
        return request
    }

    /// Writes the state, and the error if there is one.
    public func download(_ task: TaskContext, didChangeTo state: DownloadState, error: DownloadError?) {
        record(error == nil ? .info : .error, task, ["state": state.rawValue], error) {
            error.map { "\(state.rawValue): \($0.code): \($0.message)" } ?? state.rawValue
        }
    }

    /// Writes the byte count at level `.progress`.
    public func download(_ task: TaskContext, didReceive count: ByteCount) {
        let expected = count.expected.map(String.init)
        record(.progress, task, ["received": String(count.received), "expected": expected]) {
            "\(count.received) of \(expected ?? "?") bytes"
        }
    }

    /// Writes the end and returns the response unchanged. It never throws.
    public func process(_ response: DownloadResponse) async throws -> DownloadResponse {
        let status = response.response.map { String($0.statusCode) }
        let shown = status.map { " (HTTP \($0))" } ?? ""
        record(
            response.error == nil ? .info : .error, response.task,
            ["status": status, "file": response.fileURL?.path], response.error
        ) {
            if let error = response.error { return "failed\(shown): \(error.code): \(error.message)" }
            return "finished\(shown): \(response.fileURL?.path ?? "-")"
        }
        return response
    }

    private func record(
        _ kind: Level, _ task: TaskContext, _ values: [String: String?], _ error: DownloadError? = nil,
        _ text: () -> String
    ) {
        guard kind <= level else { return }
        var fields = values.compactMapValues(\.self)
        fields["id"] = task.id.description
        fields["url"] = task.originalURL.absoluteString.masked
        fields["attempt"] = String(task.attempt)
        fields["code"] = error?.code.rawValue
        if let status = error?.status { fields["status"] = String(status) }
        write(Entry(level: kind, text: text().visible, fields: fields.mapValues { $0.visible }))
    }
}
