import Foundation
import TestSupport
import Testing

@testable import FKManifests

/// Sources in general: references, registration, pages, requests.
@Suite("Sources") struct SourceTests {
    /// A source that gives its pages.
    private struct Fixed: Source {
        var pages: [SourcePage]
        var error: DownloadError?
        var schemes: [String] { ["fixed"] }
        var form: String { "fixed:NAME" }

        func place(of reference: SourceReference, in environment: [String: String]) throws(DownloadError) -> SourcePlace
        {
            guard reference.rest != "bad" else { throw reference.fault("it is bad", form) }
            return SourcePlace(reference, folderName: reference.rest, address: nil)
        }

        func pages(of place: SourcePlace, _ client: SourceClient) -> AsyncThrowingStream<SourcePage, any Error> {
            client.pages { send in
                for page in pages { try await send(page) }
                if let error { throw error }
            }
        }
    }

    private static func file(_ name: String, _ url: String = "http://h/x", size: Int64? = nil) -> Manifest.FileFacts {
        var file = Manifest.FileFacts(name: name, sources: [.init(url)])
        file.size = size
        return file
    }

    private static func silent() -> ScriptedTransport {
        ScriptedTransport { request, _ in
            .init([.head(ResponseHead(status: 404, url: request.urlRequest.url?.absoluteString ?? ""))])
        }
    }

    private static func listing(_ source: Fixed, _ choice: SourceChoice = SourceChoice()) throws -> SourceListing {
        let reference = try #require(SourceReference("fixed:a"))
        return SourceListing(
            source, try source.place(of: reference, in: [:]), choice, TaskOptions(), [:], over: silent())
    }

    // MARK: References

    @Test(
        "references",
        arguments: [
            ("s3://bucket/a/b", "s3", "bucket/a/b", "b"), ("gh:owner/repo@v1", "gh", "owner/repo@v1", "repo@v1"),
            ("HTTPS://h/pub/", "https", "h/pub/", "pub"), ("ia:item", "ia", "item", "item"),
            ("x-y+z.1:r", "x-y+z.1", "r", "r"),
        ] as [(String, String, String, String)])
    func references(text: String, scheme: String, path: String, last: String) throws {
        let reference = try #require(SourceReference(text))
        #expect(reference.scheme == scheme && reference.path == path && reference.lastPart == last)
        #expect(SourceReference(reference.description) == reference)
    }

    @Test(
        "texts that are no references",
        arguments: ["", "a", "C:\\a", "c:/a", ":a", "a b:c", "/a:b", "s3:", "1a:b", "ü:b", "./x:y"])
    func noReferences(text: String) { #expect(SourceReference(text) == nil) }

    @Test("an unknown scheme is an error that names those that there are")
    func unknown() throws {
        let registry = SourceRegistry()
        #expect(registry.schemes.contains("https"))
        try registry.register(Fixed(pages: []))
        let error = #expect(throws: DownloadError.self) { try registry.find("nope:x", in: [:]) }
        #expect(error?.code == .unsupportedScheme)
        #expect(
            error?.message.contains("fixed, ") == true && error?.message.contains("https") == true,
            "\(error?.message ?? "")")
        #expect(try registry.find("fixed:a", in: [:])?.place.title == "fixed:a")
        #expect(throws: DownloadError.self) { try registry.find("fixed:bad", in: [:]) }
        #expect(try registry.find("/tmp/list", in: [:]) == nil)
        registry.remove(scheme: "fixed")
        #expect(registry["fixed"] == nil)
    }

    @Test("a scheme that no reference can have is refused", arguments: ["", "a", "Fixed", "a b", "1x", "ä-ö"])
    func schemes(scheme: String) {
        struct Named: Source {
            var schemes: [String]
            var form: String { "" }
            func place(of reference: SourceReference, in environment: [String: String]) throws(DownloadError)
                -> SourcePlace
            {
                SourcePlace(reference, folderName: "x", address: nil)
            }
            func pages(of place: SourcePlace, _ client: SourceClient) -> AsyncThrowingStream<SourcePage, any Error> {
                client.pages { _ in }
            }
        }
        #expect(throws: DownloadError.self) { try SourceRegistry().register(Named(schemes: [scheme])) }
    }

    // MARK: Pages

    @Test("names are chosen by patterns, checked, and taken once")
    func filter() async throws {
        let source = Fixed(pages: [
            SourcePage([
                Self.file("a.bin"), Self.file("b.txt"), Self.file("../x"), Self.file("../y.bin"),
                Self.file("d/./c.bin"), Self.file("/e"),
            ]),
            SourcePage(
                [Self.file("a.bin"), Self.file("a.bin", size: 2), Self.file("b.txt/z.bin"), Self.file("f.bin")],
                faults: [SourceFault("g/", "no", isIncomplete: true)]),
        ])
        var names: [String] = []
        var faults: [SourceFault] = []
        for try await page in try Self.listing(source, SourceChoice(include: ["*.bin"], exclude: ["f*"])).pages {
            names += page.files.map { $0.name ?? "" }
            faults += page.faults
        }
        // What is not chosen takes no name and is no fault.
        #expect(names == ["a.bin", "d/c.bin", "b.txt/z.bin"])
        #expect(faults.map(\.name) == ["../y.bin", "g/", "a.bin"])
        #expect(faults.map(\.isIncomplete) == [false, true, false])
    }

