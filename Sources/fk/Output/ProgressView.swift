import FKMiddleware
import Foundation

/// The live view of a run: permanent lines scroll up, and the frame below them is redrawn in place.
///
/// Without a terminal, only the permanent lines are written. In the background of a terminal no frame is drawn. Safe to
/// use from any thread.
final class ProgressView: Sendable {
    enum Mode: Sendable, Hashable {
        /// A frame that is redrawn in place.
        case live
        /// One line for each finished task.
        case lines
        /// Failures only.
        case quiet
    }

    private struct State {
        /// The frame as it is on the screen; empty if there is none.
        var drawn: [ScreenLine] = []
        /// The size of the terminal when the frame was last drawn.
        var size = Terminal.Size(columns: 0, rows: 0)
        var nameColumns = 0
        var hasConnections = false
        var hasAttempts = false
        var last: (tasks: [TaskLine], total: TotalLine)?
        /// Ends of tasks that are written with the next frame.
        var pending: [String] = []
        /// When ends of tasks were last written, in nanoseconds.
        var lastEnd: Int64?
        var isClosed = false
    }

    let mode: Mode
    private let output: OutputStream
    private let terminal: Terminal
    private let size: @Sendable () -> Terminal.Size
    private let isForeground: @Sendable () -> Bool
    private let usesGuard: Bool
    private let state = Locked(State())

    /// Ends of tasks within this time are written together, in nanoseconds.
    private static let endsInterval: Int64 = 100_000_000

    /// Creates a view. Nothing is drawn before the first `update`.
    ///
    /// - Parameters:
    ///   - size: called for each frame; nil, the default, uses the terminal's own size.
    ///   - isForeground: called for each frame; nil, the default, asks the terminal.
    ///   - usesGuard: true hides the cursor and its echo until `close` (`TerminalGuard`). The default is false.
    init(
        output: OutputStream, terminal: Terminal, mode: Mode, size: (@Sendable () -> Terminal.Size)? = nil,
        isForeground: (@Sendable () -> Bool)? = nil, usesGuard: Bool = false
    ) {
        self.output = output
        self.terminal = terminal
        self.mode = mode == .live && !terminal.canMoveCursor ? .lines : mode
        self.size = size ?? { terminal.size }
        self.isForeground = isForeground ?? { TerminalGuard.isForeground(terminal.descriptor) }
        self.usesGuard = usesGuard && self.mode == .live
        if self.usesGuard {
            // The echo of a typed key would move the frame. A pager on standard output needs its own settings.
            let ownsKeys = isatty(0) == 1 && isatty(1) == 1
            TerminalGuard.enter(.live, output: output.descriptor, input: ownsKeys ? 0 : nil)
        }
    }

    static func mode(isQuiet: Bool, showsProgress: Bool) -> Mode {
        isQuiet ? .quiet : showsProgress ? .live : .lines
    }

    /// Redraws what has changed in the frame. It does nothing unless the mode is live.
    func update(_ tasks: [TaskLine], _ total: TotalLine) {
        guard mode == .live else { return }
        state.withLock { state in
            guard !state.isClosed else { return }
            state.last = (tasks, total)
            draw(&state, above: [])
        }
    }

    /// Writes the end of a task above the frame. Many ends are written with the next frame.
    func finished(_ line: FinishedLine) {
        var isFailure = false
        if case .failed = line.outcome { isFailure = true }
        guard mode != .quiet || isFailure else { return }
        let columns = terminal.isTerminal ? size().columns - 1 : nil
        let text = line.text(columns: columns, usesColor: terminal.usesColor, usesUnicode: terminal.usesUnicode)
        let now = Int64(DispatchTime.now().uptimeNanoseconds)
        state.withLock { state in
            // The task's line is removed at once instead of with the next frame.
            state.last?.tasks.removeAll { $0.name == line.name }
            if mode == .live, !state.isClosed, let last = state.lastEnd, now - last < Self.endsInterval {
                return state.pending.append(text)
            }
            state.lastEnd = now
            write(&state, text)
        }
    }

    /// Writes a line above the frame, such as a warning. It may be longer than the terminal is wide.
    func permanent(_ line: String) {
        var lines = [line]
        if terminal.isTerminal {
            lines = Columns.paragraph(output.hidden.mask(line), to: max(8, size().columns - 1))
        }
        state.withLock { write(&$0, lines.joined(separator: "\n")) }
    }

    /// Removes the frame while `work` writes to the same terminal.
    func aside(_ work: () -> Void) {
        state.withLock { state in
            output.write(erasing(&state))
            work()
            if state.last != nil, !state.isClosed { draw(&state, above: []) }
        }
    }

    private func write(_ state: inout State, _ line: String) {
        if mode == .live, !state.isClosed, state.last != nil {
            draw(&state, above: [line])
        } else {
            output.write((state.pending + [line]).map { $0 + "\n" }.joined())
            state.pending = []
        }
    }

