import TestSupport
import Testing

@testable import FKEngine

/// Waits and sequences end: with what they follow, with whoever waits, and at once where there is nothing to follow.
@Suite("Waits and sequences that end")
struct SequenceTests {
    static let content = Bytes.pattern(count: 400_000)
    static let unknown = TaskID(url: "http://h.example/none")

    /// A task that runs, with 1,000 bytes.
    private func running() async throws -> (Bench, TaskID, TestGate) {
        try await Bench.held(Self.content, at: 1_000, barrel: "x")
    }

    enum Wait: CaseIterable { case finished, settled, drained }

    @Test("a wait ends when the Swift task that waits is cancelled", arguments: Wait.allCases, [false, true])
    func cancelled(_ wait: Wait, _ isEarly: Bool) async throws {
        let (bench, id, gate) = try await running()
        let mayBegin = Observed(isEarly)
        let waiter = Task { [downloader = bench.downloader, engine = bench.engine] in
            if isEarly { _ = try? await untilCancelled() }
            _ = await mayBegin.wait { $0 }
            switch wait {
            case .finished: return await downloader.messager.finished(id)?.state
            case .settled: await engine.waitUntilSettled([id])
            case .drained: await downloader.waitUntilDrained()
            }
            return await downloader.messager.state(.id(id))
        }
        if !isEarly {
            mayBegin.update { $0 = true }
            try await bench.turn { $0.waitCount > 0 }
        }
        waiter.cancel()
        #expect(await waiter.value == .action)
        #expect(await bench.engine.waitCount == 0)
        // Others go on waiting.
        async let other = bench.finished(id)
        gate.open()
        #expect(await other?.state == .complete)
    }

    @Test("waiting for what is not there, and on a closed downloader, returns at once")
    func nothing() async throws {
        let bench = try await Bench(content: Self.content)
        #expect(await bench.finished(Self.unknown) == nil)
        await bench.downloader.waitUntilDrained()
        await bench.downloader.close()
        #expect(await bench.finished(Self.unknown) == nil)
        await bench.downloader.waitUntilDrained()
    }

    @Test("a task that is trashed while somebody waits for it is gone")
    func trashedWhileWaiting() async throws {
        let (bench, id, gate) = try await running()
        async let finished = bench.finished(id)
        try await bench.turn { $0.waitCount > 0 }
        try await bench.control.trash(.id(id))
        #expect(await finished == nil)
        gate.open()
    }

    @Test("sequences of what was never there end without a value", arguments: [false, true])
    func unknown(_ isClosed: Bool) async throws {
        let bench = try await Bench(content: Self.content)
        if isClosed { await bench.downloader.close() }
        let messager = bench.messager
        let selectors: [TaskSelector] = [
            .id(Self.unknown), .url("http://h.example/none"), .url("not a url"), .barrel("none"), .all,
        ]
        for selector in selectors {
            for await info in messager.infos(selector) { Issue.record("\(info)") }
        }
        // Those of attempts wait for a task that may come (`PlanTests`), but not for what can have none.
        for selector in isClosed ? selectors : [.url("not a url"), .barrel("none"), .all] {
            for await info in messager.attempts(selector) { Issue.record("\(info)") }
        }
        for await info in messager.barrelInfos("none") { Issue.record("\(info)") }
        try await bench.unobserved()
    }

    @Test("sequences of what is gone end without a value")
    func gone() async throws {
        let (bench, id, gate) = try await running()
        try await bench.control.trash(.id(id))
        for selector in [TaskSelector.id(id), .url("http://h.example/a")] {
            for await info in bench.messager.infos(selector) { Issue.record("\(info)") }
        }
        gate.open()
    }

    enum Settled: CaseIterable { case complete, error, cancel }

    @Test("sequences of what has settled already: one info, no attempt", arguments: Settled.allCases)
    func settled(_ settled: Settled) async throws {
        let bench = try await Bench { request, _ in
            settled == .error ? .status(404) : .file(Self.content, to: request)
        }
        let id = try await bench.add("a", barrel: "x")
        _ = await bench.finished(id)
        if settled == .cancel {
            try await bench.control.trash(.id(id))
            try await bench.add("a", barrel: "x")
            try await bench.control.cancel(.id(id))
        }
        let state = await bench.state(id)
        for selector in [TaskSelector.id(id), .url("http://h.example/a")] {
            var states: [DownloadState] = []
            for await info in bench.messager.infos(selector) { states.append(info.state) }
            #expect(states == [state])
            for await info in bench.messager.attempts(selector) { Issue.record("\(info)") }
        }
        var sums: [BarrelInfo] = []
        for await info in bench.messager.barrelInfos("x") { sums.append(info) }
        #expect(sums.map(\.states) == [[state: 1]])
    }

    @Test("the sums of an empty barrel: one, and the end", arguments: [false, true])
    func emptyBarrel(_ isActive: Bool) async throws {
        let bench = try await Bench(isActive: isActive, content: Self.content)
        try await bench.messager.addBarrel("x", urls: [])
        var sums: [BarrelInfo] = []
        for await info in bench.messager.barrelInfos("x") { sums.append(info) }
        #expect(sums.map(\.total) == [0])
    }

    enum Leaving: CaseIterable { case trash, trashAll, remove, delete, close }

