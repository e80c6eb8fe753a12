import TestSupport
import Testing

/// Features of earlier downloaders that no other suite is about.
@Suite("What earlier downloaders do")
struct ParityTests {
    private static let content = Bytes.pattern(count: 1_000)

    @Test(
        "numbers outside their range are moved to its end",
        arguments: [(Int.min, 1, 1), (0, 1, 1), (3, 3, 3), (10, 10, 10), (11, 11, 10), (256, 256, 10), (257, 256, 10)])
    func clamped(_ number: Int, _ maxAction: Int, _ distributeSpeed: Int) {
        var configure = Configure(workPath: URL(fileURLWithPath: "/tmp"))
        #expect(configure.maxAction == 3 && configure.distributeSpeed == 5)
        configure.maxAction = number
        configure.distributeSpeed = number
        #expect(configure.maxAction == maxAction && configure.distributeSpeed == distributeSpeed)
        #expect(abs(configure.progressInterval.inSeconds - Double(distributeSpeed) * 0.2) < 1e-9)
    }

    @Test(
        "a URL is encoded, and only once, whatever it is given as",
        arguments: [
            ("http://例え.テスト/路径/图片.png", "http://xn--r8jz45g.xn--zckzah/%E8%B7%AF%E5%BE%84/%E5%9B%BE%E7%89%87.png"),
            ("http://e.com/カタカナ", "http://e.com/%E3%82%AB%E3%82%BF%E3%82%AB%E3%83%8A"),
            ("http://e.com/😀.gif", "http://e.com/%F0%9F%98%80.gif"),
            ("http://e.com/a b.txt", "http://e.com/a%20b.txt"),
            ("http://e.com/a%20b.txt", "http://e.com/a%20b.txt"),
            ("http://e.com/a%2520b.txt", "http://e.com/a%2520b.txt"),
            ("http://e.com/a#part", "http://e.com/a"),
        ])
    func encoded(_ text: String, _ url: String) throws {
        let builder = try Builder(text)
        #expect(builder.url == url)
        #expect(try Builder(builder.url).url == url)
    }

    @Test("a task that only the disk knows is brought back by its URL, with its bytes")
    func loadCache() async throws {
        let bench = try await Bench { request, _ in .file(Self.content, to: request, cut: 300) }
        let id = try await bench.add("a")
        await bench.reached("a", .idle, times: 2)
        try await bench.control.suspend(.id(id))
        await bench.downloader.close()
        let second = try await Bench(in: bench.folder, scope: .chosen, content: Self.content)
        let infos = try await Builder.loadCache("http://h.example/a", in: second.downloader)
        #expect(infos.map(\.id) == [id] && infos[0].count.received == 300 && infos[0].state == .suspend)
        #expect(try await Builder.loadCache("http://h.example/none", in: second.downloader).isEmpty)
    }

    @Test("a task is found in memory and on the disk, by URL and by id; another one is not")
    func found() async throws {
        let bench = try await Bench(isActive: false) { request, _ in .file(Self.content, to: request) }
        let id = try await bench.add("a")
        func check(_ bench: Bench) async {
            for selector in [TaskSelector.id(id), .url("http://h.example/a")] {
                #expect(await bench.messager.exists(selector))
                #expect(await bench.messager.info(selector)?.id == id)
            }
            #expect(await !bench.messager.exists("http://h.example/none"))
            #expect(await bench.messager.info("http://h.example/none") == nil)
        }
        await check(bench)
        await bench.downloader.close()
        await check(
            try await Bench(in: bench.folder, scope: .chosen) { request, _ in .file(Self.content, to: request) })
    }

    @Test("a task that meets an existing file fails, and the queue goes on")
    func existing() async throws {
        let bench = try await Bench(content: Self.content) { $0.maxAction = 1 }
        try bench.folder.write([9], to: "out/a")
        let blocked = try await bench.add("x") { $0.fileName = "a" }
        let next = try await bench.add("b")
        #expect(await bench.finished(blocked)?.error?.code == .fileExists)
        #expect(await bench.finished(next)?.state == .complete)
        #expect(try bench.out("a") == [9] && bench.out("b") == Self.content)
    }

    @Test("a missing folder is created, with those above it; an impossible one is an error")
    func folders() async throws {
        let bench = try await Bench(content: Self.content)
        let made = try await bench.add("a") { $0.directory = bench.out + "/new/deep" }
        let impossible = try await bench.add("a") { $0.directory = "/proc/x" }
        #expect(await bench.finished(made)?.path == bench.out + "/new/deep/a")
        #expect(try bench.out("new/deep/a") == Self.content)
        #expect(await bench.finished(impossible)?.error?.code == .destination)
    }

