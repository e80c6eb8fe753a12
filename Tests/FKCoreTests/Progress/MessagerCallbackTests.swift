import TestSupport
import Testing

@testable import FKEngine

@Suite("Three callbacks and queries of a task")
struct MessagerCallbackTests {
    static let content = Bytes.pattern(count: 400_000)

    private final class Seen: Sendable {
        let states = Observed<[DownloadState]>([])
        let counts = Observed<[[Int64]]>([])
        let ends = Observed<[Result<URL, DownloadError>]>([])

        func register(_ selector: some TaskSelecting, in bench: Bench) async throws {
            try await bench.messager.addCallbacks(
                selector,
                stateChanged: { state in self.states.update { $0.append(state) } },
                progress: { received, expected, fraction in
                    #expect(fraction == expected.map { Double(received) / Double($0) })
                    self.counts.update { $0.append([received, expected ?? -1]) }
                },
                completion: { end in self.ends.update { $0.append(end) } }
            ).keep()
        }
    }

    @Test("after its removal no call of a callback begins, also where one waits on a queue")
    func removed() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in .file([1, 2, 3], to: request, gate: gate) }
        let id = try await bench.add("a", barrel: "b")
        let (queue, calls) = (DispatchQueue(label: "test"), Locked(0))
        queue.suspend()
        let messager = bench.messager
        let registrations = [
            try await messager.addInfo(.id(id), on: queue) { _ in calls.withLock { $0 += 1 } },
            try await messager.addAttempts(.id(id), on: queue) { _ in calls.withLock { $0 += 1 } },
            try await messager.addBarrelInfo("b", on: queue) { _ in calls.withLock { $0 += 1 } },
            try await messager.addCallbacks(.id(id), on: queue, stateChanged: { _ in calls.withLock { $0 += 1 } }),
        ]
        await messager.waitForReports()
        registrations.forEach { $0.cancel() }
        queue.resume()
        gate.open()
        #expect(await bench.finished(id)?.state == .complete)
        await messager.waitForReports()
        queue.sync {}
        #expect(calls.withLock(\.self) == 0)
    }

    @Test("states, progress, and one completion with the file")
    func complete() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in
            request.urlRequest.url?.path == "/bad"
                ? .status(404) : .file(Self.content, to: request, gate: gate, pauseAt: 1_000)
        }
        let (seen, failed) = (Seen(), Seen())
        try await seen.register("http://h.example/a", in: bench)
        try await failed.register("http://h.example/bad", in: bench)
        let id = try await bench.add("a")
        await gate.reached()
        await bench.advance(1)
        gate.open()
        _ = await bench.finished(id)
        let ends = await seen.ends.wait { !$0.isEmpty }
        #expect(try ends.map { try $0.get().path } == [bench.out + "/a"])
        #expect(seen.states.value == [.idle, .action, .complete])
        #expect(seen.counts.value == [[1_000, 400_000], [400_000, 400_000]])
        await bench.engine.callbacks.drained()
        #expect(seen.ends.value.count == 1)
        _ = await bench.finished(try await bench.add("bad"))
        let failures = await failed.ends.wait { !$0.isEmpty }
        await bench.advance(1)
        await bench.engine.callbacks.drained()
        #expect(seen.counts.value.count == 2, "no progress comes behind the completion")
        #expect(failures.map { $0.error?.status } == [404])
        #expect(failed.states.value == [.idle, .action, .error])
        #expect(seen.ends.value.count == 1)
    }

    @Test("a failed task completes with its error, once an ending; attempts in between are none")
    func failure() async throws {
        let bench = try await Bench(settings: { $0.retry.maxAttempts = 2 }) { request, number in
            number < 5 ? .status(503) : .file(Self.content, to: request)
        }
        let seen = Seen()
        let id = try await bench.add("a")
        try await seen.register(.id(id), in: bench)
        await bench.retried("a", after: 60)
        _ = await bench.finished(id)
        #expect(try #require(await seen.ends.wait { $0.count >= 1 }.first).error?.status == 503)
        try await bench.control.retry(.id(id))
        await bench.reached("a", .idle, times: 4)
        await bench.advance(60)
        _ = await seen.ends.wait { $0.count >= 2 }
        try await bench.control.retry(.id(id))
        #expect(await seen.ends.wait { $0.count >= 3 }.map { $0.error == nil } == [false, false, true])
    }

    @Test("cancelled and trashed tasks complete with .cancelled", arguments: [Verb.cancel, .trash])
    func cancelled(_ verb: Verb) async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in .file(Self.content, to: request, gate: gate) }
        let seen = Seen()
        let id = try await bench.add("a")
        try await seen.register(.id(id), in: bench)
        _ = try await bench.engine.apply(verb, to: .id(id))
        #expect(await seen.ends.wait { $0.count >= 1 }[0].error?.code == .cancelled)
    }

    @Test("length, fraction and completeness of one task, also after a restart")
    func queries() async throws {
        let gate = TestGate()
        let first = try await Bench(settings: { $0.maxAction = 1 }) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 100_000)
        }
        let id = try await first.add("a")
        let waiting = try await first.add("b")
        await gate.reached()
        await first.sync()
        #expect(await first.messager.info(.id(id))?.count.expected == 400_000)
        #expect(await first.messager.info(.id(id))?.fraction == 0.25)
        #expect(await first.messager.state(.id(id)) != .complete)
        #expect(await first.messager.info(.id(waiting))?.count.expected == nil)
        #expect(await first.messager.info(.id(waiting))?.fraction == nil)
        // A pause of all is written down.
        try await first.control.suspendAll()
        await first.downloader.close()
        let second = try await Bench(in: first.folder, content: Self.content)
        #expect(await second.messager.all().map(\.state) == [.suspend, .suspend])
        #expect(await second.messager.info(.id(id))?.count.expected == 400_000)
        #expect(await second.messager.info(.id(id))?.fraction == 0.25)
        try await second.control.resumeAll()
        await second.engine.waitUntilDrained()
        #expect(await second.messager.state(.id(id)) == .complete)
        #expect(await second.messager.info(.id(waiting))?.fraction == 1)
        try await second.control.trash(.all)
        #expect(await second.messager.all().isEmpty)
        #expect(second.names.isEmpty)
    }

    @Test(
        "a time-out and a lost connection leave the bytes and a due retry", arguments: ["timeout", "connection-lost"])
    func lost(_ code: String) async throws {
        let bench = try await Bench { request, number in
            guard number == 1 else { return .file(Self.content, to: request) }
            var answer = Bench.Answer.file(Self.content, to: request, cut: 100_000)
            answer.steps[answer.steps.count - 1] = .fail(DownloadError(.init(code), "lost", isRetryable: true))
            return answer
        }
        let id = try await bench.add("a")
        await bench.reached("a", .idle, times: 2)
        let info = try #require(await bench.messager.info(.id(id)))
        #expect(info.count.received == 100_000)
        #expect(info.waitingUntil == bench.clock.date + 1)
        #expect(info.error?.code.rawValue == code)
        await bench.advance(1)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Range") == ["-", "bytes=100000-"])
    }
}

extension Result {
    fileprivate var error: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
