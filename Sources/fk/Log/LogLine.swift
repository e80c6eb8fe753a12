import FKCore
import FKMiddleware
import Foundation

/// A line of a log: `2026-11-22T10:08:23.123Z warn retry id=7db1ece609d2 url=https://host/a reason="The server answered 503."`.
struct LogLine: Sendable, Hashable {
    var level: LogLevel
    var event: String
    /// In the order of the line.
    var fields: [(name: String, value: String)]

    init(_ level: LogLevel, _ event: String, _ fields: [(String, String?)] = []) {
        self.level = level
        self.event = event
        self.fields = fields.compactMap { name, value in value.map { (name, $0) } }
    }

    static func == (one: LogLine, other: LogLine) -> Bool { one.text == other.text }
    func hash(into hasher: inout Hasher) { hasher.combine(text) }

    /// The line without time and line end.
    var text: String {
        fields.reduce("\(level.rawValue) \(event)") { "\($0) \($1.name)=\(Self.quoted($1.value))" }
    }

    /// A value of more than this many characters is cut, because a URL or the answer of a server may be very long.
    static let maxValue = 2_000

    /// The value, in quotation marks if it is empty or has a blank, a quotation mark or an equals sign. A log has no control
    /// characters.
    private static func quoted(_ value: String) -> String {
        let shown = (value.count > maxValue ? "\(value.prefix(maxValue))…" : value).visible
        guard shown.isEmpty || shown.contains(where: { " \"=\u{a0}".contains($0) }) else { return shown }
        return "\"\(shown.replacing("\"", with: "\\\""))\""
    }
}

extension LogLine {
    /// The last line of a run.
    ///
    /// - Parameter signal: the signal that ended it; nil if none did.
    init(ending tracker: RunTracker, signal: Int32?) {
        let counts: [(String, DownloadState)] = [
            ("complete", .complete), ("failed", .error), ("suspended", .suspend), ("cancelled", .cancel),
        ]
        self.init(
            signal == nil ? .info : .warn, "end",
            counts.map { ($0.0, "\(tracker.count($0.1))") } + [
                ("bytes", "\(tracker.fetched)"), ("reason", signal.map { "signal \($0)" }),
            ])
    }

    /// The lines of an event. Most events have none or one.
    static func lines(of event: RunSession.Event) -> [LogLine] {
        switch event {
        case .engine(let tookOver, _):
            [LogLine(.info, "engine", [("role", "owner"), ("reason", tookOver ? "the former owner has ended" : nil)])]
        case .following(let pid): [LogLine(.info, "engine", [("role", "follower"), ("owner", "\(pid)")])]
        case .engineNews(.silent, let pid):
            [LogLine(.warn, "engine-silent", [("owner", "\(pid)"), ("reason", "it shows no sign of life")])]
        case .engineNews(.back, let pid): [LogLine(.info, "engine-back", [("owner", "\(pid)")])]
        case .replies(let replies): replies.flatMap(lines)
        case .state(let info): [line(info)]
        case .progress, .waiting, .members, .leftOut, .paused: []
        case .trimmed(let files): [LogLine(.warn, "trimmed", [("reason", files.summary)])]
        case .problem(let text): [LogLine(.warn, "problem", [("reason", text)])]
        }
    }

    private static func lines(of reply: EngineReply) -> [LogLine] {
        switch reply {
        case .failed(let error): [refused(error, id: nil)]
        case .added(let list):
            list.map { added in
                if let error = added.error { return refused(error, id: added.id) }
                let fields = [("id", added.id.short), ("state", added.state.rawValue), ("new", "\(added.isNew)")]
                return LogLine(.debug, "added", fields)
            }
        case .verbs, .done, .limits, .count: []
        }
    }

    private static func refused(_ error: DownloadError, id: TaskID?) -> LogLine {
        LogLine(.error, "refused", [("id", id?.short), ("url", error.url)] + reason(error))
    }

    /// The line of a task's new state.
    private static func line(_ info: DownloadInfo) -> LogLine {
        let task = [("id", info.id.short), ("url", info.url.masked)] as [(String, String?)]
        let attempt = [("attempt", info.attempts > 0 ? "\(info.attempts)" : nil)]
        switch info.state {
        case .action: return LogLine(.info, "started", task + attempt)
        case .complete:
            return LogLine(
                .info, "complete", task + attempt + [("bytes", "\(info.count.received)"), ("path", info.path)])
        case .error: return LogLine(.error, "failed", task + attempt + reason(info.error))
        case .idle:
            guard let error = info.error else { return LogLine(.debug, "queued", task) }
            let until = info.waitingUntil.map(\.timestamp)
            return LogLine(.warn, "retry", task + attempt + [("until", until)] + reason(error))
        case .suspend: return LogLine(.info, "suspended", task + [("bytes", "\(info.count.received)")])
        case .cancel: return LogLine(.info, "cancelled", task)
        case .unknown: return LogLine(.info, "forgotten", task)
        }
    }

    private static func reason(_ error: DownloadError?) -> [(String, String?)] {
        guard let error else { return [("reason", "unknown")] }
        return [
            ("code", error.code.rawValue), ("status", error.status.map(String.init)), ("reason", error.shortText),
        ]
    }
}
