import FKCore
import FKMiddleware

/// The application's own pairs on a command line: `NAME=VALUE`, and `NAME=` to remove one.
enum Attribute {
    /// Parses a pair; nil if it is malformed. A nil value means `NAME=`.
    static func parse(_ text: String) -> (name: String, value: String?)? {
        guard let equals = text.firstIndex(of: "="), equals != text.startIndex else { return nil }
        let value = text[text.index(after: equals)...]
        return (String(text[..<equals]), value.isEmpty ? nil : String(value))
    }

    /// The pairs of all `--attribute` options.
    static func pairs(_ arguments: ParsedArguments) throws -> [String: String?] {
        try pairs(arguments.all("attribute"), "--attribute: ", arguments)
    }

    static func pairs(
        _ texts: some Sequence<String>, _ written: String, _ arguments: ParsedArguments
    ) throws -> [String: String?] {
        var pairs: [String: String?] = [:]
        for text in texts {
            guard let (name, value) = parse(text) else {
                throw arguments.error("\(written)'\(text.visible)' is not NAME=VALUE.")
            }
            pairs.updateValue(value, forKey: name)
        }
        do {
            try pairs.compactMapValues(\.self).checkAsAttributes()
        } catch {
            throw arguments.error("\(written)\(error.message)")
        }
        return pairs
    }
}
