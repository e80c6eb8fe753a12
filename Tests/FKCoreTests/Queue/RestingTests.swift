import TestSupport
import Testing

@testable import FKEngine

/// Tasks of a long run that are on disk alone while nothing happens to them.
@Suite("Resting tasks")
struct RestingTests {
    /// The number of tasks that the engine keeps in memory.
    private static let crowd = 200
    private static let count = crowd + 200
    private static let content: [UInt8] = [1, 2, 3]

    /// An engine of the command line with more tasks than it keeps in memory; the first one runs until the gate opens.
    private static func scene() async throws -> (bench: Bench, gate: TestGate, ids: [TaskID]) {
        let gate = TestGate()
        let bench = try await Bench(scope: .chosen, crowd: crowd, settings: { $0.maxAction = 1 }) { request, _ in
            let isFirst = request.urlRequest.url?.lastPathComponent == "f0"
            return isFirst ? .file(content, to: request, gate: gate, pauseAt: 1) : .file(content, to: request)
        }
        let tasks = (0..<count).map { bench.task("http://h.example/f\($0)") }
        let added = try await bench.engine.add(tasks, barrel: "all", run: true)
        #expect(added.allSatisfy { $0.error == nil && $0.isNew && $0.state != .unknown })
        await gate.reached()
        return (bench, gate, added.map(\.id))
    }

    @Test("verbs, questions and a second asking find a task that rests")
    func found() async throws {
        let (bench, gate, ids) = try await Self.scene()
        let last = try #require(ids.last)
        #expect(await bench.engine.isParked(last))
        #expect(await bench.state(last) == .idle)
        let suspended = try await bench.control.suspend(.id(ids[Self.count - 2]))
        #expect(suspended.first?.applied == true)
        let again = try await bench.engine.add(
            [bench.task("http://h.example/f\(Self.count - 3)")], barrel: nil, run: true)
        #expect(again[0].id == ids[Self.count - 3] && !again[0].isNew && again[0].state == .idle)
        let trashed = try await bench.control.trash(.id(ids[Self.count - 4]))
        #expect(trashed.first?.after == .unknown)
        gate.open()
        await bench.engine.waitUntilSettled(ids)
        #expect(try await bench.messager.barrelInfo("all").states == [.complete: Self.count - 2, .suspend: 1])
        // A finished one that rests: done already, and trashed with its file.
        #expect(await bench.engine.taskCounts.known < Self.count)
        #expect(try await bench.control.retry(.id(last)).first?.applied == false)
        #expect(try await bench.control.trash(.id(last)).first?.after == .unknown)
        #expect(bench.names.count == Self.count - 3)
    }

    @Test("asked for all tasks, the engine has them all")
    func everything() async throws {
        let (bench, gate, ids) = try await Self.scene()
        #expect(try await bench.engine.infos(.all).map(\.id) == ids)
        #expect(try await bench.engine.infos(.url("http://h.example/f\(Self.count - 1)")).map(\.id) == ids.suffix(1))
        #expect(await bench.engine.taskCounts == (Self.count, 1, Self.count))
        gate.open()
        await bench.engine.waitUntilSettled(ids)
        #expect(await bench.engine.taskCounts == (Self.count, 0, 0))
    }

    @Test("tasks leave the memory again some time after all were asked for, and are found by their URL without that")
    func again() async throws {
        let (bench, gate, ids) = try await Self.scene()
        let most = Self.crowd + 64
        for number in [Self.count - 1, 3, Self.count - 2] {
            let infos = try await bench.engine.infos(.url("http://h.example/f\(number)"))
            #expect(infos.map(\.id) == [ids[number]])
            #expect(await bench.engine.taskCounts.known <= most)
        }
        #expect(try await bench.engine.infos(.url("http://h.example/none")).isEmpty)
        let late = try await bench.add("http://h.example/late")
        #expect(try await bench.engine.infos(.url("http://h.example/late")).map(\.id) == [late])
        #expect(try await bench.control.trash(.url("http://h.example/f\(Self.count - 5)")).first?.after == .unknown)
        #expect(try await bench.engine.infos(.url("http://h.example/f\(Self.count - 5)")).isEmpty)
        #expect(await bench.engine.taskCounts.known <= most)
        #expect(try await bench.engine.infos(.all).count == Self.count)
        #expect(await bench.engine.taskCounts.known == Self.count)
        await bench.advance(5)
        #expect(await bench.engine.taskCounts.known == Self.count)
        await bench.advance(6)
        #expect(await bench.engine.taskCounts == (most - 64, 1, Self.count))
        #expect(
            try await bench.engine.infos(.url("http://h.example/f\(Self.count - 1)")).map(\.id) == [ids[Self.count - 1]]
        )
        gate.open()
        await bench.engine.waitUntilDrained()
        #expect(try await bench.messager.barrelInfo("all").states == [.complete: Self.count - 1])
    }

    @Test("a resting task whose info file was lost is reported and holds nobody up")
    func lost() async throws {
        let (bench, gate, ids) = try await Self.scene()
        try Data([0]).write(to: URL(fileURLWithPath: bench.workPath.infoPath(ids[Self.count - 1])))
        gate.open()
        await bench.engine.waitUntilDrained()
        await bench.engine.waitUntilSettled(ids)
        #expect(await bench.engine.taskCounts.open == 0)
        #expect(await bench.engine.takeProblems().count == 1)
        let states = try await bench.messager.barrelInfo("all").states
        #expect(states[.complete] == Self.count - 1, "\(states)")
    }

    @Test("finished files that wait for their sync stay in memory, so that their records are only written")
    func awaitingSync() async throws {
        let count = 160
        let bench = try await Bench(scope: .chosen, crowd: Self.crowd, settings: { $0.maxAction = 16 }) { request, _ in
            .file(Self.content, to: request)
        }
        let added = try await bench.engine.add((0..<count).map { bench.task("f\($0)") }, barrel: nil, run: true)
        await bench.engine.waitUntilSettled(added.map(\.id))
        #expect(await bench.engine.taskCounts.known == count)
        let last = try #require(added.last).id
        try await bench.advance(by: 1) { try bench.stored(last).synced == true }
        try await bench.turn { $0.taskCounts.known <= Self.crowd / 4 }
        #expect(try added.allSatisfy { try bench.stored($0.id).synced == true })
    }
}
