import FKMiddleware

/// A table with headings. On a terminal, the flexible columns shrink so that a row fits on one line. Elsewhere
/// nothing is cut, because a script may read the output.
struct TableWriter: Sendable {
    struct Column: Sendable, Hashable {
        var heading: String
        var alignsRight = false
        /// True if the column may be cut when the table is too wide.
        var isFlexible = false

        init(_ heading: String, alignsRight: Bool = false, isFlexible: Bool = false) {
            self.heading = heading
            self.alignsRight = alignsRight
            self.isFlexible = isFlexible
        }
    }

    /// A cell: its text, which the table escapes, and a style.
    struct Cell: Sendable, Hashable, ExpressibleByStringLiteral {
        var text: String
        var style: Style?
        init(_ text: String, _ style: Style? = nil) {
            self.text = Escaping.visible(text)
            self.style = style
        }
        init(stringLiteral value: String) { self.init(value) }
    }

    var columns: [Column]
    private(set) var rows: [[Cell]] = []

    init(_ columns: [Column]) {
        self.columns = columns
    }

    mutating func add(_ cells: [Cell]) {
        rows.append(cells)
    }

    /// The lines of the table, headings first.
    ///
    /// - Parameter width: the columns of the terminal; nil cuts nothing.
    func lines(width: Int?, usesColor: Bool, usesUnicode: Bool = true) -> [String] {
        let widths = columnWidths(limit: width)
        let mark = usesUnicode ? "…" : "~"
        var lines = [line(columns.map { Cell($0.heading, .bold) }, widths, usesColor, mark)]
        lines += rows.map { line($0, widths, usesColor, mark) }
        return lines
    }

    private func columnWidths(limit: Int?) -> [Int] {
        var widths = columns.map { Columns.width(of: $0.heading) }
        for row in rows {
            for (index, cell) in row.enumerated() where index < widths.count {
                widths[index] = max(widths[index], Columns.width(of: cell.text))
            }
        }
        guard let limit else { return widths }
        let flexible = columns.indices.filter { columns[$0].isFlexible }
        var excess = widths.reduce(0, +) + 2 * (widths.count - 1) - limit
        // The widest one shrinks first, so that a short name beside a long reason stays whole.
        while excess > 0, let widest = flexible.max(by: { widths[$0] < widths[$1] }), widths[widest] > 8 {
            let others = flexible.filter { $0 != widest }.map { widths[$0] }.max() ?? 8
            let cut = max(1, min(excess, widths[widest] - max(8, others)))
            widths[widest] -= cut
            excess -= cut
        }
        return widths
    }

    private func line(_ cells: [Cell], _ widths: [Int], _ usesColor: Bool, _ mark: String) -> String {
        var parts: [String] = []
        for (index, cell) in cells.enumerated() where index < widths.count {
            let fitted = columns[index].isFlexible ? Columns.fit(cell.text, to: widths[index], mark: mark) : cell.text
            let isLast = index == cells.count - 1
            let missing = max(0, widths[index] - Columns.width(of: fitted))
            let blanks = String(repeating: " ", count: missing)
            let styled = cell.style.map { $0(fitted, usesColor) } ?? fitted
            parts.append(columns[index].alignsRight ? blanks + styled : isLast ? styled : styled + blanks)
        }
        let line = parts.joined(separator: "  ")
        return cells.last?.text == "" ? String(line[...(line.lastIndex { $0 != " " } ?? line.startIndex)]) : line
    }
}
