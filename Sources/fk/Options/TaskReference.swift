import FKCore
import FKMiddleware

/// A reference to an existing task on the command line.
enum TaskReference: Sendable, Hashable {
    /// All tasks of that URL, as typed.
    case url(String)
    /// The task whose id starts with these lower-case hexadecimal digits, 6 to 64 of them.
    case idPrefix(String)

    /// Parses a reference; nil if the text is neither a URL nor the start of an id.
    init?(_ text: String) {
        if text.contains("://") {
            self = .url(text)
            return
        }
        let digits = text.lowercased()
        guard (6...64).contains(digits.utf8.count), digits.utf8.count == digits.count, digits.allSatisfy(\.isHexDigit)
        else { return nil }
        self = .idPrefix(digits)
    }

    static func parse(_ text: String, _ arguments: ParsedArguments) throws -> TaskReference {
        if let reference = TaskReference(text) { return reference }
        throw DownloadError(
            .notFound,
            "There is no task '\(text)': give a URL, or the first 6 or more digits of an id as 'fk list' shows it.")
    }
}
