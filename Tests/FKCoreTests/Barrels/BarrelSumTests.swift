import TestSupport
import Testing

@testable import FKCore

/// A sum of lengths that are not all known.
@Suite("Members of unknown length")
struct BarrelSumTests {
    private static let small = Bytes.pattern(count: 1_000)
    private static let large = Bytes.pattern(count: 300_000)

    /// The first byte of a member's name says which file it is.
    private func bench(_ gate: TestGate) async throws -> Bench {
        try await Bench(settings: { $0.maxAction = 1 }) { request, _ in
            request.urlRequest.url?.lastPathComponent.first == "s"
                ? .file(Self.small, to: request) : .file(Self.large, to: request, gate: gate, pauseAt: 100_000)
        }
    }

    @Test("while a member's length is unknown the sum says so, and there is no fraction of it")
    func lowerBound() async throws {
        let gate = TestGate()
        let bench = try await bench(gate)
        for name in ["s1", "s2", "large1", "large2"] { try await bench.add(name, barrel: "b") }
        await bench.reached("s2", .complete)
        await gate.reached()
        await bench.sync()
        let info = try await bench.messager.barrelInfo("b")
        #expect(info.count == ByteCount(received: 102_000, expected: 302_000, isLowerBound: true))
        #expect(!info.isExpectedKnown && info.fraction == nil && info.count.fraction == nil)
        #expect(info.fileFraction == 0.5)
        let progress = try await bench.messager.progress(.barrel("b"))
        #expect(progress.isIndeterminate && progress.fractionCompleted == 0)
        #expect(progress.userInfo[.fileCompletedCountKey] as? Int == 2)
        #expect(progress.userInfo[.estimatedTimeRemainingKey] == nil)
        gate.open()
        await bench.engine.waitUntilDrained()
        let last = try await bench.messager.barrelInfo("b")
        #expect(last.isExpectedKnown && last.fraction == 1 && last.fileFraction == 1)
        #expect(last.count == ByteCount(received: 602_000, expected: 602_000))
    }

    @Test("a barrel that is silent reports a rate that falls, and no sum twice")
    func silence() async throws {
        let first = TestGate()
        let gate = TestGate()
        let bench = try await Bench { request, _ in
            var answer = ScriptedTransport.Answer.file(Self.large, to: request, gate: gate, pauseAt: 100_000)
            answer.steps.insert(.wait(first), at: 1)
            return answer
        }
        let rates = Observed<[Double]>([])
        try await bench.add("large", barrel: "b")
        try await bench.messager.addBarrelInfo("b") { info in rates.update { $0.append(info.bytesPerSecond) } }.keep()
        await first.reached()
        await bench.advance(1)
        first.open()
        await gate.reached()
        try await bench.advance(by: 1) { rates.value.contains { $0 > 0 } }
        let rate = try #require(rates.value.last)
        try await bench.advance(by: 1) { rates.value.last.map { $0 < rate / 2 } ?? false }
        gate.open()
        await bench.engine.waitUntilDrained()
        await bench.downloader.close()
        #expect(rates.value.last == 0)
    }

    @Test("a member leaves and joins between two reports: the equal sum, perhaps of others, is reported once more")
    func exchanged() async throws {
        let bench = try await Bench { request, _ in .file(Self.small, to: request) }
        let id = try await bench.add("s1", barrel: "b")
        try await bench.add("s2", barrel: "b")
        await bench.engine.waitUntilDrained()
        let sums = Observed<Int>(0)
        try await bench.messager.addBarrelInfo("b") { _ in _ = sums.next() }.keep()
        await bench.advance(2)
        let before = sums.value
        try await bench.messager.leave(.id(id), barrel: "b")
        _ = try await bench.messager.join([.id(id)], barrel: "b")
        try await bench.advance(by: 1) { sums.value > before }
        await bench.advance(2)
        #expect(sums.value == before + 1)
    }

    @Test("a failed member without a length: the fraction is that of the others; a trashed one does not count")
    func ended() async throws {
        let bench = try await Bench(settings: { $0.retry.maxAttempts = 1 }) { request, _ in
            request.urlRequest.url?.lastPathComponent == "gone" ? .status(404) : .file(Self.small, to: request)
        }
        for name in ["s1", "gone"] { try await bench.add(name, barrel: "b") }
        await bench.engine.waitUntilDrained()
        var info = try await bench.messager.barrelInfo("b")
        #expect(!info.isExpectedKnown && info.fraction == 0.999 && info.fileFraction == 0.5)
        #expect(info.unknownLengths == 0)
        try await bench.control.trash(.url("http://h.example/gone"))
        info = try await bench.messager.barrelInfo("b")
        #expect(info.isExpectedKnown && info.fraction == 1 && info.isComplete)
        let empty = BarrelInfo(name: "none")
        #expect(!empty.isExpectedKnown && empty.fraction == nil && empty.fileFraction == 0)
    }

    @Test("several barrels with a common member have sums of their own; a restart changes none")
    func several() async throws {
        let gate = TestGate()
        let first = try await bench(gate)
        let shared = try await first.add("s1", barrel: "x")
        try await first.add("large", barrel: "y")
        _ = try await first.messager.add(.id(shared), toBarrel: "y")
        await gate.reached()
        await first.sync()
        #expect(try await first.messager.barrelInfo("x").fraction == 1)
        let before = try await first.messager.barrelInfo("y")
        #expect(before.count == ByteCount(received: 101_000, expected: 301_000) && before.isExpectedKnown)
        #expect(before.fraction == 101_000 / 301_000.0)
        await first.downloader.close()
        let second = try await Bench(in: first.folder, isActive: false, content: Self.small)
        let after = try await second.messager.barrelInfo("y")
        #expect(after.fraction == before.fraction && after.isExpectedKnown)
        #expect(try await second.messager.barrelInfo("x").fraction == 1)
        gate.open()
    }

