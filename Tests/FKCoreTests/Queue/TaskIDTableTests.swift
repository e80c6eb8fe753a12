import TestSupport
import Testing

@testable import FKEngine

@Suite struct TaskIDTableTests {
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

    @Test("a pool has one number for an id until its last holder is gone, and then gives it to another id")
    func pool() {
        let pool = TaskIDPool()
        let held = (0..<10_000).map { pool.hold(id($0)) { _ in false } }
        #expect(held.map(\.number) == (0..<10_000).map(Int32.init) && held.allSatisfy(\.isNew))
        #expect(pool.hold(id(7)) { _ in true } == (7, false))
        #expect(pool.hold(id(7)) { _ in false } == (7, true))
        pool.hold([7, 8])
        pool.release([7, 8])
        pool.release(7)
        #expect(pool.number(of: id(7)) == 7 && pool.id(of: 7) == id(7) && pool.count == 10_000)
        pool.release(7)
        #expect(pool.number(of: id(7)) == nil && pool.count == 9_999)
        #expect(pool.hold(id(20_000)) { _ in false } == (7, true))
        #expect(pool.id(of: 7) == id(20_000) && pool.number(of: id(20_000)) == 7)
        #expect((0..<10_000).allSatisfy { $0 == 7 || pool.number(of: id($0)) == Int32($0) })
        pool.release(0..<10_000)
        #expect(pool.count == 0 && pool.number(of: id(0)) == nil)
        #expect(pool.hold(id(1)) { _ in false } == (0, true))
    }

    @Test("a copy of a table changes alone, and a table that changes while it is listed lists what it had")
    func copies() {
        var table = TaskIDTable()
        for number in 0..<100 { table.insert(id(number)) }
        var copy = table
        copy.remove(id(3))
        copy.insert(id(200))
        #expect(table.contains(id(3)) && !table.contains(id(200)) && table.count == 100)
        #expect(!copy.contains(id(3)) && copy.number(of: id(200)) == 3 && copy.count == 100)
        var listed: [TaskID] = []
        for (id, _) in table.all {
            listed.append(id)
            table.remove(self.id(99 - listed.count))
            table.insert(self.id(1_000 + listed.count))
        }
        #expect(listed == (0..<100).map(id))
        var ordered = TaskIDTable(reusesNumbers: false)
        #expect(ordered.insert(id(0)) == 0)
        ordered.remove(id(0))
        #expect(ordered.insert(id(1)) == 1 && ordered.all.map(\.id) == [id(1)])
    }

    private struct Number: PooledValue, Hashable {
        var value: Int64
        var isNone: Bool { value == 0 }
    }

    @Test(
        "a pooled map, in and out at random: always what a dictionary says, and a copy changes alone",
        arguments: UInt64(1)...10)
    func pooled(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var map = PooledMap<Number>()
        var model: [TaskID: Int64] = [:]
        var copies: [(PooledMap<Number>, [TaskID: Int64])] = []
        // More ids than one page has, with others between them in the pool.
        let ids = (0..<20_000).map(id)
        let others = TaskIDTable.of(ids)
        for step in 1..<4_000 {
            let id = ids[Int.random(in: 0..<ids.count, using: &random) / (step % 2 == 0 ? 1 : 200)]
            let before = map.number(of: id)
            #expect((before != nil) == (model[id] != nil))
            switch Int.random(in: 0..<5, using: &random) {
            case 0, 1:
                if let before { map.remove(before) }
                model[id] = nil
            case 2:
                if let before { map.update(before) { $0.value += 1 } }
                model[id]? += 1
            default:
                let number = map.insert(Number(value: Int64(step)), for: id)
                model[id] = Int64(step)
                #expect(map.id(of: number) == id && before ?? number == number)
            }
            #expect(map.count == model.count && map[id]?.value == model[id])
            if step % 1_000 == 0 { copies.append((map, model)) }
        }
        for (map, model) in copies + [(map, model)] {
            #expect(
                Dictionary(uniqueKeysWithValues: map.numbers.map { (map.id(of: $0), map[$0]?.value ?? 0) }) == model)
            #expect(map.count == model.count && map.isEmpty == model.isEmpty)
        }
        #expect(others.count == ids.count)
    }

    @Test("a long queue gives back its memory while it drains in order, and all of it in any order")
    func drained() throws {
        let ids = (0..<50_000).map(id)
        let others = TaskIDTable.of(ids)
        var queue = ReadyQueue()
        // In the order of the pool's numbers, which other tests in this process may have taken meanwhile.
        for id in ids {
            let number = try #require(TaskIDPool.shared.number(of: id))
            queue.push(.init(id: id, number: UInt64(number), host: "a"))
        }
        let full = queue.byteCount
        for _ in 0..<37_500 { _ = queue.popNext { _, _ in true } }
        #expect(queue.count == 12_500 && queue.byteCount < full / 4 * 3)
        for id in ids.prefix(1_000) { queue.push(.init(id: id, priority: 1, number: 1, host: "a")) }
        while queue.popNext(isOpen: { _, _ in true }) != nil {}
        #expect(queue.isEmpty && queue.byteCount <= 2 << 16)
        #expect(others.count == ids.count)
    }

    @Test("tasks by URL, in and out at random: what it finds has every task of that URL", arguments: UInt64(1)...5)
    func byURL(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var table = URLTable()
        var model: [TaskID: String] = [:]
        for _ in 0..<2_000 {
            let number = Int.random(in: 0..<300, using: &random)
            let (id, url) = (id(number), "http://example.com/\(number % 50)")
            if Bool.random(using: &random) {
                table.insert(id, url)
                model[id] = url
            } else {
                table.remove(id)
                model[id] = nil
            }
            #expect(table.count == model.count && table.contains(id) == (model[id] != nil))
        }
        for number in 0..<50 {
            let url = "http://example.com/\(number)"
            let found = Set(table.candidates(url).filter { model[$0] == url })
            #expect(found == Set(model.filter { $0.value == url }.keys))
        }
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

extension TaskIDTable {
    fileprivate static func of(_ ids: [TaskID]) -> TaskIDTable {
        var table = TaskIDTable()
        for id in ids { table.insert(id) }
        return table
    }
}
