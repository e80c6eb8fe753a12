import FKMiddleware
import Testing

@testable import FKTransport

@Suite("How many transfers share the connections to a server")
struct StreamGateTests {
    private let here = URLOrigin("https://here.example")!
    private let there = URLOrigin("https://there.example")!

    private func admitting(_ count: Int) -> (gate: StreamGate, admissions: [StreamGate.Admission]) {
        var gate = StreamGate()
        let admissions = (0..<UInt64(count)).map { gate.admit($0, to: here) }
        return (gate, admissions)
    }

    @Test("a hundred go at once")
    func hundred() {
        #expect(admitting(100).admissions.allSatisfy { $0 == .now })
    }

    @Test(
        "the first of every further hundred opens a connection, the others wait", arguments: [101, 200, 201, 256, 1000])
    func further(_ count: Int) {
        let (gate, admissions) = admitting(count)
        let openers = admissions.indices.filter { admissions[$0] == .onNewConnection }
        #expect(openers == Array(stride(from: 100, to: count, by: 100)))
        #expect(admissions.count { $0 == .later } == gate.waitingCount)
        #expect(gate.waitingCount == count - 100 - openers.count)
    }

    @Test("each new connection takes a hundred of those that wait, in their order")
    func connected() {
        var (gate, _) = admitting(256)
        gate.connected(5)
        #expect(gate.drainAdmitted().isEmpty)
        gate.connected(100)
        #expect(gate.drainAdmitted() == Array(101...199))
        gate.connected(100)
        #expect(gate.drainAdmitted().isEmpty)
        gate.connected(200)
        #expect(gate.drainAdmitted() == Array(201...255))
        #expect(gate.waitingCount == 0)
    }

    @Test("a place that becomes free is taken")
    func ended() {
        var (gate, _) = admitting(120)
        gate.ended(7)
        #expect(gate.drainAdmitted() == [101])
        gate.ended(110)
        gate.ended(8)
        gate.ended(9)
        #expect(gate.drainAdmitted() == [102, 103])
        #expect(gate.waitingCount == 15)
    }

    @Test("a connection that could not be opened is tried again by the next one that comes")
    func failed() {
        var (gate, _) = admitting(110)
        gate.ended(100)
        #expect(gate.drainAdmitted().isEmpty)
        #expect(gate.admit(500, to: here) == .onNewConnection)
    }

    @Test("HTTP/1.1: everything goes, each on its own connection")
    func serial() {
        var (gate, _) = admitting(256)
        gate.answeredSerially(3)
        #expect(gate.drainAdmitted().count == 154 && gate.waitingCount == 0)
        #expect(gate.admit(999, to: here) == .now)
    }

    @Test("servers do not count for one another, and are forgotten when nothing runs")
    func servers() {
        var (gate, _) = admitting(100)
        #expect(gate.admit(900, to: there) == .now)
        #expect(gate.admit(901, to: here) == .onNewConnection)
        gate.connected(901)
        for id in 0..<UInt64(100) { gate.ended(id) }
        gate.ended(901)
        #expect((1000..<1101).map { gate.admit($0, to: here) }.last == .onNewConnection)
    }

    @Test("all that wait come in at last, whatever ends first")
    func drains() {
        var (gate, _) = admitting(1000)
        var seen = Set((0..<UInt64(1000)).prefix(100))
        var running = seen
        for opener in stride(from: UInt64(100), to: 1000, by: 100) { running.insert(opener) }
        seen.formUnion(running)
        while let id = running.popFirst() {
            gate.ended(id)
            let admitted = gate.drainAdmitted()
            running.formUnion(admitted)
            seen.formUnion(admitted)
        }
        #expect(seen.count == 1000 && gate.waitingCount == 0)
    }
}
