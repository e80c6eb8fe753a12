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

    /// The options that submit these shards again, in the scheduler's own numbers: `--array=0,4-6`. One line for each
    /// offset.
    ///
    /// - Parameter indexes: ascending.
    package func expressions(_ indexes: some Sequence<Int>) -> [String] {
        var lines: [(offset: Int, ranges: [ClosedRange<Int>])] = []
        for index in indexes {
            let (number, offset) = number(of: index)
            if lines.last?.offset != offset { lines.append((offset, [])) }
            if let last = lines[lines.count - 1].ranges.last, last.upperBound + 1 == number {
                lines[lines.count - 1].ranges[lines[lines.count - 1].ranges.count - 1] = last.lowerBound...number
            } else {
                lines[lines.count - 1].ranges.append(number...number)
            }
        }
        return lines.map { line in
            let ranges = line.ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
            return "--array=\(ranges.joined(separator: ","))"
                + (line.offset > 0 ? " --shard-offset \(line.offset)" : "")
        }
    }
}
