import FKCore
import FKMiddleware
import Foundation

/// A task as `fk info --json` prints it. `fk list --json` prints an array of them.
enum TaskDocument {
    /// The JSON document of a record.
    ///
    /// - Parameter received: the current bytes from the live counters, if they are newer than the record.
    static func json(_ record: TaskRecord, received: Int64? = nil) -> JSONValue {
        .object([
            ("id", .string(record.id.hex)),
            ("url", .string(URLMasking.mask(record.task.url))),
            ("state", .string(record.state.rawValue)),
            ("received", .integer(received ?? record.received)),
            ("expected", .optional(record.expected)),
            ("path", .optional(record.path)),
            ("synced", record.isOnDisk.map(JSONValue.bool) ?? .null),
            ("attempts", .integer(Int64(record.attempts))),
            ("bytesPerSecond", .optional(record.bytesPerSecond)),
            ("barrels", .array(record.barrels.map { .string($0) })),
            ("error", error(record.error)),
            ("waiting", waiting(record.waiting)),
            ("directory", .optional(record.task.directory)),
            ("fileName", .optional(record.task.fileName)),
            ("checksum", .optional(record.task.options.checksum?.description)),
            ("contentEncoding", .optional(record.validator?.coding)),
            (
                "attributes",
                .object(record.task.attributes.sorted { $0.key < $1.key }.map { ($0.key, .string($0.value)) })
            ),
            ("insecure", .bool(record.task.options.insecure ?? false)),
            ("created", .string(Timestamp.text(record.created))),
            ("started", .optional(record.started.map(Timestamp.text))),
            ("finished", .optional(record.finished.map(Timestamp.text))),
            ("lastUsed", .optional(record.lastUsed.map(Timestamp.text))),
        ])
    }

    static func error(_ error: DownloadError?) -> JSONValue {
        guard let error else { return .null }
        return .object([
            ("code", .string(error.code.rawValue)), ("message", .string(error.text)),
            ("reason", .optional(error.reason)), ("status", .optional(error.status.map(Int64.init))),
            ("retryable", .bool(error.isRetryable)),
        ])
    }

    static func waiting(_ waiting: Waiting?) -> JSONValue {
        guard let waiting else { return .null }
        return .object([
            ("reason", .string(waiting.reason.rawValue)), ("until", .optional(waiting.until.map(Timestamp.text))),
            ("host", .optional(waiting.host)), ("limit", .optional(waiting.limit.map(Int64.init))),
        ])
    }
}
