import FKMiddleware

/// Formats the lines of one frame. The same values and size always give the same lines.
///
/// ```text
/// ubuntu.iso              ╍╍╍━━━━━━━━━╸─────  42%   2m05s   1.2/2.9 GiB  12.3 MiB/s  ×4
/// data.tar (eu.host)      attempt 2 of 5──────   7%   no data for 8s
/// notes.pdf               attempt 2 of 5 in 9s: The server answered 503.
/// … and 4 more
/// 12 waiting: example.com asked for 1m58s
/// 12/34 files             ━━━━━━━━╸─────────  31%      3s  62.5/200 MiB  48.1 MiB/s
/// ```
///
/// The remaining time stands before the amount and the rate, so a narrow terminal drops those first. Bytes from before
/// this run have another mark in the bar. A single file has no total line.
struct ProgressFrame: Sendable {
    /// The columns to use: one fewer than the terminal has, so that no line wraps.
    var columns: Int
    var rows: Int
    var usesColor: Bool
    var usesUnicode: Bool
    /// The width of the names: the widest one so far, so that the columns do not jump.
    var nameColumns: Int
    /// True if a file had several connections so far: there is a column for their number.
    var hasConnections = false
    /// True if a task had a second attempt so far: a wide terminal has a column for it.
    var hasAttempts = false

    private static let percentWidth = 4
    private static let timeWidth = 6
    private static let amountWidth = 13
    private static let rateWidth = 10
    private static let connectionsWidth = 4
    private static let attemptWidth = 14

    /// One line per task, as many as fit, then the waiting tasks, and the total line last.
    func lines(_ tasks: [TaskLine], _ total: TotalLine) -> [String] {
        let isSingle = total.total == 1 && tasks.count <= 1
        var below: [String] = []
        if let waiting = total.waiting, rows > 1 || isSingle, !isSingle || tasks.isEmpty {
            below.append(Style.dim(Columns.clip(waiting.visible, to: columns, mark: mark), usesColor))
        }
        if !isSingle { below.append(line(total)) }
        let room = max(isSingle ? 1 : 0, rows - below.count)
        var shown = tasks.prefix(room).map(line)
        if tasks.count > room, room > 0 {
            shown.removeLast()
            let hidden = tasks.count - shown.count
            shown.append(Style.dim(Columns.fit("… and \(hidden) more", to: columns, mark: mark), usesColor))
        }
        return shown + below
    }

    func line(_ task: TaskLine) -> String {
        let name = name(of: task)
        if let note = task.note { return join(name: name, note: note, task.noteStyle) }
        if let silence = task.silenceText, !showsAmount { return join(name: name, note: silence) }
        return join(
            Fields(
                name: name, nameStyle: nil, received: task.received, resumed: task.resumed, expected: task.expected,
                fraction: Self.fraction(task.received, task.expected), rate: task.rate,
                left: task.isStalling ? nil : Self.timeLeft(task.received, task.expected, task.rate),
                silence: task.silenceText,
                connections: task.connections, task: task))
    }

    func line(_ total: TotalLine) -> String {
        let failed = total.error > 0 ? ", \(total.error) failed" : ""
        var name = "\(total.complete)/\(total.total) files\(failed)"
        if Columns.width(of: name) > nameWidth { name = "\(total.complete)/\(total.total)\(failed)" }
        return join(
            Fields(
                name: Columns.fit(name, to: nameWidth, mark: mark), nameStyle: .bold, received: total.received,
                resumed: total.resumed, expected: total.expected, isLowerBound: total.isLowerBound,
                fraction: total.fraction, rate: total.rate,
                left: total.left, share: total.total > 0 ? Double(total.complete) / Double(total.total) : nil))
    }

    private var mark: String { usesUnicode ? "…" : "~" }
    private var atLeast: String { Formatting.atLeast(usesUnicode: usesUnicode) }

    // MARK: Columns

    /// The parts that fit each width. The name and the remaining time always do.
    private var showsPercent: Bool { columns >= 24 }
    private var showsRate: Bool { columns >= 36 }
    private var showsAmount: Bool { columns >= 50 }
    private var showsBar: Bool { columns >= 70 }
    private var showsConnections: Bool { columns >= 76 && hasConnections }
    private var showsAttempts: Bool { columns >= 110 && hasAttempts }

    private var fixedWidth: Int {
        Self.timeWidth + 2 + (showsPercent ? Self.percentWidth + 2 : 0) + (showsAmount ? Self.amountWidth + 2 : 0)
            + (showsRate ? Self.rateWidth + 2 : 0) + (showsConnections ? Self.connectionsWidth + 2 : 0)
            + (showsAttempts ? Self.attemptWidth + 2 : 0)
    }

    private var barWidth: Int {
        guard showsBar else { return 0 }
        return max(10, min(30, (columns - fixedWidth) * 2 / 5))
    }

    private var nameWidth: Int {
        let room = columns - fixedWidth - (showsBar ? barWidth + 2 : 0)
        return max(1, min(room, max(20, nameColumns)))
    }

    /// The width that a name needs with its label.
    static func nameColumns(of task: TaskLine) -> Int {
        Columns.width(of: task.name.visible) + (task.label.map { Columns.width(of: $0.visible) + 3 } ?? 0)
    }

