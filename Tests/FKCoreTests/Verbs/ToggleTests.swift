import TestSupport
import Testing

@testable import FKEngine

@Suite("Toggle")
struct ToggleTests {
    static let content = Bytes.pattern(count: 1_000)

    @Test(
        "what a toggle comes to in each state",
        arguments: zip(
            DownloadState.allCases, [Verb.suspend, .suspend, .resume, .retry, .retry, nil, nil]))
    func rule(_ state: DownloadState, _ verb: Verb?) {
        #expect(state.toggleVerb == verb)
        if let verb {
            guard case .to = StateMachine.decide(verb, in: state) else {
                return unexpected("\(verb) does not apply in \(state)")
            }
        }
    }

    @Test("running and waiting tasks are suspended together, then go on together")
    func pair() async throws {
        let gate = TestGate()
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

    @Test("one call adds, pauses, resumes, and reports a complete file; a file that is gone is fetched again")
    func orAdd() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, number in
            .file(Self.content, to: request, gate: number == 1 ? gate : nil, pauseAt: 10)
        }
        var builder = try Builder("http://h.example/a")
        builder.directory = bench.out
        let id = builder.id
        func press() async throws -> (states: [DownloadState], ends: [String?]) {
            let (states, ends) = (Observed<[DownloadState]>([]), Observed<[String?]>([]))
            let registration = try await bench.messager.toggle(
                orAdd: builder, stateChanged: { state in states.update { $0.append(state) } },
                completion: { end in ends.update { $0.append(try? end.get().path) } })
            if bench.transport.requests.count == 1, await bench.state(id) == .action { await gate.reached() }
            await bench.settle()
            if await bench.state(id) != .suspend, gate.arrivals == 0 || bench.transport.requests.count > 1 {
                _ = await bench.finished(id)
            }
            await bench.messager.waitForReports()
            registration.cancel()
            return (states.value, ends.value)
        }
        builder.priority = 4
        let first = try await press()
        #expect(first.states.last == .action && first.ends.isEmpty)
        builder.priority = 0
        let second = try await press()
        #expect(second.states == [.suspend] && second.ends.isEmpty)
        #expect(try bench.stored(id).task.priority == 4)
        let third = try await press()
        #expect(third.states.last == .complete && third.ends == ["\(bench.out)/a"])
        let count = bench.transport.requests.count
        let fourth = try await press()
        #expect(fourth.states == [.complete] && fourth.ends == ["\(bench.out)/a"])
        #expect(bench.transport.requests.count == count)
        try FileManager.default.removeItem(atPath: bench.out + "/a")
        let fifth = try await press()
        #expect(fifth.states.last == .complete && fifth.ends.last == "\(bench.out)/a")
        #expect(bench.transport.requests.count == count + 1 && bench.names == ["a"])
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
