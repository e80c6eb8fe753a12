import TestSupport
import Testing

private let second: Int64 = 1_000_000_000

/// Tasks that want bytes from the same shares, by a clock of their own.
private struct Crowd {
    struct Member {
        var limits: [Int] = [0]
        /// The bytes that it still wants.
        var rest: Int
        var piece = 16 << 10
        var connections = 1
        var begin: Int64 = 0
        /// When each of its connections asks again.
        var due: [Int64] = []
        var passed = 0
        var end: Int64?
    }

    var limits: [FairShares]
    var members: [Member]

    /// Runs until that time, each connection asking when it was told to.
    mutating func run(until end: Int64) {
        for index in members.indices where members[index].due.isEmpty {
            members[index].due = Array(repeating: members[index].begin, count: members[index].connections)
        }
        while let (member, connection) = next(before: end) { ask(member, connection) }
    }

    private func next(before end: Int64) -> (Int, Int)? {
        var best: (Int, Int)?
        var time = end
        for (index, member) in members.enumerated() where member.rest > 0 {
            for (connection, due) in member.due.enumerated() where due < time {
                time = due
                best = (index, connection)
            }
        }
        return best
    }

    private mutating func ask(_ index: Int, _ connection: Int) {
        var member = members[index]
        let now = member.due[connection]
        var count = min(member.piece, member.rest)
        var seconds = 0.0
        for limit in member.limits {
            switch limits[limit].offer(count, to: UInt64(index), now: now) {
            case .bytes(let offered): count = min(count, offered)
            case .wait(let time): seconds = max(seconds, time)
            }
        }
        if seconds > 0 {
            // The transport's timers count in milliseconds.
            member.due[connection] = now + Int64((seconds * 1_000).rounded(.up)) * 1_000_000
        } else {
            for limit in member.limits { limits[limit].spend(count, by: UInt64(index)) }
            member.rest -= count
            member.passed += count
            if member.rest == 0 {
                member.end = now
                for limit in member.limits { limits[limit].leave(UInt64(index)) }
            }
        }
        members[index] = member
    }
}

@Suite("Fair shares of a rate")
struct FairSharesTests {
    private static func crowd(_ rate: Int64, _ members: [Crowd.Member]) -> Crowd {
        Crowd(limits: [FairShares(rate: rate, now: 0)], members: members)
    }

    @Test(
        "each task has its share within two seconds, whatever its pieces and connections",
        arguments: [Int64(100_000), 200_000, 1 << 20, 8 << 20], [2, 8, 40])
    func shares(_ rate: Int64, _ count: Int) {
        var members = (0..<count).map { index in
            Crowd.Member(rest: .max >> 1, piece: [16 << 10, 1_000, 7_000][index % 3], connections: index % 4 + 1)
        }
        members[0].piece = 512 << 10
        var crowd = Self.crowd(rate, members)
        for step in 1...5 {
            let before = crowd.members.map(\.passed)
            crowd.run(until: Int64(step) * 2 * second)
            let share = Double(rate) * 2 / Double(count)
            for (index, member) in crowd.members.enumerated() {
                let passed = Double(member.passed - before[index])
                #expect(
                    passed > share * 0.5 - 2_048 && passed < share * 1.6 + 131_072,
                    "\(index) at \(step): \(passed) of \(share)")
            }
            let sum = crowd.members.reduce(0) { $0 + $1.passed }
            #expect(Double(sum) <= Double(rate) * 2 * Double(step) * 1.01 + 65_536 + Double(count * 16_384))
            #expect(Double(sum) >= Double(rate) * 2 * Double(step) * 0.9 - 65_536)
        }
    }

    @Test("small files beside large ones end first, also those that come later")
    func small() throws {
        var members = (0..<15).map { _ in Crowd.Member(rest: 20 << 20, connections: 4) }
        members.append(Crowd.Member(rest: 32 << 10))
        members.append(Crowd.Member(rest: 32 << 10, begin: 20 * second))
        var crowd = Self.crowd(1 << 20, members)
        crowd.run(until: 30 * second)
        #expect(try #require(crowd.members[15].end) < second)
        #expect(try #require(crowd.members[16].end) < 21 * second)
    }

    @Test("a task alone has the whole rate, and takes the shares of those that went or stopped asking")
    func alone() {
        var crowd = Self.crowd(1 << 20, [Crowd.Member(rest: .max >> 1), Crowd.Member(rest: 100_000)])
        // The second one asks once and never again.
        _ = crowd.limits[0].offer(16 << 10, to: 7, now: 0)
        crowd.run(until: 10 * second)
        #expect(crowd.members[0].passed > 10 << 20 - 100_000 - 200_000)
    }

    @Test("several limits together: each holds, and what one task may not use is for the others")
    func composed() {
        let total = FairShares(rate: 1_000_000, now: 0)
        let barrel = FairShares(rate: 100_000, now: 0)
        let own = FairShares(rate: 10_000, now: 0)
        var crowd = Crowd(
            limits: [total, barrel, own],
            members: [
                Crowd.Member(limits: [0], rest: .max >> 1), Crowd.Member(limits: [0, 1], rest: .max >> 1),
                Crowd.Member(limits: [0, 1, 2], rest: .max >> 1),
            ])
        crowd.run(until: 60 * second)
        let rates = crowd.members.map { Double($0.passed) / 60 }
        #expect((9_000...11_500).contains(rates[2]) && (80_000...92_000).contains(rates[1]), "\(rates)")
        #expect(rates[0] > 860_000 && rates.reduce(0, +) < 1_010_000, "\(rates)")
    }

    @Test("a rate that is raised or lifted counts at the next offer; a credit that nobody fetches returns")
    func changed() {
        var shares = FairShares(rate: 1_000, now: 0)
        guard case .wait(let seconds) = shares.offer(10_000, to: 1, now: 0) else { return unexpectedOffer() }
        #expect(seconds == 10)
        shares.setRate(100_000, now: 0)
        guard case .wait(let less) = shares.offer(10_000, to: 1, now: 0) else { return unexpectedOffer() }
        #expect(less == 0.1)
        shares.setRate(nil, now: 0)
        let last = shares.offer(10_000, to: 1, now: 0)
        #expect(last == .bytes(10_000))
    }

    private func unexpectedOffer(sourceLocation: SourceLocation = #_sourceLocation) {
        Issue.record("no wait", sourceLocation: sourceLocation)
    }
}
