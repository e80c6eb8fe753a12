import TestSupport
import Testing

@testable import fk

@Suite("Queries over a divided list, end to end") final class ShardQueryTests: ServedSuite {
    private let count = 12

    override init() throws {
        try super.init()
        for index in 0..<count { server.serve("/\(index)", body(index)) }
        try sandbox.put(
            ((0..<count).map { server.url("/\($0)") } + [server.url("/gone")]).joined(separator: "\n"), "list")
    }

    private func body(_ index: Int) -> [UInt8] { Bytes.pattern(count: 1_000 + index, seed: UInt64(index)) }

    private func shard(of name: String, in folder: String = "got") -> Int {
        var task = TaskDescription(url: server.url("/\(name)"))
        task.directory = "\(sandbox.files)/\(folder)"
        return Shard(of: task.id, count: 3).index
    }

    private func urls(_ records: [JSON]) -> [String] { records.map { $0.text("url") ?? "" } }

    @Test("Each query adds the shards up: a member counts once, as its shard has it, in the order of the list")
    func queries() async throws {
        try await sandbox.done("barrel", "create", "set", "-i", "list", "-d", "got")
        let all = (0..<count).map { server.url("/\($0)") } + [server.url("/gone")]
        for shard in [1, 3] { _ = try await sandbox.fk("barrel", "run", "set", "--shard", "\(shard)/3") }
        let done = (0..<count).filter { shard(of: "\($0)") != 2 }
        let hasFailed = shard(of: "gone") != 2

        let list = try await sandbox.json("list").array
        #expect(urls(list) == all)
        #expect(list.count { $0.text("state") == "complete" } == done.count)
        #expect(list.count { $0.text("state") == "error" } == (hasFailed ? 1 : 0))
        #expect(urls(try await sandbox.json("list", "--state", "complete").array) == done.map { server.url("/\($0)") })

        let shown = try await sandbox.json("barrel", "show", "set")
        #expect(urls(shown.array("members")) == all)
        #expect(shown.number("total") == count + 1 && shown.number("complete") == done.count)
        #expect(shown.number("received") == done.reduce(0) { $0 + 1_000 + $1 })
        let barrels = try await sandbox.json("barrel", "list").array
        #expect(barrels.count == 1 && barrels[0].number("complete") == done.count)

        let info = try await sandbox.json("info", server.url("/\(done[0])"))
        #expect(info.text("state") == "complete" && info.text("path") == "\(sandbox.files)/got/\(done[0])")
        #expect(try await sandbox.json("why", server.url("/\(done[0])")).text("state") == "complete")

        let metrics = try await sandbox.json("metrics")
        #expect((metrics["tasks"] as? [String: Any])?["complete"] as? Int == done.count)
        #expect(metrics.number("barrels") == 1)
        let text = try await sandbox.fk("metrics").output
        #expect(text.components(separatedBy: "fk_tasks{state=\"complete\"}").count == 2, "one sample of each series")
    }

    @Test(
        "A file of a shard is read where it is; an export names one that was changed; a deleted barrel's tasks are warned of"
    )
    func files() async throws {
        try sandbox.put(server.url("/0"), "one")
        try await sandbox.done("barrel", "create", "set", "-i", "one", "-d", "got")
        for shard in [1, 2] { _ = try await sandbox.fk("barrel", "run", "set", "--shard", "\(shard)/2") }
        let requests = server.requests.count
        try await sandbox.done("cat", "got/0")
        try await sandbox.done("cat", server.url("/0"))
        #expect(server.requests.count == requests)
        try sandbox.put("changed", "got/0")
        for format in ["lock", "metalink"] {
            let export = try await sandbox.fk("barrel", "export", "set", "--format", format)
            #expect(export.status == 1 && export.errors.contains("'0' is listed without a digest"), "\(export)")
        }
        let removed = try await sandbox.fk("barrel", "remove", "set", server.url("/0"))
        #expect(removed.status == 2 && removed.errors.contains("--work-path"), "\(removed)")
        let deleted = try await sandbox.done("barrel", "delete", "set", "-y")
        #expect(deleted.errors.contains("fk run would fetch the files"), "\(deleted)")
        // The name is free, in the shards as well.
        #expect(try await sandbox.done("barrel", "list").output == "")
        try await sandbox.done("barrel", "create", "set", server.url("/0"), "-d", "new")
        try await sandbox.done("barrel", "run", "set")
        #expect(try await sandbox.json("barrel", "show", "set").number("total") == 1)
    }

