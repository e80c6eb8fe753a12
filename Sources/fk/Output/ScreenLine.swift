/// A line of a screen as cells, to write only the cells that differ.
struct ScreenLine: Sendable, Hashable {
    struct Cell: Sendable, Hashable {
        /// nil for the second half of a wide character.
        var character: Character?
        /// The parameters of the style's escape sequence: `32`; empty for none.
        var style: String
    }

    private(set) var cells: [Cell] = []
    /// True if terminals may disagree about the width of a character, so that only whole lines are certain.
    private var isUncertain = false
    /// The text it was made from, with its codes.
    let text: String

    /// Parses a line that may contain the codes of `Style`.
    init(_ text: String) {
        self.text = text
        var style = ""
        var rest = text[...]
        while let character = rest.first {
            guard character == "\u{1b}" else {
                add(character, style)
                rest.removeFirst()
                continue
            }
            let code = rest.dropFirst(2).prefix { $0 != "m" }
            style = code == "0" ? "" : String(code)
            rest = rest.dropFirst(code.count + 3)
        }
    }

    private mutating func add(_ character: Character, _ style: String) {
        let width = Columns.width(of: character)
        if !Self.isCertain(character) { isUncertain = true }
        guard width > 0 else { return }
        cells.append(Cell(character: character, style: style))
        if width == 2 { cells.append(Cell(character: nil, style: style)) }
    }

    /// ASCII, Latin, box drawing, the marks that are drawn here, and Chinese, Japanese and Korean characters.
    private static func isCertain(_ character: Character) -> Bool {
        guard character.unicodeScalars.count == 1, let value = character.unicodeScalars.first?.value else {
            return false
        }
        switch value {
        case 0x20...0x7e, 0xa1...0xac, 0xae...0x2ff, 0x2500...0x259f, 0x2013, 0x2016, 0x2026, 0x2265, 0x2588...0x258f,
            0x2581...0x2587, 0x3041...0x3096, 0x30a1...0x30fa, 0x4e00...0x9fff, 0xac00...0xd7a3:
            return true
        default: return false
        }
    }

    var width: Int { cells.count }

    /// The text that turns `old` into this line, from any column of the row; empty if they are equal.
    ///
    /// Differences that are few columns apart are written together: a move takes about as many bytes.
    func text(over old: ScreenLine) -> String {
        guard self != old else { return "" }
        // Erased before writing: after a full row the cursor is in the last column, and erasing would clear it.
        let whole = "\r\u{1b}[K\(text)"
        if isUncertain || old.isUncertain { return whole }
        var output = ""
        var column = 0
        while let start = firstDifference(from: column, old) {
            var end = start + 1
            var next = end
            while next < min(cells.count, end + 4) {
                if isDifferent(next, old) { end = next + 1 }
                next += 1
            }
            var begin = start
            // A wide character is written and replaced as a whole.
            while begin > 0, begin < cells.count, cells[begin].character == nil || old.isSecondHalf(begin) {
                begin -= 1
            }
            while end < cells.count, cells[end].character == nil || old.isSecondHalf(end) { end += 1 }
            output += "\u{1b}[\(begin + 1)G" + styled(begin..<end)
            column = end
        }
        if old.cells.count > cells.count { output += "\u{1b}[\(cells.count + 1)G\u{1b}[K" }
        return output.utf8.count < whole.utf8.count ? output : whole
    }

    private func isSecondHalf(_ column: Int) -> Bool { column < cells.count && cells[column].character == nil }

    private func isDifferent(_ column: Int, _ old: ScreenLine) -> Bool {
        column >= old.cells.count || cells[column] != old.cells[column]
    }

    private func firstDifference(from column: Int, _ old: ScreenLine) -> Int? {
        guard column < cells.count else { return nil }
        return (column..<cells.count).first { isDifferent($0, old) }
    }

    private func styled(_ range: Range<Int>) -> String {
        var output = ""
        var style = ""
        for cell in cells[range] {
            guard let character = cell.character else { continue }
            if cell.style != style {
                if !style.isEmpty { output += "\u{1b}[0m" }
                if !cell.style.isEmpty { output += "\u{1b}[\(cell.style)m" }
                style = cell.style
            }
            output.append(character)
        }
        return style.isEmpty ? output : output + "\u{1b}[0m"
    }
}
