import TestSupport
import Testing

@testable import FKMiddleware

@Suite("Words of a shell's command line")
struct ShellWordTests {
    private static let texts = [
        "", "a", "a b", "it's", "'", "$(touch x)", "`touch x`", "a'$(touch x)'b", "\"", "\\", "\\'", "a\nb",
        "\n'$(touch x)'", "\u{1b}[31m",
        "*?[a]", "~", "-rf", "a;b", "a&b|c>d<e", "#x", "!x", "\u{9b}31m", "\u{202e}x", "\t7", "ä ö", "a=b", "{a,b}",
    ]

    @Test("a shell reads a quoted text as it was, and the word has no hidden character and one line", arguments: texts)
    func quoted(text: String) throws {
        let word = text.shellWord
        #expect(word == word.visible)
        let folder = try TemporaryFolder()
        try Program.run("bash", ["-c", "printf %s \(word) > out"], in: folder.url)
        #expect(String(decoding: try folder.read("out"), as: UTF8.self) == text, "\(word)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["out"])
    }
}
