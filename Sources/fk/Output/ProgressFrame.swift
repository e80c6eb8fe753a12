import FKMiddleware

/// One running task in the live view.
struct TaskLine: Sendable, Hashable {
    /// The file's name, or its URL if there is no name yet. The view escapes it.
    var name: String
    var received: Int64
    /// nil until a server has reported the length.
    var expected: Int64?
    /// Bytes per second; nil while there is no measurement.
    var rate: Double?
    /// Replaces rate and remaining time: "retry in 5s", "verifying".
    var note: String?

    init(name: String, received: Int64, expected: Int64? = nil, rate: Double? = nil, note: String? = nil) {
        self.name = name
        self.received = received
        self.expected = expected
        self.rate = rate
        self.note = note
    }
}

/// The sum of all tasks, the last line of the live view.
struct TotalLine: Sendable, Hashable {
    var complete: Int
    var error: Int
    /// The number of tasks.
    var total: Int
    var received: Int64
    /// The sum of the known lengths.
    var expected: Int64?
    /// True if the length of a task is unknown, so that `expected` is a lower bound.
    var isLowerBound = false
    /// The share that the bar shows; nil while unknown.
    var fraction: Double?
    /// Bytes per second; nil while there is no measurement.
    var rate: Double?

    init(complete: Int, error: Int = 0, total: Int, received: Int64, expected: Int64? = nil, rate: Double? = nil) {
        self.complete = complete
        self.error = error
        self.total = total
        self.received = received
        self.expected = expected
        self.rate = rate
        fraction = ProgressFrame.fraction(received, expected)
    }
}

/// The end of a task, as a permanent line.
struct FinishedLine: Sendable, Hashable {
    enum Outcome: Sendable, Hashable {
        case complete
        /// The file existed already; nothing was fetched.
        case unchanged
        case suspended
        case cancelled
        /// The task was trashed.
        case forgotten
        /// With the error.
        case failed(String)
    }

    var name: String
    var outcome: Outcome
    var bytes: Int64
    /// The bytes received in `seconds`; fewer than `bytes` if an earlier run had received some.
    var fetched: Int64
    var seconds: Double?

    init(name: String, outcome: Outcome, bytes: Int64, fetched: Int64? = nil, seconds: Double? = nil) {
        self.fetched = fetched ?? bytes
        self.name = name
        self.outcome = outcome
        self.bytes = bytes
        self.seconds = seconds
    }
}

/// Formats the lines of one frame. The same values and size always give the same lines.
///
/// ```text
/// ubuntu.iso              ━━━━━━━━━━━━╸─────  42%   1.2/2.9 GiB  12.3 MiB/s   2m05s
/// …
/// 12/34 files             ━━━━━━━━╸─────────  31%  62.5/200 MiB  48.1 MiB/s      3s
/// ```
struct ProgressFrame: Sendable {
    /// The columns to use: one fewer than the terminal has, so that no line wraps.
    var columns: Int
    /// The rows to use.
    var rows: Int
    var usesColor: Bool
    var usesUnicode: Bool
    /// The width of the names: the widest one so far, so that the columns do not jump.
    var nameColumns: Int

    private static let percentWidth = 4
    private static let amountWidth = 13
    private static let rateWidth = 10
    private static let timeWidth = 6

    /// One line per task, as many as fit, and the total line last.
    func lines(_ tasks: [TaskLine], _ total: TotalLine) -> [String] {
        let room = max(0, rows - 1)
        var shown = tasks.prefix(room).map(line)
        if tasks.count > room, room > 0 {
            shown.removeLast()
            let hidden = tasks.count - shown.count
            shown.append(Style.dim(Columns.fit("… and \(hidden) more", to: columns, mark: mark), usesColor))
        }
        return shown + [line(total)]
    }

    func line(_ task: TaskLine) -> String {
        let name = Columns.fit(Escaping.visible(task.name), to: nameWidth, mark: mark)
        return join(
            name: name, received: task.received, expected: task.expected,
            fraction: Self.fraction(task.received, task.expected), rate: task.rate,
            note: task.note.map(Escaping.visible), nameStyle: nil)
    }

    func line(_ total: TotalLine) -> String {
        let failed = total.error > 0 ? ", \(total.error) failed" : ""
        var name = "\(total.complete)/\(total.total) files\(failed)"
        if Columns.width(of: name) > nameWidth { name = "\(total.complete)/\(total.total)\(failed)" }
        return join(
            name: Columns.fit(name, to: nameWidth, mark: mark), received: total.received, expected: total.expected,
            isLowerBound: total.isLowerBound, fraction: total.fraction, rate: total.rate, note: nil, nameStyle: .bold)
    }

    private var mark: String { usesUnicode ? "…" : "~" }
    private var atLeast: String { Formatting.atLeast(usesUnicode: usesUnicode) }

    /// The parts that fit each width.
    private var showsBar: Bool { columns >= 70 }
    private var showsTime: Bool { columns >= 62 }
    private var showsAmount: Bool { columns >= 50 }
    private var showsRate: Bool { columns >= 36 }

    private var fixedWidth: Int {
        Self.percentWidth + 2 + (showsAmount ? Self.amountWidth + 2 : 0) + (showsRate ? Self.rateWidth + 2 : 0)
            + (showsTime ? Self.timeWidth + 2 : 0)
    }

    private var barWidth: Int {
        guard showsBar else { return 0 }
        return max(10, min(30, (columns - fixedWidth) * 2 / 5))
    }

