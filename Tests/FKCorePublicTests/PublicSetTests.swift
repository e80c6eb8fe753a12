import FKCore
import FKMiddleware
import FKTesting
import Foundation
import Testing

/// A server whose files can change.
private final class Versions: Sendable {
    private let lock = NSLock()
    // Guarded by `lock`.
    nonisolated(unsafe) private var files: [String: [UInt8]] = [:]
    nonisolated(unsafe) private var requests = 0

    func serve(_ path: String, _ bytes: [UInt8]?) { lock.withLock { files[path] = bytes } }

    /// The number of requests so far.
    var count: Int { lock.withLock { requests } }

    private func file(_ path: String) -> [UInt8]? {
        lock.withLock {
            requests += 1
            return files[path]
        }
    }

    func downloader(_ folder: URL) throws -> Downloader {
        let transport = ScriptedTransport { [self] request, _ in
            guard let bytes = file(request.urlRequest.url?.path ?? "") else { return .status(404) }
            let etag = "\"\(checksum(of: bytes)?.hex ?? "")\""
            if request.urlRequest.value(forHTTPHeaderField: "If-None-Match") == etag { return .status(304) }
            return .file(bytes, etag: etag, to: request)
        }
        var configure = Configure(workPath: folder.appendingPathComponent("work"))
        configure.connections = .fixed(1)
        let downloader = try Downloader(configure, transport: transport)
        downloader.activateQueue()
        return downloader
    }
}

private func checksum(of bytes: [UInt8]) -> Checksum? {
    let digester = Digester(.sha256)
    bytes.withUnsafeBytes { digester.update($0) }
    return try? Checksum(.sha256, hex: digester.hex())
}

@Suite("Sets: following lists, revalidation, the harness")
struct PublicSetTests {
    private func inFolder(_ body: (URL, Versions, Downloader) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("fk-sets-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let server = Versions()
        let downloader = try server.downloader(folder)
        do {
            try await body(folder, server, downloader)
        } catch {
            await downloader.close()
            throw error
        }
        await downloader.close()
    }

    private func entry(_ path: String, _ bytes: [UInt8], in folder: URL) throws -> Builder {
        var entry = try Builder("http://files.example" + path)
        entry.folder = folder.appendingPathComponent("files")
        entry.options.checksum = checksum(of: bytes)
        return entry
    }

    @Test("a barrel follows a list: entries join, change and leave; the same list again sends no request")
    func follows() async throws {
        try await inFolder { folder, server, downloader in
            for (path, bytes) in [("/a", [1]), ("/b", [2]), ("/c", [3])] as [(String, [UInt8])] {
                server.serve(path, bytes)
            }
            let barrel = try await downloader.barrel("model")
            let first = try [entry("/a", [1], in: folder), entry("/b", [2], in: folder)]
            var changes = try await barrel.set(first)
            #expect(changes.joined.count == 2 && changes.left.isEmpty && changes.changed.isEmpty)
            let old = try await barrel.publish(to: folder.appendingPathComponent("set"))
            let count = server.count
            #expect(try await barrel.set(first).isEmpty)
            #expect(await barrel.isReady)
            #expect(server.count == count)

            server.serve("/b", [22, 22])
            let second = try [entry("/b", [22, 22], in: folder), entry("/c", [3], in: folder)]
            changes = try await barrel.set(second, leaving: .trash)
            #expect(changes.joined.map(\.url) == ["http://files.example/c"])
            #expect(changes.changed.map(\.url) == ["http://files.example/b"])
            #expect(changes.left.map(\.url) == ["http://files.example/a"])
            #expect(try Data(contentsOf: folder.appendingPathComponent("set/b")) == Data([2]), "published as before")
            let new = try await barrel.publish(to: folder.appendingPathComponent("set"))
            #expect(new.version != old.version)
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.appendingPathComponent("set").path)
            #expect(names.sorted() == [".fk-set", "b", "c"])
            #expect(try Data(contentsOf: folder.appendingPathComponent("set/b")) == Data([22, 22]))
            let members = try FileManager.default.contentsOfDirectory(
                atPath: folder.appendingPathComponent("files").path)
            #expect(members.sorted() == ["b", "c"])
            #expect(try await barrel.set(second).isEmpty)
        }
    }

