import FKMiddleware

/// One task in the live view.
struct TaskLine: Sendable, Hashable {
    /// The file's name, or its URL if there is no name yet. The view escapes it.
    var name: String
    /// Tells tasks of the same name apart; nil where the name is enough. The view escapes it.
    var label: String?
    var received: Int64
    /// The bytes that were there before this run.
    var resumed: Int64 = 0
    /// nil until a server has reported the length.
    var expected: Int64?
    /// Bytes per second; nil while there is no measurement.
    var rate: Double?
    /// The number of the attempt, from 1.
    var attempt = 1
    /// The maximum number of attempts; nil if unknown.
    var attempts: Int?
    /// The connections that receive bytes.
    var connections = 1
    /// The seconds without a byte; nil while bytes arrive.
    var silence: Double?
    /// True if nothing has arrived for a moment: the rate still falls, so no time is left that it could tell.
    var isStalling = false
    /// Replaces everything but the name, for a task that does not run: "next attempt in 5s".
    var note: String?
    var noteStyle = Style.yellow

    /// `no data for 8s`, or that there is no answer yet; nil while bytes arrive.
    var silenceText: String? {
        silence.map {
            "no \(received == 0 && expected == nil ? "answer" : "data") for \(Formatting.duration($0))"
        }
    }

    /// `attempt 2 of 5`; nil for the first attempt.
    func attemptText(isShort: Bool) -> String? {
        guard attempt > 1 else { return nil }
        guard let attempts else { return "attempt \(attempt)" }
        return isShort ? "attempt \(attempt)/\(attempts)" : "attempt \(attempt) of \(attempts)"
    }
}

/// The sum of all tasks, the last line of the live view.
struct TotalLine: Sendable, Hashable {
    var complete: Int
    var error: Int
    /// The number of tasks.
    var total: Int
    var received: Int64
    /// The bytes that were there before this run.
    var resumed: Int64 = 0
    /// The sum of the known lengths.
    var expected: Int64?
    /// True if the length of a task is unknown, so that `expected` is a lower bound.
    var isLowerBound = false
    /// The share that the bar shows; nil while unknown.
    var fraction: Double?
    /// Bytes per second; nil while there is no measurement.
    var rate: Double?
    /// The bytes that are still to come: not those of failed and suspended files.
    var rest: Int64?
    /// True if nothing has arrived for a moment.
    var isStalling = false
    /// The waiting tasks and their reasons: "12 waiting: …"; nil while none waits.
    var waiting: String?

    init(complete: Int, error: Int = 0, total: Int, received: Int64, expected: Int64? = nil, rate: Double? = nil) {
        self.complete = complete
        self.error = error
        self.total = total
        self.received = received
        self.expected = expected
        self.rate = rate
        fraction = ProgressFrame.fraction(received, expected)
    }

    /// The seconds left; nil while unknown, as it is without the lengths of all files.
    var left: Double? {
        guard !isLowerBound, !isStalling else { return nil }
        return ProgressFrame.timeLeft(0, rest ?? expected.map { $0 - received }, rate)
    }
}

/// The end of a task, as a permanent line.
struct FinishedLine: Sendable, Hashable {
    enum Outcome: Sendable, Hashable {
        case complete
        /// The file existed already; nothing was fetched.
        case unchanged
        /// A file that was there before the task is its result (`--skip`).
        case kept
        case suspended
        case cancelled
        /// The task was trashed.
        case forgotten
        /// With the error.
        case failed(String)
    }

    var name: String
    /// Tells files of the same name apart; nil where the name is enough. It is escaped here.
    var label: String?
    var outcome: Outcome
    var bytes: Int64
    /// The bytes received in `seconds`; fewer than `bytes` if an earlier run had received some.
    var fetched: Int64
    var seconds: Double?
    /// Follows the size, escaped: another file has the name, for example.
    var note: String?

    init(
        name: String, label: String? = nil, outcome: Outcome, bytes: Int64, fetched: Int64? = nil,
        seconds: Double? = nil
    ) {
        self.label = label
        self.fetched = fetched ?? bytes
        self.name = name
        self.outcome = outcome
        self.bytes = bytes
        self.seconds = seconds
    }

    /// True if the fetched bytes show a rate: 1 KiB, or a whole file that is smaller.
    static func hasRate(_ fetched: Int64, of bytes: Int64) -> Bool { fetched > 0 && fetched >= min(1024, bytes) }

    /// The line, cut to `columns` unless that is nil. The reason of a failure is never cut: it gets a line of its own. Where there is no
    /// room for the name and the speed, there is no speed.
    func text(columns: Int?, usesColor: Bool, usesUnicode: Bool) -> String {
        let text = text(columns: columns, usesColor: usesColor, usesUnicode: usesUnicode, hasRate: true)
        guard let columns, outcome == .complete, note == nil, !text.contains(parts(usesUnicode: usesUnicode).rest)
        else { return text }
        return self.text(columns: columns, usesColor: usesColor, usesUnicode: usesUnicode, hasRate: false)
    }

    private func text(columns: Int?, usesColor: Bool, usesUnicode: Bool, hasRate: Bool) -> String {
        let name = self.name.visible + (label.map { " (\($0.visible))" } ?? "")
        let (sign, style, rest) = parts(usesUnicode: usesUnicode, hasRate: hasRate)
        let mark = usesUnicode ? "…" : "~"
        guard let columns else { return "\(style(sign, usesColor)) \(name)  \(rest)" }
        if case .failed = outcome, Columns.width(of: "\(sign) \(name)  \(rest)") > columns {
            let shownName = Columns.fit(name, to: columns - Columns.width(of: sign) - 1, mark: mark)
            let lines = Columns.paragraph(rest, to: max(8, columns - 2)).map { "\n  \($0)" }
            return "\(style(sign, usesColor)) \(shownName)\(lines.joined())"
        }
        let room = columns - Columns.width(of: sign) - 3
        let restWidth = min(Columns.width(of: rest), max(room * 2 / 3, room - Columns.width(of: name)))
        let shownRest = Columns.clip(rest, to: restWidth, mark: mark)
        let nameRoom = room - Columns.width(of: shownRest)
        // Padded to the minimum width of names in the live view, so that the lines align.
        let shownName = Columns.pad(Columns.fit(name, to: nameRoom, mark: mark), to: min(20, nameRoom))
        return "\(style(sign, usesColor)) \(shownName)  \(shownRest)"
    }

    private func parts(usesUnicode: Bool, hasRate: Bool = true) -> (sign: String, style: Style, rest: String) {
        let size = Formatting.bytes(bytes)
        switch outcome {
        case .complete:
            var rest = size
            if let seconds {
                rest += " in \(Formatting.duration(seconds, precise: true))"
                if seconds > 0.001, hasRate, Self.hasRate(fetched, of: bytes) {
                    rest += ", \(Formatting.rate(Double(fetched) / seconds))"
                }
            }
            if let note { rest += "; \(note)" }
            return (usesUnicode ? "✓" : "ok", .green, rest)
        case .unchanged: return (usesUnicode ? "✓" : "ok", .green, "\(size), already complete")
        case .kept: return (usesUnicode ? "✓" : "ok", .green, "\(size), was there before")
        case .suspended: return (usesUnicode ? "‖" : "suspended", .yellow, "suspended, \(size) kept")
        case .cancelled: return (usesUnicode ? "–" : "cancelled", .yellow, "cancelled")
        case .forgotten: return (usesUnicode ? "–" : "forgotten", .yellow, "forgotten")
        case .failed(let reason): return (usesUnicode ? "✗" : "failed", .red, reason.visible)
        }
    }
}
