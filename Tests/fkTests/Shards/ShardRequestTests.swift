import TestSupport
import Testing

@testable import fk

@Suite("The shard of a process") struct ShardRequestTests {
    private func resolve(
        _ source: ShardRequest.Source, count: Int? = nil, offset: Int? = nil, plan: ShardPlan? = nil,
        _ environment: [String: String] = [:]
    ) throws(ShardError) -> (shard: Shard, plan: ShardPlan) {
        try ShardRequest(source, count: count, offset: offset).resolve(plan, of: .barrel("b"), in: environment)
    }

    private func slurm(_ id: Int, _ first: Int, _ last: Int, step: Int = 1, count: Int? = nil) -> [String: String] {
        [
            "SLURM_ARRAY_TASK_ID": "\(id)", "SLURM_ARRAY_TASK_MIN": "\(first)", "SLURM_ARRAY_TASK_MAX": "\(last)",
            "SLURM_ARRAY_TASK_STEP": "\(step)", "SLURM_ARRAY_TASK_COUNT": "\(count ?? (last - first) / step + 1)",
        ]
    }

    private func given(_ text: String) throws -> ShardRequest.Source { .given(try #require(Shard(parsing: text))) }

    @Test("A given shard is that shard, and its count is recorded") func explicit() throws {
        let (shard, plan) = try resolve(given("3/8"))
        #expect(shard.description == "3/8")
        #expect(plan == ShardPlan(count: 8, numbering: ShardNumbering(size: 8)))
    }

    @Test("A whole array of Slurm, whatever its first number and step", arguments: [(0, 1), (1, 1), (5, 5), (100, 3)])
    func whole(first: Int, step: Int) throws {
        for place in 0..<4 {
            let (shard, plan) = try resolve(
                .automatic, slurm(first + place * step, first, first + 3 * step, step: step))
            #expect(shard.description == "\(place + 1)/4")
            #expect(plan.numbering == ShardNumbering(.slurm, first: first, step: step, size: 4))
        }
    }

    @Test("A part of the array that is submitted again has the same shards") func again() throws {
        let plan = try resolve(.automatic, slurm(0, 0, 9)).plan
        #expect(try resolve(.automatic, plan: plan, slurm(7, 3, 7, count: 2)).shard.description == "8/10")
        #expect(try resolve(.automatic, plan: plan, slurm(2, 2, 2)).shard.description == "3/10")
        #expect(try resolve(.automatic, plan: plan, slurm(2, 2, 2)).plan == plan)
    }

    @Test("Kubernetes counts from 0 and GNU parallel from 1") func others() throws {
        let job = try resolve(.automatic, ["JOB_COMPLETION_INDEX": "0", "JOB_COMPLETION_COUNT": "4"])
        #expect(job.shard.description == "1/4" && job.plan.numbering.scheduler == .kubernetes)
        #expect(try resolve(.automatic, count: 4, ["PARALLEL_SEQ": "4"]).shard.description == "4/4")
        // A plan of another scheduler does not change their numbers.
        #expect(try resolve(.automatic, plan: job.plan, ["PARALLEL_SEQ": "4"]).shard.description == "4/4")
        let slurm = ShardPlan(count: 4, numbering: ShardNumbering(.slurm, first: 10, step: 5, size: 4))
        #expect(try resolve(.automatic, plan: slurm, ["JOB_COMPLETION_INDEX": "3"]).shard.description == "4/4")
    }

    @Test("Slurm's variables come before those of Kubernetes and parallel") func order() throws {
        var environment = slurm(2, 1, 4)
        environment["JOB_COMPLETION_INDEX"] = "0"
        environment["PARALLEL_SEQ"] = "1"
        #expect(try resolve(.automatic, environment).shard.description == "2/4")
        environment["SLURM_ARRAY_TASK_ID"] = ""
        #expect(try resolve(.automatic, count: 4, environment).shard.description == "1/4")
    }

    @Test("Parts of an array, each with an offset") func offsets() throws {
        let first = try resolve(.automatic, count: 2_500, offset: 0, slurm(999, 0, 999))
        #expect(first.shard.description == "1000/2500" && first.plan.numbering.size == 1_000)
        #expect(
            try resolve(.automatic, offset: 1_000, plan: first.plan, slurm(0, 0, 999)).shard.description == "1001/2500")
        #expect(
            try resolve(.automatic, offset: 2_000, plan: first.plan, slurm(499, 0, 499)).shard.description
                == "2500/2500")
    }

