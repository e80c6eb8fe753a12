import FKMiddleware

/// How a scheduler numbers the tasks of an array.
package struct ShardNumbering: Sendable, Hashable, Codable {
    /// The program that gives each process its number.
    package enum Scheduler: String, Sendable, Hashable, Codable {
        /// The user: `--shard 3/8`.
        case none
        /// A job array of Slurm.
        case slurm
        /// An indexed job of Kubernetes.
        case kubernetes
        /// GNU parallel.
        case parallel
    }

    /// The scheduler of the first run.
    package var scheduler: Scheduler
    /// The number of the first shard.
    package var first: Int
    /// The distance between the numbers of two shards, at least 1.
    package var step: Int
    /// The number of tasks that one array has; further shards need an offset.
    package var size: Int

    /// The numbers of `--shard i/n`.
    package init(_ scheduler: Scheduler = .none, first: Int = 1, step: Int = 1, size: Int) {
        self.scheduler = scheduler
        self.first = first
        self.step = step
        self.size = size
    }

    /// The scheduler's number of a shard, and the offset that its array needs.
    package func number(of index: Int) -> (number: Int, offset: Int) {
        let place = index - 1
        let offset = place / max(1, size) * max(1, size)
        return (first + (place - offset) * step, offset)
    }

    /// Shards of one array, in the scheduler's own numbers.
    package struct Selection: Sendable, Hashable {
        /// What is added to the numbers.
        package var offset: Int
        /// The numbers, ascending.
        package var ranges: [ClosedRange<Int>]
    }

    /// The arrays that have these shards, one for each offset.
    ///
    /// - Parameter indexes: ascending.
    package func arrays(of indexes: some Sequence<Int>) -> [Selection] {
        var arrays: [Selection] = []
        for index in indexes {
            let (number, offset) = number(of: index)
            if arrays.last?.offset != offset { arrays.append(Selection(offset: offset, ranges: [])) }
            let array = arrays.count - 1
            if let last = arrays[array].ranges.last, last.upperBound + 1 == number {
                arrays[array].ranges[arrays[array].ranges.count - 1] = last.lowerBound...number
            } else {
                arrays[array].ranges.append(number...number)
            }
        }
        return arrays
    }
}
