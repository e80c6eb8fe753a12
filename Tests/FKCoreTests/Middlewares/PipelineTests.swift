import TestSupport
import Testing

@Suite("The pipeline's order")
struct PipelineTests {
    static let content = Bytes.pattern(count: 1_000)

    @Test("builder, request chain, transport, verify, final name, response chain, complete")
    func order() async throws {
        let trace = Observed<[String]>([])
        let states = Observed<[DownloadState]>([])
        let gate = TestGate()
        let bench = try await Bench { request, _ in
            trace.update { $0.append("transport") }
            return .file(Self.content, to: request, gate: gate, pauseAt: 500)
        }
        for (name, priority) in [("r200", 200), ("r5", 5), ("r200b", 200), ("r1", -4)] {
            bench.chains.onRequest(name, priority: priority) { request, _ in
                trace.update { $0.append(name) }
            }
        }
        for (name, priority) in [("late", 9), ("early", 2), ("late tie", 9)] {
            bench.chains.onResponse(name, priority: priority) { response in
                let isThere = response.fileURL.map { FileManager.default.fileExists(atPath: $0.path) } ?? false
                let status = response.response?.statusCode ?? 0
                trace.update { $0.append("\(name) \(response.fileURL?.lastPathComponent ?? "-") \(isThere) \(status)") }
            }
        }
        bench.chains.register(download: DownloadStep(onState: { _, state, _ in states.update { $0.append(state) } }))
        let id = try await bench.add("a.bin") {
            $0.options.checksum = try? Checksum(.sha256, hex: Bytes.sha256(Self.content))
        }
        await gate.reached()
        // Until the whole file is there, it has a hidden name.
        #expect(bench.names.count == 1 && bench.names[0].hasPrefix(".a.bin.") && bench.names[0].hasSuffix(".fkpart"))
        gate.open()
        let info = try #require(await bench.finished(id))
        #expect(info.state == .complete)
        #expect(
            trace.value == [
                "r1", "r5", "r200", "r200b", "transport", "early a.bin true 200", "late a.bin true 200",
                "late tie a.bin true 200",
            ])
        #expect(await states.wait { $0.last == .complete } == [.idle, .action, .complete])
        #expect(try bench.out("a.bin") == Self.content)
        #expect(bench.names == ["a.bin"])
    }

    @Test("each event passes the whole download chain before the next one") func downloadOrder() async throws {
        let trace = Observed<[String]>([])
        let bench = try await Bench { request, _ in .file(Self.content, to: request) }
        for (name, priority) in [("late", 9), ("early", 2)] {
            bench.chains.onDownload(name, priority: priority) { event, _ in
                if case .state(let state, _) = event { trace.update { $0.append("\(name) \(state)") } }
                if case .progress(let count) = event { trace.update { $0.append("\(name) \(count.received)") } }
            }
        }
        try await bench.completed("a.bin")
        #expect(
            await trace.wait { $0.last == "late complete" }.suffix(4) == [
                "early 1000", "late 1000", "early complete", "late complete",
            ])
    }

    @Test("a request middleware may change URL and headers, sees Range, and cannot change it")
    func requestChanges() async throws {
        let seen = Observed<[String]>([])
        let bench = try await Bench { request, number in
            .file(Self.content, to: request, cut: number == 1 ? 400 : nil)
        }
        bench.chains.onRequest("request step", secretHeaders: ["X-Key"]) { request, task in
            await Task.yield()
            seen.update { $0.append("\(task.attempt) \(request.value(forHTTPHeaderField: "Range") ?? "-")") }
            request.url = URL(string: "http://other.example/b?attempt=\(task.attempt)&sig=signed")
            request.setValue("secret \(task.attempt)", forHTTPHeaderField: "X-Key")
            request.setValue("bytes=7-9", forHTTPHeaderField: "Range")
        }
        let id = try await bench.add("a.bin") {
            $0.options.headers = [.init("X-Own", "1"), .init("X-Token", "t")]
            $0.options.secretHeaders = ["X-Token"]
        }
        await bench.reached("a.bin", .idle, times: 2)
        await bench.advance(1)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(seen.value == ["1 -", "2 bytes=400-"])
        #expect(bench.sent("Range") == ["-", "bytes=400-"])
        #expect(bench.sent("If-Range") == ["-", "\"1\""])
        #expect(bench.sent("X-Key") == ["secret 1", "secret 2"])
        #expect(bench.sent("X-Own") == ["1", "1"])
        #expect(
            bench.transport.requests.map { $0.urlRequest.url?.query } == [
                "attempt=1&sig=signed", "attempt=2&sig=signed",
            ])
        #expect(bench.transport.requests.allSatisfy { $0.secretHeaders == ["x-key", "x-token"] })
        #expect(try bench.out("a.bin") == Self.content)
        let raw = try InfoFile.rawPayload(bench.workPath.infoPath(id))
        #expect(
            !raw.contains("secret 1") && !raw.contains("secret 2") && !raw.contains("signed") && !raw.contains("X-Key"))
    }

    struct Odd: Error, CustomStringConvertible { var description: String { "the odd reason" } }

    @Test("a request middleware that throws: the task's error is its reason, nothing is sent")
    func requestThrows() async throws {
        let bench = try await Bench(content: Self.content)
        bench.chains.register(request: RequestStep(name: "signer") { _, _ in throw Odd() })
        let id = try await bench.add("a.bin")
        let error = try #require(await bench.finished(id)?.error)
        #expect(error.code == .middleware)
        #expect(error.message.contains("signer") && error.underlying == "the odd reason")
        #expect(bench.transport.requests.isEmpty)
        #expect(try bench.stored(id).error == error)
    }

    @Test("a request middleware's retryable error is tried again, its own code is kept")
    func requestThrowsRetryable() async throws {
        let bench = try await Bench(content: Self.content)
        bench.chains.onRequest("request step") { request, task in
            guard task.attempt > 1 else { throw DownloadError(.init("no-token"), "later", isRetryable: true) }
        }
        let id = try await bench.add("a.bin")
        await bench.reached("a.bin", .idle, times: 2)
        #expect(await bench.messager.error(.id(id))?.code.rawValue == "no-token")
        await bench.advance(1)
        #expect(await bench.finished(id)?.state == .complete)
    }

    @Test("middlewares come and go while downloads run: a walk keeps the list it began with")
    func registerWhileRunning() async throws {
        let seen = Observed<[String]>([])
        let isOpen = Observed(false)
        let bench = try await Bench(content: Self.content)
        @Sendable func step(_ name: String, waits: Bool = false) -> RequestStep {
            RequestStep(name: name) { request, task in
                seen.update { $0.append("\(name) \(task.originalURL.lastPathComponent)") }
                if waits, task.originalURL.lastPathComponent == "a" { _ = await isOpen.wait { $0 } }
                return request
            }
        }
        let first = bench.chains.register(request: step("first", waits: true))
        bench.chains.register(request: step("second"))
        let a = try await bench.add("a")
        _ = await seen.wait { $0.first == "first a" }
        #expect(bench.chains.request.remove(first))
        #expect(!bench.chains.request.remove(first))
        bench.chains.register(request: step("third"), priority: 1)
        try await bench.completed("b")
        isOpen.update { $0 = true }
        #expect(await bench.finished(a)?.state == .complete)
        #expect(seen.value == ["first a", "third b", "second b", "second a"])
    }

    @Test("download middlewares hear of progress at the polled interval and at the end")
    func downloadChain() async throws {
        let gate = TestGate()
        let counts = Observed<[ByteCount]>([])
        let content = Bytes.pattern(count: 400_000)
        let bench = try await Bench { request, _ in .file(content, to: request, gate: gate, pauseAt: 1_000) }
        bench.chains.register(download: DownloadStep(onCount: { _, count in counts.update { $0.append(count) } }))
        let id = try await bench.add("a")
        await gate.reached()
        await bench.advance(1)
        #expect(
            await counts.wait { $0.count >= 1 } == [ByteCount(received: 1_000, previousReceived: 0, expected: 400_000)])
        await bench.advance(1)
        gate.open()
        #expect(await bench.finished(id)?.state == .complete)
        let all = await counts.wait { $0.last?.received == 400_000 }
        #expect(all.last == ByteCount(received: 400_000, previousReceived: 1_000, expected: 400_000))
    }
}
