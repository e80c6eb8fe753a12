import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// The documents of the page's methods. Members are named as in `fk info --json`.
enum PageDocuments {
    static func row(_ row: TaskRow) -> [JSON.Member] {
        [
            .init("id", .string(row.id.hex)), .init("gid", .string(GID.text(row.gid))),
            .init("number", .integer(Int64(clamping: row.number))),
            .init("url", .string(row.url.masked)), .init("name", .string(row.name)),
            .init("state", .string(row.state.rawValue)), .init("received", .integer(row.received)),
            .init("expected", JSON(row.expected)), .init("bytesPerSecond", .integer(row.bytesPerSecond)),
            .init("path", JSON(row.path)), .init("attempts", JSON(row.attempts)),
            .init("barrels", JSON(row.barrels)),
            .init("error", row.error.map(error) ?? .null), .init("waiting", row.waiting.map(waiting) ?? .null),
            .init("created", JSON(row.created)), .init("started", JSON(row.started)),
            .init("finished", JSON(row.finished)),
        ]
    }

    /// The row with everything from its record.
    static func details(_ row: TaskRow, _ record: TaskRecord, isOwned: Bool) -> JSON {
        let options = record.task.options
        let lines = record.history.map { line in
            JSON.members(["time": JSON(line.time), "by": .string(line.by), "what": .string(line.what)])
        }
        let verdicts = zip(record.history, lines).filter { !isInternal($0.0.by) }.map(\.1)
        let attributes = record.task.attributes.sorted { $0.key < $1.key }
        return .object(
            self.row(row) + [
                .init("reason", .string(reason(row, isOwned: isOwned))),
                .init("link", JSON(record.link.map(\.masked))),
                .init("maxAttempts", JSON(options.maxAttempts)),
                .init("mirrors", .array(record.task.mirrors.map { .string($0.masked) })),
                .init("directory", JSON(record.task.directory)), .init("fileName", JSON(record.task.fileName)),
                .init("checksum", JSON(options.checksum?.description)),
                .init("attributes", .object(attributes.map { .init($0.key, .string($0.value)) })),
                .init("insecure", .bool(options.insecure ?? false)), .init("rateLimit", JSON(options.rateLimit)),
                .init("connections", JSON(row.connections)),
                .init(
                    "ranges",
                    .array(
                        record.ranges.map {
                            .members([
                                "start": .integer($0.start), "end": JSON($0.end), "position": .integer($0.position),
                            ])
                        })),
                .init("history", .array(lines)), .init("verdicts", .array(verdicts)),
            ])
    }

    /// The sources of history lines that are no middlewares.
    private static let internalSources: Set<String> = [
        "checksum", "coding", "connection", "deadline", "end", "existing", "mirror", "options", "part", "piece",
        "proof", "range", "relink", "repair", "resume", "reuse",
    ]

    /// Attempts have their numbers: `attempt 2`.
    private static func isInternal(_ source: String) -> Bool {
        internalSources.contains(source) || source.hasPrefix("attempt ") && Int(source.dropFirst(8)) != nil
    }

    static func error(_ error: DownloadError) -> JSON {
        .members([
            "code": .string(error.code.rawValue), "message": .string(error.pageText),
            "reason": JSON(error.underlying.map { String($0.prefix(500)) }),
            "status": JSON(error.status), "retryable": .bool(error.isRetryable),
        ])
    }

    private static func waiting(_ waiting: Waiting) -> JSON {
        .members([
            "reason": .string(waiting.reason.rawValue), "until": JSON(waiting.until), "host": JSON(waiting.host),
            "limit": JSON(waiting.limit),
        ])
    }

    /// Why the task is in its state, as one sentence.
    static func reason(_ row: TaskRow, isOwned: Bool) -> String {
        switch row.state {
        case .complete: "it is complete"
        case .error: row.error?.pageText ?? "it failed"
        case .suspend: "it was suspended"
        case .cancel: "it was cancelled"
        case .action: "it is running"
        case .idle, .unknown:
            row.waiting.map(\.text) ?? (isOwned ? "it is queued: all slots are taken" : "it is queued")
        }
    }

    static func states(_ states: [DownloadState: Int]) -> JSON {
        let shown: [DownloadState] = [.idle, .action, .suspend, .cancel, .error, .complete]
        return .object(shown.map { .init($0.rawValue, JSON(states[$0] ?? 0)) })
    }
}