    /// Ends the live view: the task lines are removed, and the total line stays if `keepsTotal` is true. Nothing is
    /// drawn afterwards.
    func close(keepsTotal: Bool = true) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.isClosed = true
            guard mode == .live else { return }
            var text = erasing(&state)
            text += state.pending.map { $0 + "\n" }.joined()
            state.pending = []
            if keepsTotal, let last = state.last { text += layout(&state, size()).line(last.total) + "\u{1b}[K\n" }
            output.write(text)
            if usesGuard { TerminalGuard.leave() }
        }
    }

    // MARK: Drawing

    /// Writes lines above the frame and the changed parts of the frame in a single write, so that a terminal never shows half
    /// of them.
    private func draw(_ state: inout State, above: [String]) {
        guard let last = state.last else { return }
        let above = state.pending + above
        state.pending = []
        guard isForeground() else {
            // Another program has the terminal.
            state.drawn = []
            return output.write(above.map { $0 + "\n" }.joined())
        }
        if usesGuard {
            TerminalGuard.applyIfNeeded()
            if TerminalGuard.drainContinued() { state.drawn = [] }
        }
        let size = size()
        let lines = layout(&state, size).lines(last.tasks, last.total).map(ScreenLine.init)
        let isSame = above.isEmpty && size == state.size && lines.count == state.drawn.count
        let text = isSame ? differences(lines, state.drawn) : frame(lines, above, &state, size)
        state.drawn = lines
        state.size = size
        guard !text.isEmpty else { return }
        output.write(terminal.synchronizes ? "\u{1b}[?2026h\(text)\u{1b}[?2026l" : text)
    }

    /// The whole frame. Line wrapping is off while it is written, because terminals disagree about the width of some
    /// characters.
    private func frame(
        _ lines: [ScreenLine], _ above: [String], _ state: inout State, _ size: Terminal.Size
    ) -> String {
        // Each line is overwritten and cleared only after its end, which avoids flicker.
        var text = moveToStart(state.drawn, columns: size.columns)
        // Rows that the terminal has wrapped would be joined again when it becomes wider.
        if state.size != size, !state.drawn.isEmpty { text += "\u{1b}[J" }
        // A failure may have several lines, and each is written over one of the frame's.
        for line in above { text += line.replacing("\n", with: "\u{1b}[K\n") + "\u{1b}[K\n" }
        text += "\u{1b}[?7l"
        for line in lines { text += line.text + "\u{1b}[K\n" }
        return text + "\u{1b}[?7h\u{1b}[J"
    }

    /// What differs between two frames of the same height. The cursor is below the frame before and afterwards.
    private func differences(_ lines: [ScreenLine], _ drawn: [ScreenLine]) -> String {
        var text = ""
        var row = lines.count
        for (index, (line, old)) in zip(lines, drawn).enumerated() {
            let change = line.text(over: old)
            guard !change.isEmpty else { continue }
            text += index < row ? "\u{1b}[\(row - index)A" : index > row ? "\u{1b}[\(index - row)B" : ""
            text += change
            row = index
        }
        guard !text.isEmpty else { return "" }
        return text + "\r" + (row < lines.count ? "\u{1b}[\(lines.count - row)B" : "")
    }

    private func layout(_ state: inout State, _ size: Terminal.Size) -> ProgressFrame {
        let tasks = state.last?.tasks ?? []
        state.nameColumns = max(state.nameColumns, tasks.map(ProgressFrame.nameColumns).max() ?? 0)
        if tasks.contains(where: { $0.connections > 1 }) { state.hasConnections = true }
        if tasks.contains(where: { $0.attempt > 1 && $0.note == nil }) { state.hasAttempts = true }
        return ProgressFrame(
            columns: max(1, size.columns - 1), rows: max(1, size.rows - 1), usesColor: terminal.usesColor,
            usesUnicode: terminal.usesUnicode, nameColumns: state.nameColumns, hasConnections: state.hasConnections,
            hasAttempts: state.hasAttempts)
    }

    private func erasing(_ state: inout State) -> String {
        guard !state.drawn.isEmpty, isForeground() else { return "" }
        defer { state.drawn = [] }
        return moveToStart(state.drawn, columns: size().columns) + "\u{1b}[J"
    }

    /// Moves to the first line of the last frame. If the terminal has become narrower, its lines may take several
    /// rows each.
    private func moveToStart(_ drawn: [ScreenLine], columns: Int) -> String {
        guard !drawn.isEmpty else { return "" }
        let rows = drawn.reduce(0) { $0 + max(1, ($1.width + columns - 1) / max(1, columns)) }
        return "\r\u{1b}[\(rows)A"
    }
}
