import TestSupport
import Testing

@testable import FKEngine

@Suite("Toggle", .timeLimit(.minutes(10)))
struct ToggleTests {
    static let content = Bytes.pattern(count: 1_000)

    @Test(
        "what a toggle comes to in each state",
        arguments: zip(
            DownloadState.allCases, [Verb.suspend, .suspend, .resume, .retry, .retry, nil, nil]))
    func rule(_ state: DownloadState, _ verb: Verb?) {
        #expect(StateMachine.toggles(state) == verb)
        if let verb {
            guard case .to = StateMachine.decide(verb, in: state) else {
                return unexpected("\(verb) does not apply in \(state)")
            }
        }
    }

    @Test("running and waiting tasks are suspended together, then go on together")
    func pair() async throws {
        let gate = FakeGate()
        let bench = try await Bench(settings: { $0.maxAction = 1 }) { request, number in
            .file(Self.content, to: request, gate: number == 1 ? gate : nil, pauseAt: 10)
        }
        try await bench.add("a")
        try await bench.add("b")
        await gate.reached()
        let first = try await bench.control.toggle(.all)
        #expect(first.map(\.verb) == [.suspend, .suspend])
        #expect(await bench.messager.all().map(\.state) == [.suspend, .suspend])
        #expect(bench.transport.requests.count == 1)
        let second = try await bench.control.toggle(.all)
        #expect(second.map(\.verb) == [.resume, .resume])
        gate.open()
        await bench.engine.waitUntilDrained()
        let third = try await bench.control.toggle("http://h.example/a")
        #expect(third.map(\.applied) == [false])
        #expect(third[0].note == "is complete already: nothing to resume")
    }

    @Test("cancelled and failed tasks are queued again, also through a request; an unknown one is not found")
    func again() async throws {
        let bench = try await Bench { request, number in number == 1 ? .status(404) : .file(Self.content, to: request) }
        let id = try await bench.add("a")
        #expect(await bench.finished(id)?.state == .error)
        let request = try StoreJSON.encode(EngineMessage(.toggle(.id(id))))
        let reply = await bench.engine.answer(try StoreJSON.decode(EngineMessage.self, from: request))
        let results = try #require(reply.verbResults)
        #expect(results.map(\.verb) == [.retry])
        #expect(await bench.finished(id)?.state == .complete)
        await #expect(throws: DownloadError.self) { try await bench.control.toggle("http://h.example/none") }
    }
}
