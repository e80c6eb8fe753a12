import TestSupport
import Testing

/// A task whose address a.example has given half of the file gets another one, b.example.
@Suite("Relink")
struct RelinkTests {
    static let size = 400_000
    static let content = Bytes.pattern(count: size)
    static let a = "http://a.example/f"
    static let b = "http://b.example/f"

    struct Scene {
        let bench: Bench
        let id: TaskID
        let gate = TestGate()

        /// - Parameters:
        ///   - failure: what a.example answers after the first half; nil holds the first answer there.
        ///   - other: the file at b.example.
        init(failure: Int? = nil, other: [UInt8] = RelinkTests.content) async throws {
            bench = try await Bench(settings: { $0.retry.maxAttempts = 2 }) { [gate] request, number in
                if request.urlRequest.url?.host == "b.example" { return .file(other, etag: "\"b\"", to: request) }
                guard let failure else {
                    return .file(content, etag: "\"a\"", to: request, gate: gate, pauseAt: size / 2)
                }
                return number == 1
                    ? .file(content, etag: "\"a\"", to: request, cut: size / 2) : .status(failure)
            }
            id = try await bench.add(RelinkTests.a) { $0.options.mirrorPolicy = .combine }
            if failure == nil { await gate.reached() }
        }

        var hosts: [String] { bench.transport.requests.map { $0.urlRequest.url?.host ?? "" } }

        func history() throws -> [String] { try bench.stored(id).history.map(\.what) }

        /// The file is whole, from both addresses, and the task is the same as before.
        func isJoined() async throws {
            let info = try #require(await bench.finished(id))
            #expect(info.state == .complete && info.url == RelinkTests.a)
            #expect(try bench.out("f") == content)
            #expect(hosts.last == "b.example" && hosts.filter { $0 == "b.example" }.count == 1)
            #expect(bench.sent("Range").last == "bytes=\(size / 2 - 4096)-")
            let record = try bench.stored(id)
            #expect(record.link == RelinkTests.b && record.source == RelinkTests.b)
            #expect(record.task.url == RelinkTests.a && record.id == id)
        }
    }

    @Test("what follows, in every state", arguments: DownloadState.allCases)
    func table(_ state: DownloadState) {
        let expected: Relinking.Effect? =
            switch state {
            case .idle: .requeue
            case .action: .restart
            case .error: .queue
            case .suspend, .cancel, .complete: .nothing
            case .unknown: nil
            }
        #expect(Relinking.effect(in: state) == expected)
    }

    @Test("a running task starts a new attempt at the new address and keeps its bytes")
    func running() async throws {
        let scene = try await Scene()
        try await scene.bench.control.relink(scene.id, to: Self.b)
        try await scene.isJoined()
        #expect(try scene.history().contains { $0.hasPrefix("the file is fetched from http://b.example/f") })
    }

    @Test("a suspended task stays suspended, and resumes at the new address")
    func suspended() async throws {
        let scene = try await Scene()
        try await scene.bench.control.suspend(.id(scene.id))
        try await scene.bench.control.relink(scene.id, to: Self.b)
        #expect(await scene.bench.state(scene.id) == .suspend)
        try await scene.bench.control.resume(.id(scene.id))
        try await scene.isJoined()
    }

    @Test("a failed task is queued again, its expired link is not asked")
    func failed() async throws {
        let scene = try await Scene(failure: 404)
        try await scene.bench.advance(by: 5) { await scene.bench.state(scene.id) == .error }
        #expect(await scene.bench.finished(scene.id)?.state == .error)
        let asked = scene.hosts.count
        try await scene.bench.downloader.task(.id(scene.id))?.relink(to: Self.b)
        try await scene.isJoined()
        #expect(scene.hosts.count == asked + 1)
    }

    @Test("a task that waits for a retry is tried at once")
    func waiting() async throws {
        let scene = try await Scene(failure: 503)
        for await info in scene.bench.messager.infos(.id(scene.id)) where info.waitingUntil != nil { break }
        try await scene.bench.control.relink(scene.id, to: Self.b)
        try await scene.isJoined()
    }

    @Test("another file at the new address: fetched from its beginning, and the history says why")
    func anotherFile() async throws {
        let other = Bytes.pattern(count: Self.size, seed: 2)
        let scene = try await Scene(other: other)
        try await scene.bench.control.relink(scene.id, to: Self.b)
        #expect(await scene.bench.finished(scene.id)?.state == .complete)
        #expect(try scene.bench.out("f") == other)
        #expect(try scene.history().contains { $0.contains("another file") })
    }

    @Test("another file at the new address, which then fails: its tag is not taken for that of the stored bytes")
    func anotherFileThatFails() async throws {
        let other = Bytes.pattern(count: Self.size, seed: 2)
        let (gate, failures) = (TestGate(), Locked(0))
        let bench = try await Bench(settings: { $0.retry.maxAttempts = 3 }) { request, _ in
            guard request.urlRequest.url?.host == "b.example" else {
                return .file(Self.content, etag: "\"a\"", to: request, gate: gate, pauseAt: Self.size / 2)
            }
            let isWhole = request.urlRequest.value(forHTTPHeaderField: "Range") == nil
            if isWhole,
                failures.withLock({
                    $0 += 1; return $0
                }) == 1
            {
                return .status(503)
            }
            return .file(other, etag: "\"b\"", to: request)
        }
        let id = try await bench.add(Self.a)
        await gate.reached()
        try await bench.control.relink(id, to: Self.b)
        for await info in bench.messager.infos(.id(id)) where info.waitingUntil != nil { break }
        let record = try bench.stored(id)
        #expect(record.validator?.etag != "\"b\"" || record.received == 0)
        await bench.advance(60)
        try await bench.expect("f", other, of: id)
    }

    @Test("the address outlives the engine")
    func restart() async throws {
        let scene = try await Scene()
        try await scene.bench.control.suspend(.id(scene.id))
        try await scene.bench.control.relink(scene.id, to: Self.b)
        await scene.bench.downloader.close()
        let next = try await Bench(in: scene.bench.folder) { request, _ in
            .file(Self.content, etag: "\"b\"", to: request)
        }
        try await next.control.resume(.id(scene.id))
        #expect(await next.finished(scene.id)?.state == .complete)
        #expect(next.transport.requests.map { $0.urlRequest.url?.host } == ["b.example"])
        #expect(try next.out("f") == Self.content)
    }

    @Test("a complete task fetches nothing; its own URL removes the address")
    func complete() async throws {
        let bench = try await Bench(content: Self.content)
        let id = try await bench.completed(Self.a)
        try await bench.control.relink(id, to: Self.b)
        #expect(try bench.stored(id).link == Self.b)
        #expect(await bench.state(id) == .complete && bench.transport.requests.count == 1)
        try await bench.control.relink(id, to: Self.a)
        #expect(try bench.stored(id).link == nil)
    }

    @Test("bad addresses and unknown tasks are refused and change nothing")
    func refused() async throws {
        let bench = try await Bench(content: Self.content)
        let id = try await bench.completed(Self.a)
        func code(_ id: TaskID, _ url: String) async -> DownloadError.Code? {
            do {
                try await bench.control.relink(id, to: url)
                return nil
            } catch { return error.code }
        }
        #expect(await code(id, "no url") == .invalidURL)
        #expect(await code(id, "ftp://h/f") == .unsupportedScheme)
        #expect(await code(TaskID(url: "http://h/none"), Self.b) == .notFound)
        #expect(try bench.stored(id).link == nil)
        await bench.downloader.close()
        #expect(await code(id, Self.b) == .cancelled)
    }
}
