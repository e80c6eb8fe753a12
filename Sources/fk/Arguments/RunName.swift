/// The name of a run: `r3`, or `last`.
enum RunName: Sendable, Hashable {
    case number(Int)
    case last

    /// Parses a name; nil for another word. No beginning of a task's id is one.
    init?(_ text: String) {
        if text == "last" {
            self = .last
            return
        }
        let digits = text.utf8.dropFirst()
        guard text.utf8.first == UInt8(ascii: "r"), (1...9).contains(digits.count),
            digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let number = Int(text.dropFirst()), number > 0
        else { return nil }
        self = .number(number)
    }

    /// The form on the command line.
    var text: String {
        switch self {
        case .number(let number): "r\(number)"
        case .last: "last"
        }
    }

    /// The form in a sentence.
    var words: String {
        switch self {
        case .number(let number): "run r\(number)"
        case .last: "the last run"
        }
    }
}
