import TestSupport
import Testing

/// The fake keeps the contract that the conformance suite holds real transports to: a test that passes over it says
/// something about the engine.
@Suite("The fake transport")
struct ScriptedTransportTests {
    private let clock = ManualClock()

    private func transport(_ answer: @escaping @Sendable (TransportRequest) -> ScriptedTransport.Answer)
        -> ScriptedTransport
    {
        ScriptedTransport(clock: clock) { request, _ in answer(request) }
    }

    private func start(_ transport: ScriptedTransport, _ handler: RecordingHandler) throws -> any TransportOperation {
        transport.start(try TransportConformance.Context.request("http://h.example/a"), handler: handler)
    }

    @Test("a pause with a time ends when the clock has reached it, not before, and by itself")
    func pause() async throws {
        let transport = transport { .file([1, 2, 3], to: $0) }
        let handler = RecordingHandler.pausing(once: 10)
        let operation = try start(transport, handler)
        #expect(await transport.paused(1) == [10])
        clock.advance(seconds: 9.9)
        await transport.idle()
        #expect(handler.record.value.pieces == 1)
        clock.advance(seconds: 0.1)
        let record = await handler.finished()
        #expect(record.body == [1, 2, 3] && record.pieces == 2 && record.violations.isEmpty)
        operation.resume()
        operation.cancel()
        await transport.idle()
        #expect(handler.record.value.violations.isEmpty)
    }

    @Test(
        "a pause without a time ends by `resume` alone, one with a time by it too", arguments: [nil, 10] as [Double?])
    func resume(_ seconds: Double?) async throws {
        let transport = transport { .file([1, 2, 3], to: $0) }
        let handler = RecordingHandler(onBody: { _, record in
            record.pieces == 0 ? .pause(seconds.map { .seconds($0) }) : .consumed
        })
        let operation = try start(transport, handler)
        await transport.idle()
        if seconds == nil { clock.advance(seconds: 1e6) }
        await transport.idle()
        #expect(handler.record.value.pieces == 1)
        operation.resume()
        #expect(await handler.finished().body == [1, 2, 3])
    }

    @Test("a gate is passed neither by `resume` nor by time")
    func gate() async throws {
        let gate = TestGate()
        let transport = transport { .file([1, 2, 3], to: $0, gate: gate, pauseAt: 1) }
        let handler = RecordingHandler()
        let operation = try start(transport, handler)
        await gate.reached()
        operation.resume()
        clock.advance(seconds: 1e6)
        await transport.idle()
        #expect(handler.record.value.bodyBytes == 1)
        gate.open()
        #expect(await handler.finished().body == [1, 2, 3])
    }

    @Test("shutdown ends what runs, at a gate and paused, and what is started later; nothing is called twice")
    func shutdown() async throws {
        let gate = TestGate()
        let transport = transport { .file([1, 2, 3], to: $0, gate: gate, pauseAt: 1) }
        let handlers = [
            RecordingHandler(), RecordingHandler(onBody: { _, _ in .pause(nil) }), .pausing(once: 5),
        ]
        for handler in handlers { _ = try start(transport, handler) }
        await transport.idle()
        #expect(transport.running == 3)
        transport.shutdown()
        #expect(transport.running == 0)
        let late = RecordingHandler()
        _ = try start(transport, late)
        gate.open()
        clock.advance(seconds: 5)
        await transport.idle()
        for handler in handlers + [late] {
            #expect(handler.record.value.error?.code == .cancelled)
            #expect(handler.record.value.violations.isEmpty)
        }
        #expect(late.record.value.head == nil)
    }

    @Test("shutdown from inside a callback returns, and a transport nobody holds ends what runs")
    func dropped() async throws {
        let inside = transport { .file([1, 2, 3], to: $0) }
        let handler = RecordingHandler(onBody: { [inside] _, _ in
            inside.shutdown()
            return .consumed
        })
        _ = try start(inside, handler)
        #expect(await handler.finished().violations.isEmpty)
        let gate = TestGate()
        let held = RecordingHandler()
        do { _ = try start(transport { .file([1, 2, 3], to: $0, gate: gate) }, held) }
        #expect(await held.finished().error?.code == .cancelled)
    }

    @Test("what is enough counts as delivered; a transfer may begin at the end of another")
    func enough() async throws {
        let transport = transport { .file([1, 2, 3], to: $0) }
        let second = RecordingHandler()
        let request = try TransportConformance.Context.request("http://h.example/b")
        let first = RecordingHandler(
            onBody: { _, _ in .enough }, onFinish: { [transport] in _ = transport.start(request, handler: second) })
        _ = try start(transport, first)
        #expect(await second.finished().body == [1, 2, 3])
        #expect(first.record.value.summary?.bodyBytes == 3)
        #expect(transport.peak == 1)
    }
}
