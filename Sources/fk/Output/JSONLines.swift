import FKCore
import FKMiddleware
import Foundation

/// An event of a run, as `--json` prints it: one object per line, with its members in this order. A run over 50,000
/// files prints 200,000 of them.
enum RunEvent: Sendable {
    /// - Parameter waiting: nil unless the task waits for a time.
    case state(DownloadInfo, waiting: Waiting? = nil)
    case progress(id: String, url: String, bytes: ByteCount, bytesPerSecond: Double)
    case barrel(name: String, bytes: ByteCount, isExpectedKnown: Bool, complete: Int, error: Int, total: Int)
    case trim(TrimmedFiles)
    case summary(complete: Int, error: Int, suspend: Int, bytes: Int64, seconds: Double)

    /// Userinfo and query values of URLs are masked, because the id identifies the task.
    func json(at time: Date) -> [UInt8] {
        var text = JSONText()
        text.beginObject()
        switch self {
        case .state(let info, let waiting):
            text.member("event", "state")
            text.member("id", info.id.hex)
            text.member("url", info.url.masked)
            text.member("state", info.state.rawValue)
            text.member("time", time.timestamp)
            if info.attempts > 0 { text.member("attempt", Int64(info.attempts)) }
            if info.state == .complete, let path = info.path { text.member("path", path) }
            // While a task runs, its info may have the error of the attempt before.
            if info.state == .error || info.state == .idle, let error = info.error {
                text.member("error", json: error.document)
            }
            if let waiting { text.member("waiting", json: waiting.document) }
            text.endObject()
            return text.bytes
        case .progress(let id, let url, let bytes, let bytesPerSecond):
            text.member("event", "progress")
            text.member("id", id)
            text.member("url", url.masked)
            text.member("received", bytes.received)
            text.member("previousReceived", bytes.previousReceived)
            text.member("expected", bytes.expected)
            text.member("bytesPerSecond", Int64(max(0, min(bytesPerSecond, 1e15))))
        case .barrel(let name, let bytes, let isExpectedKnown, let complete, let error, let total):
            text.member("event", "barrel")
            text.member("name", name)
            text.member("received", bytes.received)
            text.member("expected", bytes.expected)
            text.member("complete", Int64(complete))
            text.member("error", Int64(error))
            text.member("total", Int64(total))
            text.member("isExpectedKnown", isExpectedKnown)
        case .trim(let files):
            text.member("event", "trim")
            text.member("freed", files.freedBytes)
            text.member("used", files.usedBytes)
            text.member("barrels", json: .array(files.barrels.map { .string($0) }))
            text.member("folders", json: .array(files.folders.map { .string($0.path) }))
            text.member("files", json: .array(files.files.map { .string($0.path) }))
        case .summary(let complete, let error, let suspend, let bytes, let seconds):
            text.member("event", "summary")
            text.member("complete", Int64(complete))
            text.member("error", Int64(error))
            text.member("suspend", Int64(suspend))
            text.member("bytes", bytes)
            text.member("seconds", json: JSON((seconds * 1000).rounded() / 1000))
        }
        text.member("time", time.timestamp)
        text.endObject()
        return text.bytes
    }
}

/// Writes events as they happen. Safe to use from any thread: each line is written in one piece.
struct JSONLines: Sendable {
    let output: OutputStream

    /// - Parameter time: the time of the event; the default is now.
    func write(_ event: RunEvent, at time: Date = Date()) { JSONOutput(output).line(json: event.json(at: time)) }
}
