import TestSupport
import Testing

/// The library does not know who asks: its messages name its settings, and `fk` puts its options in their place.
@Suite("Messages of the library")
struct MessageTextTests {
    /// The lines of a module that hold a text, without comments.
    private static func lines(_ module: String) throws -> [String] {
        try Repository.sources("Sources/\(module)").flatMap { name, text in
            text.split(separator: "\n").map { "\(name): \($0.trimmingCharacters(in: .whitespaces))" }
                .filter { !$0.contains(": //") && $0.contains("\"") }
        }
    }

    @Test(
        "No message of the library names an option or a command of the command line",
        arguments: ["FKCore", "FKMiddleware"])
    func free(module: String) throws {
        let lines = try Self.lines(module)
        #expect(lines.count > 50)
        let option = try Regex(#"(^|[^-\w])--[a-z]{2}"#)
        let command = try Regex(
            #"\bfk (get|run|list|info|why|barrel|watch|config|limit|suspend|resume|cancel|retry|trash|verify)\b|`fk`"#)
        for line in lines {
            let texts = line.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
                .filter { $0.offset % 2 == 1 }.map(\.element)
            for text in texts {
                #expect(text.firstMatch(of: option) == nil && text.firstMatch(of: command) == nil, "\(line)")
            }
        }
    }
}
