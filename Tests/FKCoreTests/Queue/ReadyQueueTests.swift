import TestSupport
import Testing

private func id(_ number: Int) -> TaskID { TaskID(url: "http://e.com/\(number)") }

private func element(_ number: Int, priority: Int = 0, host: String = "a") -> ReadyQueue.Element {
    ReadyQueue.Element(id: id(number), priority: priority, number: UInt64(number), host: host)
}

/// A queue that expectations can change: their macros cannot call mutating functions.
private final class Ready {
    var queue: ReadyQueue
    init(order: QueueOrder = .fifo) { queue = ReadyQueue(order: order) }
    func push(_ element: ReadyQueue.Element) { queue.push(element) }
    @discardableResult
    func remove(_ id: TaskID) -> Bool { queue.remove(id) }
    func popNext(isHostOpen: (String) -> Bool = { _ in true }) -> ReadyQueue.Element? {
        queue.popNext { host, _ in isHostOpen(host) }
    }
    func drain() -> [UInt64] {
        var result: [UInt64] = []
        while let next = popNext() { result.append(next.number) }
        return result
    }
}

private final class Wake {
    var queue = WakeQueue()
    func push(_ id: TaskID, due: Int64) { queue.push(id, due: due) }
    func remove(_ id: TaskID) -> Bool { queue.remove(id) }
    func popDue(_ now: Int64) -> [TaskID] { queue.popDue(now) }
}

@Suite("Ready queue")
struct ReadyQueueTests {
    @Test(
        "starts by priority, then by order",
        arguments: [(QueueOrder.fifo, [4, 6, 1, 3, 5, 2]), (.lifo, [6, 4, 5, 3, 1, 2])])
    func order(order: QueueOrder, expected: [UInt64]) {
        let queue = Ready(order: order)
        for (number, priority, host) in [(1, 0, "a"), (2, -1, "b"), (3, 0, "b"), (4, 5, "c"), (5, 0, "a"), (6, 5, "a")]
        {
            queue.push(element(number, priority: priority, host: host))
        }
        #expect(queue.queue.count == 6)
        #expect(queue.drain() == expected)
        #expect(queue.queue.isEmpty)
    }

    @Test("changes its order while it is full")
    func live() {
        let queue = Ready()
        for number in 1...6 { queue.push(element(number, host: number % 2 == 0 ? "even" : "odd")) }
        #expect(queue.popNext()?.number == 1)
        queue.queue.setOrder(.lifo)
        #expect(queue.queue.order == .lifo)
        #expect(queue.popNext()?.number == 6)
        queue.queue.setOrder(.fifo)
        #expect(queue.drain() == [2, 3, 4, 5])
    }

    @Test("passes over a closed host, asking once, and keeps its tasks")
    func closed() {
        let queue = Ready()
        for number in 1...1000 { queue.push(element(number, priority: 9, host: "busy")) }
        queue.push(element(1001, host: "free"))
        var asked: [String] = []
        let next = queue.popNext {
            asked.append($0)
            return $0 == "free"
        }
        #expect(next == element(1001, host: "free"))
        #expect(asked == ["busy", "free"])
        #expect(queue.popNext(isHostOpen: { _ in false }) == nil)
        #expect(queue.queue.count == 1000)
        #expect(queue.drain() == Array(1...1000))
    }

    @Test("takes a task out, and replaces it when it comes again")
    func remove() {
        let queue = Ready()
        for number in 1...5 { queue.push(element(number)) }
        #expect(queue.remove(id(3)))
        #expect(!queue.remove(id(3)))
        #expect(!queue.queue.contains(id(3)) && queue.queue.contains(id(4)))
        queue.push(element(5, priority: 1, host: "b"))
        #expect(queue.queue.count == 4)
        #expect(queue.drain() == [5, 1, 2, 4])
        #expect(queue.popNext() == nil)
    }

    @Test("agrees with a sorted list through any course of events", arguments: [UInt64(1), 2, 3, 4])
    func model(seed: UInt64) {
        var generator = SeededRandom(seed: seed)
        let queue = Ready()
        var model: [ReadyQueue.Element] = []
        for step in 0..<4_000 {
            switch Int.random(in: 0..<100, using: &generator) {
            case 0..<45:
                let number = Int.random(in: 0..<400, using: &generator)
                let new = element(
                    number, priority: Int.random(in: -1...1, using: &generator),
                    host: "h\(Int.random(in: 0..<12, using: &generator))")
                model.removeAll { $0.id == new.id }
                model.append(new)
                queue.push(new)
            case 45..<60:
                let gone = id(Int.random(in: 0..<400, using: &generator))
                let before = model.count
                model.removeAll { $0.id == gone }
                #expect(queue.remove(gone) == (model.count < before))
            case 60..<62:
                queue.queue.setOrder(queue.queue.order == .fifo ? .lifo : .fifo)
            default:
                let closed = Set((0..<6).map { _ in "h\(Int.random(in: 0..<12, using: &generator))" })
                let order = queue.queue.order
                let best = model.filter { !closed.contains($0.host) }.max {
                    $0.priority != $1.priority
                        ? $0.priority < $1.priority : order == .fifo ? $0.number > $1.number : $0.number < $1.number
                }
                #expect(queue.popNext(isHostOpen: { !closed.contains($0) }) == best, "step \(step)")
                model.removeAll { $0.id == best?.id }
            }
            #expect(queue.queue.count == model.count)
        }
    }
}

@Suite("Wake queue")
struct WakeQueueTests {
    @Test("gives what is due, the earliest first, and nothing else")
    func due() {
        let queue = Wake()
        #expect(queue.queue.nextDue == nil && queue.popDue(.max).isEmpty)
        for (number, due) in [(1, 50), (2, 10), (3, 30), (4, 10)] { queue.push(id(number), due: Int64(due)) }
        #expect(queue.queue.nextDue == 10)
        #expect(queue.popDue(9).isEmpty)
        #expect(Set(queue.popDue(10)) == [id(2), id(4)])
        #expect(queue.popDue(60) == [id(3), id(1)])
        #expect(queue.queue.isEmpty)
    }

    @Test("a task has one time, and may be taken out")
    func replace() {
        let queue = Wake()
        queue.push(id(1), due: 50)
        queue.push(id(2), due: 20)
        queue.push(id(1), due: 10)
        #expect(queue.queue.count == 2 && queue.queue.due(of: id(1)) == 10)
        #expect(queue.remove(id(1)))
        #expect(!queue.remove(id(1)))
        #expect(queue.queue.due(of: id(1)) == nil)
        #expect(queue.queue.nextDue == 20)
    }

    @Test("agrees with a dictionary through any course of events", arguments: [UInt64(5), 6])
    func model(seed: UInt64) {
        var generator = SeededRandom(seed: seed)
        let queue = Wake()
        var model: [TaskID: Int64] = [:]
        for _ in 0..<4_000 {
            let task = id(Int.random(in: 0..<200, using: &generator))
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<6:
                let due = Int64.random(in: -100...100, using: &generator)
                queue.push(task, due: due)
                model[task] = due
            case 6..<8:
                #expect(queue.remove(task) == (model.removeValue(forKey: task) != nil))
            default:
                let now = Int64.random(in: -110...20, using: &generator)
                let due = queue.popDue(now)
                #expect(Set(due) == Set(model.filter { $0.value <= now }.keys))
                #expect(due.map { model[$0] ?? 0 } == due.map { model[$0] ?? 0 }.sorted())
                for task in due { model[task] = nil }
            }
            #expect(queue.queue.count == model.count)
            #expect(queue.queue.nextDue == model.values.min())
        }
    }
}
