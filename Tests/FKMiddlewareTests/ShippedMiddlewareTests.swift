import TestSupport
import Testing

@testable import FKMiddleware

extension TemporaryFolder {
    /// Makes a file in it.
    func put(_ name: String, _ text: String = "abc") throws -> URL { try write(Array(text.utf8), to: name) }
}

func address(_ text: String) throws -> URL { try #require(URL(string: text)) }

func context(_ url: String = "https://example.com/a.bin", attributes: [String: String] = [:]) throws -> TaskContext {
    let id = try #require(TaskID(hex: String(repeating: "ab", count: 32)))
    return TaskContext(id: id, originalURL: try address(url), attributes: attributes)
}

@Suite("Request middlewares")
struct RequestMiddlewareTests {
    private let request: URLRequest

    init() throws { request = URLRequest(url: try address("https://example.com/")) }

    @Test("fields are added, and replace those of the same name in any case")
    func headers() async throws {
        let middleware = try HeadersMiddleware(
            [.init("X-A", "1"), .init("accept", "text/plain")], secret: ["X-A"], priority: 7)
        var request = request
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
            ("A", "secret\u{0}"), ("A", "secret\u{7f}"),
        ])
    func badHeaders(name: String, value: String) {
        let error = #expect(throws: DownloadError.self) { try HeadersMiddleware([HeaderField(name, value)]) }
        #expect(error?.code == .invalidArgument && error?.message.contains("secret") == false)
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
        await #expect(throws: DownloadError.self) { try await middleware.process(request, for: context()) }
    }

    @Test("what the closure throws reaches the engine as it is")
    func throwing() async throws {
        let error = DownloadError(.connect, "no token server", isRetryable: true)
        let middleware = BearerTokenMiddleware { _ in throw error }
        await #expect(throws: error) { try await middleware.process(request, for: context()) }
    }
}

@Suite("Log middleware")
struct LogMiddlewareTests {
    private func run(_ level: LogMiddleware.Level) async throws -> [String] {
        let lines = Observed<[String]>([])
        let log = LogMiddleware(level: level) { line in lines.update { $0.append(line) } }
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
        return lines.value
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

    @Test("entries have a level and fields; an attempt that is followed by another one has its reason")
    func entries() throws {
        let entries = Observed<[LogMiddleware.Entry]>([])
        let log = LogMiddleware(entries: { entry in entries.update { $0.append(entry) } })
        let task = try context("https://user:pass@example.com/a?token=secret")
        log.download(task, didChangeTo: .action, error: nil)
        log.download(task, didReceive: ByteCount(received: 3, expected: 5))
        log.download(
            task, didChangeTo: .idle, error: DownloadError(.connectionLost, "gone", status: 503, isRetryable: true))
        let seen = entries.value
        #expect(seen.map(\.level) == [.info, .error])
        #expect(seen.first?.text == "action" && seen.first?.fields["state"] == "action")
        let last = try #require(seen.last)
        #expect(last.fields["state"] == "idle" && last.fields["code"] == "connection-lost")
        #expect(last.fields["status"] == "503" && last.fields["attempt"] == String(task.attempt))
        #expect(last.fields["id"] == task.id.description && last.line.hasSuffix(last.text))
        #expect(last.fields["url"] == "https://***@example.com/a?token=***")
    }
}

@Suite("Checksum middleware")
struct ChecksumMiddlewareTests {
    private static let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

    @Test("a file with the right digest passes unchanged; so does one nobody knows a digest of")
    func passes() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.put("a")
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
        let folder = try TemporaryFolder()
        let wrong = String(repeating: "0", count: 64)
        let task = try context("https://u:p@example.com/?k=v&sig=s", attributes: [".sha256": wrong])
        let response = DownloadResponse(task: task, fileURL: try folder.put("a"))
        let error = await #expect(throws: DownloadError.self) { try await ChecksumMiddleware().process(response) }
        #expect(error?.code == .checksumMismatch && error?.url == "https://***@example.com/?k=v&sig=***")
        #expect(error?.message.contains(Self.abc) == true && error?.message.contains(wrong) == true)
        let retry = await #expect(throws: RetryRequest.self) {
            try await ChecksumMiddleware(retries: true).process(response)
        }
        #expect(retry?.reason.contains(Self.abc) == true)
    }

    @Test("an attribute that is no digest fails; a failed task is let through")
    func others() async throws {
        let folder = try TemporaryFolder()
        let task = try context(attributes: [".sha1": "x"])
        let response = DownloadResponse(task: task, fileURL: try folder.put("a"))
        await #expect(throws: DownloadError.self) { try await ChecksumMiddleware().process(response) }
        let failed = DownloadResponse(task: task, error: DownloadError(.disk, "m"))
        #expect(try await ChecksumMiddleware().process(failed).error?.code == .disk)
        let missing = DownloadResponse(
            task: try context(attributes: [".sha256": Self.abc]), fileURL: folder.file("none"))
        await #expect(throws: (any Error).self) { try await ChecksumMiddleware().process(missing) }
        #expect(ChecksumMiddleware().priority < MoveToFolderMiddleware(folder: folder.url).priority)
    }
}
