import FKMiddleware
import Foundation

/// The line about a run that is written now and then where no live view can be drawn.
enum StatusLine {
    /// The seconds between two lines. `FK_STATUS_INTERVAL` replaces it.
    static let interval = 30.0
    /// The most files that a line names.
    static let nameLimit = 3

    /// The interval of this environment: 1 to 86,400 s; the default for any other value.
    static func interval(_ environment: [String: String]) -> Double {
        guard let value = environment["FK_STATUS_INTERVAL"].flatMap(Double.init), (1...86_400).contains(value) else {
            return interval
        }
        return value
    }

    /// `2 of 12 complete, 62.5/200 MiB, 48.1 MiB/s, 3s left; a.iso 42%, b.iso no data for 8s; 7 waiting: …`
    ///
    /// - Returns: nil while nothing is under way.
    static func text(_ tasks: [TaskLine], _ total: TotalLine, usesUnicode: Bool) -> String? {
        guard !tasks.isEmpty || total.waiting != nil else { return nil }
        var sums: [String] = []
        if total.total > 1 { sums.append("\(total.complete) of \(total.total) complete") }
        if total.error > 0 { sums.append("\(total.error) failed") }
        if total.received > 0 || total.expected ?? 0 > 0 {
            let mark = total.isLowerBound ? Formatting.atLeast(usesUnicode: usesUnicode) : nil
            sums.append(Formatting.amount(total.received, of: total.expected, orMore: mark))
        }
        if let rate = total.rate { sums.append(Formatting.rate(rate)) }
        if let left = total.left { sums.append("\(Formatting.remaining(left)) left") }
        var parts = sums.isEmpty ? [] : [sums.joined(separator: ", ")]
        if !tasks.isEmpty {
            var names = tasks.prefix(nameLimit).map(name)
            if tasks.count > nameLimit { names.append("and \(tasks.count - nameLimit) more") }
            parts.append(names.joined(separator: ", "))
        }
        if let waiting = total.waiting { parts.append(waiting) }
        return parts.joined(separator: "; ").visible
    }

    private static func name(_ task: TaskLine) -> String {
        let name = task.name + (task.label.map { " (\($0))" } ?? "")
        if let note = task.note { return "\(name): \(note)" }
        if let silence = task.silenceText { return "\(name) \(silence)" }
        return ProgressFrame.fraction(task.received, task.expected).map { "\(name) \(Formatting.percent($0))" }
            ?? "\(name) \(Formatting.bytes(task.received))"
    }
}
