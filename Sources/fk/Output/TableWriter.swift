import FKMiddleware

/// A table with headings. On a terminal, the flexible columns shrink and the spare ones are left out, so that a row fits
/// on one line. Elsewhere nothing is cut, because a script may read the output.
struct TableWriter: Sendable {
    struct Column: Sendable, Hashable {
        var heading: String
        var alignsRight = false
        /// True if the column may be cut when the table is too wide.
        var isFlexible = false
        /// True for sentences, which are cut at their end.
        var isSentence = false
        /// Columns with a number are left out where there is no room, the highest one first; 0 for a column that stays.
        var spare = 0

        init(
            _ heading: String, alignsRight: Bool = false, isFlexible: Bool = false, isSentence: Bool = false,
            spare: Int = 0
        ) {
            self.heading = heading
            self.alignsRight = alignsRight
            self.isFlexible = isFlexible
            self.isSentence = isSentence
            self.spare = spare
        }
    }

    /// A cell: its text, which the table escapes, and a style.
    struct Cell: Sendable, Hashable, ExpressibleByStringLiteral {
        var text: String
        var style: Style?
        init(_ text: String, _ style: Style? = nil) {
            self.text = text.visible
            self.style = style
        }
        init(stringLiteral value: String) { self.init(value) }
    }

    var columns: [Column]
    private(set) var rows: [[Cell]] = []
    /// The widest cell of each column so far, headings included.
    private var widest: [Int]

    init(_ columns: [Column]) {
        self.columns = columns
        widest = columns.map { Columns.width(of: $0.heading) }
    }

    mutating func add(_ cells: [Cell]) {
        measure(cells)
        rows.append(cells)
    }

    /// Makes room for a row that is not kept: the rows of a long table are written one at a time (`layout`).
    mutating func measure(_ cells: [Cell]) {
        for (index, cell) in cells.enumerated() where index < widest.count {
            widest[index] = max(widest[index], Columns.width(of: cell.text))
        }
    }

    /// Removes the last column, before any row is added.
    mutating func dropLastColumn() {
        columns.removeLast()
        widest.removeLast()
    }

    /// The lines of the table, headings first.
    ///
    /// - Parameter width: the columns of the terminal; nil cuts nothing.
    func lines(width: Int?, usesColor: Bool, usesUnicode: Bool = true) -> [String] {
        let layout = layout(width: width, usesColor: usesColor, usesUnicode: usesUnicode)
        return [layout.headings] + rows.map(layout.line)
    }

    /// The widths of the columns for all rows that were added or measured.
    func layout(width: Int?, usesColor: Bool, usesUnicode: Bool = true) -> Layout {
        Layout(
            columns: columns, widths: columnWidths(limit: width), usesColor: usesColor, mark: usesUnicode ? "…" : "~")
    }

    /// The width at which a spare column goes before a flexible one shrinks further.
    private static let readable = 12

    /// The width of each column; nil leaves it out.
    private func columnWidths(limit: Int?) -> [Int?] {
        guard let limit else { return widest }
        var shown = Array(columns.indices)
        func total(_ width: (Int) -> Int) -> Int { shown.reduce(-2) { $0 + width($1) + 2 } }
        while total({ columns[$0].isFlexible ? min(widest[$0], Self.readable) : widest[$0] }) > limit,
            let next = shown.filter({ columns[$0].spare > 0 }).max(by: { columns[$0].spare < columns[$1].spare })
        {
            shown.removeAll { $0 == next }
        }
        var widths = widest
        let flexible = shown.filter { columns[$0].isFlexible }
        var excess = total { widths[$0] } - limit
        // The widest one shrinks first, so that a short name beside a long reason stays whole.
        while excess > 0, let widest = flexible.max(by: { widths[$0] < widths[$1] }), widths[widest] > 8 {
            let others = flexible.filter { $0 != widest }.map { widths[$0] }.max() ?? 8
            let cut = max(1, min(excess, widths[widest] - max(8, others)))
            widths[widest] -= cut
            excess -= cut
        }
        return widths.indices.map { shown.contains($0) ? widths[$0] : nil }
    }

    /// The widths of a table's columns, which turn rows into lines.
    struct Layout: Sendable {
        fileprivate let columns: [Column]
        fileprivate let widths: [Int?]
        fileprivate let usesColor: Bool
        fileprivate let mark: String

        var headings: String { line(columns.map { Cell($0.heading, .bold) }) }

        func line(_ cells: [Cell]) -> String {
            var parts: [String] = []
            for (index, cell) in cells.enumerated() where index < widths.count {
                guard let width = widths[index] else { continue }
                let column = columns[index]
                let fitted =
                    column.isSentence
                    ? Columns.clip(cell.text, to: width, mark: mark)
                    : column.isFlexible ? Columns.fit(cell.text, to: width, mark: mark) : cell.text
                let isLast = index == cells.count - 1
                let missing = max(0, width - Columns.width(of: fitted))
                let blanks = String(repeating: " ", count: missing)
                let styled = cell.style.map { $0(fitted, usesColor) } ?? fitted
                parts.append(column.alignsRight ? blanks + styled : isLast ? styled : styled + blanks)
            }
            let line = parts.joined(separator: "  ")
            return cells.last?.text == "" ? String(line[...(line.lastIndex { $0 != " " } ?? line.startIndex)]) : line
        }
    }
}