    @Test("a downloader works with the configuration that it was made with")
    func configured() async throws {
        let gate = TestGate()
        let bench = try await Bench(
            isActive: false,
            settings: {
                $0.maxAction = 2
                $0.order = .lifo
                $0.transport.userAgent = "parity"
            }
        ) { request, _ in .file(Self.content, to: request, gate: gate, pauseAt: 1) }
        for name in ["a", "b", "c"] { try await bench.add(name) }
        bench.downloader.activateQueue()
        await bench.transport.started(2)
        await bench.settle()
        #expect(bench.asked == ["c", "b"])
        #expect(bench.transport.requests.allSatisfy { $0.options.userAgent == "parity" })
        gate.open()
        await bench.engine.waitUntilDrained()
        #expect(bench.transport.peak == 2 && bench.names == ["a", "b", "c"])
    }

    @Test("state, error and file are looked up by URL")
    func lookups() async throws {
        let bench = try await Bench { request, _ in
            request.urlRequest.url?.path == "/bad" ? .status(404) : .file(Self.content, to: request)
        }
        let good = try await bench.add("good")
        let bad = try await bench.add("bad")
        _ = await bench.finished(good)
        _ = await bench.finished(bad)
        let messager = bench.messager
        #expect(await messager.state("http://h.example/good") == .complete)
        #expect(await messager.error("http://h.example/good") == nil)
        #expect(await messager.filePath("http://h.example/good") == "\(bench.out)/good")
        #expect(await messager.state("http://h.example/bad") == .error)
        #expect(await messager.error("http://h.example/bad")?.status == 404)
        // Nothing is there, and yet it is said where the file would be.
        #expect(await messager.filePath("http://h.example/bad") == "\(bench.out)/bad")
        #expect(await messager.info("http://h.example/bad")?.fileURL == nil)
        #expect(await messager.filePath("http://h.example/none") == nil)
        #expect(await messager.state("http://h.example/none") == .unknown)
    }

    @Test("where the system does not tell networks apart, other settings than the usual ones are refused")
    func networks() async throws {
        var networks = Networks()
        #expect(networks.allowsCellular && networks.allowsConstrained && networks.allowsExpensive)
        #expect(!networks.isBackground)
        networks.allowsCellular = false
        networks.isBackground = true
        #if canImport(Darwin)
            let configuration = URLSessionLine.configuration(networks)
            #expect(!configuration.allowsCellularAccess && configuration.networkServiceType == .background)
        #endif
        let folder = try TemporaryFolder()
        var configure = Configure(workPath: folder.file("work"))
        configure.networks = networks
        let error = #expect(throws: DownloadError.self) { try Downloader(configure) }
        #expect(error?.code == .invalidArgument && error?.message.contains("networks") == true)
        configure.networks = Networks()
        let downloader = try Downloader(configure)
        configure.networks = networks
        #expect(await Self.isRefused(configure, by: downloader))
        #if !canImport(Darwin)
            configure.networks = Networks()
            configure.background = BackgroundSession(identifier: "test")
            #expect(await Self.isRefused(configure, by: downloader))
        #endif
        await downloader.close()
    }

    private static func isRefused(_ configure: Configure, by downloader: Downloader) async -> Bool {
        do throws(DownloadError) {
            try await downloader.update(configure)
            return false
        } catch {
            return error.code == .invalidArgument
        }
    }

    @Test("trashing all leaves no task, no file and no info file")
    func trashAll() async throws {
        let bench = try await Bench(content: Self.content)
        for name in ["a", "b", "c"] { _ = await bench.finished(try await bench.add(name)) }
        #expect(try await bench.control.trash(.all).count == 3)
        #expect(bench.names.isEmpty)
        #expect(await bench.messager.all().isEmpty)
        #expect(try bench.workPath.allTaskIDs().isEmpty)
    }

    @Test("pausing all is recorded: the next engine does not run them")
    func pauseAll() async throws {
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.maxAction = 1 }) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 0)
        }
        let ids = [try await bench.add("a"), try await bench.add("b")]
        await bench.transport.started(1)
        #expect(try await bench.control.suspendAll().count == 2)
        await bench.downloader.close()
        let second = try await Bench(in: bench.folder, content: Self.content)
        await second.advance(5)
        for id in ids { #expect(await second.state(id) == .suspend) }
        #expect(second.transport.requests.isEmpty)
        try await second.control.resumeAll()
        for id in ids { #expect(await second.finished(id)?.state == .complete) }
    }

    @Test("a receipt's id steers its task")
    func receiptVerbs() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, number in
            .file(Self.content, to: request, gate: number == 1 ? gate : nil, pauseAt: 0)
        }
        try await bench.add("a")
        await bench.transport.started(1)
        let receipt = try #require(await bench.messager.record("http://h.example/a"))
        #expect(receipt.state == .action)
        #expect(try await bench.control.suspend(.id(receipt.id)).first?.after == .suspend)
        #expect(await bench.messager.record(.id(receipt.id))?.state == .suspend)
        try await bench.control.resume(.id(receipt.id))
        #expect(await bench.finished(receipt.id)?.state == .complete)
        let end = try #require(await bench.messager.record(.id(receipt.id)))
        #expect(end.received == 1_000 && end.fraction == 1 && end.path == "\(bench.out)/a")
    }
}
