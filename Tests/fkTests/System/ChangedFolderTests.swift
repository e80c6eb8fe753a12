import TestSupport
import Testing

@testable import fk

/// While the bytes arrive: a task is never complete in a place where nobody finds its file.
@Suite("The destination changes")
final class ChangedFolderTests: ServedSuite {
    private let body = Bytes.pattern(count: 800_000)
    private let gate = Gate()

    override init() throws {
        try super.init()
        server.serve("/a", body, stallingAt: 400_000, gate)
        server.serve("/b", body)
    }

    enum Change: String, CaseIterable {
        case removed, folder, symlink, file
    }

    private func change(_ path: String, _ change: Change) throws {
        let manager = FileManager.default
        let elsewhere = "\(sandbox.folder.path)/elsewhere"
        try manager.createDirectory(atPath: elsewhere, withIntermediateDirectories: false)
        switch change {
        case .removed, .file: try manager.removeItem(atPath: path)
        case .folder, .symlink: try manager.moveItem(atPath: path, toPath: "\(sandbox.folder.path)/moved")
        }
        switch change {
        case .removed: break
        case .folder: try manager.createDirectory(atPath: path, withIntermediateDirectories: false)
        case .symlink: try manager.createSymbolicLink(atPath: path, withDestinationPath: elsewhere)
        case .file: try "theirs".write(toFile: path, atomically: false, encoding: .utf8)
        }
    }

    @Test(
        "the folder is gone or another one at the end: an error with the place, the others go on, a retry completes",
        arguments: Change.allCases)
    func changes(_ kind: Change) async throws {
        let folder = "\(sandbox.files)/sub"
        let words = ["get", "-i", "-", "-d", folder]
        let list = "\(server.url("/a"))\n\(server.url("/b"))\n  dir=\(sandbox.files)\n"
        let running = try sandbox.start(words, input: list)
        #expect(try await sandbox.record(server.url("/a")) { $0.received == 400_000 } != nil)
        try change(folder, kind)
        gate.open()
        let end = await running.end()
        #expect(end.status == 1, "\(end.errors)")
        #expect(end.errors.contains(folder))
        switch kind {
        case .removed: #expect(end.errors.contains("No such file or directory"))
        case .file: #expect(end.errors.contains("Not a directory"))
        case .folder, .symlink: #expect(end.errors.contains("is not the one in which the download started"))
        }
        #expect(try sandbox.reader.records(url: server.url("/a")).first?.state == .error)
        #expect(try sandbox.bytes("b") == body)
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(sandbox.folder.path)/elsewhere") == [])
        if kind == .file { try FileManager.default.removeItem(atPath: folder) }
        #expect(try await sandbox.start(words, input: list).end().status == 0)
        #expect(try sandbox.bytes("sub/a") == body)
    }

    @Test("the folder moves and a symlink leads to it: the file is there under both names")
    func stillLeadsThere() async throws {
        let folder = "\(sandbox.files)/sub"
        let running = try sandbox.start("get", server.url("/a"), "-d", folder)
        #expect(try await sandbox.record(server.url("/a")) { $0.received == 400_000 } != nil)
        try FileManager.default.moveItem(atPath: folder, toPath: "\(sandbox.files)/moved")
        try FileManager.default.createSymbolicLink(atPath: folder, withDestinationPath: "moved")
        gate.open()
        #expect(await running.end().status == 0)
        #expect(try sandbox.bytes("moved/a") == body)
    }
}