    @Test("Numbers of --shard are replaced by those of the first whole array") func adopt() throws {
        let plan = try resolve(given("1/4")).plan
        #expect(try resolve(.automatic, plan: plan, slurm(2, 2, 2)).shard.description == "2/4")
        let (shard, adopted) = try resolve(.automatic, plan: plan, slurm(0, 0, 3))
        #expect(shard.description == "1/4" && adopted.numbering == ShardNumbering(.slurm, first: 0, size: 4))
        #expect(try resolve(.automatic, plan: adopted, slurm(1, 1, 4)).plan == adopted, "only the first one")
    }

    @Test("The options for submitting shards again, in the scheduler's numbers") func expressions() {
        func options(_ numbering: ShardNumbering, _ indexes: Int...) -> [String] {
            numbering.arrays(of: indexes).map(\.options)
        }
        #expect(options(ShardNumbering(.slurm, first: 0, size: 10), 1, 3, 4, 5, 9, 10) == ["--array=0,2-4,8-9"])
        #expect(options(ShardNumbering(size: 4), 2) == ["--array=2"])
        #expect(options(ShardNumbering(.slurm, first: 5, step: 5, size: 10), 1, 2, 4) == ["--array=5,10,20"])
        #expect(
            options(ShardNumbering(.slurm, first: 0, size: 1_000), 1, 1_000, 1_001, 1_002, 3_001)
                == ["--array=0,999", "--array=0-1 --shard-offset 1000", "--array=0 --shard-offset 3000"])
        #expect(ShardNumbering(size: 4).arrays(of: []).isEmpty)
    }

    private func fault(_ body: () throws -> Void) -> String {
        do { try body() } catch { return (error as? ShardError)?.message ?? "\(error)" }
        return "no error"
    }

    @Test("What cannot be a shard is refused, and the message says what to change") func refused() throws {
        let plan = ShardPlan(count: 8, numbering: ShardNumbering(.slurm, first: 0, size: 8))
        let cases: [(String, () throws -> Void)] = [
            ("contradict", { _ = try resolve(given("3/8"), count: 4) }),
            ("The barrel b is divided into 8 shards, not 4", { _ = try resolve(given("1/4"), plan: plan) }),
            ("divided into 8 shards, not 4", { _ = try resolve(.automatic, count: 4, plan: plan, slurm(0, 0, 3)) }),
            ("none of SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX and PARALLEL_SEQ", { _ = try resolve(.automatic) }),
            ("Give --shards N", { _ = try resolve(.automatic, ["PARALLEL_SEQ": "3"]) }),
            ("Give --shards N", { _ = try resolve(.automatic, ["JOB_COMPLETION_INDEX": "3"]) }),
            ("SLURM_ARRAY_TASK_ID is 'x'", { _ = try resolve(.automatic, ["SLURM_ARRAY_TASK_ID": "x"]) }),
            ("SLURM_ARRAY_TASK_ID is '-1'", { _ = try resolve(.automatic, ["SLURM_ARRAY_TASK_ID": "-1"]) }),
            ("is shard 9, but the list is divided into 8", { _ = try resolve(.automatic, plan: plan, slurm(8, 8, 8)) }),
            ("is shard 9, but the list is divided into 8", { _ = try resolve(given("1/8"), offset: 8) }),
            (
                "its first shard has the number 10, the next one 12",
                {
                    let plan = ShardPlan(count: 4, numbering: ShardNumbering(.slurm, first: 10, step: 2, size: 4))
                    _ = try resolve(.automatic, plan: plan, slurm(11, 11, 11))
                }
            ),
            ("no shard", { _ = try resolve(.automatic, count: 4, ["PARALLEL_SEQ": "0"]) }),
            ("has gaps", { _ = try resolve(.automatic, slurm(3, 3, 7, count: 2)) }),
            ("has 2 tasks and --shards is 10", { _ = try resolve(.automatic, count: 10, slurm(3, 3, 4)) }),
            (
                "1 to 1000000",
                { _ = try resolve(.automatic, ["JOB_COMPLETION_INDEX": "0", "JOB_COMPLETION_COUNT": "0"]) }
            ),
        ]
        for (text, body) in cases {
            let message = fault(body)
            #expect(message.contains(text), "\(message)")
        }
    }
}
