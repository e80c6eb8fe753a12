import TestSupport
import Testing

@testable import FKMiddleware

@Suite("Move-to-folder middleware")
struct MoveToFolderTests {
    @Test("the file moves into a folder that is made for it")
    func moves() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.put("a.txt")
        let target = folder.file("x/y")
        let response = try await MoveToFolderMiddleware(folder: target).process(
            DownloadResponse(task: context(), fileURL: file))
        #expect(response.fileURL?.path == target.appendingPathComponent("a.txt").path)
        #expect(try Data(contentsOf: try #require(response.fileURL)) == Data("abc".utf8))
        // The old name is the engine's to remove.
        #expect(response.leftBehind == [file])
        #expect(folder.names == ["a.txt", "x"])
        // Where it is already, it stays.
        let again = try await MoveToFolderMiddleware(folder: target).process(response)
        #expect(again.fileURL == response.fileURL)
        #expect(again.leftBehind == response.leftBehind)
    }

    @Test("a taken name is never replaced")
    func noClobber() async throws {
        let folder = try TemporaryFolder()
        let target = try TemporaryFolder()
        var places: [String] = []
        for number in 0..<4 {
            let file = try folder.put("a.tar.gz", "\(number)")
            let response = try await MoveToFolderMiddleware(folder: target.url).process(
                DownloadResponse(task: context(), fileURL: file))
            places.append(try #require(response.fileURL).lastPathComponent)
            try FileManager.default.removeItem(at: file)
        }
        #expect(places == ["a.tar.gz", "a.1.tar.gz", "a.2.tar.gz", "a.3.tar.gz"])
        for (number, name) in places.enumerated() {
            #expect(try Data(contentsOf: target.url.appendingPathComponent(name)) == Data("\(number)".utf8))
        }
    }

    @Test("many at once with one name all find a place of their own")
    func concurrent() async throws {
        let folder = try TemporaryFolder()
        let target = try TemporaryFolder()
        let middleware = MoveToFolderMiddleware(folder: target.url) { _ in "same" }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<16 {
                let file = try folder.put("f\(number)")
                let task = try context()
                group.addTask { _ = try await middleware.process(DownloadResponse(task: task, fileURL: file)) }
            }
            try await group.waitForAll()
        }
        #expect(target.names == (["same"] + (1...15).map { "same.\($0)" }).sorted())
    }

    @Test(
        "the closure names the file; unsafe names are refused and the file stays",
        arguments: [
            ("b", true), ("ü b", true), ("..", false), (".", false), ("", false), ("a/b", false), ("/etc/x", false),
            ("a\nb", false), (String(repeating: "x", count: 256), false),
        ])
    func naming(name: String, isGood: Bool) async throws {
        let folder = try TemporaryFolder()
        let target = try TemporaryFolder()
        let file = try folder.put("a")
        let middleware = MoveToFolderMiddleware(folder: target.url) { _ in name }
        let response = DownloadResponse(task: try context(), fileURL: file)
        if isGood {
            #expect(try await middleware.process(response).fileURL?.lastPathComponent == name)
        } else {
            await #expect(throws: DownloadError.self) { try await middleware.process(response) }
            #expect(folder.names == ["a"] && target.names.isEmpty)
        }
    }

    /// A folder on another file system than temporary ones are on; nil where there is none.
    private func elsewhere() throws -> TemporaryFolder? {
        try TemporaryFolder.memory.map { try TemporaryFolder(in: $0) }
    }

    @Test("another file system: copied, never over another file")
    func otherFileSystem() async throws {
        let folder = try TemporaryFolder()
        guard let target = try elsewhere() else { return }
        for name in ["a.txt", "a.1.txt"] {
            let file = try folder.put("a.txt", name)
            let response = try await MoveToFolderMiddleware(folder: target.url).process(
                DownloadResponse(task: context(), fileURL: file))
            #expect(response.fileURL?.lastPathComponent == name)
            #expect(try Data(contentsOf: try #require(response.fileURL)) == Data(name.utf8))
            // The copy bears a second name until the record is written, and the engine removes both.
            #expect(response.leftBehind.count == 2 && response.leftBehind.last == file)
            for url in response.leftBehind { try FileManager.default.removeItem(at: url) }
        }
        #expect(target.names == ["a.1.txt", "a.txt"])
    }

    @Test(
        "killed after a move: the next run takes up the file where it is, and there is one", arguments: [false, true])
    func killedAfterMove(isElsewhere: Bool) async throws {
        let folder = try TemporaryFolder()
        guard let target = isElsewhere ? try elsewhere() : try TemporaryFolder() else { return }
        let file = try folder.put("a")
        _ = try target.put("a", "somebody's")
        let middleware = MoveToFolderMiddleware(folder: target.url)
        let first = try await middleware.process(DownloadResponse(task: context(), fileURL: file))
        let names = target.names
        let second = try await middleware.process(DownloadResponse(task: context(), fileURL: file))
        #expect(second.fileURL == first.fileURL && second.fileURL?.lastPathComponent == "a.1")
        #expect(second.leftBehind == first.leftBehind)
        #expect(target.names == names)
    }

    @Test("what a killed run copied of other bytes is not taken for the file")
    func killedThenFetchedAnew() async throws {
        let folder = try TemporaryFolder()
        guard let target = try elsewhere() else { return }
        let middleware = MoveToFolderMiddleware(folder: target.url)
        _ = try await middleware.process(
            DownloadResponse(task: context(), fileURL: folder.put("a", "old")))
        let response = try await middleware.process(
            DownloadResponse(task: context(), fileURL: folder.put("a", "new")))
        #expect(response.fileURL?.lastPathComponent == "a.1")
        #expect(try Data(contentsOf: try #require(response.fileURL)) == Data("new".utf8))
    }

    @Test("a folder that cannot be one is an error naming it, and the file stays; a failed task is let through")
    func failures() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.put("a")
        let blocked = try folder.put("blocked")
        let middleware = MoveToFolderMiddleware(folder: blocked)
        let response = DownloadResponse(task: try context(), fileURL: file)
        let error = await #expect(throws: DownloadError.self) { try await middleware.process(response) }
        #expect(error?.code == .destination && error?.message.contains(blocked.path) == true)
        #expect(folder.names == ["a", "blocked"])
        let failed = DownloadResponse(task: try context(), error: DownloadError(.disk, "m"))
        #expect(try await middleware.process(failed).fileURL == nil)
    }

    @Test(
        "numbers go before the extension and keep the length",
        arguments: [
            ("a.txt", 0, "a.txt"), ("a.txt", 1, "a.1.txt"), ("a.tar.gz", 1, "a.1.tar.gz"), ("a", 2, "a.2"),
            (".hidden", 1, ".hidden.1"),
            (String(repeating: "x", count: 251) + ".txt", 10, String(repeating: "x", count: 248) + ".10.txt"),
        ])
    func numbered(name: String, number: Int, result: String) {
        #expect(MoveToFolderMiddleware.numbered(name, number) == result)
    }
}
