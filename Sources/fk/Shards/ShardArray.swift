import FKCore
import FKMiddleware

/// The place of this process in the array of a scheduler, as the environment has it.
struct ShardArray: Hashable {
    var scheduler: ShardNumbering.Scheduler
    /// The name of the variable with the number.
    var variable: String
    var number: Int
    /// nil if the environment does not say it.
    var first: Int?
    var last: Int?
    var step: Int?
    var count: Int?

    /// Reads the environment; nil without an array variable. Slurm comes first, then Kubernetes, then GNU parallel.
    ///
    /// - Throws: `ShardError` for a value that is not a number.
    static func read(_ environment: [String: String]) throws(ShardError) -> Self? {
        func number(_ name: String) throws(ShardError) -> Int? {
            guard let text = environment[name], !text.isEmpty else { return nil }
            guard let number = Int(text), (0...Int(Int32.max)).contains(number) else {
                throw ShardError("--shard auto: the variable \(name) is '\(text.visible)', which is no number.")
            }
            return number
        }
        if let id = try number("SLURM_ARRAY_TASK_ID") {
            let step = try number("SLURM_ARRAY_TASK_STEP")
            return Self(
                scheduler: .slurm, variable: "SLURM_ARRAY_TASK_ID", number: id,
                first: try number("SLURM_ARRAY_TASK_MIN"), last: try number("SLURM_ARRAY_TASK_MAX"),
                step: step == 0 ? 1 : step, count: try number("SLURM_ARRAY_TASK_COUNT"))
        }
        if let index = try number("JOB_COMPLETION_INDEX") {
            return Self(
                scheduler: .kubernetes, variable: "JOB_COMPLETION_INDEX", number: index, first: 0,
                count: try number("JOB_COMPLETION_COUNT"))
        }
        if let sequence = try number("PARALLEL_SEQ") {
            return Self(scheduler: .parallel, variable: "PARALLEL_SEQ", number: sequence, first: 1)
        }
        return nil
    }

    /// True if the array has all shards, so that its first number and step are those of the list.
    func isWhole(_ count: Int) -> Bool {
        guard self.count == count else { return false }
        guard let first, let last else { return true }
        return last - first == (count - 1) * (step ?? 1)
    }
}

extension ShardNumbering.Selection {
    /// The options that submit these shards again: `--array=0,4-6`.
    var options: String {
        let numbers = ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
        return "--array=\(numbers.joined(separator: ","))" + (offset > 0 ? " --shard-offset \(offset)" : "")
    }
}
