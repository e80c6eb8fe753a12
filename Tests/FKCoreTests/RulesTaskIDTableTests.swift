import Foundation
import TestSupport
import Testing

@testable import FKCore

@Suite struct RulesTaskIDTableTests {
    private func id(_ number: Int) -> TaskID { TaskID(url: "http://example.com/\(number)") }

    @Test("A number stays the same while others come and go, and is given again after its removal") func numbers() {
        var table = TaskIDTable()
        #expect(table.isEmpty && table.number(of: id(0)) == nil && table.remove(id(0)) == nil)
        let numbers = (0..<100).map { table.insert(id($0)) }
        #expect(numbers == Array(0..<100))
        #expect(table.insert(id(7)) == 7)
        #expect(table.count == 100)
        #expect(table.remove(id(7)) == 7)
        #expect(table.remove(id(7)) == nil)
        #expect(!table.contains(id(7)) && table.count == 99)
        #expect(table.insert(id(500)) == 7)
        #expect(table.id(of: 7) == id(500))
    }

    /// Sizes at which the table grows, and fills that make long runs of taken places.
    @Test("A thousand ids in and out at random: always what a dictionary says", arguments: UInt64(1)...20)
    func likeADictionary(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var table = TaskIDTable()
        var map = TaskMap<Int>()
        var model: [TaskID: Int] = [:]
        let ids = (0..<200).map(id)
        for step in 0..<1_000 {
            let id = ids[Int.random(in: 0..<ids.count, using: &random)]
            if Int.random(in: 0..<5, using: &random) < 2 {
                let had = table.remove(id) != nil
                #expect(had == (model[id] != nil))
                map[id] = nil
                model[id] = nil
            } else {
                _ = table.insert(id)
                map[id] = step
                model[id] = step
            }
            #expect(table.count == model.count && map.count == model.count)
        }
        for id in ids {
            #expect(table.contains(id) == (model[id] != nil))
            #expect(map[id] == model[id])
        }
        #expect(Set(table.all.map(\.id)) == Set(model.keys))
        #expect(Set(table.all.map(\.number)).count == model.count)
        #expect(Set(map.keys) == Set(model.keys))
        #expect(map.values.sorted() == model.values.sorted())
    }

    @Test("What a map no longer holds is let go") func releases() {
        final class Thing {}
        var map = TaskMap<Thing>()
        weak var thing: Thing?
        do {
            let made = Thing()
            thing = made
            map[id(1)] = made
        }
        #expect(thing != nil)
        map[id(1)] = nil
        #expect(thing == nil)
    }
}