    private func name(of task: TaskLine) -> String {
        let name = task.name.visible
        guard let label = task.label.map(\.visible) else { return Columns.fit(name, to: nameWidth, mark: mark) }
        // The label is what differs, so the name is cut first.
        let shown = Columns.fit(label, to: max(1, nameWidth / 2 - 3), mark: mark)
        let room = nameWidth - Columns.width(of: shown) - 3
        return room > 0 ? "\(Columns.fit(name, to: room, mark: mark)) (\(shown))" : Columns.fit(label, to: nameWidth)
    }

    // MARK: Lines

    private struct Fields {
        var name: String
        var nameStyle: Style?
        var received: Int64
        var resumed: Int64
        var expected: Int64?
        var isLowerBound = false
        var fraction: Double?
        var rate: Double?
        var left: Double?
        /// The share of the files, for the bar where that of the bytes is unknown.
        var share: Double?
        var silence: String?
        var connections = 1
        var task: TaskLine?
    }

    private func join(name: String, note: String, _ style: Style = .yellow) -> String {
        let fitted = Columns.clip(note.visible, to: columns - nameWidth - 2, mark: mark)
        return Columns.pad(name, to: nameWidth) + "  " + style(fitted, usesColor)
    }

    private func join(_ fields: Fields) -> String {
        let padded = Columns.pad(fields.name, to: nameWidth)
        var parts = [fields.nameStyle.map { $0(padded, usesColor) } ?? padded]
        if showsBar { parts.append(barOrAttempt(fields)) }
        parts += numbers(fields)
        if showsRate {
            let rate = fields.silence == nil ? fields.rate.map(Formatting.rate) : nil
            parts.append(Columns.pad(rate ?? "", to: Self.rateWidth, right: true))
        }
        if showsConnections {
            let count = fields.connections > 1 ? "\(usesUnicode ? "×" : "x")\(fields.connections)" : ""
            parts.append(Columns.pad(count, to: Self.connectionsWidth))
        }
        if showsAttempts {
            let text = fields.task?.attemptText(isShort: false) ?? ""
            let fitted = Columns.fit(text, to: Self.attemptWidth, mark: mark)
            parts.append(Style.yellow(Columns.pad(fitted, to: Self.attemptWidth), usesColor))
        }
        return parts.joined(separator: "  ")
    }

    /// Percentage, remaining time and amount. What is unknown leaves its place to the next one.
    private func numbers(_ fields: Fields) -> [String] {
        let percent = fields.fraction.map { Formatting.percent($0) } ?? ""
        let left = fields.left.map { Formatting.remaining($0) } ?? ""
        guard showsPercent else {
            return [Columns.pad(left.isEmpty ? percent : left, to: Self.timeWidth, right: true)]
        }
        let shownPercent = Columns.pad(percent, to: Self.percentWidth, right: true)
        let shownTime = Columns.pad(left, to: Self.timeWidth, right: true)
        guard showsAmount else { return [shownPercent, Style.bold(shownTime, usesColor && !left.isEmpty)] }
        if let silence = fields.silence {
            let room = Self.timeWidth + 2 + Self.amountWidth
            let text = Columns.pad(Columns.fit(silence, to: room, mark: mark), to: room, right: true)
            return [shownPercent, Style.yellow(text, usesColor)]
        }
        let amount = Formatting.amount(
            fields.received, of: fields.expected, orMore: fields.isLowerBound ? atLeast : nil)
        if left.isEmpty {
            // The mark of a lower bound takes more room.
            let room = Self.timeWidth + 2 + Self.amountWidth + (percent.isEmpty ? Self.percentWidth + 2 : 0)
            let text = Columns.pad(amount, to: room, right: true)
            return percent.isEmpty ? [text] : [shownPercent, text]
        }
        let shown = Columns.width(of: amount) > Self.amountWidth ? Formatting.bytes(fields.received) : amount
        return [shownPercent, shownTime, Columns.pad(shown, to: Self.amountWidth, right: true)]
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

    /// The bar; before bytes of a further attempt arrive, the number of the attempt, unless that has a column.
    private func barOrAttempt(_ fields: Fields) -> String {
        let width = barWidth
        if !showsAttempts, fields.rate == nil, fields.silence == nil, let task = fields.task,
            let text = task.attemptText(isShort: width < Self.attemptWidth)
        {
            return Style.yellow(Columns.pad(Columns.fit(text, to: width, mark: mark), to: width), usesColor)
        }
        guard let fraction = fields.fraction else { return bar(fields.isLowerBound ? fields.share : nil, resumed: 0) }
        return bar(fraction, resumed: Self.fraction(fields.resumed, fields.expected) ?? 0)
    }

    private func bar(_ fraction: Double?, resumed: Double) -> String {
        let width = barWidth
        guard let fraction else {
            return Style.dim(String(repeating: usesUnicode ? "─" : ".", count: width), usesColor)
        }
        let before = Int(min(resumed, fraction) * Double(width))
        guard usesUnicode else {
            let full = Int(fraction * Double(width))
            return Style.green(
                String(repeating: "=", count: before) + String(repeating: "#", count: full - before), usesColor)
                + String(repeating: ".", count: width - full)
        }
        let halves = Int(fraction * Double(width * 2))
        let full =
            String(repeating: "╍", count: before) + String(repeating: "━", count: halves / 2 - before)
            + (halves % 2 == 1 ? "╸" : "")
        let rest = String(repeating: "─", count: width - halves / 2 - halves % 2)
        return (fraction == 1 ? Style.green : Style.cyan)(full, usesColor) + Style.dim(rest, usesColor)
    }
}
