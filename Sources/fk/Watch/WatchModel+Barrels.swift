import FKCore
import FKMiddleware

extension WatchModel {
    struct BarrelSum: Sendable, Hashable {
        var name: String
        var complete = 0
        var failed = 0
        var total = 0
        var received: Int64 = 0
        var expected: Int64 = 0
        /// True if the length of a task is unknown.
        var isLowerBound = false
        var rate = 0.0
    }

    /// The barrel that is chosen: the selected one of the page of barrels, else the one whose members are listed; nil if the
    /// list has all tasks.
    var chosenBarrel: String? {
        guard page == .barrels else { return barrel }
        let sums = barrelSums()
        return sums.indices.contains(barrelIndex) ? sums[barrelIndex].name : nil
    }

    /// The rate of a barrel's tasks in bytes a second.
    func rate(ofBarrel name: String) -> Double {
        watched.tasks.values.reduce(0) { sum, task in
            guard task.info.state == .action, task.info.barrels.containsExactly(name) else { return sum }
            return sum + Double(task.info.bytesPerSecond)
        }
    }

    /// The sums of all barrels, by name. Trashed and forgotten members are not among them.
    func barrelSums() -> [BarrelSum] {
        var sums: [ExactText: BarrelSum] = [:]
        for task in watched.tasks.values {
            let info = task.info
            for name in info.barrels {
                var sum = sums[ExactText(name)] ?? BarrelSum(name: name)
                sum.total += 1
                if info.state == .complete { sum.complete += 1 }
                if info.state == .error { sum.failed += 1 }
                sum.received &+= info.count.received
                sum.expected &+= info.count.expected ?? info.count.received
                if info.count.expected == nil, info.state != .complete { sum.isLowerBound = true }
                if info.state == .action { sum.rate += watched.meters.rate(of: info.id) ?? 0 }
                sums[ExactText(name)] = sum
            }
        }
        return sums.values.sorted { $0.name < $1.name }
    }
}
