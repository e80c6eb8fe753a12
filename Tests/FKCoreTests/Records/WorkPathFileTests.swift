import Foundation
import Testing

@testable import FKEngine
@testable import FKMiddleware

@Suite("Files and folders of the work path that are not what they must be")
struct WorkPathFileTests {
    @Test("a FIFO as `number` is an error with its name, and is not waited for")
    func numberIsFIFO() throws {
        let scratch = try ScratchWorkPath()
        #expect(mkfifo(scratch.path.numberPath, 0o600) == 0)
        let error = #expect(throws: DownloadError.self) { try SubmissionCounter(scratch.path) }
        #expect(error?.message == "Cannot open \(scratch.path.numberPath): it is not a regular file.")
    }

    @Test("a FIFO is opened for no purpose", arguments: [O_RDONLY, O_WRONLY, O_RDWR, O_RDWR | O_CREAT])
    func openingFIFO(flags: Int32) throws {
        let scratch = try ScratchWorkPath()
        let path = scratch.path.root + "/fifo"
        #expect(mkfifo(path, 0o600) == 0)
        let error = #expect(throws: DownloadError.self) { try FileIO.open(path, flags) }
        #expect(error?.message.contains("\(path): it is not a regular file") == true)
    }

    @Test("a folder that cannot be listed is an error with its name; a missing one is empty")
    func unlistable() throws {
        let scratch = try ScratchWorkPath()
        #expect(try FileIO.names(in: scratch.path.root + "/missing").isEmpty)
        for folder in [scratch.path.tasksFolder, scratch.path.barrelsFolder, scratch.path.mailboxFolder] {
            #expect(rmdir(folder) == 0)
            // A link to itself: opening it fails for root as well.
            #expect(symlink(folder, folder) == 0)
        }
        func fails(_ folder: String, _ action: () throws -> Void) {
            let error = #expect(throws: DownloadError.self) { try action() }
            #expect(error?.message.contains(folder) == true)
        }
        fails(scratch.path.tasksFolder) { _ = try scratch.path.allTaskIDs() }
        fails(scratch.path.tasksFolder) { _ = try scratch.path.sweptTaskIDs() }
        fails(scratch.path.barrelsFolder) { _ = try BarrelFile.list(in: scratch.path) }
        fails(scratch.path.mailboxFolder) { try Mailbox(scratch.path).sweep() }
    }

    @Test("a destination in the work path is refused before it is created, also through a symlink")
    func destination() throws {
        let scratch = try ScratchWorkPath()
        let root = scratch.path.root
        var cache = FolderCache()
        let link = root + "-link"
        #expect(symlink(root, link) == 0)
        defer { unlink(link) }
        for path in [root, root + "/tasks", root + "/new/sub", link, link + "/new", root + "/../" + root.lastPathPart] {
            let error = #expect(throws: DownloadError.self) {
                try cache.folder(path, outside: scratch.path, now: 0)
            }
            #expect(error?.code == .destination && error?.message.contains("work path") == true)
        }
        #expect(!FileManager.default.fileExists(atPath: root + "/new"))
        let other = try ScratchWorkPath()
        try Data().write(to: URL(fileURLWithPath: other.path.lockPath))
        #expect(FileManager.default.fileExists(atPath: other.path.layoutPath))
        for path in [other.path.root, other.path.root + "/new/sub"] {
            #expect(throws: DownloadError.self) { try cache.folder(path, outside: scratch.path, now: 0) }
        }
        _ = try cache.folder(root + "-out/sub", outside: scratch.path, now: 0)
        _ = try cache.folder(scratch.path.filesFolder, outside: nil, now: 0)
        try FileManager.default.removeItem(atPath: root + "-out")
    }
}
