import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Writes one line for each thing that happens to a task: request, state change, progress, end.
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
/// User names, passwords, the values of queries and of headers are never written; control characters are escaped.
public struct LogMiddleware: RequestMiddleware, DownloadMiddleware, ResponseMiddleware {
    /// Each level includes those before it.
    public enum Level: Int, Sendable, Comparable, CaseIterable {
        /// Failures only.
        case error
        /// Requests, state changes and ends as well. The default.
        case info
        /// Byte counts as well, at the polled interval.
        case progress

        /// Fewer lines before more.
        public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    /// Position in the chain.
    public let priority: Int
    /// What is written.
    public let level: Level
    private let write: @Sendable (String) -> Void

    /// - Parameters:
    ///   - priority: position in each chain; 100 by default.
    ///   - write: gets each line without its line feed, from any thread. The default writes to standard error.
    public init(
        level: Level = .info, priority: Int = 100,
        write: @escaping @Sendable (String) -> Void = LogMiddleware.toStandardError
    ) {
        self.level = level
        self.priority = priority
        self.write = write
    }

    /// Writes a line to standard error in one call, so that lines of several threads stay whole.
    @Sendable public static func toStandardError(_ line: String) {
        try? FileHandle.standardError.write(contentsOf: Data((line + "\n").utf8))
    }

    /// Writes the attempt; returns the request as it is.
    public func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        if level >= .info {
            let names = (request.allHTTPHeaderFields ?? [:]).keys.sorted().joined(separator: ", ")
            let url = request.url.map { URLMasking.mask($0.absoluteString) } ?? "-"
            line(
                task,
                "attempt \(task.attempt): \(request.httpMethod ?? "GET") \(url)"
                    + (names.isEmpty ? "" : " with \(names)"))
        }
        return request
    }

    /// Writes the state, with the error where there is one.
    public func download(_ task: TaskContext, didChangeTo state: DownloadState, error: DownloadError?) {
        if let error {
            line(task, "\(state.rawValue): \(error.code): \(error.message)")
        } else if level >= .info {
            line(task, state.rawValue)
        }
    }

    /// Writes the count, at level `.progress`.
    public func download(_ task: TaskContext, didReceive count: ByteCount) {
        guard level >= .progress else { return }
        line(task, "\(count.received) of \(count.expected.map(String.init) ?? "?") bytes")
    }

    /// Writes the end; returns the response as it is.
    public func process(_ response: DownloadResponse) async throws -> DownloadResponse {
        let status = response.response.map { " (HTTP \($0.statusCode))" } ?? ""
        if let error = response.error {
            line(response.task, "failed\(status): \(error.code): \(error.message)")
        } else if level >= .info {
            line(response.task, "finished\(status): \(response.fileURL?.path ?? "-")")
        }
        return response
    }

    private func line(_ task: TaskContext, _ text: String) {
        write(Escaping.visible("\(task.id.prefix(12)) \(URLMasking.mask(task.originalURL.absoluteString)) \(text)"))
    }
}
