import FKCore
import FKMiddleware

/// The lines about one task: what `fk info` shows, its connections, its history.
enum WatchDetails {
    /// - Parameter engineRuns: true if a process runs the downloads.
    static func lines(_ record: TaskRecord, engineRuns: Bool, usesUnicode: Bool) -> [String] {
        let text = RecordText(record)
        var lines = text.facts
        if record.state != .action, record.state != .complete {
            lines += ["", "why: " + text.reason(engineRuns: engineRuns).visible]
        }
        let connections = connections(record, usesUnicode: usesUnicode)
        if !connections.isEmpty { lines += ["", "connections:"] + connections }
        if !record.history.isEmpty { lines += ["", "history:"] + text.history }
        return lines
    }

    /// One line for each part of the file that a connection fills.
    private static func connections(_ record: TaskRecord, usesUnicode: Bool) -> [String] {
        guard record.state == .action else { return [] }
        return record.ranges.filter { $0.position < $0.end ?? .max }.map { range in
            let from = Formatting.bytes(range.start)
            guard let end = range.end, end > range.start else {
                return "  from \(from): \(Formatting.bytes(range.position - range.start))"
            }
            let share = Double(range.position - range.start) / Double(end - range.start)
            let full = max(0, min(20, Int(share * 20)))
            let bar =
                String(repeating: usesUnicode ? "━" : "#", count: full)
                + String(repeating: usesUnicode ? "─" : ".", count: 20 - full)
            let range = "\(from) to \(Formatting.bytes(end))"
            return
                "  \(Columns.pad(range, to: 24)) \(bar) \(Columns.pad(Formatting.percent(share), to: 4, right: true))"
        }
    }
}
