import TestSupport
import Testing

@testable import fk

@Suite("A list divided among machines, end to end") final class ShardCommandTests: ServedSuite {
    private let count = 24

    override init() throws {
        try super.init()
        for index in 0..<count { server.serve("/\(index)", body(index)) }
    }

    private func body(_ index: Int) -> [UInt8] { Bytes.pattern(count: 1_000 + index, seed: UInt64(index)) }
    private var urls: [String] { (0..<count).map { server.url("/\($0)") } }
    private func putList(_ more: String...) throws { try sandbox.put((urls + more).joined(separator: "\n"), "list") }

    /// The members of a shard, by the rule of the format.
    private func members(_ shard: Int, of count: Int) -> [Int] {
        (0..<self.count).filter { Shard(of: id($0), count: count).index == shard }
    }

    private func id(_ index: Int) -> TaskID {
        var task = TaskDescription(url: server.url("/\(index)"))
        task.directory = "\(sandbox.files)/got"
        return task.id
    }

    private func expectAllFiles() throws {
        for index in 0..<count { #expect(try sandbox.bytes("got/\(index)") == body(index)) }
    }

    @Test("The shards of a barrel fetch each member once, each in a work path of its own") func barrel() async throws {
        try putList()
        try await sandbox.done("barrel", "create", "set", "-i", "list", "-d", "got")
        for shard in 1...3 {
            let run = try await sandbox.done("barrel", "run", "set", "--shard", "\(shard)/3")
            #expect(run.errors.contains("Shard \(shard)/3: \(members(shard, of: 3).count) of \(count) files."))
            let reader = StoreReader(WorkPath("\(sandbox.workPath)/shards/\(shard)-of-3"))
            #expect(try Set(reader.records().map(\.id)) == Set(members(shard, of: 3).map(id)))
            #expect(try reader.barrel("set").members.count == members(shard, of: 3).count)
        }
        try expectAllFiles()
        #expect(server.requests.count == count)
        // Again: nothing is fetched.
        try await sandbox.done("barrel", "run", "set", "--shard", "2/3")
        #expect(server.requests.count == count)
    }

    @Test("The shards of a list without a barrel, started at the same time") func list() async throws {
        try putList()
        let runs = try (1...3).map { try sandbox.start("get", "-i", "list", "-d", "got", "--shard", "\($0)/3") }
        for run in runs { #expect(await run.end().status == 0) }
        try expectAllFiles()
        #expect(server.requests.count == count)
        let other = try await sandbox.fk("get", "-i", "list", "-d", "got", "--shard", "1/4")
        #expect(other.status == 2 && other.errors.contains("is divided into 3 shards, not 4"))
    }

    @Test("A shard that no task falls into succeeds") func empty() async throws {
        let run = try await sandbox.fk(
            "get", server.url("/0"), "-d", "got", "--shard", "\(members(1, of: 2).contains(0) ? 2 : 1)/2")
        #expect(run.status == 0 && run.errors.contains("0 of 1 file"))
        let json = try await sandbox.done(
            "get", server.url("/0"), "-d", "got", "--shard", "\(members(1, of: 2).contains(0) ? 2 : 1)/2", "--json")
        #expect(try JSON(json.output).text("event") == "summary")
        #expect(server.requests.isEmpty)
    }

    @Test("A part of a Slurm array that is submitted again takes the same members, and tries failed ones again")
    func array() async throws {
        server.route("/late") { _ in .status(503) }
        try putList(server.url("/late"))
        try await sandbox.done("barrel", "create", "set", "-i", "list", "-d", "got", "--retry", "0")
        func run(_ number: Int, _ first: Int, _ count: Int) async throws -> FKProgram.Output {
            try await sandbox.start(
                ["barrel", "run", "set", "--shard", "auto"],
                environment: [
                    "SLURM_ARRAY_TASK_ID": "\(number)", "SLURM_ARRAY_TASK_MIN": "\(first)",
                    "SLURM_ARRAY_TASK_MAX": "\(first + count - 1)", "SLURM_ARRAY_TASK_STEP": "1",
                    "SLURM_ARRAY_TASK_COUNT": "\(count)",
                ]
            ).end()
        }
        var failed: [Int] = []
        for number in 0..<4 {
            let status = try await run(number, 0, 4).status
            #expect(status == 0 || status == ExitStatus.tryAgain)
            if status != 0 { failed.append(number) }
        }
        try expectAllFiles()
        #expect(failed.count == 1, "the answer 503 may pass: a rerun would help")
        server.serve("/late", body(99))
        let again = try await run(failed[0], failed[0], 1)
        #expect(again.status == 0, "\(again.errors)")
        #expect(try sandbox.bytes("got/late") == body(99))
    }

    @Test("A file that is not there makes no rerun worthwhile") func gone() async throws {
        let run = try await sandbox.fk("get", server.url("/gone"), "-d", "got", "--shard", "1/1")
        #expect(run.status == 1)
    }

    @Test("A second process with the same shard follows the first one") func twice() async throws {
        let gate = Gate()
        server.serve("/slow", body(7), stallingAt: 100, gate)
        let first = try sandbox.start("get", server.url("/slow"), "-d", "got", "--shard", "1/1")
        try #require(await eventually { server.requests.count == 1 ? true : nil } == true)
        let second = try sandbox.start("get", server.url("/slow"), "-d", "got", "--shard", "1/1")
        #expect(try await second.says("following it"))
        gate.open()
        #expect(await first.end().status == 0)
        #expect(await second.end().status == 0)
        #expect(server.requests.count == 1)
    }

    @Test("SIGTERM saves the shard, and the next run continues it") func term() async throws {
        let gate = Gate()
        let body = Bytes.pattern(count: 600_000, seed: 5)
        server.serve("/large", body, stallingAt: 400_000, gate)
        let run = try sandbox.start("get", server.url("/large"), "-d", "got", "--shard", "1/1")
        let shard = StoreReader(WorkPath("\(sandbox.workPath)/shards/1-of-1"))
        _ = try await eventually { (try? shard.records())?.first { $0.received >= 300_000 } }
        run.signal(SIGTERM)
        #expect(await run.end().status == 143)
        gate.open()
        server.serve("/large", body)
        try await sandbox.done("get", server.url("/large"), "-d", "got", "--shard", "1/1")
        #expect(try sandbox.bytes("got/large") == body)
        let range = try #require(server.requests.last?["Range"])
        #expect(range.hasPrefix("bytes=") && range != "bytes=0-")
    }

    @Test("--divide-limits divides the rate, the number of files and the limits of hosts") func limits() throws {
        let context = CommandContext(environment: [:], workingDirectory: "/")
        guard
            case .command(_, let arguments) = try CommandTable.parser.parse([
                "get", "http://h/u", "-j", "9", "--limit-rate", "10K", "--per-host", "9", "--rate", "4/s", "--shard",
                "1/4", "--divide-limits",
            ])
        else {
            Issue.record("not a command")
            return
        }
        let divided = try RunOptions(arguments, context).divided(by: 4)
        #expect(divided.jobs == 2 && divided.rateLimit == 2_560 && divided.perHost == 2)
        #expect(divided.own?.shards == 4 && divided.own?.requestRate == RequestRate(4, per: .second))
        #expect(divided.divided(by: 1_000_000).jobs == 1 && divided.divided(by: 1_000_000).rateLimit == 1)
    }

    @Test("A divided barrel is not run as a whole by accident") func whole() async throws {
        try putList()
        try await sandbox.done("barrel", "create", "set", "-i", "list", "-d", "got")
        try await sandbox.done("barrel", "run", "set", "--shard", "1/2")
        let run = try await sandbox.fk("barrel", "run", "set")
        #expect(run.status == 2 && run.errors.contains("divided into 2 shards"))
    }
}
