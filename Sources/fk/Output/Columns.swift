import FKMiddleware

/// Measures text in terminal columns and cuts it.
enum Columns {
    /// The width of a text after `visible`.
    static func width(of text: some StringProtocol) -> Int {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.utf8.count }
        return text.reduce(0) { $0 + width(of: $1) }
    }

    /// 0 for a single combining mark, 2 for East Asian wide and full-width characters and for emoji, else 1.
    static func width(of character: Character) -> Int {
        let scalars = character.unicodeScalars
        guard let first = scalars.first else { return 0 }
        if scalars.count > 1 {
            // An emoji presentation selector or a pair of regional indicators makes it wide.
            if scalars.contains("\u{fe0f}") || (0x1f1e6...0x1f1ff).contains(first.value) { return 2 }
            return scalars.reduce(0) { max($0, width(of: $1)) }
        }
        return width(of: first)
    }

    private static func width(of scalar: Unicode.Scalar) -> Int {
        let value = scalar.value
        if value < 0x300 { return 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: break
        }
        if (0x1160...0x11ff).contains(value) { return 0 }  // Hangul vowels and finals join the initial before them
        if scalar.properties.isEmojiPresentation { return 2 }
        return isWide(value) ? 2 : 1
    }

    /// The blocks that Unicode's EastAsianWidth.txt lists as W or F, merged if only unassigned code points lie
    /// between them.
    private static func isWide(_ value: UInt32) -> Bool {
        switch value {
        case 0x1100...0x115f, 0x2329, 0x232a, 0x2e80...0x303e, 0x3041...0x33ff, 0x3400...0x4dbf, 0x4e00...0x9fff,
            0xa000...0xa4cf, 0xa960...0xa97f, 0xac00...0xd7a3, 0xf900...0xfaff, 0xfe10...0xfe19, 0xfe30...0xfe6f,
            0xff01...0xff60, 0xffe0...0xffe6, 0x16fe0...0x18cff, 0x1aff0...0x1b2ff, 0x1f200...0x1f265,
            0x20000...0x3fffd:
            true
        default: false
        }
    }

    /// The text, padded with spaces to `columns`; a longer text stays as it is.
    static func pad(_ text: String, to columns: Int, right: Bool = false) -> String {
        let missing = columns - width(of: text)
        guard missing > 0 else { return text }
        let blanks = String(repeating: " ", count: missing)
        return right ? blanks + text : text + blanks
    }

    /// The text, cut to at most `columns`. `mark` replaces the missing part, near the end, so that a file's extension
    /// stays visible.
    static func fit(_ text: String, to columns: Int, mark: String = "…") -> String {
        guard columns > 0 else { return "" }
        guard width(of: text) > columns else { return text }
        let markWidth = width(of: mark)
        guard columns > markWidth + 2 else { return cut(text, columns, fromEnd: false) }
        let room = columns - markWidth
        let tail = cut(text, room / 3, fromEnd: true)
        return cut(text, room - width(of: tail), fromEnd: false) + mark + tail
    }

    /// A sentence, cut at its end.
    static func clip(_ text: String, to columns: Int, mark: String = "…") -> String {
        guard columns > 0 else { return "" }
        guard width(of: text) > columns else { return text }
        return cut(text, columns - width(of: mark), fromEnd: false) + mark
    }

    private static func cut(_ text: String, _ columns: Int, fromEnd: Bool) -> String {
        var used = 0
        var taken: [Character] = []
        func add(_ character: Character) -> Bool {
            used += width(of: character)
            if used > columns { return false }
            taken.append(character)
            return true
        }
        if fromEnd {
            for character in text.reversed() where !add(character) { break }
            return String(taken.reversed())
        }
        for character in text where !add(character) { break }
        return String(taken)
    }

    /// A line in pieces of at most `columns`, whose spaces are kept. Pieces end after a space in their second half, if there
    /// is one, and begin with `indent` spaces from the second one on.
    static func fold(_ text: String, to columns: Int, indent: Int) -> [String] {
        guard columns >= 4 * indent, columns >= 8 else { return [fit(text, to: columns)] }
        var lines: [String] = []
        var rest = text
        while width(of: rest) > columns {
            var line = Substring(cut(rest, columns, fromEnd: false))
            if let space = line.lastIndex(of: " "), line[...space].count > columns / 2 { line = line[...space] }
            rest = String(repeating: " ", count: indent) + rest.dropFirst(line.count)
            lines.append(String(line))
        }
        return lines + [rest]
    }

    /// A paragraph in lines of at most `columns` that end at spaces. Later lines have the indent of the first one and two spaces more, if
    /// it has any; longer words and inner spaces are kept.
    static func paragraph(_ text: String, to columns: Int) -> [String] {
        guard width(of: text) > columns else { return [text] }
        let own = text.prefix { $0 == " " }
        let indent = own.isEmpty ? "" : own + "  "
        var lines: [String] = []
        var line = String(own)
        var isEmpty = true
        for word in text.dropFirst(own.count).split(separator: " ", omittingEmptySubsequences: false) {
            if !isEmpty, width(of: line) + 1 + width(of: word) > columns {
                lines.append(line)
                line = indent + word
            } else {
                line += isEmpty ? String(word) : " \(word)"
            }
            isEmpty = false
        }
        return lines + [line]
    }

    /// A paragraph, wrapped at spaces into lines of at most `columns`. Lines after the first start with `indent`.
    static func wrap(_ text: String, to columns: Int, indent: String = "") -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, width(of: line) + 1 + width(of: word) > columns {
                lines.append(line)
                line = indent + word
            } else {
                line += line.isEmpty ? String(word) : " \(word)"
            }
        }
        return line.isEmpty ? lines : lines + [line]
    }
}
