import Foundation
import Testing

/// `Tests/Parity.md` promises a test for each feature: this keeps the promise true.
@Suite("The parity table")
struct ParityTableTests {
    private struct Row: Sendable, CustomTestStringConvertible {
        var line: Int
        var cells: [String]
        var testDescription: String { "line \(line): \(cells.first ?? "")" }
    }

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func rows() throws -> [Row] {
        let text = try String(contentsOf: root.appendingPathComponent("Tests/Parity.md"), encoding: .utf8)
        return text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().compactMap { number, line in
            guard line.hasPrefix("| "), !line.hasPrefix("| ---") else { return nil }
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            return cells.last == "test" ? nil : Row(line: number + 1, cells: cells)
        }
    }

    private static func sources(_ folder: String) -> [String: String] {
        let files = FileManager.default.enumerator(atPath: root.appendingPathComponent(folder).path)
        var result: [String: String] = [:]
        while let name = files?.nextObject() as? String {
            guard name.hasSuffix(".swift") else { continue }
            let key = (name as NSString).lastPathComponent.replacingOccurrences(of: ".swift", with: "")
            result[key] = try? String(contentsOf: root.appendingPathComponent("\(folder)/\(name)"), encoding: .utf8)
        }
        return result
    }

    /// What stands between backticks.
    private static func names(_ cell: String) -> [String] {
        cell.split(separator: "`", omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 1 }
            .map { String($0.element) }
    }

    @Test("every row has five parts, names what serves it, and promises nothing by halves")
    func complete() throws {
        let rows = try Self.rows()
        #expect(rows.count >= 80)
        for row in rows {
            #expect(row.cells.count == 4, "\(row.testDescription)")
            #expect(!Self.names(row.cells[1]).isEmpty, "\(row.testDescription)")
            let text = row.cells.joined(separator: " ").lowercased()
            for word in ["partial", "todo", "planned", "not yet"] {
                #expect(!text.contains(word), "\(row.testDescription)")
            }
        }
    }

    @Test("every test that is named exists")
    func tests() throws {
        let files = Self.sources("Tests")
        for row in try Self.rows() {
            let names = Self.names(row.cells[row.cells.count - 1])
            #expect(!names.isEmpty, "\(row.testDescription)")
            for name in names {
                let parts = name.split(separator: "/").map(String.init)
                let text = parts.count == 2 ? files[parts[0]] : nil
                #expect(Self.hasTest(parts.last ?? "", in: text ?? ""), "\(row.testDescription): \(name)")
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

    @Test("every name of the library and every option of fk in it exists")
    func names() throws {
        let text = Self.sources("Sources").values.joined(separator: "\n")
        let declared = try Self.matches(#"\b(?:func|var|let|case|struct|class|enum|protocol|actor) `?(\w+)"#, in: text)
        let quoted = try Self.matches(#""([a-z0-9-]+)""#, in: text)
        for row in try Self.rows() {
            for name in Self.names(row.cells[1]).flatMap({ $0.split(separator: ".") }) {
                let isThere = declared.contains(String(name)) || declared.contains { $0.hasPrefix(name) }
                #expect(isThere, "\(row.testDescription): \(name)")
            }
            for option in Self.names(row.cells[2]).flatMap({ $0.split(separator: " ") }) where option.hasPrefix("--") {
                #expect(quoted.contains(String(option.dropFirst(2))), "\(row.testDescription): \(option)")
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