    private var nameWidth: Int {
        let room = columns - fixedWidth - (showsBar ? barWidth + 2 : 0)
        return max(1, min(room, max(20, nameColumns)))
    }

    private func join(
        name: String, received: Int64, expected: Int64?, isLowerBound: Bool = false, fraction: Double?, rate: Double?,
        note: String?, nameStyle: Style?
    ) -> String {
        let padded = Columns.pad(name, to: nameWidth)
        var parts = [nameStyle.map { $0(padded, usesColor) } ?? padded]
        if showsBar { parts.append(bar(fraction)) }
        let percent = fraction.map { Formatting.percent($0) } ?? ""
        let amount = Formatting.amount(received, of: expected, orMore: isLowerBound ? atLeast : nil)
        if percent.isEmpty, showsAmount {
            // The mark of a lower bound replaces the percentage.
            parts.append(Columns.pad(amount, to: Self.percentWidth + 2 + Self.amountWidth, right: true))
        } else {
            parts.append(Columns.pad(percent, to: Self.percentWidth, right: true))
            if showsAmount {
                let room = Self.amountWidth
                let shown = Columns.width(of: amount) > room ? Formatting.bytes(received) : amount
                parts.append(Columns.pad(shown, to: room, right: true))
            }
        }
        if let note {
            let used =
                nameWidth + (showsBar ? barWidth + 2 : 0) + Self.percentWidth + 2
                + (showsAmount ? Self.amountWidth + 2 : 0)
            let fitted = Columns.fit(note, to: columns - used - 2, mark: mark)
            return fitted.isEmpty
                ? parts.joined(separator: "  ") : (parts + [Style.yellow(fitted, usesColor)]).joined(separator: "  ")
        }
        if showsRate {
            parts.append(Columns.pad(rate.map(Formatting.rate) ?? "", to: Self.rateWidth, right: true))
        }
        if showsTime {
            let left =
                Self.timeLeft(received, isLowerBound ? nil : expected, rate).map { Formatting.duration($0) } ?? ""
            parts.append(Style.dim(Columns.pad(left, to: Self.timeWidth, right: true), usesColor))
        }
        return parts.joined(separator: "  ")
    }

    /// The remaining seconds at this rate; nil while unknown.
    static func timeLeft(_ received: Int64, _ expected: Int64?, _ rate: Double?) -> Double? {
        guard let expected, let rate, rate >= 1 else { return nil }
        return Double(max(0, expected - received)) / rate
    }

    /// The share in 0...1; nil without a length. An empty file counts as 1.
    static func fraction(_ received: Int64, _ expected: Int64?) -> Double? {
        expected.map { $0 > 0 ? max(0, min(1, Double(received) / Double($0))) : 1 }
    }

    private func bar(_ fraction: Double?) -> String {
        let width = barWidth
        guard let fraction else {
            return Style.dim(String(repeating: usesUnicode ? "─" : ".", count: width), usesColor)
        }
        guard usesUnicode else {
            let full = Int(fraction * Double(width))
            return Style.green(String(repeating: "#", count: full), usesColor)
                + String(repeating: ".", count: width - full)
        }
        let halves = Int(fraction * Double(width * 2))
        let full = String(repeating: "━", count: halves / 2) + (halves % 2 == 1 ? "╸" : "")
        let rest = String(repeating: "─", count: width - halves / 2 - halves % 2)
        return (fraction == 1 ? Style.green : Style.cyan)(full, usesColor) + Style.dim(rest, usesColor)
    }
}

extension FinishedLine {
    /// The line, cut to `columns` unless that is nil.
    func text(columns: Int?, usesColor: Bool, usesUnicode: Bool) -> String {
        let name = Escaping.visible(self.name)
        let (sign, style, rest) = parts(usesUnicode: usesUnicode)
        let mark = usesUnicode ? "…" : "~"
        guard let columns else { return "\(style(sign, usesColor)) \(name)  \(rest)" }
        // Reasons get more space than names.
        let room = columns - Columns.width(of: sign) - 3
        let restWidth = min(Columns.width(of: rest), max(room * 2 / 3, room - Columns.width(of: name)))
        let shownRest = Columns.fit(rest, to: restWidth, mark: mark)
        let nameRoom = room - Columns.width(of: shownRest)
        // Padded to the minimum width of names in the live view, so that the lines align.
        let shownName = Columns.pad(Columns.fit(name, to: nameRoom, mark: mark), to: min(20, nameRoom))
        return "\(style(sign, usesColor)) \(shownName)  \(shownRest)"
    }

    private func parts(usesUnicode: Bool) -> (sign: String, style: Style, rest: String) {
        let size = Formatting.bytes(bytes)
        switch outcome {
        case .complete:
            var rest = size
            if let seconds {
                rest += " in \(Formatting.duration(seconds, precise: true))"
                if seconds > 0.001 { rest += ", \(Formatting.rate(Double(fetched) / seconds))" }
            }
            return (usesUnicode ? "✓" : "ok", .green, rest)
        case .unchanged: return (usesUnicode ? "✓" : "ok", .green, "\(size), already complete")
        case .suspended: return (usesUnicode ? "‖" : "suspended", .yellow, "suspended, \(size) kept")
        case .cancelled: return (usesUnicode ? "–" : "cancelled", .yellow, "cancelled")
        case .forgotten: return (usesUnicode ? "–" : "trashed", .yellow, "trashed: forgotten, its file deleted")
        case .failed(let reason): return (usesUnicode ? "✗" : "failed", .red, Escaping.visible(reason))
        }
    }
}
