import TestSupport
import Testing

@testable import FKEngine

/// Verbs that come while an attempt is not in its body but somewhere else on its way.
@Suite("Verbs at every stage of an attempt")
struct VerbStageTests {
    static let content = Bytes.pattern(count: 3_000)
    static let verbs: [Verb] = [.suspend, .cancel, .trash]

    /// Gives the verb, waits until the engine has it, lets the stage go on, and returns what became of it.
    private func give(_ verb: Verb, to id: TaskID, _ bench: Bench, then goOn: () -> Void) async throws -> VerbResult {
        async let results = bench.engine.apply(verb, to: .id(id))
        let state: DownloadState = verb == .suspend ? .suspend : verb == .cancel ? .cancel : .unknown
        await bench.reached("a", state)
        goOn()
        return try await results[0]
    }

    private func check(_ verb: Verb, _ result: VerbResult, _ bench: Bench, _ id: TaskID) async throws {
        #expect(result.applied)
        #expect(await bench.engine.taskCounts.running == 0)
        switch verb {
        case .suspend:
            #expect(await bench.state(id) == .suspend)
            try await bench.control.resume(.id(id))
            try await bench.expect("a", Self.content, of: id)
            #expect(bench.names == ["a"])
        case .cancel:
            #expect(bench.names == [])
            #expect(await bench.state(id) == .cancel)
        default:
            #expect(bench.names == [])
            #expect(await bench.state(id) == .unknown)
        }
    }

    @Test("during the request chain: nothing is sent", arguments: verbs)
    func requestChain(_ verb: Verb) async throws {
        let bench = try await Bench(content: Self.content)
        let gate = bench.holdRequests()
        let id = try await bench.add("a")
        await gate.reached()
        let result = try await give(verb, to: id, bench) { gate.open() }
        #expect(bench.transport.requests.isEmpty)
        try await check(verb, result, bench, id)
    }

    @Test("before the head has come", arguments: verbs)
    func beforeHead(_ verb: Verb) async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in
            var answer = ScriptedTransport.Answer.file(Self.content, to: request)
            answer.steps.insert(.wait(gate), at: 0)
            return answer
        }
        let id = try await bench.add("a")
        await gate.reached()
        let result = try await give(verb, to: id, bench) { gate.open() }
        try await check(verb, result, bench, id)
    }

    @Test("during the response chain: suspend keeps the file, cancel and trash delete it", arguments: verbs)
    func responseChain(_ verb: Verb) async throws {
        let bench = try await Bench(content: Self.content)
        let gate = bench.holdResponses()
        let id = try await bench.add("a")
        await gate.reached()
        #expect(bench.names == ["a"])
        let result = try await give(verb, to: id, bench) { gate.open() }
        try await check(verb, result, bench, id)
        #expect(bench.transport.requests.count == 1)
        if verb == .suspend { #expect(gate.arrivals == 2) }
    }

    @Test("during the response chain, after a middleware has moved the file", arguments: verbs)
    func responseChainMoved(_ verb: Verb) async throws {
        let gate = TestGate()
        let bench = try await Bench(content: Self.content)
        let target = bench.folder.file("moved")
        bench.chains.onResponse("response step") { response in
            guard let file = response.fileURL else { return }
            try FileManager.default.moveItem(at: file, to: target)
            response.fileURL = target
            await gate.passed()
        }
        let id = try await bench.add("a")
        await gate.reached()
        let result = try await give(verb, to: id, bench) { gate.open() }
        #expect(result.applied)
        if verb == .suspend {
            try await bench.control.resume(.id(id))
            let info = try #require(await bench.finished(id))
            #expect(info.state == .complete && info.path == target.path, "\(String(describing: info.error))")
            #expect(try bench.folder.read("moved") == Self.content)
        } else {
            #expect(!FileManager.default.fileExists(atPath: target.path))
        }
    }

    /// The digest is read back on a queue of the engine's that this test holds with a barrier.
    @Test("while the digest is read back", arguments: verbs)
    func digest(_ verb: Verb) async throws {
        let bench = try await Bench { request, number in
            .file(Self.content, to: request, cut: number == 1 ? 1_000 : nil)
        }
        let id = try await bench.add("a") {
            $0.options.checksum = try? Checksum(.sha256, hex: Bytes.sha256(Self.content))
        }
        await bench.reached("a", .idle, times: 2)
        bench.engine.diskWork.suspend()
        await bench.advance(1)
        await bench.transport.started(2)
        // Only the digest is left once all bytes are there.
        try await bench.wait { await bench.messager.info(.id(id))?.count.received == 3_000 }
        let result = try await give(verb, to: id, bench) { bench.engine.diskWork.resume() }
        try await check(verb, result, bench, id)
    }

    @Test("while a retry is due", arguments: verbs)
    func waiting(_ verb: Verb) async throws {
        let bench = try await Bench { request, number in
            .file(Self.content, to: request, cut: number == 1 ? 1_000 : nil)
        }
        let id = try await bench.add("a")
        await bench.reached("a", .idle, times: 2)
        let result = try await give(verb, to: id, bench) {}
        await bench.advance(100)
        #expect(bench.transport.requests.count == 1)
        try await check(verb, result, bench, id)
    }
}
