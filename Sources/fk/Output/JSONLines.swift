import FKCore
import FKMiddleware
import Foundation

/// An event of a run, as `--json` prints it: one object per line, with its fields in this order.
enum RunEvent: Sendable {
    case state(id: String, url: String, state: DownloadState, time: Date, waiting: Waiting? = nil)
    case progress(id: String, url: String, bytes: ByteCount, bytesPerSecond: Double)
    case barrel(name: String, bytes: ByteCount, isExpectedKnown: Bool, complete: Int, error: Int, total: Int)
    case summary(complete: Int, error: Int, suspend: Int, bytes: Int64, seconds: Double)

    /// Userinfo and query values of URLs are masked, because the id identifies the task.
    var json: JSONValue {
        switch self {
        case .state(let id, let url, let state, let time, let waiting):
            .object(
                [
                    ("event", "state"), ("id", .string(id)), ("url", .string(URLMasking.mask(url))),
                    ("state", .string(state.rawValue)), ("time", .string(Timestamp.text(time))),
                ] + (waiting == nil ? [] : [("waiting", TaskDocument.waiting(waiting))]))
        case .progress(let id, let url, let bytes, let bytesPerSecond):
            .object([
                ("event", "progress"), ("id", .string(id)), ("url", .string(URLMasking.mask(url))),
                ("received", .integer(bytes.received)), ("previousReceived", .integer(bytes.previousReceived)),
                ("expected", .optional(bytes.expected)),
                ("bytesPerSecond", .integer(Int64(max(0, min(bytesPerSecond, 1e15))))),
            ])
        case .barrel(let name, let bytes, let isExpectedKnown, let complete, let error, let total):
            .object([
                ("event", "barrel"), ("name", .string(name)), ("received", .integer(bytes.received)),
                ("expected", .optional(bytes.expected)), ("complete", .integer(Int64(complete))),
                ("error", .integer(Int64(error))), ("total", .integer(Int64(total))),
                ("isExpectedKnown", .bool(isExpectedKnown)),
            ])
        case .summary(let complete, let error, let suspend, let bytes, let seconds):
            .object([
                ("event", "summary"), ("complete", .integer(Int64(complete))), ("error", .integer(Int64(error))),
                ("suspend", .integer(Int64(suspend))), ("bytes", .integer(bytes)), ("seconds", .number(seconds)),
            ])
        }
    }
}

/// Writes events as they happen. Safe to use from any thread: each line is written in one piece.
struct JSONLines: Sendable {
    let output: OutputStream

    func write(_ event: RunEvent) {
        output.writeLine(event.json.compact)
    }
}

/// Times in JSON: UTC with milliseconds (RFC 3339).
enum Timestamp {
    static func text(_ date: Date) -> String {
        date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}