    @Test("a list that repeats its pages does not end, and says so")
    func endless() async throws {
        let source = Fixed(pages: Array(repeating: SourcePage([Self.file("a"), Self.file("b")]), count: 3))
        await #expect(throws: DownloadError.self) { for try await _ in try Self.listing(source).pages {} }
    }

    @Test("the error of a source comes after its pages")
    func failing() async throws {
        let source = Fixed(
            pages: [SourcePage([Self.file("a")])], error: DownloadError(.protocolViolation, "It is cut off."))
        var count = 0
        let error = await #expect(throws: DownloadError.self) {
            for try await _ in try Self.listing(source).pages { count += 1 }
        }
        #expect(error?.message == "It is cut off." && count == 1)
    }

    @Test("a source makes a page only when it is asked for")
    func backPressure() async throws {
        let made = Locked(0)
        let client = try Self.listing(Fixed(pages: [])).client
        let pages = client.pages { send in
            for number in 0..<10 {
                made.withLock { $0 += 1 }
                try await send(SourcePage([Self.file("\(number)")]))
            }
        }
        #expect(made.withLock(\.self) == 0)
        var iterator = pages.makeAsyncIterator()
        _ = try await iterator.next()
        _ = try await iterator.next()
        #expect(made.withLock(\.self) == 2)
    }

    @Test("a source ends when its reader is gone")
    func cancelled() async throws {
        let ended = Observed(false)
        let client = try Self.listing(Fixed(pages: [])).client
        do {
            let pages = client.pages { send in
                defer { ended.update { $0 = true } }
                while true { try await send(SourcePage()) }
            }
            var iterator = pages.makeAsyncIterator()
            _ = try await iterator.next()
        }
        #expect(await ended.wait { $0 })
        // The same for a task that is cancelled while it waits.
        let begun = Observed(false)
        let gate = Observed(false)
        let stopped = Observed(false)
        let waiting = Task {
            for try await _ in client.pages({ _ in
                begun.update { $0 = true }
                defer { stopped.update { $0 = true } }
                _ = await gate.wait { $0 }
                try Task.checkCancellation()
            }) {}
        }
        _ = await begun.wait { $0 }
        waiting.cancel()
        gate.update { $0 = true }
        #expect(await stopped.wait { $0 })
        _ = try? await waiting.value
    }

    // MARK: Requests

    private static let home = "https://home.example/pub/"

    private static func client(
        _ options: TaskOptions = TaskOptions(), address: String? = home, limits: SourceLimits = SourceLimits(),
        over transport: any Transport
    ) throws -> SourceClient {
        let reference = try #require(SourceReference("fixed:a"))
        let place = SourcePlace(reference, folderName: "a", address: address)
        return SourceClient(place, SourceChoice(), options, [:], limits: limits, over: transport)
    }

    private static func ok(_ body: String = "x") -> ScriptedTransport {
        ScriptedTransport { request, _ in
            let url = request.urlRequest.url?.absoluteString ?? ""
            return .init([
                .head(
                    ResponseHead(status: 200, fields: [HeaderField("Content-Length", "\(body.utf8.count)")], url: url)),
                .bytes(Array(body.utf8)),
            ])
        }
    }

    @Test("secrets go to their origin only")
    func secrets() async throws {
        let transport = Self.ok()
        defer { transport.shutdown() }
        var options = TaskOptions()
        options.headers = [HeaderField("Authorization", "Basic b3duZXI6cHc="), HeaderField("X-Plain", "p")]
        options.secretHeaders = ["Authorization"]
        let client = try Self.client(options, over: transport)
        for url in [
            Self.home, "https://home.example/other/", "https://token.example/", "https://home.example:8443/",
            "http://home.example/",
        ] {
            var request = SourceRequest(url)
            request.secrets = [SourceSecret(HeaderField("X-Token", "t"), for: "https://token.example/api")]
            _ = try await client.get(request)
        }
        let sent = transport.requests.map { request in
            ["Authorization", "X-Token", "X-Plain"].filter { request.urlRequest.value(forHTTPHeaderField: $0) != nil }
        }
        #expect(
            sent == [
                ["Authorization", "X-Plain"], ["Authorization", "X-Plain"], ["X-Token", "X-Plain"], ["X-Plain"],
                ["X-Plain"],
            ])
        // A source with a token of its own sends it in place of the owner's login.
        var own = SourceRequest(Self.home)
        own.secrets = [SourceSecret(HeaderField("Authorization", "Bearer t"), for: Self.home)]
        _ = try await client.get(own)
        #expect(transport.requests.last?.urlRequest.value(forHTTPHeaderField: "Authorization") == "Bearer t")
        var without = SourceRequest(Self.home)
        without.usesLogin = false
        _ = try await client.get(without)
        #expect(transport.requests.last?.urlRequest.value(forHTTPHeaderField: "Authorization") == nil)
    }

    @Test("a place without an address sends the owner's secrets nowhere")
    func noAddress() async throws {
        let transport = Self.ok()
        defer { transport.shutdown() }
        var options = TaskOptions()
        options.headers = [HeaderField("Authorization", "Basic b3duZXI6cHc=")]
        options.secretHeaders = ["Authorization"]
        _ = try await Self.client(options, address: nil, over: transport).get(Self.home)
        #expect(transport.requests.last?.urlRequest.value(forHTTPHeaderField: "Authorization") == nil)
    }

    @Test(
        "a private address is asked only by a place that has one",
        arguments: ["http://127.0.0.1/", "http://10.0.0.1/x", "http://[::1]/"])
    func privateAddress(url: String) async throws {
        let transport = Self.ok()
        defer { transport.shutdown() }
        let client = try Self.client(over: transport)
        let error = await #expect(throws: DownloadError.self) { _ = try await client.get(url) }
        #expect(error?.code == .redirect && transport.requests.isEmpty)
        _ = try await Self.client(address: "http://192.168.0.1/", over: transport).get(url)
        #expect(transport.requests.count == 1)
    }

    @Test("statuses are said as what they are", arguments: [401, 403, 404, 410, 429, 500])
    func statuses(status: Int) async throws {
        let transport = ScriptedTransport { request, _ in
            .init([.head(ResponseHead(status: status, url: request.urlRequest.url?.absoluteString ?? ""))])
        }
        defer { transport.shutdown() }
        var options = TaskOptions()
        options.maxAttempts = 1
        let client = try Self.client(options, over: transport)
        let error = await #expect(throws: DownloadError.self) { _ = try await client.get(Self.home) }
        #expect(error?.status == status && error?.code == .httpStatus)
        #expect((error?.remedy == .giveLogin) == (status == 401))
        var request = SourceRequest(Self.home)
        request.statuses = [200, status]
        let answer = try await client.get(request)
        #expect(answer.head.status == status && answer.bytes.isEmpty)
    }

    @Test("a listing waits as long as the server asks, as a file does, also for a status that the source takes")
    func waits() async throws {
        let transport = ScriptedTransport { request, _ in
            let url = request.urlRequest.url?.absoluteString ?? ""
            return .init([.head(ResponseHead(status: 403, fields: [HeaderField("Retry-After", "3600")], url: url))])
        }
        defer { transport.shutdown() }
        var options = TaskOptions()
        // Between a minute and `maxRetryAfter`: the wait would be over too late.
        options.deadline = Date() + 300
        let client = try Self.client(options, over: transport)
        var request = SourceRequest(Self.home)
        request.statuses = [200, 403]
        let taken = request
        let error = await #expect(throws: DownloadError.self) { _ = try await client.get(taken) }
        #expect(error?.code == .deadlineExceeded && transport.requests.count == 1)
    }

    @Test("a method, a body and a status 207 pass")
    func method() async throws {
        let server = try FaultServer()
        server.route("/dav/") { request in
            .status(207, body: Array("<a>\(request.method) \(String(decoding: request.body, as: UTF8.self))</a>".utf8))
        }
        let transport = try TransportKind.automatic.makeTransport()
        defer { transport.shutdown() }
        var request = SourceRequest(server.url("/dav/"))
        request.method = "PROPFIND"
        request.body = Array("<q/>".utf8)
        request.statuses = [207]
        let answer = try await Self.client(address: server.url("/dav/"), over: transport).get(request)
        #expect(String(decoding: answer.bytes, as: UTF8.self) == "<a>PROPFIND <q/></a>")
    }

    @Test("limits of answers and of a whole listing")
    func limits() async throws {
        let transport = Self.ok(String(repeating: "x", count: 100))
        defer { transport.shutdown() }
        var limits = SourceLimits()
        limits.answerBytes = 99
        let small = try Self.client(limits: limits, over: transport)
        await #expect(throws: DownloadError.self) { _ = try await small.get(Self.home) }
        limits.answerBytes = 100
        limits.allBytes = 250
        let client = try Self.client(limits: limits, over: transport)
        _ = try await client.get(Self.home)
        _ = try await client.get(Self.home)
        await #expect(throws: DownloadError.self) { _ = try await client.get(Self.home) }
        limits.requests = 1
        let other = try Self.client(limits: limits, over: transport)
        _ = try await other.get(Self.home)
        await #expect(throws: DownloadError.self) { _ = try await other.get(Self.home) }
    }

    @Test("a folder that a pattern leaves out whole is known")
    func leavesOut() throws {
        let reference = try #require(SourceReference("fixed:a"))
        let client = SourceClient(
            SourcePlace(reference, folderName: "a", address: nil), SourceChoice(exclude: ["data/*", "tmp/", "*.o"]),
            TaskOptions(), [:], over: Self.silent())
        #expect(client.leavesOutFolder("data") && client.leavesOutFolder("data/x") && client.leavesOutFolder("tmp"))
        #expect(!client.leavesOutFolder("dat") && !client.leavesOutFolder("x/data") && !client.leavesOutFolder("x.o"))
    }
}
