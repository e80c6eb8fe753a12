import Foundation
import Testing

@testable import FKMiddleware

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A new temporary folder, removed with the object.
final class ScratchFolder: Sendable {
    let url: URL

    init(in parent: URL = FileManager.default.temporaryDirectory) throws {
        url = parent.appendingPathComponent("fk-middleware-\(UInt64.random(in: 0 ... .max))", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func file(_ name: String, _ content: Data = Data("abc".utf8)) throws -> URL {
        let file = url.appendingPathComponent(name)
        try content.write(to: file)
        return file
    }

    var names: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: url.path)) ?? []).sorted()
    }
}

/// Collects lines from any thread.
final class Lines: Sendable {
    private let lines = Locked<[String]>([])
    func append(_ line: String) { lines.withLock { $0.append(line) } }
    var all: [String] { lines.withLock { $0 } }
}

func address(_ text: String) throws -> URL { try #require(URL(string: text)) }

func context(_ url: String = "https://example.com/a.bin", attributes: [String: String] = [:]) throws -> TaskContext {
    let id = try #require(TaskID(hex: String(repeating: "ab", count: 32)))
    return TaskContext(id: id, originalURL: try address(url), attributes: attributes)
}

@Suite("Request middlewares")
struct RequestMiddlewareTests {
    @Test("fields are added, and replace those of the same name in any case")
    func headers() async throws {
        let middleware = try HeadersMiddleware(
            [.init("X-A", "1"), .init("accept", "text/plain")], secret: ["X-A"], priority: 7)
        var request = URLRequest(url: try address("https://example.com/"))
        request.setValue("old", forHTTPHeaderField: "x-a")
        request.setValue("kept", forHTTPHeaderField: "X-B")
        let result = try await middleware.process(request, for: context())
        #expect(result.value(forHTTPHeaderField: "X-A") == "1")
        #expect(result.value(forHTTPHeaderField: "X-B") == "kept")
        #expect(result.value(forHTTPHeaderField: "Accept") == "text/plain")
        #expect(middleware.secretHeaders == ["X-A"])
        #expect(middleware.priority == 7)
    }

    @Test(
        "names and values that could smuggle something are refused, without showing the value",
        arguments: [
            ("", "v"), ("a b", "v"), ("a:", "v"), ("a\r\nb", "v"), ("é", "v"), ("A", "secret\r\nX: y"),
            ("A", "secret\u{0}"),
            ("A", "secret\u{7f}"),
        ])
    func badHeaders(name: String, value: String) {
        do {
            _ = try HeadersMiddleware([HeaderField(name, value)])
            Issue.record("must be refused")
        } catch {
            #expect(error.code == .invalidArgument)
            #expect(!error.message.contains("secret"))
        }
    }

    @Test("the token is asked for on every attempt")
    func bearer() async throws {
        let count = Locked(0)
        let middleware = BearerTokenMiddleware { task in
            guard task.originalURL.host == "example.com" else { return nil }
            return count.withLock { count in
                count += 1
                return "token-\(count)"
            }
        }
        let request = URLRequest(url: try address("https://example.com/"))
        for attempt in 1...2 {
            let result = try await middleware.process(request, for: context())
            #expect(result.value(forHTTPHeaderField: "Authorization") == "Bearer token-\(attempt)")
        }
        let other = try await middleware.process(request, for: context("https://other.example/"))
        #expect(other.value(forHTTPHeaderField: "Authorization") == nil)
        #expect(middleware.secretHeaders == ["Authorization"])
        #expect(middleware.priority == 100)
    }

    @Test("a token that no header can hold fails closed", arguments: ["", "a b", "a\r\nX: y", "é"])
    func badToken(token: String) async throws {
        let middleware = BearerTokenMiddleware { _ in token }
        let request = URLRequest(url: try address("https://example.com/"))
        await #expect(throws: DownloadError.self) { try await middleware.process(request, for: context()) }
    }

    @Test("what the closure throws reaches the engine as it is")
    func throwing() async throws {
        let error = DownloadError(.connect, "no token server", isRetryable: true)
        let middleware = BearerTokenMiddleware { _ in throw error }
        let request = URLRequest(url: try address("https://example.com/"))
        await #expect(throws: error) { try await middleware.process(request, for: context()) }
    }
}

@Suite("Log middleware")
struct LogMiddlewareTests {
    private func run(_ level: LogMiddleware.Level) async throws -> [String] {
        let lines = Lines()
        let log = LogMiddleware(level: level) { lines.append($0) }
        let chains = MiddlewareChains()
        chains.register(request: log)
        chains.register(download: log)
        chains.register(response: log)
        let task = try context("https://user:pass@example.com/a?token=secret")
        var request = URLRequest(url: task.originalURL)
        request.setValue("secret", forHTTPHeaderField: "Authorization")
        for middleware in chains.request.ordered { request = try await middleware.process(request, for: task) }
        for middleware in chains.download.ordered {
            middleware.download(task, didChangeTo: .action, error: nil)
            middleware.download(task, didReceive: ByteCount(received: 3, expected: 5))
            middleware.download(task, didChangeTo: .error, error: DownloadError(.disk, "full\u{1b}[31m"))
        }
        for middleware in chains.response.ordered {
            _ = try await middleware.process(DownloadResponse(task: task, fileURL: URL(fileURLWithPath: "/d/a")))
            _ = try await middleware.process(DownloadResponse(task: task, error: DownloadError(.disk, "full")))
        }
        return lines.all
    }

    @Test(
        "each level writes its lines and those of the levels before",
        arguments: [
            (LogMiddleware.Level.error, 2), (.info, 5), (.progress, 6),
        ])
    func levels(level: LogMiddleware.Level, count: Int) async throws {
        let lines = try await run(level)
        #expect(lines.count == count)
        for line in lines {
            #expect(line.hasPrefix("abababababab https://***@example.com/a?token=***"), "\(line)")
            #expect(!line.contains("secret") && !line.contains("pass") && !line.contains("\u{1b}"), "\(line)")
        }
    }
}

@Suite("Checksum middleware")
struct ChecksumMiddlewareTests {
    private static let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

    @Test("a file with the right digest passes unchanged; so does one nobody knows a digest of")
    func passes() async throws {
        let folder = try ScratchFolder()
        let file = try folder.file("a")
        let url = try address("https://example.com/a.bin")
        let known = ChecksumMiddleware([url: try Checksum(.sha256, hex: Self.abc)])
        for task in [try context(), try context("https://example.com/other")] {
            #expect(try await known.process(DownloadResponse(task: task, fileURL: file)).fileURL == file)
        }
        let task = try context(attributes: [".sha256": Self.abc.uppercased(), ".md5": "wrong and weaker"])
        _ = try await ChecksumMiddleware().process(DownloadResponse(task: task, fileURL: file))
    }

    @Test("a wrong digest fails the task, naming both digests")
    func mismatch() async throws {
        let folder = try ScratchFolder()
        let wrong = String(repeating: "0", count: 64)
        let task = try context("https://u:p@example.com/?k=v&sig=s", attributes: [".sha256": wrong])
        let response = DownloadResponse(task: task, fileURL: try folder.file("a"))
        do {
            _ = try await ChecksumMiddleware().process(response)
            Issue.record("must fail")
        } catch let error as DownloadError {
            #expect(error.code == .checksumMismatch)
            #expect(error.message.contains(Self.abc) && error.message.contains(wrong))
            #expect(error.url == "https://***@example.com/?k=v&sig=***")
        }
        do {
            _ = try await ChecksumMiddleware(retries: true).process(response)
            Issue.record("must ask for a retry")
        } catch let retry as RetryRequest {
            #expect(retry.reason.contains(Self.abc))
        }
    }

    @Test("an attribute that is no digest fails; a failed task is let through")
    func others() async throws {
        let folder = try ScratchFolder()
        let task = try context(attributes: [".sha1": "x"])
        let response = DownloadResponse(task: task, fileURL: try folder.file("a"))
        await #expect(throws: DownloadError.self) { try await ChecksumMiddleware().process(response) }
        let failed = DownloadResponse(task: task, error: DownloadError(.disk, "m"))
        #expect(try await ChecksumMiddleware().process(failed).error?.code == .disk)
        let missing = DownloadResponse(
            task: try context(attributes: [".sha256": Self.abc]), fileURL: folder.url.appendingPathComponent("none"))
        await #expect(throws: (any Error).self) { try await ChecksumMiddleware().process(missing) }
        #expect(ChecksumMiddleware().priority < MoveToFolderMiddleware(folder: folder.url).priority)
    }
}

@Suite("Move-to-folder middleware")
struct MoveToFolderTests {
    @Test("the file moves into a folder that is made for it")
    func moves() async throws {
        let folder = try ScratchFolder()
        let file = try folder.file("a.txt")
        let target = folder.url.appendingPathComponent("x/y", isDirectory: true)
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
        let folder = try ScratchFolder()
        let target = try ScratchFolder()
        var places: [String] = []
        for number in 0..<4 {
            let file = try folder.file("a.tar.gz", Data("\(number)".utf8))
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
        let folder = try ScratchFolder()
        let target = try ScratchFolder()
        let middleware = MoveToFolderMiddleware(folder: target.url) { _ in "same" }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<16 {
                let file = try folder.file("f\(number)")
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
        let folder = try ScratchFolder()
        let target = try ScratchFolder()
        let file = try folder.file("a")
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
    private func elsewhere() throws -> ScratchFolder? {
        let shm = URL(fileURLWithPath: "/dev/shm", isDirectory: true)
        let system = { (url: URL) in
            try? FileManager.default.attributesOfFileSystem(forPath: url.path)[.systemNumber] as? Int
        }
        guard let there = system(shm), try there != system(ScratchFolder().url) else { return nil }
        return try ScratchFolder(in: shm)
    }

    @Test("another file system: copied, never over another file")
    func otherFileSystem() async throws {
        let folder = try ScratchFolder()
        guard let target = try elsewhere() else { return }
        for name in ["a.txt", "a.1.txt"] {
            let file = try folder.file("a.txt", Data(name.utf8))
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
        let folder = try ScratchFolder()
        guard let target = isElsewhere ? try elsewhere() : try ScratchFolder() else { return }
        let file = try folder.file("a")
        _ = try target.file("a", Data("somebody's".utf8))
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
        let folder = try ScratchFolder()
        guard let target = try elsewhere() else { return }
        let middleware = MoveToFolderMiddleware(folder: target.url)
        _ = try await middleware.process(
            DownloadResponse(task: context(), fileURL: folder.file("a", Data("old".utf8))))
        let response = try await middleware.process(
            DownloadResponse(task: context(), fileURL: folder.file("a", Data("new".utf8))))
        #expect(response.fileURL?.lastPathComponent == "a.1")
        #expect(try Data(contentsOf: try #require(response.fileURL)) == Data("new".utf8))
    }

    @Test("a folder that cannot be one is an error naming it, and the file stays; a failed task is let through")
    func failures() async throws {
        let folder = try ScratchFolder()
        let file = try folder.file("a")
        let blocked = try folder.file("blocked")
        let middleware = MoveToFolderMiddleware(folder: blocked)
        do {
            _ = try await middleware.process(DownloadResponse(task: context(), fileURL: file))
            Issue.record("must fail")
        } catch let error as DownloadError {
            #expect(error.code == .destination)
            #expect(error.message.contains(blocked.path))
        }
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
