import FKCore
import FKMiddleware

/// A shard that cannot be chosen: the message says why, and which option or variable to change.
struct ShardError: Error, Hashable {
    let message: String
    init(_ message: String) { self.message = message }
}

/// A list that is divided into shards, as messages name it.
enum DividedList: CustomStringConvertible, Sendable, Hashable {
    case barrel(String)
    /// Lists without a barrel, by the folder of their work path.
    case lists(in: String)

    var isBarrel: Bool { if case .barrel = self { true } else { false } }
    var description: String {
        switch self {
        case .barrel(let name): "the barrel \(name.visible)"
        case .lists(let folder): "the list in \(folder.visible)"
        }
    }
    /// For the beginning of a sentence.
    var capitalized: String { "T\(description.dropFirst())" }
}

/// What the user says about the shard of this process. A value; it decides with the recorded plan and the environment.
struct ShardRequest: Sendable, Hashable {
    /// Where the number of the shard comes from.
    enum Source: Sendable, Hashable {
        /// `--shard 3/8`
        case given(Shard)
        /// `--shard auto`: the variables of the scheduler.
        case automatic
    }

    var source: Source
    /// `--shards N`; nil if it is not given.
    var count: Int?
    /// `--shard-offset N`, for schedulers that limit the size of an array; nil if it is not given.
    var offset: Int?

    init(_ source: Source, count: Int? = nil, offset: Int? = nil) {
        self.source = source
        self.count = count
        self.offset = offset
    }

    /// The shard of this process, and the plan to record.
    ///
    /// - Parameters:
    ///   - plan: the plan that an earlier run recorded; nil for the first run.
    ///   - list: the list that is divided, for messages.
    /// - Throws: `ShardError`.
    func resolve(
        _ plan: ShardPlan?, of list: DividedList, in environment: [String: String]
    ) throws(ShardError) -> (shard: Shard, plan: ShardPlan) {
        switch source {
        case .given(let shard):
            if let count, count != shard.count {
                throw ShardError("--shard \(shard) and --shards \(count) contradict each other.")
            }
            let plan = try plan.map { known throws(ShardError) in try known.checked(shard.count, list) }
            return (
                try choose(shard.index, of: shard.count, "--shard \(shard)"),
                plan ?? ShardPlan(count: shard.count, numbering: ShardNumbering(size: shard.count))
            )
        case .automatic:
            guard let array = try ShardArray.read(environment) else {
                throw ShardError(
                    "--shard auto: none of SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX and PARALLEL_SEQ is set. Give the shard: "
                        + "--shard 1/\(count ?? plan?.count ?? 8).")
            }
            let plan = try self.plan(plan, of: list, array)
            let numbering = plan.numbering.reading(array)
            let steps = (array.number - numbering.first).quotientAndRemainder(dividingBy: numbering.step)
            let name = "\(array.variable)=\(array.number)"
            guard steps.remainder == 0, steps.quotient >= 0 else {
                throw ShardError(
                    "\(name) is no shard of \(list): its first shard has the number \(numbering.first), the next one "
                        + "\(numbering.first + numbering.step).")
            }
            return (try choose(steps.quotient + 1, of: plan.count, name), plan)
        }
    }

    private func choose(_ index: Int, of count: Int, _ name: String) throws(ShardError) -> Shard {
        let index = index + (offset ?? 0)
        guard let shard = Shard(index, of: count) else {
            throw ShardError(
                "\(name)\(offset.map { " with --shard-offset \($0)" } ?? "") is shard \(index), but the list is divided into \(count)."
            )
        }
        return shard
    }

    /// The recorded plan, or the one of a first run.
    private func plan(_ known: ShardPlan?, of list: DividedList, _ array: ShardArray) throws(ShardError) -> ShardPlan {
        if var known {
            if let count { known = try known.checked(count, list) }
            // The numbers of `--shard i/n` are replaced by those of the first scheduler.
            if known.numbering.scheduler == .none, array.isWhole(known.count) {
                known.numbering = numbering(array, known.count)
            }
            return known
        }
        guard let count = count ?? array.count else {
            throw ShardError(
                "--shard auto: \(array.variable) is set, and nothing says how many shards there are. Give --shards N.")
        }
        guard Shard(1, of: count) != nil else {
            throw ShardError("\(count) is no possible number of shards: 1 to \(Shard.maxCount).")
        }
        // A first array with gaps does not say which number the first shard has.
        if let size = array.count, offset == nil, !array.isWhole(count) {
            throw ShardError(
                size == count
                    ? "The array has gaps. The first run of \(list) needs all shards: give the whole array."
                    : "The array has \(size) tasks and --shards is \(count). The first run of \(list) needs all shards: give "
                        + "the whole array, or --shard-offset for a part of it.")
        }
        return ShardPlan(count: count, numbering: numbering(array, count))
    }

    private func numbering(_ array: ShardArray, _ count: Int) -> ShardNumbering {
        ShardNumbering(array.scheduler, first: array.first ?? 0, step: array.step ?? 1, size: array.count ?? count)
    }
}

extension ShardNumbering {
    /// The numbers that this array uses. Kubernetes and GNU parallel have fixed ones.
    fileprivate func reading(_ array: ShardArray) -> Self {
        guard array.scheduler != .slurm else { return self }
        return Self(array.scheduler, first: array.first ?? 0, size: size)
    }
}

extension ShardPlan {
    /// - Throws: `ShardError` if the list was divided into another number of shards.
    fileprivate func checked(_ count: Int, _ list: DividedList) throws(ShardError) -> Self {
        guard count == self.count else {
            throw ShardError(
                "\(list.capitalized) is divided into \(self.count.plural("shard")), not \(count). "
                    + (list.isBarrel
                        ? "To divide it anew, finish or stop its shards, and make another barrel of what is missing: "
                            + "'fk barrel export --missing'."
                        : "All lists without a barrel share one division: name a barrel for another list with -b NAME.")
            )
        }
        return self
    }
}
