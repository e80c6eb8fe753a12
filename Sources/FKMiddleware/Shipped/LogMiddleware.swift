import Foundation

/// Writes one line for each event of a task: request, state change, progress, end.
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
    private let write: @Sendable (String) -> Void

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
        self.level = level
        self.priority = priority
        self.write = write
    }

    /// Writes a line to standard error in one call, so that lines of several threads do not mix.
    @Sendable public static func toStandardError(_ line: String) {
        try? FileHandle.standardError.write(contentsOf: Data((line + "\n").utf8))
    }

    /// Writes the attempt and returns the request unchanged. It never throws.
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

    /// Writes the state, and the error if there is one.
    public func download(_ task: TaskContext, didChangeTo state: DownloadState, error: DownloadError?) {
        if let error {
            line(task, "\(state.rawValue): \(error.code): \(error.message)")
        } else if level >= .info {
            line(task, state.rawValue)
        }
    }

    /// Writes the byte count at level `.progress`.
    public func download(_ task: TaskContext, didReceive count: ByteCount) {
        guard level >= .progress else { return }
        line(task, "\(count.received) of \(count.expected.map(String.init) ?? "?") bytes")
    }

    /// Writes the end and returns the response unchanged. It never throws.
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
        write(Escaping.visible("\(task.id.short) \(URLMasking.mask(task.originalURL.absoluteString)) \(text)"))
    }
}