    @Test("the sums of a barrel whose members go meanwhile", arguments: Leaving.allCases, [false, true])
    func leaving(_ leaving: Leaving, _ isActive: Bool) async throws {
        let gate = TestGate()
        let bench = try await Bench(isActive: isActive) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 1_000)
        }
        for name in ["a", "b"] { try await bench.add(name, barrel: "x") }
        let first = Observed(false)
        let reader = Task { [messager = bench.messager] in
            var sums: [BarrelInfo] = []
            for await info in messager.barrelInfos("x") {
                sums.append(info)
                first.update { $0 = true }
            }
            return sums
        }
        _ = await first.wait { $0 }
        switch leaving {
        case .trash: try await bench.control.trash(.barrel("x"))
        case .trashAll: try await bench.control.trash(.all)
        case .remove:
            for name in ["a", "b"] { try await bench.messager.remove("http://h.example/\(name)", fromBarrel: "x") }
        case .delete: try await bench.messager.removeBarrel("x")
        case .close: await bench.downloader.close()
        }
        let sums = await reader.value
        #expect(sums.first?.total == 2)
        switch leaving {
        case .trash, .trashAll, .remove: #expect(sums.last?.total == 0)
        case .delete, .close: #expect(sums.last?.total == 2)
        }
        gate.open()
    }

    @Test("attempts of a task that is trashed while it waits", arguments: [false, true])
    func attemptsTrashed(_ byURL: Bool) async throws {
        let bench = try await Bench(isActive: false, content: Self.content)
        let id = try await bench.add("a")
        let selector: TaskSelector = byURL ? .url("http://h.example/a") : .id(id)
        let reader = Task { [messager = bench.messager] in
            var count = 0
            for await _ in messager.attempts(selector) { count += 1 }
            return count
        }
        try await bench.turn { $0.listeners.attempts > 0 }
        try await bench.control.trash(.id(id))
        #expect(await reader.value == 0)
    }

    @Test("a URL of two tasks: its sequences end when both have")
    func twoTasks() async throws {
        let gates = [TestGate(), TestGate()]
        let bench = try await Bench { request, number in
            .file(Self.content, to: request, gate: gates[number - 1], pauseAt: number * 1_000)
        }
        try await bench.add("a")
        await gates[0].reached()
        try await bench.add("a") { $0.directory = bench.folder.path + "/other" }
        await gates[1].reached()
        let heard = Observed<[DownloadInfo]>([])
        let infos = Task { [messager = bench.messager] in
            for await info in messager.infos("http://h.example/a") { heard.update { $0.append(info) } }
        }
        let attempts = Task { [messager = bench.messager] in
            var ends = 0
            for await info in messager.attempts("http://h.example/a") where info.phase == .succeeded { ends += 1 }
            return ends
        }
        _ = await heard.wait { $0.count >= 1 }
        try await bench.turn { $0.listeners.attempts > 0 }
        gates[0].open()
        _ = await heard.wait { $0.contains { $0.state == .complete } }
        gates[1].open()
        await infos.value
        #expect(await attempts.value == 2)
        #expect(Set(heard.value.filter { $0.state == .complete }.map(\.id)).count == 2)
    }

    @Test("a slow reader gets the first and the last info", arguments: [false, true])
    func firstAndLast(_ closes: Bool) async throws {
        let bench = try await Bench(isActive: false, content: Self.content)
        let id = try await bench.add("a", barrel: "x")
        let infos = bench.messager.infos(.id(id))
        let sums = bench.messager.barrelInfos("x")
        try await bench.turn { $0.listeners.barrels > 0 }
        try await bench.turn { $0.listeners.infos > 0 }
        await bench.engine.activate()
        if closes { await bench.downloader.close() } else { _ = await bench.finished(id) }
        if !closes { await bench.downloader.close() }
        var states: [DownloadState] = []
        for await info in infos { states.append(info.state) }
        #expect(states.first == .idle)
        #expect(try states.last == bench.stored(id).state)
        #expect(states.count <= 2)
        var last: [BarrelInfo] = []
        for await info in sums { last.append(info) }
        #expect(last.first?.states == [.idle: 1])
        #expect(try last.last?.states == [bench.stored(id).state: 1])
    }

    @Test("a sequence nobody reads, or whose reader is cancelled, leaves no listener behind")
    func unread() async throws {
        let (bench, id, gate) = try await running()
        do {
            let infos = bench.messager.infos(.id(id))
            let sums = bench.messager.barrelInfos("x")
            try await bench.turn { $0.listeners.infos > 0 }
            try await bench.turn { $0.listeners.barrels > 0 }
            _ = (infos, sums)
        }
        try await bench.unobserved()
        let reader = Task { [messager = bench.messager] in
            for await _ in messager.attempts(.id(id)) {}
            for await _ in messager.infos(.id(id)) {}
        }
        try await bench.turn { $0.listeners.attempts > 0 }
        reader.cancel()
        await reader.value
        try await bench.turn { $0.listeners.attempts == 0 }
        try await bench.unobserved()
        gate.open()
    }

    @Test("`Downloader.shared` is made anew after it was closed")
    func shared() async {
        // In a process of its own: the environment and the shared object are everybody's.
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder()
            for name in ["HOME", "XDG_STATE_HOME"] { setenv(name, folder.path + "/state", 1) }
            let one = try Downloader.shared
            await one.close()
            let two = try Downloader.shared
            #expect(one !== two)
            #expect(try two === Downloader.shared)
            _ = try await two.messager.records()
            try await two.control.suspendAll()
            await two.close()
        }
    }
}

extension Engine {
    fileprivate var waitCount: Int { reporter.observers.waits.count }
    fileprivate var listeners: (infos: Int, barrels: Int, attempts: Int) {
        (
            reporter.observers.tasks.count, reporter.observers.barrels.count, reporter.observers.attempts.count
        )
    }
}
