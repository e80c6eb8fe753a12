import TestSupport
import Testing

/// A rule that the compiler does not check: nothing below the engine calls it.
@Suite("Rooms of the engine")
struct RoomsTests {
    @Test("no room knows the engine", arguments: ["Run", "Tasks", "Scheduling", "Reports", "Barrels"])
    func oneDirection(_ folder: String) throws {
        let engine = try Regex("\\bEngine\\b")
        for (file, text) in try Repository.sources("Sources/FKCore/Engine/\(folder)") {
            for line in text.split(separator: "\n").map({ $0.trimmingCharacters(in: .whitespaces) })
            where !line.hasPrefix("//") && line.contains(engine) {
                Issue.record("\(file): \(line)")
            }
        }
    }
}
