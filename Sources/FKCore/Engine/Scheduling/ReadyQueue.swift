import FKMiddleware

/// The tasks that could start now, by host, best first.
///
/// ```text
/// hosts (heap by their best task)      a.example -> heap of its tasks
///                                      b.example -> heap of its tasks
/// ```
///
/// A host that accepts no request is skipped as a whole, whatever the number of its tasks. The tasks of one host are
/// divided by command, because a command's limits may close the host for its tasks alone. Every operation is O(log
/// n). `popNext` adds O(log hosts) for each closed host before the task found, and `setOrder` is O(n). A task takes
/// 20 bytes beside its id (`TaskIDPool`), 28 if it has a priority, and a host 250. Most of it is given back while the queue
/// drains. A value type without locks.
package struct ReadyQueue: Sendable {
    /// A task in the queue.
    package struct Element: Sendable, Hashable {
        package var id: TaskID
        /// The priority. Higher values start earlier.
        package var priority: Int
        /// The submission number, ascending.
        package var number: UInt64
        /// The host of the next request (`site`).
        package var host: String
        /// The group of the command whose limits apply to it (`CommandGroups`).
        package var group: Int32
        /// Creates an element. The default priority is 0, and the default group is none.
        package init(
            id: TaskID, priority: Int = 0, number: UInt64, host: String, group: Int32 = CommandGroups.none
        ) {
            self.id = id
            self.priority = priority
            self.number = number
            self.host = host
            self.group = group
        }
    }

    private struct Slot: PooledValue {
        var number: UInt64
        /// The host's index plus one, so that memory of zeros is no slot.
        private var hostNumber: Int32
        /// The position in the host's heap.
        var place: Int32

        init(number: UInt64, host: Int32, place: Int) {
            self.number = number
            hostNumber = host + 1
            self.place = Int32(place)
        }

        var host: Int32 { hostNumber - 1 }
        var isNone: Bool { hostNumber == 0 }
    }

    /// A priority other than 0.
    private struct Priority: PooledValue {
        var value: Int
        var isNone: Bool { value == 0 }
    }

    private struct Key: Hashable {
        var host: String
        var group: Int32
    }

    private struct Host {
        var key: Key
        /// Numbers of slots, with the best at 0.
        var tasks: [Int32] = []
        /// The position in `ranking`, or -1.
        var place: Int32 = -1
    }

    /// The order of tasks of the same priority.
    package private(set) var order: QueueOrder
    private var slots = PooledMap<Slot>()
    private var priorities = PooledMap<Priority>()
    private var hosts: [Host] = []
    private var freeHosts: [Int32] = []
    private var hostOfKey: [Key: Int32] = [:]
    /// Indexes of hosts with tasks. The host with the best task is at 0.
    private var ranking: [Int32] = []

    /// An empty queue. The default order is `.fifo`.
    package init(order: QueueOrder = .fifo) { self.order = order }

    package var count: Int { slots.count }
    package var isEmpty: Bool { slots.isEmpty }
    /// The bytes of the table of tasks.
    package var byteCount: Int { slots.byteCount + priorities.byteCount }
    package func contains(_ id: TaskID) -> Bool { slots.number(of: id) != nil }

    /// All tasks, best first. The queue does not change. O(n log n).
    package func sorted() -> [Element] {
        slots.numbers.sorted(by: isBefore).map(element)
    }

    /// All tasks with their submission numbers, in no order.
    package var all: some Sequence<(id: TaskID, number: UInt64)> {
        slots.numbers.lazy.map { (id: slots.id(of: $0), number: slot($0).number) }
    }

    /// The group of a task in the queue; none if the task is not in it.
    package func group(of id: TaskID) -> Int32 {
        guard let slot = slots[id] else { return CommandGroups.none }
        return hosts[Int(slot.host)].key.group
    }

    /// Adds a task. A task with the same id is replaced.
    package mutating func push(_ element: Element) {
        remove(element.id)
        let host = intern(Key(host: element.host, group: element.group))
        let slot = Slot(number: element.number, host: host, place: hosts[Int(host)].tasks.count)
        let index = slots.insert(slot, for: element.id)
        if element.priority != 0 { priorities.insert(Priority(value: element.priority), for: element.id) }
        hosts[Int(host)].tasks.append(index)
        settle(hosts[Int(host)].tasks.count - 1, in: .tasks(host))
        rank(host)
    }

    /// Removes a task. Returns false if it is not in the queue.
    @discardableResult
    package mutating func remove(_ id: TaskID) -> Bool {
        guard let index = slots.number(of: id) else { return false }
        remove(index)
        return true
    }

    /// Removes and returns the best task of all hosts and groups for which `isOpen` is true; nil if there is none.
    ///
    /// `isOpen` is called at most once for each host of a group, in the order of their best tasks.
    package mutating func popNext(isOpen: (_ host: String, _ group: Int32) -> Bool) -> Element? {
        var closed: [Int32] = []
        defer { for host in closed { rank(host) } }
        while let host = ranking.first {
            if isOpen(hosts[Int(host)].key.host, hosts[Int(host)].key.group) {
                return remove(hosts[Int(host)].tasks[0])
            }
            unrank(host)
            closed.append(host)
        }
        return nil
    }

    /// Changes the order, for queued tasks too.
    package mutating func setOrder(_ order: QueueOrder) {
        guard order != self.order else { return }
        self.order = order
        let ranked = ranking
        ranking = []
        for host in ranked {
            hosts[Int(host)].place = -1
            for start in stride(from: hosts[Int(host)].tasks.count / 2, through: 0, by: -1) {
                sink(start, in: .tasks(host))
            }
        }
        for host in ranked { rank(host) }
    }

    // MARK: Elements

    @discardableResult
    private mutating func remove(_ index: Int32) -> Element {
        let element = element(index)
        let slot = slot(index)
        let host = slot.host
        let last = hosts[Int(host)].tasks.removeLast()
        let place = Int(slot.place)
        if last != index {
            hosts[Int(host)].tasks[place] = last
            slots.update(last) { $0.place = slot.place }
            settle(place, in: .tasks(host))
        }
        if element.priority != 0 { priorities.remove(index) }
        slots.remove(index)
        if hosts[Int(host)].tasks.isEmpty {
            unrank(host)
            release(host)
        } else {
            rank(host)
        }
        return element
    }

    private mutating func intern(_ key: Key) -> Int32 {
        if let known = hostOfKey[key] { return known }
        let index: Int32
        if let free = freeHosts.popLast() {
            index = free
            hosts[Int(free)] = Host(key: key)
        } else {
            index = Int32(hosts.count)
            hosts.append(Host(key: key))
        }
        hostOfKey[key] = index
        return index
    }

    private mutating func release(_ host: Int32) {
        hostOfKey[hosts[Int(host)].key] = nil
        hosts[Int(host)] = Host(key: Key(host: "", group: CommandGroups.none))
        freeHosts.append(host)
    }

    private func slot(_ index: Int32) -> Slot { slots[index].unsafelyUnwrapped }

    private func priority(of index: Int32) -> Int { priorities.isEmpty ? 0 : priorities[index]?.value ?? 0 }

    private func element(_ index: Int32) -> Element {
        let slot = slot(index)
        let key = hosts[Int(slot.host)].key
        return Element(
            id: slots.id(of: index), priority: priority(of: index), number: slot.number, host: key.host,
            group: key.group)
    }

    private func isBefore(_ left: Int32, _ right: Int32) -> Bool {
        let priorities = (priority(of: left), priority(of: right))
        if priorities.0 != priorities.1 { return priorities.0 > priorities.1 }
        let numbers = (slot(left).number, slot(right).number)
        if numbers.0 != numbers.1 { return order == .fifo ? numbers.0 < numbers.1 : numbers.0 > numbers.1 }
        return slots.id(of: left) < slots.id(of: right)
    }

    // MARK: Hosts

    /// Moves a host to the position of its best task.
    private mutating func rank(_ host: Int32) {
        if hosts[Int(host)].place < 0 {
            hosts[Int(host)].place = Int32(ranking.count)
            ranking.append(host)
        }
        settle(Int(hosts[Int(host)].place), in: .hosts)
    }

    private mutating func unrank(_ host: Int32) {
        let place = Int(hosts[Int(host)].place)
        guard place >= 0 else { return }
        hosts[Int(host)].place = -1
        let last = ranking.removeLast()
        guard last != host else { return }
        ranking[place] = last
        hosts[Int(last)].place = Int32(place)
        // Only hosts with tasks are ranked, so every pair can be compared.
        settle(place, in: .hosts)
    }
}

