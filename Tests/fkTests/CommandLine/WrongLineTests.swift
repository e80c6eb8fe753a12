import TestSupport
import Testing

@testable import fk

@Suite("Wrong command lines") struct WrongLineTests {
    @Test("Each ends with its status and a message; nothing is written to disk or standard output")
    func table() async throws {
        #expect(WrongCommandLines.rows.count >= 80)
        let sandbox = try Sandbox()
        try sandbox.put("http://h.invalid/a\nnonsense\n", "list.txt")
        try sandbox.put("# nothing\n", "empty.txt")
        try sandbox.put("plain\n", "plain.txt")
        let before = try sandbox.names()
        for row in WrongCommandLines.rows {
            let words = row.words.map { $0.replacing("@", with: sandbox.files) }
            let result = try await sandbox.fk(words)
            #expect(result.status == row.status, "\(row): \(result.errors)")
            #expect(result.output == "", "\(row)")
            #expect(result.errors.hasPrefix("fk: ") && result.errors.hasSuffix("\n"), "\(row): \(result.errors)")
            for text in row.says.map({ $0.replacing("@", with: sandbox.files) }) {
                #expect(result.errors.contains(text), "\(row) does not say \(text): \(result.errors)")
            }
            #expect(!FileManager.default.fileExists(atPath: sandbox.workPath), "\(row) made a work path")
            #expect(try sandbox.names() == before, "\(row)")
        }
    }
}
