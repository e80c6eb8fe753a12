@testable import fk

/// The least of a terminal that the live view needs: text, line ends, cursor up, and clearing.
///
/// An unknown escape sequence is kept visible, so that a test notices it.
struct Screen {
    private let columns: Int
    private let rows: Int
    private var cells: [[Character]] = [[]]
    private var row = 0
    private var column = 0
    /// The first row of `cells` that is still on the screen.
    private var top: Int { max(0, cells.count - rows) }

    init(columns: Int, rows: Int) {
        self.columns = columns
        self.rows = rows
    }

    /// All lines ever shown, those scrolled away included, without blanks at their ends.
    var lines: [String] {
        var lines = cells.map { row in
            var text = String(row.filter { $0 != "\u{0}" })
            while text.last == " " { text.removeLast() }
            return text
        }
        while lines.last == "" { lines.removeLast() }
        return lines
    }

    mutating func feed(_ text: String) {
        var rest = Array(text)[...]
        while let character = rest.popFirst() {
            switch character {
            case "\u{1b}": sequence(&rest)
            case "\r\n":
                column = 0
                newLine()
            case "\n": newLine()
            case "\r": column = 0
            default: put(character)
            }
        }
    }

    private mutating func sequence(_ rest: inout ArraySlice<Character>) {
        guard rest.first == "[" else { return put("␛") }
        rest.removeFirst()
        let parameters = rest.prefix { $0.isNumber || $0 == ";" || $0 == "?" }
        rest = rest.dropFirst(parameters.count)
        let number = Int(String(parameters)) ?? 1
        switch rest.popFirst() {
        case "A": row = max(top, row - number)
        case "B": row = min(top + rows, min(cells.count - 1, row + number))
        case "G": column = number - 1
        case "H":
            let place = parameters.split(separator: ";").map { Int(String($0)) ?? 1 }
            row = top + (place.first ?? 1) - 1
            column = (place.count > 1 ? place[1] : 1) - 1
            while cells.count <= row { cells.append([]) }
        case "K": cells[row].removeSubrange(min(column, cells[row].count)...)
        case "J":
            cells[row].removeSubrange(min(column, cells[row].count)...)
            cells.removeSubrange((row + 1)...)
        case "m", "h", "l": break
        case let other: put(other ?? "␛")
        }
    }

    private mutating func newLine() {
        row += 1
        if row == cells.count { cells.append([]) }
    }

    private mutating func put(_ character: Character) {
        let width = Columns.width(of: character)
        if column + width > columns {
            column = 0
            newLine()
        }
        while cells[row].count < column + width { cells[row].append(" ") }
        cells[row][column] = character
        // The second half of a wide character holds nothing of its own.
        if width == 2 { cells[row][column + 1] = "\u{0}" }
        column += width
    }
}
