import Foundation
import Testing

/// `Docs/Reliability.md` says what happens at each fault: this keeps its numbers complete, and each has a test.
@Suite("The table of faults")
struct ReliabilityTableTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static let hostileNames =
        "faults 39 to 46 and 49: a name that a server sends becomes one harmless name"
    private static let strangeLock =
        "faults 63 and 64: a lock file that names a living process which is no engine keeps nobody waiting"

    /// The tests of faults that no test has as `fault N:` in its name. Fault 72 is measured: Docs/Benchmarks.
    private static let otherTests: [Int: [String]] = [
        8: ["fault 107: bytes in a coding nobody asked for are kept as sent, and the record says so once"],
        36: [
            "a redirect from a public name to a private address is refused before anything is sent, when asked for",
            "from public to private needs leave when that is refused",
        ],
        39: [hostileNames], 41: [hostileNames], 42: [hostileNames], 43: [hostileNames], 44: [hostileNames],
        45: [hostileNames], 46: [hostileNames, "are cut at a character, keeping the extension"], 49: [hostileNames],
        57: [
            "what is no file is neither replaced nor taken for the download",
            "a folder bears the name that was asked for",
        ],
        58: ["another file system: copied, never over another file"],
        60: ["killed at the N-th call: the same command completes, nothing is left and nothing quarantined"],
        62: ["Eight at once, each with a file of its own", "two holders exclude each other, in one process as well"],
        63: ["a process that dies gives the lock back", strangeLock],
        64: ["garbage in the lock file hurts nobody", strangeLock],
        66: [
            "any single flipped bit gives one of the generations or a typed error",
            "An info file full of garbage is set aside and reported; the others go on",
        ],
        67: ["a slot with a right checksum whose payload is no record gives way to the older one"],
        68: ["a header that claims sizes nobody has is refused before memory is taken for it"],
        72: [],
        80: [
            "Cancel drops what is unfinished; retry starts again; trash deletes what is finished",
            "a foreign file kept under --skip is recorded as foreign on disk, so that no later trash deletes it",
        ],
        118: ["gives a file name"],
    ]

    /// The rows of the section on faults, cell by cell.
    private static func rows() throws -> [[String]] {
        let text = try String(contentsOf: root.appendingPathComponent("Docs/Reliability.md"), encoding: .utf8)
        let section = try #require(text.components(separatedBy: "\n## ").first { $0.hasPrefix("Faults\n") })
        return section.split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
                .map { $0.trimmingCharacters(in: .whitespaces) }
            return cells.first?.first?.isNumber == true ? cells : nil
        }
    }

    /// The numbers of a first cell such as `39-47, 49`.
    private static func numbers(_ cell: String) -> [Int] {
        cell.components(separatedBy: ", ").flatMap { part -> [Int] in
            let ends = part.split(separator: "-").compactMap { Int($0) }
            guard let first = ends.first, let last = ends.last, first <= last else { return [] }
            return Array(first...last)
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

    @Test("has all 120, each once, with a fault and a response")
    func complete() throws {
        let rows = try Self.rows()
        #expect(rows.flatMap { Self.numbers($0[0]) }.sorted() == Array(1...120))
        for row in rows { #expect(row.count == 3 && row[1] != "" && row[2] != "", "\(row)") }
    }

    @Test("each fault has a test that exists")
    func named() {
        let tests = Self.tests()
        for number in 1...120 {
            guard let names = Self.otherTests[number] else {
                #expect(tests.contains("\"fault \(number): "), "no test is called fault \(number)")
                continue
            }
            for name in names { #expect(tests.contains("\"\(name)\""), "\(number): no test is called \(name)") }
        }
    }
}
