import Foundation
import Testing

@testable import FKMiddleware

@Suite("A name that is reserved by an empty file")
struct ReservedNameTests {
    private func folder() throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "fk-reserved-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data("ours".utf8).write(to: folder.appendingPathComponent("part"))
        return folder
    }

    private func text(_ folder: URL, _ name: String) -> String? {
        try? String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
    }

    /// What somebody else does once the name is reserved.
    enum Meanwhile: CaseIterable {
        case nothing, replaced, written, removed
    }

    @Test(
        "the file gets the name, unless somebody has taken it or written to the empty file",
        arguments: Meanwhile.allCases)
    func reserve(_ meanwhile: Meanwhile) throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let name = folder.appendingPathComponent("name")
        let result = FileNames.renameByReserving(folder.appendingPathComponent("part").path, to: name.path) {
            switch meanwhile {
            case .nothing: break
            case .replaced: try? Data("theirs".utf8).write(to: name, options: .atomic)
            case .written: try? Data("theirs".utf8).write(to: name)
            case .removed: try? FileManager.default.removeItem(at: name)
            }
        }
        let code = errno
        #expect(result == (meanwhile == .nothing ? 0 : -1))
        if meanwhile == .nothing {
            #expect(text(folder, "name") == "ours" && text(folder, "part") == nil)
        } else {
            #expect(code == EEXIST && text(folder, "part") == "ours")
            #expect(text(folder, "name") == (meanwhile == .removed ? nil : "theirs"))
        }
    }

    @Test("a name that is taken stays, and so does a file that cannot be renamed")
    func taken() throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let name = folder.appendingPathComponent("name").path
        func attempt(_ part: String) -> Int32 {
            FileNames.renameByReserving("\(folder.path)/\(part)", to: name) == 0 ? 0 : errno
        }
        #expect(attempt("none") == ENOENT)
        #expect(text(folder, "name") == nil)
        try Data().write(to: URL(fileURLWithPath: name))
        #expect(attempt("part") == EEXIST)
        #expect(text(folder, "name") == "" && text(folder, "part") == "ours")
    }
}
