import FKMiddleware

/// The live view of a run: permanent lines scroll up, and the frame below them is redrawn in place.
///
/// Without a terminal, only the permanent lines are written. Safe to use from any thread.
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
        /// The widths of the frame's lines when it was last drawn, to compute their rows after a resize.
        var drawn: [Int] = []
        /// The columns of the terminal when the frame was last drawn.
        var columns = 0
        var nameColumns = 0
        var last: (tasks: [TaskLine], total: TotalLine)?
        var isClosed = false
    }

    let mode: Mode
    private let output: OutputStream
    private let terminal: Terminal
    private let size: @Sendable () -> Terminal.Size
    private let state = Locked(State())

    /// Creates a view. It writes nothing yet.
    ///
    /// - Parameter size: called for each frame; nil, the default, uses the terminal's own size.
    init(output: OutputStream, terminal: Terminal, mode: Mode, size: (@Sendable () -> Terminal.Size)? = nil) {
        self.output = output
        self.terminal = terminal
        self.mode = mode == .live && !terminal.canMoveCursor ? .lines : mode
        self.size = size ?? { terminal.size }
    }

    /// The mode that the options select.
    static func mode(_ options: GlobalOptions) -> Mode {
        options.quiet ? .quiet : options.progress ? .live : .lines
    }

    /// Redraws the frame. It does nothing unless the mode is live.
    func update(_ tasks: [TaskLine], _ total: TotalLine) {
        guard mode == .live else { return }
        state.withLock { state in
            guard !state.isClosed else { return }
            state.last = (tasks, total)
            output.write(frame(&state, above: []))
        }
    }

    /// Writes the end of a task above the frame.
    func finished(_ line: FinishedLine) {
        var isFailure = false
        if case .failed = line.outcome { isFailure = true }
        guard mode != .quiet || isFailure else { return }
        // The task's line is removed at once instead of with the next frame.
        state.withLock { $0.last?.tasks.removeAll { $0.name == line.name } }
        let columns = terminal.isTerminal ? size().columns - 1 : nil
        permanent(line.text(columns: columns, usesColor: terminal.usesColor, usesUnicode: terminal.usesUnicode))
    }

    /// Writes a line above the frame, such as a warning. It may be longer than the terminal is wide.
    func permanent(_ line: String) {
        state.withLock { state in
            if mode == .live, !state.isClosed, state.last != nil {
                output.write(frame(&state, above: [line]))
            } else {
                output.writeLine(line)
            }
        }
    }

    /// Ends the live view: the task lines are removed, and the total line stays if `keepsTotal` is true. Nothing is
    /// drawn afterwards.
    func close(keepsTotal: Bool = true) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.isClosed = true
            guard mode == .live, let last = state.last else { return }
            var text = moveToFrameStart(state.drawn, columns: size().columns)
            if keepsTotal { text += frameLayout(&state, size()).line(last.total) + "\u{1b}[K\n" }
            state.drawn = []
            output.write(text + "\u{1b}[J")
        }
    }

    /// One frame as a single write, so that a terminal never shows half of it. Line wrapping is off meanwhile,
    /// because terminals disagree about the width of some characters.
    private func frame(_ state: inout State, above: [String]) -> String {
        let size = size()
        guard let last = state.last else { return "" }
        // Each line is overwritten and cleared only after its end, which avoids flicker.
        var text = moveToFrameStart(state.drawn, columns: size.columns)
        // Rows that the terminal has wrapped would be joined again when it becomes wider.
        if state.columns != size.columns, !state.drawn.isEmpty { text += "\u{1b}[J" }
        state.columns = size.columns
        for line in above { text += line + "\u{1b}[K\n" }
        let layout = frameLayout(&state, size)
        let lines = layout.lines(last.tasks, last.total)
        text += "\u{1b}[?7l"
        for line in lines { text += line + "\u{1b}[K\n" }
        text += "\u{1b}[?7h\u{1b}[J"
        state.drawn = lines.map { Columns.width(of: Style.removed(from: $0)) }
        return text
    }

    private func frameLayout(_ state: inout State, _ size: Terminal.Size) -> ProgressFrame {
        let names = state.last?.tasks.map { Columns.width(of: Escaping.visible($0.name)) } ?? []
        state.nameColumns = max(state.nameColumns, names.max() ?? 0)
        return ProgressFrame(
            columns: max(1, size.columns - 1), rows: max(1, size.rows - 1), usesColor: terminal.usesColor,
            usesUnicode: terminal.usesUnicode, nameColumns: state.nameColumns)
    }

    /// Moves to the first line of the last frame. If the terminal has become narrower, its lines may take several
    /// rows each.
    private func moveToFrameStart(_ drawn: [Int], columns: Int) -> String {
        guard !drawn.isEmpty else { return "" }
        let rows = drawn.reduce(0) { $0 + max(1, ($1 + columns - 1) / max(1, columns)) }
        return "\r\u{1b}[\(rows)A"
    }
}
