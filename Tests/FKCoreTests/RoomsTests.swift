import Foundation
import Testing

/// A rule that the compiler does not check: nothing below the engine calls it.
@Suite("Rooms of the engine")
struct RoomsTests {
    private static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Sources/FKCore/Engine")

    /// The lines of code in a folder's files, without comments.
    private static func lines(_ folder: String) throws -> [(file: String, code: String)] {
        let folder = sources.appendingPathComponent(folder)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
        return try names.sorted().flatMap { name in
            try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
                .split(separator: "\n")
                .map { (name, $0.trimmingCharacters(in: .whitespaces)) }
                .filter { !$0.1.hasPrefix("//") }
        }
    }

    @Test("no room knows the engine", arguments: ["Run", "Tasks", "Scheduling", "Reports", "Barrels"])
    func oneDirection(_ folder: String) throws {
        let engine = try Regex("\\bEngine\\b")
        for line in try Self.lines(folder) where line.code.contains(engine) {
            Issue.record("\(line.file): \(line.code)")
        }
    }
}
