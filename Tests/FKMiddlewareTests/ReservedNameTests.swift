import TestSupport
import Testing

@testable import FKMiddleware

@Suite("A name that is reserved by an empty file")
struct ReservedNameTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        try folder.write(Array("ours".utf8), to: "part")
    }

    private func text(_ name: String) -> String? {
        (try? folder.read(name)).map { String(decoding: $0, as: UTF8.self) }
    }

    /// What somebody else does once the name is reserved.
    enum Meanwhile: CaseIterable {
        case nothing, replaced, written, removed
    }

    @Test(
        "the file gets the name, unless somebody has taken it or written to the empty file",
        arguments: Meanwhile.allCases)
    func reserve(_ meanwhile: Meanwhile) {
        let name = folder.file("name")
        let result = FileNames.renameByReserving(folder.file("part").path, to: name.path) {
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
            #expect(text("name") == "ours" && text("part") == nil)
        } else {
            #expect(code == EEXIST && text("part") == "ours")
            #expect(text("name") == (meanwhile == .removed ? nil : "theirs"))
        }
    }

    @Test("a name that is taken stays, and so does a file that cannot be renamed")
    func taken() throws {
        let name = folder.file("name").path
        func attempt(_ part: String) -> Int32 {
            FileNames.renameByReserving("\(folder.path)/\(part)", to: name) == 0 ? 0 : errno
        }
        #expect(attempt("none") == ENOENT)
        #expect(text("name") == nil)
        try Data().write(to: URL(fileURLWithPath: name))
        #expect(attempt("part") == EEXIST)
        #expect(text("name") == "" && text("part") == "ours")
    }
}
