import TestSupport
import Testing

/// `Docs/Internals/Parity.md` and `Tests/Faults.md` name a test for each feature and each fault: this keeps them true.
@Suite("The tables of tests")
struct TableTests {
    /// The cells of a document's tables, without their heads.
    private static func rows(_ path: String, section: String? = nil) throws -> [[String]] {
        var text = try Repository.text(path)
        if let section { text = try #require(text.components(separatedBy: "\n## ").first { $0.hasPrefix(section) }) }
        return text.split(separator: "\n").compactMap { line in
            guard line.hasPrefix("| "), !line.hasPrefix("| ---") else { return nil }
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            return ["test", "response"].contains(cells.last) ? nil : cells
        }
    }

    /// What stands between backticks.
    private static func names(_ cell: String) -> [String] {
        cell.split(separator: "`", omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 1 }
            .map { String($0.element) }
    }

    /// The numbers of a first cell such as `39-47, 49`.
    private static func numbers(_ cell: String) -> [Int] {
        cell.components(separatedBy: ", ").flatMap { part -> [Int] in
            let ends = part.split(separator: "-").compactMap { Int($0) }
            guard let first = ends.first, let last = ends.last, first <= last else { return [] }
            return Array(first...last)
        }
    }

    @Test("every test that is named exists", arguments: ["Docs/Internals/Parity.md", "Tests/Faults.md"])
    func tests(_ table: String) throws {
        let files = try Repository.sources("Tests")
        for row in try Self.rows(table) {
            let names = Self.names(row[row.count - 1])
            #expect(!names.isEmpty, "\(row)")
            for name in names {
                let parts = name.split(separator: "/").map(String.init)
                let isThere = files.contains {
                    $0.key.hasSuffix("/\(parts[0]).swift") && Self.hasTest(parts.last ?? "", in: $0.value)
                }
                #expect(isThere, "\(row[0]): \(name)")
            }
        }
    }

    /// True where an `@Test` stands before that function, with no other function between.
    private static func hasTest(_ function: String, in text: String) -> Bool {
        guard let place = text.range(of: "func \(function)(") else { return false }
        let before = text[..<place.lowerBound]
        guard let test = before.range(of: "@Test", options: .backwards) else { return false }
        return !before[test.upperBound...].contains("\n    }")
    }

    /// The number of faults.
    private static let faults = 1...219

    /// Faults without a row in `Tests/Faults.md`: 72 is measured, and `.ci/snippets` and `.ci/api` check 202 and 203.
    private static let untested: Set<Int> = [72, 202, 203]

    @Test("the table of faults has each fault once, and each has a test, except 72, which is measured")
    func faults() throws {
        let faults = try Self.rows("Docs/Reliability.md", section: "Faults\n")
        let described = faults.flatMap { Self.numbers($0[0]) }
        #expect(Self.missing(described, except: []).isEmpty, "Docs/Reliability.md")
        #expect(described.count == Set(described).count, "Docs/Reliability.md has a number twice")
        for row in faults { #expect(row.count == 3 && row[1] != "" && row[2] != "", "\(row)") }
        let tested = try Self.rows("Tests/Faults.md").flatMap { Self.numbers($0[0]) }
        #expect(Self.missing(tested, except: Self.untested).isEmpty, "Tests/Faults.md")
        #expect(tested == tested.sorted() && tested.count == Set(tested).count, "Tests/Faults.md is not in order")
        #expect(!tested.contains(72))
    }

    @Test("a row that is missing is named, and ranges of rows count")
    func missingRows() {
        #expect(Self.missing(Self.numbers("1-40, 42") + Array(44...219)) == [41, 43])
        #expect(Self.missing(Array(1...219)).isEmpty && Self.missing([7], in: 6...8, except: [8]) == [6])
    }

    /// The faults that are not among these numbers, and those numbers that are no faults.
    private static func missing(
        _ numbers: [Int], in faults: ClosedRange<Int> = faults, except others: Set<Int> = []
    ) -> [Int] {
        let known = Set(numbers)
        return faults.filter { !known.contains($0) && !others.contains($0) } + known.subtracting(faults).sorted()
    }

    @Test(
        "every feature has four parts; each name of the library is public; each command and option of fk in it exists")
    func features() throws {
        let rows = try Self.rows("Docs/Internals/Parity.md")
        #expect(rows.count >= 80)
        let text = try Repository.sources("Sources").values.joined(separator: "\n")
        let lists = try FileManager.default.contentsOfDirectory(atPath: Repository.url("Docs/API").path)
        let api = try lists.map { try Repository.text("Docs/API/\($0)") }
        let declaration = #"\b(?:func|var|let|case|struct|class|enum|protocol|actor) `?(\w+)"#
        let declared = try Self.matches(declaration, in: text)
        let published = try Self.matches(declaration, in: api.joined(separator: "\n"))
        let quoted = try Self.matches(#""([a-z0-9-]+)""#, in: text)
        for row in rows {
            try #require(row.count == 4 && !Self.names(row[1]).isEmpty, "\(row)")
            let known = row[1].hasPrefix("inside: ") ? declared : published
            for name in Self.names(row[1]).flatMap({ $0.split(separator: ".") }) {
                #expect(known.contains(String(name)), "\(row[0]): \(name)")
            }
            for words in Self.names(row[2]).map({ $0.split(separator: " ") }) {
                for option in words where option.hasPrefix("--") {
                    #expect(quoted.contains(String(option.dropFirst(2))), "\(row[0]): \(option)")
                }
                guard words.first == "fk" else { continue }
                // A command is declared by its words, and a verb of tasks by its name.
                let command = words.dropFirst().prefix { !$0.hasPrefix("-") }.map { "\"\($0)\"" }
                let isBarrel = command.first == "\"barrel\"" && command.count > 1
                let isThere =
                    isBarrel ? text.contains(command.joined(separator: ", ")) : quoted.contains(String(words[1]))
                #expect(isThere, "\(row[0]): \(words.joined(separator: " "))")
            }
        }
    }

    /// The first group of each match, every one once.
    private static func matches(_ pattern: String, in text: String) throws -> Set<String> {
        let source = text as NSString
        let found = try NSRegularExpression(pattern: pattern)
            .matches(in: text, range: NSRange(location: 0, length: source.length))
        return Set(found.map { source.substring(with: $0.range(at: 1)) })
    }
}
