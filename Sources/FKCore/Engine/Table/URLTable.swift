import FKMiddleware

/// The tasks of each URL, in about 22 bytes a task beside the ids that the process has anyway (`TaskIDTable`).
///
/// It has the hashes of the URLs and not the URLs: what it finds is compared with the record. All operations are O(1) on average.
/// A value type.
struct URLTable {
    private var ids = TaskIDTable()
    /// By the number of a task: the hash of its URL, and the next task in the same place, or -1.
    private var tasks: [(hash: UInt32, next: Int32)] = []
    /// The first task in each place, or -1.
    private var places: [Int32] = []

    var count: Int { ids.count }

    /// The tasks that may have this URL: all that have it, and rarely others.
    func candidates(_ url: String) -> [TaskID] {
        guard !places.isEmpty else { return [] }
        let hash = Self.hash(url)
        var found: [TaskID] = []
        var number = places[place(hash)]
        while number >= 0 {
            if tasks[Int(number)].hash == hash { found.append(ids.id(of: number)) }
            number = tasks[Int(number)].next
        }
        return found
    }

    func contains(_ id: TaskID) -> Bool { ids.contains(id) }

    /// Adds a task. A known one stays as it is: the URL of a task does not change.
    mutating func insert(_ id: TaskID, _ url: String) {
        guard !ids.contains(id) else { return }
        if ids.count >= places.count { grow() }
        let number = ids.insert(id)
        let hash = Self.hash(url)
        let place = place(hash)
        let task = (hash: hash, next: places[place])
        if Int(number) == tasks.count { tasks.append(task) } else { tasks[Int(number)] = task }
        places[place] = number
    }

    mutating func remove(_ id: TaskID) {
        guard let number = ids.remove(id) else { return }
        let (hash, next) = tasks[Int(number)]
        let place = place(hash)
        guard places[place] != number else {
            places[place] = next
            return
        }
        var before = places[place]
        while tasks[Int(before)].next != number { before = tasks[Int(before)].next }
        tasks[Int(before)].next = next
    }

    private mutating func grow() {
        places = Array(repeating: -1, count: max(16, 2 * places.count))
        for (_, number) in ids.all {
            let place = place(tasks[Int(number)].hash)
            tasks[Int(number)].next = places[place]
            places[place] = number
        }
    }

    private func place(_ hash: UInt32) -> Int { Int(hash) & (places.count - 1) }

    private static func hash(_ url: String) -> UInt32 {
        UInt32(truncatingIfNeeded: ExactText(url).hashValue)
    }
}