extension ReadyQueue: Heaps {
    enum Heap {
        /// The hosts by their best tasks.
        case hosts
        /// The tasks of a host.
        case tasks(Int32)
    }

    func count(of heap: Heap) -> Int {
        switch heap {
        case .hosts: ranking.count
        case .tasks(let host): hosts[Int(host)].tasks.count
        }
    }

    func isBefore(_ a: Int, _ b: Int, in heap: Heap) -> Bool {
        switch heap {
        case .hosts: isBefore(hosts[Int(ranking[a])].tasks[0], hosts[Int(ranking[b])].tasks[0])
        case .tasks(let host): isBefore(hosts[Int(host)].tasks[a], hosts[Int(host)].tasks[b])
        }
    }

    mutating func swap(_ a: Int, _ b: Int, in heap: Heap) {
        switch heap {
        case .hosts:
            ranking.swapAt(a, b)
            hosts[Int(ranking[a])].place = Int32(a)
            hosts[Int(ranking[b])].place = Int32(b)
        case .tasks(let host):
            hosts[Int(host)].tasks.swapAt(a, b)
            slots.update(hosts[Int(host)].tasks[a]) { $0.place = Int32(a) }
            slots.update(hosts[Int(host)].tasks[b]) { $0.place = Int32(b) }
        }
    }
}
