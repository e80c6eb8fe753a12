import TestSupport
import Testing

@testable import FKEngine

/// A task that is known takes the options of the last asking, whatever state it is in.
@Suite("Options of known tasks")
struct KnownTaskTests {
    private static let content = Bytes.pattern(count: 600_000)
    private static let wrong = try? Checksum(.sha256, hex: String(repeating: "0", count: 64))
    private static let right = try? Checksum(.sha256, hex: Bytes.sha256(content))

    /// The first answer stops at 300,000 bytes until the gate opens, or is `first`; the later ones are whole.
    private func bench(
        _ gate: TestGate = TestGate(), first: Bench.Answer? = nil, settings: (inout Configure) -> Void = { _ in }
    ) async throws -> Bench {
        try await Bench(settings: settings) { request, number in
            number > 1
                ? .file(Self.content, to: request)
                : first ?? .file(Self.content, to: request, gate: gate, pauseAt: 300_000)
        }
    }

    /// Options of all kinds, with which a task is first asked for.
    private func old(_ task: inout TaskDescription) {
        task.options.headers = [.init("Authorization", "old")]
        task.options.insecure = true
        task.options.proxy = "http://old.example:1"
        task.options.timeout = .seconds(7)
        task.options.netrc = true
        task.options.caPath = "/old.pem"
    }

    /// A task with the old options that was suspended while it ran.
    private func suspended() async throws -> (Bench, TaskID) {
        let bench = try await bench()
        let id = try await bench.add("a", old)
        await bench.transport.started(1)
        _ = try await bench.engine.apply(.suspend, to: .id(id))
        return (bench, id)
    }

    private func isNew(_ request: TransportRequest, _ base: TransportOptions) -> Bool {
        request.urlRequest.value(forHTTPHeaderField: "Authorization") == "new" && request.options.insecure == false
            && request.options.proxy == "http://new.example:2" && request.options.netrc == false
            && request.options.caPath == nil && request.options.stallTimeout == base.stallTimeout
    }

    private func new(_ task: inout TaskDescription) {
        task.options.headers = [.init("Authorization", "new")]
        task.options.proxy = "http://new.example:2"
    }

    @Test(
        "headers, proxy, TLS and netrc of the last asking are those of the next request",
        arguments: [DownloadState.idle, .action, .suspend, .error, .cancel])
    func wire(_ state: DownloadState) async throws {
        let isRunning = state == .action
        let gate = TestGate()
        let bench = try await bench(
            gate, first: state == .error ? .status(404) : nil, settings: { if state == .idle { $0.maxAction = 1 } })
        var first: TaskID?
        if state == .idle {
            first = try await bench.add("first")
            await bench.transport.started(1)
        }
        let id = try await bench.add("a", old)
        switch state {
        case .idle: #expect(await bench.state(id) == .idle)
        case .suspend, .cancel:
            await gate.reached()
            _ = try await bench.engine.apply(state == .suspend ? .suspend : .cancel, to: .id(id))
        case .error: _ = await bench.finished(id)
        default: await gate.reached()
        }
        #expect(await bench.state(id) == state)
        _ = try await bench.add("a", new)
        if let first { _ = try await bench.engine.apply(.cancel, to: .id(first)) }
        let ended = await bench.finished(id)
        #expect(ended?.state == .complete)
        let last = try #require(bench.transport.requests.last)
        #expect(isNew(last, TransportOptions()))
        #expect(try bench.out("a") == Self.content)
        if isRunning { #expect(bench.sent("Range").last == "bytes=300000-", "the bytes are kept") }
        #expect(try bench.stored(id).task.options.insecure == nil)
    }

    @Test("with nothing said, nothing of the former options stays")
    func reset() async throws {
        let (bench, id) = try await suspended()
        _ = try await bench.add("a")
        #expect(await bench.finished(id)?.state == .complete)
        let last = try #require(bench.transport.requests.last)
        #expect(last.urlRequest.value(forHTTPHeaderField: "Authorization") == nil)
        #expect(last.options == TransportOptions())
    }

    @Test("resume, retry and the next engine keep what is stored")
    func kept() async throws {
        let (bench, id) = try await suspended()
        _ = try await bench.engine.apply(.resume, to: .id(id))
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Authorization") == ["old", "old"])
    }

    @Test("the same asked for again disturbs nothing")
    func same() async throws {
        let gate = TestGate()
        let bench = try await bench(gate)
        let id = try await bench.add("a", old)
        await gate.reached()
        _ = try await bench.add("a", old)
        gate.open()
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.transport.requests.count == 1)
    }

    @Test("a checksum that comes while a file is fetched decides on it", arguments: [true, false])
    func checksumWhileRunning(_ isRight: Bool) async throws {
        let gate = TestGate()
        let bench = try await bench(gate)
        let id = try await bench.add("a")
        await gate.reached()
        _ = try await bench.add("a") { $0.options.checksum = isRight ? Self.right : Self.wrong }
        gate.open()
        let info = await bench.finished(id)
        #expect(info?.state == (isRight ? .complete : .error))
        #expect(info?.error?.code == (isRight ? nil : .checksumMismatch))
        #expect(bench.transport.requests.count == 1)
    }