    @Test("bytes dropped for a shorter version leave the fraction and the progress where they were")
    func dropped() async throws {
        let gates = [TestGate(), TestGate()]
        let bench = try await Bench(settings: { $0.maxAction = 2 }) { request, number in
            switch request.urlRequest.url?.lastPathComponent {
            case "other": .file(Self.large, to: request, gate: gates[1], pauseAt: 10_000)
            case _ where number <= 2: .file(Self.large, etag: "\"1\"", to: request, gate: gates[0], pauseAt: 290_000)
            default: .file(Self.small, etag: "\"2\"", to: request)
            }
        }
        let id = try await bench.add("changes", barrel: "b")
        try await bench.add("other", barrel: "b")
        for gate in gates { await gate.reached() }
        await bench.sync()
        let progress = try await bench.messager.progress(.barrel("b"))
        let seen = Observed<[Double?]>([])
        try await bench.messager.addBarrelInfo("b") { info in seen.update { $0.append(info.fraction) } }.keep()
        let before = try await bench.messager.barrelInfo("b")
        #expect(before.fraction == 0.5 && progress.fractionCompleted == 0.5)
        try await bench.control.suspend(.id(id))
        try await bench.control.resume(.id(id))
        #expect(await bench.finished(id)?.state == .complete)
        await bench.advance(1)
        let after = try await bench.messager.barrelInfo("b")
        #expect(after.count.received < before.count.received && after.fraction == 0.5)
        #expect(progress.fractionCompleted >= 0.5 && !progress.isFinished)
        gates.forEach { $0.open() }
        await bench.engine.waitUntilDrained()
        await bench.advance(1)
        let all = await seen.wait { $0.last == 1 }.compactMap(\.self)
        #expect(zip(all, all.dropFirst()).allSatisfy { $0 <= $1 })
    }

    @Test("whatever becomes of members, the fraction never falls, and is 1 only at the end")
    func random() {
        var random = SeededRandom(seed: 115)
        for _ in 0..<300 {
            var barrel = BarrelEntry(record: BarrelRecord(name: "b", created: Date(timeIntervalSince1970: 0)))
            barrel.count([])
            var members: [TaskID: TaskTotals.Share] = [:]
            var last: Double?
            var joined = 0
            for _ in 0..<60 {
                let id = members.keys.sorted().randomElement(using: &random)
                switch Int.random(in: 0..<6, using: &random) {
                case 0:
                    joined += 1
                    let id = TaskID(url: "http://h/\(joined)")
                    if barrel.info().isComplete { last = nil }
                    _ = barrel.insert(.init(id: id, url: "http://h/\(joined)"))
                    members[id] = TaskTotals.Share(state: .idle)
                    barrel.replace(.init(), by: members[id]!)
                case 1 where members.count > 1:
                    _ = barrel.remove(id!)
                    barrel.replace(members.removeValue(forKey: id!)!, by: .init())
                default:
                    guard let id, let old = members[id] else { continue }
                    let new = share(after: old, &random)
                    if barrel.info().isComplete, new.state != .complete { last = nil }
                    members[id] = new
                    barrel.replace(old, by: new)
                }
                let info = barrel.info()
                let isComplete = !members.isEmpty && members.values.allSatisfy { $0.state == .complete }
                #expect(info.isExpectedKnown == (!members.isEmpty && members.values.allSatisfy { $0.expected != nil }))
                #expect((info.fraction == 1) == isComplete)
                #expect(info.fraction ?? 1 >= last ?? 0)
                if last != nil { #expect(info.fraction != nil) }
                last = info.fraction
            }
        }
    }

    private func share(after old: TaskTotals.Share, _ random: inout SeededRandom) -> TaskTotals.Share {
        let length = Int64.random(in: 0...1_000, using: &random)
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return .init(received: length, expected: length, state: .complete)
        case 1: return .init(state: .error)
        case 2: return .init(state: .cancel)
        case 3: return .init(received: length / 3, state: .action)
        default: return .init(received: min(old.received, length), expected: length, state: .action)
        }
    }

    @Test("a progress is indeterminate without a whole, and keeps its fraction where that is lost again")
    func units() {
        var info = BarrelInfo(
            name: "b", count: ByteCount(received: 940, expected: 1_000, isLowerBound: true),
            states: [.action: 1, .idle: 1], total: 2)
        #expect(ProgressSnapshot(info).units == (940, -1) && ProgressSnapshot(info).remainingTime == nil)
        info.fraction = 0.5
        info.bytesPerSecond = 10
        info.count = ByteCount(received: 0, expected: 1_000)
        #expect(ProgressSnapshot(info).units == (500, 1_000))
        info.count = ByteCount(received: 0, expected: 333, isLowerBound: true)
        info.unknownLengths = 1
        #expect(ProgressSnapshot(info).units == (167, 333) && ProgressSnapshot(info).remainingTime == nil)
        info.fraction = 0.9999
        info.count = ByteCount(received: 10, expected: 10)
        #expect(ProgressSnapshot(info).units == (9, 10))
    }

    @Test("a sum that is a lower bound comes back from JSON as one; without a word it is the whole")
    func codable() throws {
        let count = ByteCount(received: 1, previousReceived: 2, expected: 3, isLowerBound: true)
        #expect(try JSONDecoder().decode(ByteCount.self, from: JSONEncoder().encode(count)) == count)
        let old = Data("{\"received\":1,\"previousReceived\":2,\"expected\":3}".utf8)
        #expect(
            try JSONDecoder().decode(ByteCount.self, from: old)
                == ByteCount(received: 1, previousReceived: 2, expected: 3))
    }
}
