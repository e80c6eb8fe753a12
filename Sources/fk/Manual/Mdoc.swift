/// Writes mdoc, the markup of manual pages. The result is ASCII and has no warnings of `mandoc -T lint`.
enum Mdoc {
    /// A paragraph: one sentence per line, as mdoc wants it, wrapped to 79 columns.
    static func paragraph(_ text: String) -> [String] {
        sentences(text).flatMap { sentence in
            Columns.wrap(sentence.map(word).joined(separator: " "), to: 79).map(protected)
        }
    }

    /// A block of text that is shown as it is.
    static func literal(_ lines: [String]) -> [String] {
        [".Bd -literal -offset indent"] + lines.map { protected(escaped($0, dash: "\\-")) }
            + [".Ed"]
    }

    /// A list of terms. The term is a macro line without `.It`.
    static func list(_ entries: [(term: String, meaning: String)]) -> [String] {
        [".Bl -tag -width Ds"] + entries.flatMap { [".It \($0.term)"] + paragraph(sentence($0.meaning)) } + [".El"]
    }

    /// An argument of a macro.
    static func argument(_ text: String) -> String {
        let word = escaped(text, dash: "\\-")
        return word.contains(" ") ? "\"\(word)\"" : word
    }

    /// `Fl d , Fl \-directory Ar DIR`
    static func option(_ option: OptionSpec) -> String {
        let names = (option.short.map { "Fl \($0) , " } ?? "") + "Fl \(argument("-" + option.long))"
        return option.valueName.isEmpty ? names : "\(names) Ar \(argument(option.valueName))"
    }

    /// `Oo Ar url ... Oc`
    static func operand(_ operand: OperandSpec) -> String {
        let text = "Ar \(argument(operand.name))" + (operand.maximum == 1 ? "" : " ...")
        return operand.minimum == 0 ? "Oo \(text) Oc" : text
    }

    /// A phrase of the tables as a sentence: with a capital and a full stop.
    static func sentence(_ phrase: String) -> String {
        // A name of a program, option or value keeps its small letter.
        let isWord = phrase.prefix { $0 != " " }.allSatisfy { $0.isLetter || $0 == "-" || $0 == "," }
        let isName = phrase.hasPrefix("fk ")
        let start = isWord && !isName ? phrase.prefix(1).uppercased() + phrase.dropFirst() : phrase
        return ".!?:".contains(start.last ?? ".") ? start : start + "."
    }

    private static func sentences(_ text: String) -> [[Substring]] {
        var result: [[Substring]] = [[]]
        for word in text.split(separator: " ") {
            result[result.count - 1].append(word)
            let core = word.reversed().drop { ")'\"".contains($0) }
            if let last = core.first, ".!?".contains(last) { result.append([]) }
        }
        return result.filter { !$0.isEmpty }
    }

    /// Options and paths keep their hyphens when they are copied; in words a hyphen may become a typographic one.
    private static func word(_ text: Substring) -> String {
        let core = text.drop { "('\"".contains($0) }
        let isTyped = core.hasPrefix("-") || core.contains("/") || core.contains("=")
        return escaped(String(text), dash: isTyped ? "\\-" : "-")
    }

    private static func escaped(_ text: String, dash: String) -> String {
        text.unicodeScalars.map { scalar in
            switch scalar {
            case "-": dash
            case "\\": "\\e"
            case "'": "\\(aq"
            case "\"": "\\(dq"
            case "`": "\\(ga"
            case "^": "\\(ha"
            case "~": "\\(ti"
            case "…": "..."
            default: scalar.isASCII ? String(scalar) : "\\[u\(hex(scalar.value))]"
            }
        }.joined()
    }

    private static func hex(_ value: UInt32) -> String {
        let digits = String(value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }

    /// A line that begins with a dot or an apostrophe would be a macro.
    private static func protected(_ line: String) -> String {
        line.hasPrefix(".") || line.hasPrefix("'") ? "\\&" + line : line
    }
}
