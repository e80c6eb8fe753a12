import Foundation
import Testing

/// `Docs/Reliability.md` names a test for each fault: this keeps the names true.
@Suite("The table of faults")
struct ReliabilityTableTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The rows of the section on faults, cell by cell.
    private static func rows() throws -> [[String]] {
        let text = try String(contentsOf: root.appendingPathComponent("Docs/Reliability.md"), encoding: .utf8)
        let section = try #require(text.components(separatedBy: "\n## ").first { $0.hasPrefix("Faults\n") })
        return section.split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
                .map { $0.trimmingCharacters(in: .whitespaces) }
            return cells.first.flatMap { Int($0) } == nil ? nil : cells
        }
    }

    private static func tests() -> String {
        let folder = root.appendingPathComponent("Tests")
        let files = FileManager.default.enumerator(atPath: folder.path)
        var text = ""
        while let name = files?.nextObject() as? String {
            guard name.hasSuffix(".swift"), !name.hasSuffix("ReliabilityTableTests.swift") else { continue }
            text += (try? String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)) ?? ""
        }
        return text
    }

    @Test("has all 120 in order, each with an answer by a test, a reason, or the word open")
    func complete() throws {
        let rows = try Self.rows()
        #expect(rows.map { Int($0[0]) } == (1...120).map { $0 })
        for row in rows { #expect(row.count == 4 && row[1] != "" && row[3] != "", "\(row)") }
    }

    @Test("names tests that exist")
    func named() throws {
        let tests = Self.tests()
        for row in try Self.rows() {
            let parts = row[3].split(separator: "`", omittingEmptySubsequences: false)
            for (index, name) in parts.enumerated() where index % 2 == 1 {
                #expect(tests.contains("\"\(name)\""), "\(row[0]): no test is called \(name)")
            }
        }
    }
}
