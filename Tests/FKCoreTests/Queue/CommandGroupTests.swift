import TestSupport
import Testing

@Suite("Limits of commands")
struct CommandGroupTests {
    /// Groups with these tasks at once, each with so many tasks open and running.
    private func groups(_ list: [(maxAction: Int?, open: Int, running: Int)]) -> (CommandGroups, [Int32]) {
        var groups = CommandGroups()
        var numbers: [Int32] = []
        for (index, group) in list.enumerated() {
            let number = groups.number(for: OwnLimits(name: "\(index)", maxAction: group.maxAction), now: 0)
            groups.count(number, open: group.open)
            for _ in 0..<group.running { groups.began(number) }
            numbers.append(number)
        }
        return (groups, numbers)
    }

    @Test("a group with tasks at once has slots of its own; all others share")
    func slots() {
        var (groups, numbers) = groups([(2, 5, 1), (nil, 5, 2)])
        #expect(groups.hasSlot(numbers[0], shared: 2))
        #expect(!groups.hasSlot(numbers[1], shared: 2) && !groups.hasSlot(CommandGroups.none, shared: 2))
        groups.began(numbers[0])
        #expect(!groups.hasSlot(numbers[0], shared: 9))
        groups.ended(numbers[1])
        #expect(groups.hasSlot(CommandGroups.none, shared: 2))
    }

    @Test("the slots that tasks wait for, where all of them are taken")
    func taken() {
        #expect(groups([]).0.taken(shared: 3, open: 0) == nil)
        #expect(groups([(1, 2, 1)]).0.taken(shared: 3, open: 2) == 1)
        #expect(groups([(1, 1, 1)]).0.taken(shared: 3, open: 1) == nil, "nobody waits")
        #expect(groups([(2, 3, 1)]).0.taken(shared: 3, open: 3) == nil, "one is free")
        #expect(groups([(1, 2, 1), (nil, 4, 3)]).0.taken(shared: 3, open: 6) == 4)
        #expect(groups([(1, 2, 1), (nil, 3, 3)]).0.taken(shared: 3, open: 5) == 1)
        #expect(groups([(1, 2, 1), (nil, 4, 2)]).0.taken(shared: 3, open: 6) == nil)
    }

    @Test("a group ends with its last task, and its number is not used again")
    func end() {
        var (groups, numbers) = groups([(1, 1, 1)])
        groups.count(numbers[0], open: -1)
        #expect(groups.maxAction(of: numbers[0]) == 1, "it holds a slot yet")
        groups.ended(numbers[0])
        #expect(groups.maxAction(of: numbers[0]) == nil)
        #expect(groups.number(for: OwnLimits(name: "0"), now: 0) != numbers[0])
        #expect(groups.hasSlot(CommandGroups.none, shared: 1))
    }

    @Test("rates end for all, or for the members of a barrel")
    func rates() {
        var groups = CommandGroups()
        let one = groups.number(for: OwnLimits(name: "1", rateLimit: 7), now: 0)
        let two = groups.number(for: OwnLimits(name: "2", maxAction: 1), now: 0)
        #expect(groups.number(for: OwnLimits(name: "1", rateLimit: 7), now: 0) == one)
        #expect(groups.limiter(of: one)?.rate == 7 && groups.limiter(of: two) == nil)
        groups.liftRates(ofBarrel: "b")
        #expect(groups.limiter(of: one, barrels: ["a", "b"]) == nil && groups.limiter(of: one, barrels: ["a"]) != nil)
        #expect(groups.liftRates() == 1 && groups.limiter(of: one) == nil)
        #expect(groups.maxAction(of: two) == 1 && groups.liftRates() == 0)
    }
}