    @Test("A verb over the work path names the work path of the shard, which it does not change") func verbs()
        async throws
    {
        try await sandbox.done("barrel", "create", "set", "-i", "list", "-d", "got")
        let own = shard(of: "0")
        _ = try await sandbox.fk("barrel", "run", "set", "--shard", "\(own)/3")
        let path = "\(sandbox.workPath)/shards/\(own)-of-3"
        for words in [
            ["suspend", "0"], ["suspend", server.url("/0")], ["barrel", "cancel", "set"], ["retry", "--all"],
            ["set", "0", "owner=me"], ["relink", "0", server.url("/1")], ["toggle", "0"],
        ] {
            let result = try await sandbox.done(words)
            #expect(result.errors.contains("add --work-path \(path)"), "\(words): \(result)")
        }
        // Only a shard may have such a task.
        let none = try await sandbox.done("retry", "--state", "complete")
        #expect(none.output == "No task of this work path is complete.\n", "\(none)")
        #expect(none.errors.contains("add --work-path \(path)"), "\(none)")
        // The shard alone has the task and its file.
        for verb in ["trash", "forget"] {
            let refused = try await sandbox.fk("barrel", verb, "set", "-y")
            #expect(
                refused.status == 1 && refused.output == "" && refused.errors.contains("Nothing was done"), "\(refused)"
            )
            #expect(refused.errors.contains("fk barrel \(verb) set --work-path \(path)"), "\(refused)")
        }
        let taken = try await sandbox.fk("trash", "0", "-y")
        #expect(taken.status == 1 && taken.errors.contains("files stay") && sandbox.exists("got/0"), "\(taken)")
        let other = try #require((0..<count).first { shard(of: "\($0)") != own })
        #expect(try await sandbox.done("suspend", "\(other)").errors == "")
        // `fk get --shard` leaves nothing in the work path itself.
        let work = ["--work-path", "\(sandbox.files)/work2"]
        _ = try await sandbox.fk(
            ["get", "-q", "--shard", "\(shard(of: "0", in: "got2"))/3", "-i", "list", "-d", "got2"] + work)
        #expect(try await sandbox.fk(["list"] + work).output.contains("complete"))
        let missing = try await sandbox.fk(["suspend", "0"] + work)
        #expect(
            missing.status == 4 && missing.errors.contains("--work-path \(sandbox.files)/work2/shards/"), "\(missing)")
    }

    @Test("Commands that need the files' records refuse a divided barrel; from its lock it is published elsewhere")
    func refused() async throws {
        try sandbox.put((0..<count).map { server.url("/\($0)") }.joined(separator: "\n"), "whole")
        try await sandbox.done("barrel", "create", "set", "-i", "whole", "-d", "got")
        for shard in 1...3 { try await sandbox.done("barrel", "run", "set", "-q", "--shard", "\(shard)/3") }
        let asked = server.requests.count
        for words in [["refresh", "set"], ["publish", "set", "shown"]] {
            let result = try await sandbox.fk(["barrel"] + words)
            #expect(result.status == 2 && result.errors.contains("is divided into 3 shards"), "\(words): \(result)")
        }
        #expect(server.requests.count == asked)
        let shard = ["--work-path", "\(sandbox.workPath)/shards/1-of-3"]
        #expect(try await sandbox.done(["barrel", "refresh", "set"] + shard).output.contains("unchanged"))
        try sandbox.put(try await sandbox.done("barrel", "export", "set", "--format", "lock").output, "set.lock")
        let other = ["--work-path", "\(sandbox.files)/other"]
        let before = server.requests.count
        try await sandbox.done(["get", "-q", "-b", "set", "-i", "set.lock", "--skip", "-d", "got"] + other)
        try await sandbox.done(["barrel", "publish", "set", "shown"] + other)
        #expect(server.requests.count == before, "the digests of the lock prove the files")
        for index in 0..<count { #expect(try sandbox.bytes("shown/\(index)") == body(index)) }
    }

    @Test("missing names each file with its shard, and the array to submit again") func missing() async throws {
        try await sandbox.done("barrel", "create", "set", "-i", "list", "-d", "got")
        let numbers = ["SLURM_ARRAY_TASK_MIN": "10", "SLURM_ARRAY_TASK_STEP": "5", "SLURM_ARRAY_TASK_COUNT": "3"]
        let first = try sandbox.start(
            ["barrel", "run", "set", "--shard", "auto"],
            environment: numbers.merging(["SLURM_ARRAY_TASK_ID": "10", "SLURM_ARRAY_TASK_MAX": "20"]) { $1 })
        _ = await first.end()
        let rest = (0..<count).map(String.init).filter { shard(of: $0) != 1 } + ["gone"]
        let result = try await sandbox.fk("barrel", "missing", "set")
        #expect(result.status == 1)
        let lines = result.output.split(separator: "\n").map(String.init)
        #expect(lines.dropLast() == rest.map { "\(server.url("/\($0)")) \(shard(of: $0))/3" }[...])
        let shards = Set(rest.map { shard(of: $0) }).sorted().map { "\(10 + ($0 - 1) * 5)" }
        #expect(lines.last == "--array=\(shards.joined(separator: ","))")
        let documents = try await sandbox.fk("barrel", "missing", "set", "--json")
        #expect(try JSON(documents.output).array.map { $0.text("shard") ?? "" } == rest.map { "\(shard(of: $0))/3" })

        // What is missing is a list for another barrel.
        let export = try await sandbox.fk("barrel", "export", "set", "--missing")
        #expect(export.output.split(separator: "\n").map(String.init) == rest.map { server.url("/\($0)") })
    }

    @Test("A barrel that only the shards know") func shardsOnly() async throws {
        for shard in 1...3 {
            _ = try await sandbox.fk("get", "-i", "list", "-d", "got", "-b", "set", "--shard", "\(shard)/3")
        }
        let shown = try await sandbox.json("barrel", "show", "set")
        #expect(shown.number("total") == count + 1 && shown.number("complete") == count)
        #expect(try await sandbox.json("list").array.count == count + 1)
        let result = try await sandbox.fk("barrel", "missing", "set")
        #expect(result.status == 1)
        #expect(
            result.output == "\(server.url("/gone")) \(shard(of: "gone"))/3\n--array=\(shard(of: "gone"))\n")
        server.serve("/gone", body(3))
        try await sandbox.done(
            "get", "-i", "list", "-d", "got", "-b", "set", "--shard", "\(shard(of: "gone"))/3"
        )
        let end = try await sandbox.fk("barrel", "missing", "set")
        #expect(end.status == 0 && end.output == "")
    }

    @Test("verify reads the files of all shards, and repairs each in its shard") func verify() async throws {
        try await sandbox.done("barrel", "create", "set", "-i", "list", "-d", "got")
        for shard in 1...3 { _ = try await sandbox.fk("barrel", "run", "set", "--shard", "\(shard)/3") }
        #expect(try await sandbox.done("verify", "-b", "set").errors == "\(count) right, 1 not finished\n")
        // The shards depend on the server's port: one of them may have no file.
        let damaged = (1...3).compactMap { number in
            (0..<count).map(String.init).first { shard(of: $0) == number }
        }
        try #require(damaged.count > 1)
        for name in damaged {
            let path = "\(sandbox.files)/got/\(name)"
            let date = try #require(try FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date)
            let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path))
            try handle.write(contentsOf: Data([~body(Int(name)!)[0]]))
            try handle.close()
            try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path)
        }
        #expect(try await sandbox.fk("verify", "got/\(damaged[0])").status == 1)
        let repair = try await sandbox.done("verify", "--all", "--repair", "-q")
        #expect(
            repair.output.split(separator: "\n").filter { $0.hasPrefix("repaired") }.sorted()
                == damaged.map { "repaired \($0)" }.sorted(), "\(repair)")
        for name in damaged { #expect(try sandbox.bytes("got/\(name)") == body(Int(name)!)) }
        #expect(try await sandbox.done("verify", "--all").errors == "\(count) right\n")
    }

    @Test("fk run leaves the members of a divided barrel to the shards") func run() async throws {
        try await sandbox.done("barrel", "create", "set", "-i", "list", "-d", "got")
        _ = try await sandbox.fk("barrel", "run", "set", "--shard", "1/3")
        let asked = (0..<count).map { server.requests("/\($0)").count }
        let nothing = try await sandbox.done("run")
        let left = "fk: warning: The barrel set is divided: its members are left to the shards.\n"
        #expect(nothing.errors == left)
        let summary = try await sandbox.done("run", "--json").output
        #expect(try JSON(summary).text("event") == "summary")
        let background = try await sandbox.done("run", "--detach", "--json")
        #expect(background.errors == left)
        #expect(try JSON(background.output).text("note") == "Nothing is waiting to be fetched.")
        // The table has what the shards have done.
        let watch = try await sandbox.done("watch")
        let list = try await sandbox.done("list")
        #expect(watch.output == list.output, "\(watch)")
        #expect(watch.errors.contains("The barrel set is divided: its members are left to the shards."))
        // `retry --all` would queue the tasks of the work path itself.
        let retried = try await sandbox.done("retry", "--all", "--run")
        #expect(retried.errors.contains("Nothing to retry: the shards have these tasks."), "\(retried)")
        #expect((0..<count).map { server.requests("/\($0)").count } == asked)
        try await sandbox.done("barrel", "create", "other", "-d", "else", server.url("/0"))
        try await sandbox.done("run")
        #expect(try sandbox.bytes("else/0") == body(0))
        #expect((1..<count).map { server.requests("/\($0)").count } == Array(asked.dropFirst()))
        #expect(try await sandbox.json("list", "--state", "idle").array.count > 0)
    }

    @Test("Shards that never ran are missing, although nobody knows their files") func neverRan() async throws {
        _ = try await sandbox.fk("get", "-i", "list", "-d", "got", "-b", "set", "--shard", "2/3")
        let result = try await sandbox.fk("barrel", "missing", "set")
        #expect(result.status == 1)
        #expect(result.output.split(separator: "\n").last.map(String.init)?.hasPrefix("--array=1") == true)
        #expect(result.errors.contains("2 of 3 shards have not run yet"))
    }
}