    @Test("members that leave keep their files; a file of another barrel is not trashed; a bad entry is a failure")
    func leaves() async throws {
        try await inFolder { folder, server, downloader in
            for path in ["/a", "/b"] { server.serve(path, [1]) }
            let (barrel, other) = try await (downloader.barrel("one"), downloader.barrel("two"))
            let (a, b) = try (entry("/a", [1], in: folder), entry("/b", [1], in: folder))
            try await barrel.set([a, b])
            try await other.set([b])
            _ = try await barrel.complete().get()
            try await barrel.set([a], leaving: .trash)
            #expect(await other.files.map(\.lastPathComponent) == ["b"])
            var bad = try Builder("http://files.example/bad")
            bad.folder = await downloader.configure.workPath
            let changes = try await barrel.set([bad])
            #expect(changes.failures.first?.error.code == .destination && changes.left.count == 1)
            #expect(FileManager.default.fileExists(atPath: folder.appendingPathComponent("files/a").path))
        }
    }

    @Test("an unfinished member with another checksum drops the bytes of the old version")
    func unfinished() async throws {
        try await inFolder { folder, server, downloader in
            let barrel = try await downloader.barrel("model")
            server.serve("/a", [1])
            try await barrel.set([entry("/a", [9], in: folder)])
            guard case .failures = try await barrel.complete() else { return _ = Issue.record("it has another digest") }
            let changes = try await barrel.set([entry("/a", [1], in: folder)])
            #expect(changes.changed.count == 1)
            guard case .files = try await barrel.complete() else { return _ = Issue.record("it is right now") }
        }
    }

    @Test("revalidates: 304 keeps the file, a new version replaces it, a failure leaves it and says why")
    func revalidates() async throws {
        try await inFolder { folder, server, downloader in
            let (url, files) = ("http://files.example/a", folder.appendingPathComponent("files"))
            server.serve("/a", [1])
            let file = try await downloader.download(url, to: files, revalidates: true)
            #expect(server.count == 1, "nothing was there")
            #expect(try await downloader.download(url, to: files, revalidates: true) == file)
            #expect(server.count == 2)
            server.serve("/a", [2, 2])
            #expect(try await downloader.download(url, to: files) == file)
            #expect(try Data(contentsOf: file) == Data([1]))
            #expect(try await downloader.download(url, to: files, revalidates: true) == file)
            #expect(try Data(contentsOf: file) == Data([2, 2]))
            server.serve("/a", nil)
            await #expect {
                try await downloader.download(url, to: files, revalidates: true)
            } throws: {
                ($0 as? DownloadError)?.status == 404
            }
            #expect(try await downloader.download(url, to: files) == file)
            #expect(try Data(contentsOf: file) == Data([2, 2]))
        }
    }

    @Test("revalidates: a checksum binds the file; another checksum is a new version")
    func revalidatesBound() async throws {
        try await inFolder { folder, server, downloader in
            let (url, files) = ("http://files.example/a", folder.appendingPathComponent("files"))
            server.serve("/a", [1])
            let file = try await downloader.download(url, to: files, checksum: checksum(of: [1]))
            server.serve("/a", [2])
            await #expect {
                try await downloader.download(url, to: files, revalidates: true)
            } throws: {
                ($0 as? DownloadError)?.code == .changedOnServer
            }
            #expect(try Data(contentsOf: file) == Data([1]))
            await #expect {
                try await downloader.download(url, to: files, checksum: checksum(of: [2]))
            } throws: {
                ($0 as? DownloadError)?.code == .checksumMismatch
            }
            #expect(
                try await downloader.download(url, to: files, checksum: checksum(of: [2]), revalidates: true) == file)
            #expect(try Data(contentsOf: file) == Data([2]))
        }
    }

    @Test("the harness: killed at each step, the folder is old or new, and the next start leaves nothing")
    func harness() async throws {
        let (old, new): ([String: [UInt8]], [String: [UInt8]]) = (["a": [1], "b": [2]], ["a": [1], "c": [3, 3]])
        let harness = try await SetHarness(old)
        #expect(harness.published == nil)
        try await harness.publish()
        #expect(harness.published == old)
        try await harness.serve(new)
        #expect(harness.published == old)
        var kills = 0
        while try await !harness.publish(killedAt: kills) {
            #expect(harness.published == old || harness.published == new, "step \(kills)")
            try await harness.restart()
            #expect(harness.leftovers == [], "step \(kills)")
            kills += 1
            if harness.published == new { break }
        }
        #expect(kills > 3)
        try await harness.publish()
        #expect(harness.published == new && harness.leftovers == [])
        await harness.close()
    }
}
