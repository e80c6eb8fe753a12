import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The adapter for Apple's background sessions, over a foreground configuration and a local server.
@Suite("Pieces by URLSession's download tasks", .serialized)
struct SessionFileTests {
    static let content = Bytes.pattern(count: 300_000)

    private func transport() -> SessionFileTransport {
        SessionFileTransport(identifier: "test", URLSessionConfiguration.ephemeral)
    }

    @Test("a file arrives by pieces, a 404 and a lost connection are what they are with any transport")
    func engine() async throws {
        let folder = try TemporaryFolder()
        let server = try FaultServer()
        server.route("/a") { .ranged(Self.content, for: $0, etag: "\"1\"") }
        server.route("/moved") { _ in .redirect(to: "/a") }
        let transport = transport()
        var configure = Configure(workPath: folder.file("work"))
        var session = BackgroundSession(identifier: "test")
        session.pieceSize = 64 << 10
        session.makeTransport = { _, _ in transport }
        configure.background = session
        let downloader = try Downloader(configure)
        downloader.activateQueue()
        let file = try await downloader.download(server.url("/a"), to: folder.url)
        #expect([UInt8](try Data(contentsOf: file)) == Self.content)
        #expect(server.requests("/a").map { $0["Range"] ?? "-" }.sorted().count == 5)
        #expect(server.requests("/a").allSatisfy { $0["Accept-Encoding"] == "identity" })
        let moved = try await downloader.download(server.url("/moved"), to: folder.url)
        #expect([UInt8](try Data(contentsOf: moved)) == Self.content)
        await #expect { try await downloader.download(server.url("/none"), to: folder.url) } throws: {
            ($0 as? DownloadError)?.status == 404
        }
        // The completion handler, as the delegate calls it.
        let called = Observed(0)
        downloader.handleBackgroundEvents(identifier: "test") { called.update { $0 += 1 } }
        transport.urlSessionDidFinishEvents(forBackgroundURLSession: .shared)
        #expect(await called.wait { $0 > 0 } == 1)
        await downloader.close()
    }

    @Test("the next downloader of the process adopts requests in flight, and what arrived between the two")
    func adoption() async throws {
        let server = try FaultServer()
        let gate = Gate()
        server.route("/a") { .ranged(Self.content, for: $0, etag: "\"1\"").stalling(at: 10, until: gate) }
        let transport = transport()
        let events = Observed<[String]>([])
        let report: @Sendable (FileTransportEvent) -> Void = { event in
            switch event {
            case .adopted(let keys): events.update { $0.append("adopted \(keys.count)") }
            case .finished(let key, let head, let file):
                let length = (try? Data(contentsOf: URL(fileURLWithPath: file)).count) ?? -1
                events.update { $0.append("\(key.start) \(head.status) \(length)") }
            case .failed(let key, let error): events.update { $0.append("\(key.start) \(error.code)") }
            case .allDelivered: break
            }
        }
        transport.adopt(report)
        _ = await events.wait { $0.first == "adopted 0" }
        func key(_ start: Int64) -> PieceKey {
            PieceKey(task: TaskID(url: "a"), generation: 1, start: start, end: start + 1_000)
        }
        for start: Int64 in [0, 5_000] {
            var request = try TransportConformance.Context.request(server.url("/a"))
            request.urlRequest.setValue(key(start).rangeHeader, forHTTPHeaderField: "Range")
            #expect(transport.refusal(of: request) == nil)
            transport.start(request, piece: key(start))
        }
        await server.wait { $0.count >= 2 }
        transport.leave()
        transport.adopt(report)
        _ = await events.wait { $0.contains("adopted 2") }
        transport.cancel([key(5_000)])
        transport.leave()
        gate.open()
        transport.adopt(report)
        _ = await events.wait { $0.contains("0 206 1000") }
        #expect(!events.value.contains { $0.hasPrefix("5000") })
        transport.leave()
    }

    @Test("what the system cannot do is refused before it is tried")
    func refusals() throws {
        let transport = transport()
        func request(_ change: (inout TransportRequest) -> Void) throws -> TransportRequest {
            var request = try TransportConformance.Context.request("http://h.example/a")
            change(&request)
            return request
        }
        #expect(transport.refusal(of: try request { $0.secretHeaders = ["authorization"] }) == nil)
        #expect(transport.refusal(of: try request { $0.secretHeaders = ["x-key"] })?.message.contains("x-key") == true)
        #expect(transport.refusal(of: try request { $0.urlRequest.httpMethod = "POST" }) != nil)
        #expect(transport.refusal(of: try request { $0.options.insecure = true }) != nil)
    }

    // MARK: The system's conditions

    @Test("conditions delay what they are set to delay, and the info of a waiting task says so")
    func conditions() async throws {
        for isDiscretionary in [false, true] {
            for flags in 0..<32 {
                func has(_ bit: Int) -> Bool { flags & 1 << bit != 0 }
                let conditions = SystemConditions(isLowPower: has(0), isExpensive: has(1), isConstrained: has(2))
                var networks = Networks()
                networks.allowsExpensive = has(3)
                networks.allowsConstrained = has(4)
                let isDelayed =
                    has(1) && !has(3) || has(2) && (!has(4) || isDiscretionary) || has(0) && isDiscretionary
                #expect((conditions.delay(isDiscretionary: isDiscretionary, networks) != nil) == isDelayed)
            }
        }
        let folder = try TemporaryFolder()
        let files = ScriptedFiles(in: folder)
        let bench = try await Bench(in: folder, settings: { files.use(in: &$0) }) { request, _ in .status(404) }
        let id = try await bench.add("a")
        _ = await files.request("bytes=0-65535")
        #expect(await bench.messager.info(.id(id))?.waiting == .background)
        #expect(Waiting(.background, policy: "why").text == "the system performs the request: why")
    }

    @Test("a new work path has the attributes of its system, an older one keeps its own")
    func attributes() {
        for system in FolderAttributes.System.allCases {
            #expect(FolderAttributes.wanted(isNew: false, on: system).isEmpty)
        }
        #expect(FolderAttributes.wanted(isNew: true, on: .linux).isEmpty)
        #expect(FolderAttributes.wanted(isNew: true, on: .macOS) == [.excludedFromBackup])
        #expect(FolderAttributes.wanted(isNew: true, on: .device) == [.excludedFromBackup, .readableAfterFirstUnlock])
        // A published set has those of a new work path, or what somebody has made of them.
        #expect(FolderAttributes.wantedOfSet(replacing: nil, on: .macOS) == [.excludedFromBackup])
        #expect(FolderAttributes.wantedOfSet(replacing: [], on: .device) == [])
    }
}