    @Test("a checksum for a finished file is compared with it now; the file stays", arguments: [true, false])
    func checksumOfFinished(_ isRight: Bool) async throws {
        let bench = try await Bench(content: Self.content)
        let id = try await bench.completed("a")
        var builder = try Builder("http://h.example/a")
        builder.directory = bench.out
        builder.options.checksum = isRight ? Self.right : Self.wrong
        let result = try await Builder.prepare([builder], in: bench.downloader)[0]
        switch result {
        case .success(let known): #expect(isRight && known == id)
        case .failure(let error):
            #expect(!isRight && error.code == .checksumMismatch)
            #expect(error.message.contains(Bytes.sha256(Self.content)))
        }
        #expect(await bench.state(id) == .complete)
        #expect(try bench.out("a") == Self.content)
        #expect(try bench.stored(id).task.options.checksum == (isRight ? Self.right : nil))
        #expect(bench.transport.requests.count == 1)
    }

    @Test("a finished file that somebody has changed does not pass with its own checksum")
    func edited() async throws {
        let bench = try await Bench(content: Self.content)
        try await bench.completed("a") { $0.options.checksum = Self.right }
        var bytes = Self.content
        bytes[7] ^= 1
        _ = try bench.folder.write(bytes, to: "out/a")
        let error = await #expect(throws: DownloadError.self) {
            try await bench.add("a") { $0.options.checksum = Self.right }
        }
        #expect(error?.code == .checksumMismatch)
        #expect(try bench.out("a") == bytes)
    }

    @Test("skip, then overwrite replaces the file that was there; then rename leaves it")
    func existing() async throws {
        let bench = try await Bench(content: Self.content)
        try FileManager.default.createDirectory(atPath: bench.out, withIntermediateDirectories: true)
        _ = try bench.folder.write(Array("mine".utf8), to: "out/a")
        let id = try await bench.completed("a") { $0.options.existing = .skip }
        #expect(bench.transport.requests.isEmpty)
        _ = try await bench.add("a") { $0.options.existing = .rename }
        #expect(await bench.finished(id)?.state == .complete)
        #expect(try bench.out("a") == Array("mine".utf8) && bench.out("a.1") == Self.content)
        let other = try await bench.completed("http://h.example/x/a") { $0.options.existing = .skip }
        _ = try await bench.add("http://h.example/x/a") { $0.options.existing = .overwrite }
        try await bench.expect("a", Self.content, of: other)
    }

    @Test("mirrors of the last asking are tried")
    func mirrors() async throws {
        let bench = try await Bench { request, _ in
            request.urlRequest.url?.host() == "h.example" ? .status(404) : .file(Self.content, to: request)
        }
        let id = try await bench.add("a")
        #expect(await bench.finished(id)?.state == .error)
        _ = try await bench.add("a") { $0.mirrors = ["http://m.example/a"] }
        #expect(await bench.finished(id)?.state == .complete)
    }

    @Test("a task that waits for its next attempt is tried at once with other options")
    func waiting() async throws {
        let bench = try await Bench { request, _ in
            request.urlRequest.value(forHTTPHeaderField: "X-Key") == "new"
                ? .file(Self.content, to: request) : .status(500)
        }
        let id = try await bench.add("a") { $0.options.headers = [.init("X-Key", "old")] }
        await bench.reached("a", .idle, times: 2)
        _ = try await bench.add("a") { $0.options.headers = [.init("X-Key", "new")] }
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("X-Key") == ["old", "new"])
    }

    @Test("members of a barrel that are known get the barrel's options when they are added again")
    func barrel() async throws {
        let (bench, id) = try await suspended()
        var options = BarrelOptions()
        options.options = TaskOptions()
        options.options?.headers = [.init("Authorization", "barrel")]
        _ = await bench.engine.answer(.createBarrel(name: "b", options: options))
        _ = try await bench.add("a", barrel: "b")
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Authorization") == ["old", "barrel"])
    }

    @Test("another name for a task in the work path is refused by name, and changes nothing")
    func name() async throws {
        let bench = try await Bench(content: Self.content)
        var builder = try Builder("http://h.example/a")
        try builder.setFileName("one")
        let id = try await builder.prepare(in: bench.downloader)
        #expect(await bench.finished(id)?.state == .complete)
        try builder.setFileName("two")
        let again = builder
        let error = await #expect(throws: DownloadError.self) { try await again.prepare(in: bench.downloader) }
        #expect(error?.code == .invalidArgument)
        #expect(try bench.stored(id).task.fileName == "one")
    }

    @Test("of several changes none is made if one cannot be") func allOrNone() async throws {
        let bench = try await bench()
        let id = try await bench.add("a") { $0.startsSuspended = true }
        var (good, bad) = (TaskChange(id), TaskChange(id))
        good.priority = 9
        bad.mirrors = ["nonsense"]
        for wrong in [bad, TaskChange(TaskID(url: "http://nobody/"))] {
            await #expect(throws: DownloadError.self) { try await bench.downloader.control.change([good, wrong]) }
        }
        #expect(await bench.messager.record(id)?.priority == 0)
        try await bench.downloader.control.change([good])
        #expect(await bench.messager.record(id)?.priority == 9)
    }
}
