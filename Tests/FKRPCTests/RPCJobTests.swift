import FKModel
import TestSupport
import Testing

@testable import FKRPC

@Suite("Commands of fk over the RPC")
struct RPCJobTests {
    /// A service whose program is a script.
    private static func fixture(
        _ script: String, isActive: Bool = false, change: (inout RPCSettings) -> Void = { _ in }
    ) async throws -> RPCFixture {
        let folder = try TemporaryFolder()
        let tool = folder.file("fk").path
        try Data("#!/bin/sh\n\(script)\n".utf8).write(to: URL(fileURLWithPath: tool))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: tool)
        return try await RPCFixture(folder: folder, isActive: isActive) {
            $0.tool = tool
            change(&$0)
        }
    }

    /// The job at its end.
    private static func end(_ job: JSON, _ fixture: RPCFixture) async throws -> JSON {
        let id = try #require(job["id"], "\(job)")
        let ended = try await eventually { () -> JSON? in
            let job = try await fixture.call("fk.job", .members(["id": id]))
            return job["state"] == "running" ? nil : job
        }
        return try #require(ended)
    }

    @Test(
        "each method starts its command, with operands that are no options",
        arguments: [
            (
                "fk.preview", #"{"source":"https://h/pub/","include":["*.iso","--all"],"depth":2}"#,
                "get -r --work-path WORK --dry-run --json --no-progress --directory=BASE/pub --include=*.iso --include=--all --depth 2 "
                    + "--barrel=pub -- https://h/pub/"
            ),
            (
                "fk.preview", #"{"source":"s3://bucket/-x","dir":"a","barrel":"-b","anonymous":true,"depth":null}"#,
                "get -r --work-path WORK --dry-run --json --no-progress --directory=BASE/a --anonymous --barrel=-b -- s3://bucket/-x"
            ),
            (
                "fk.fetch", #"{"source":"hf:owner/repo","exclude":["data/*"]}"#,
                "barrel import --work-path WORK -r --json --no-progress --directory=BASE/repo --exclude=data/* -- repo hf:owner/repo"
            ),
            ("fk.sync", #"{"barrel":"b"}"#, "barrel sync --work-path WORK --json --no-progress -- b"),
            (
                "fk.sync", #"{"barrel":"--delete","dryRun":true}"#,
                "barrel sync --work-path WORK --json --no-progress --dry-run -- --delete"
            ),
            (
                "fk.sync", #"{"barrel":"b","delete":true,"maxDelete":"7%"}"#,
                "barrel sync --work-path WORK --json --no-progress --delete --yes --max-delete 7% -- b"
            ),
            (
                "fk.publish", #"{"barrel":"b","dir":"out","durability":"power"}"#,
                "barrel publish --work-path WORK --json --no-progress --durability power -- b BASE/out"
            ),
        ]) func words(method: String, members: String, expected: String) async throws
    {
        let fixture = try await Self.fixture(#"printf '%s ' "$@" > words; pwd > place"#)
        let job = try await fixture.call(method, try #require(JSON(parsing: Array(members.utf8))))
        #expect(job["state"] == "running" || job["state"] == "done", "\(job)")
        let ended = try await Self.end(job, fixture)
        #expect(ended["state"] == "done" && ended["status"] == 0, "\(ended)")
        let words = String(decoding: try fixture.folder.read("downloads/words"), as: UTF8.self)
            .replacingOccurrences(of: fixture.folder.file("work").path, with: "WORK")
            .replacingOccurrences(of: fixture.downloads, with: "BASE")
        #expect(words.trimmingCharacters(in: .whitespaces) == expected)
    }

    @Test("what the program prints is counted and kept, and what it says is shown without its name") func output()
        async throws
    {
        let fixture = try await Self.fixture(
            #"""
            i=0; while [ $i -lt 1200 ]; do echo "{\"name\":\"f$i\",\"result\":\"new\",\"size\":10,\"url\":\"http://h/f$i\"}"; i=$((i+1)); done
            echo '{"name":"gone","result":"gone","url":"http://h/gone"}'
            echo 'no JSON'; echo '[1]'; echo '{"result":"other","name":"x"}'; printf '{"event":"summary","complete":3}'; echo
            printf 'fk: one\001thing\nTry '\''fk help get'\''.\nanother\n' >&2
            exit 1
            """#)
        let job = try await Self.end(
            try await fixture.call("fk.preview", .members(["source": "https://h/pub/"])), fixture)
        #expect(
            job["state"] == "failed" && job["status"] == 1 && job["kind"] == "preview", "\(job["messages"] ?? .null)")
        #expect(job["title"] == "https://h/pub/")
        #expect(job["sums"]?["new"]?["bytes"] == 12_000 && job["sums"]?["new"]?["count"] == 1_200)
        #expect(job["sums"]?["gone"]?["count"] == 1 && job["sums"]?["other"] == nil)
        #expect(job["files"]?.array?.count == 1_000 && job["files"]?.array?.first?["name"] == "f0")
        #expect(job["messages"] == ["one\\u{1}thing", "another"])
        #expect(job["result"]?["complete"] == 3)
        let jobs = try await fixture.call("fk.jobs")
        #expect(jobs.array?.count == 1 && jobs.array?.first?["files"] == nil)
    }

    @Test("two commands run at once; one that is ended is killed with its children") func slots() async throws {
        let fixture = try await Self.fixture("sleep 1000 & echo $! > child; wait")
        let call = JSON.members(["barrel": "b"])
        let first = try await fixture.call("fk.sync", call)
        let second = try await fixture.call("fk.sync", call)
        #expect(try await fixture.call("fk.sync", call)["message"]?.string?.contains("2 commands") == true)
        let child = try #require(
            try await eventually { () -> pid_t? in
                pid_t(
                    String(decoding: (try? fixture.folder.read("downloads/child")) ?? [], as: UTF8.self)
                        .trimmingCharacters(in: .whitespacesAndNewlines))
            })
        for job in [first, second] {
            let id = try #require(job["id"])
            #expect(try await fixture.call("fk.endJob", .members(["id": id]))["state"] == "stopped")
        }
        let isGone = try await eventually { kill(child, 0) != 0 ? true : nil }
        #expect(isGone == true)
        let third = try await eventually { () -> JSON? in
            let answer = try await fixture.call("fk.sync", call)
            return answer["id"] == nil ? nil : answer
        }
        #expect(third?["state"] == "running")
        await fixture.close()
    }

    @Test(
        "what no source is, and what a client may not do, is refused before a program runs",
        arguments: [
            ("fk.preview", "{}", "needs the member source"), ("fk.preview", #"{"source":""}"#, "source is empty"),
            ("fk.preview", #"{"source":"/etc/passwd"}"#, "names no source"),
            ("fk.fetch", #"{"source":"list.txt"}"#, "names no source"),
            ("fk.fetch", #"{"source":"file:///etc/passwd"}"#, "no source for 'file:'"),
            ("fk.fetch", #"{"source":"-i"}"#, "names no source"),
            ("fk.fetch", #"{"source":"nope:x"}"#, "no source for 'nope:'"),
            ("fk.preview", #"{"source":"https://h/","dir":"/etc"}"#, "/etc is not allowed"),
            ("fk.preview", #"{"source":"https://h/","dir":"../.."}"#, "is not allowed"),
            ("fk.preview", #"{"source":"https://h/","depth":0}"#, "from 1 to 1000"),
            ("fk.preview", #"{"source":"https://h/","include":"*"}"#, "an array"),
            ("fk.preview", #"{"source":"https://h/","include":[""]}"#, "include is empty"),
            ("fk.preview", #"{"source":"https://h/","paused":true}"#, "no member paused"),
            ("fk.sync", "{}", "needs the member barrel"), ("fk.sync", #"{"barrel":"b","yes":true}"#, "no member yes"),
            ("fk.sync", #"{"barrel":"b","dryRun":true,"delete":true}"#, "exclude each other"),
            ("fk.sync", #"{"barrel":"b","maxDelete":"5"}"#, "needs \"delete\""),
            ("fk.sync", #"{"barrel":"b","delete":true,"maxDelete":"-5"}"#, "a number of files"),
            ("fk.sync", #"{"barrel":"b","delete":true,"maxDelete":5}"#, "a text"),
            ("fk.publish", #"{"barrel":"b"}"#, "needs the member dir"),
            ("fk.publish", #"{"barrel":"b","dir":""}"#, "name of a folder"),
            ("fk.publish", #"{"barrel":"b","dir":"/etc/x"}"#, "is not allowed"),
            ("fk.publish", #"{"barrel":"b","dir":"x","durability":"y"}"#, "\"process\" or \"power\""),
            ("fk.job", "{}", "needs the member id"), ("fk.job", #"{"id":4}"#, "There is no job 4"),
            ("fk.endJob", #"{"id":0}"#, "id must be"),
        ]) func faults(method: String, members: String, reason: String) async throws
    {
        let fixture = try await Self.fixture("touch ran")
        let answer = try await fixture.send(#"{"id":1,"method":"\#(method)","params":[\#(members)]}"#)
        #expect(answer.status == 400)
        #expect(answer.json["error"]?["message"]?.string?.contains(reason) == true, "\(answer.json)")
        #expect(try await fixture.call("fk.jobs") == [])
    }

    @Test("a known barrel keeps its folder, unless that is not a client's") func folders() async throws {
        let fixture = try await Self.fixture("exit 0", isActive: true)
        for (name, folder, isAllowed) in [("in", fixture.downloads + "/x", true), ("out", "/srv/out", false)] {
            var options = BarrelOptions()
            options.directory = folder
            let client = EngineClient(configure: await fixture.downloader.configure)
            _ = try await client.perform(.createBarrel(name: name, options: options))
            let answer = try await fixture.call(
                "fk.fetch", .members(["source": "https://h/pub/", "barrel": .string(name)]))
            #expect((answer["message"] == nil) == isAllowed, "\(answer)")
            if isAllowed { _ = try await Self.end(answer, fixture) }
        }
    }

    @Test("without the program, and the methods say so; with private addresses refused, so does the program")
    func unable() async throws {
        let bare = try await RPCFixture(isActive: false)
        let call = JSON.members(["source": "https://h/pub/"])
        #expect(try await bare.call("fk.preview", call)["message"]?.string?.contains("does not tell the path") == true)
        let guarded = try await Self.fixture("echo \"$@\" >&2") { $0.refusesPrivate = true }
        for (method, members) in [
            ("fk.preview", call), ("fk.fetch", call), ("fk.sync", JSON.members(["barrel": "pub"])),
            ("fk.publish", JSON.members(["barrel": "pub", "dir": "set"])),
        ] {
            let ended = try await Self.end(try await guarded.call(method, members), guarded)
            let words = ended["messages"]?.array?.first?.string ?? ""
            #expect(words.contains(" --no-private ") == (method != "fk.publish"), "\(method): \(words)")
        }
    }

    @Test("lines are read however they are cut, and endless ones are skipped") func lines() {
        let text = #"{"result":"new","name":"é","size":1}"# + "\n"
        for step in [1, 2, 3, 7, 1_000] {
            var output = ToolOutput()
            let bytes = Array((text + text).utf8)
            for start in stride(from: 0, to: bytes.count, by: step) {
                output.append(Array(bytes[start..<min(start + step, bytes.count)]))
            }
            #expect(output.files.count == 2 && output.sums["new"]?["bytes"] == 2)
        }
        var output = ToolOutput()
        for _ in 0..<200 { output.append([UInt8](repeating: UInt8(ascii: "x"), count: 1_000)) }
        output.append(Array(("\n" + text).utf8))
        #expect(output.files.count == 1)
        #expect(ToolOutput.messages(Array(repeating: UInt8(ascii: "\n"), count: 99)).isEmpty)
        let many = String(repeating: "a\n", count: 60)
        #expect(ToolOutput.messages(Array(many.utf8)).last == "and 10 more lines")
    }

    @Test("only the last jobs are remembered, and running ones are never forgotten") func memory() throws {
        var jobs = ToolJobs()
        let fixture = FolderGate(folders: ["/d"])
        let call = try PageCall("fk.sync", [.members(["barrel": "b"])], allowed: ["barrel"])
        let running = try jobs.add(ToolCommand(sync: call, fixture))
        for _ in 0..<40 { try jobs.add(ToolCommand(sync: call, fixture)).stop() }
        #expect(jobs.all.count == ToolJobs.maxKnown && jobs[running.number] != nil && jobs[41] != nil && jobs[2] == nil)
    }
}

@Suite("Memory that the RPC has freed")
struct FreedMemoryTests {
    /// The ticks at which memory is given back.
    private func times(_ ticks: Int, _ isIdle: (Int) -> Bool, _ bytes: (Int) -> Int) -> [Int] {
        var freed = FreedMemory()
        return (1...ticks).filter { tick in
            freed.record(bytes: bytes(tick))
            return freed.tick(isIdle: isIdle(tick))
        }
    }

    @Test("it is given back once after tasks have run, and again after long requests") func times() {
        #expect(times(60, { _ in true }, { _ in 0 }) == [5])
        #expect(times(60, { $0 > 20 }, { _ in 0 }) == [25])
        #expect(times(60, { $0 < 10 || $0 > 20 }, { _ in 0 }) == [5, 25])
        #expect(times(60, { _ in true }, { $0 == 30 ? FreedMemory.few : 0 }) == [5, 30])
        #expect(times(60, { _ in true }, { $0 == 30 ? FreedMemory.few - 1 : 0 }) == [5])
        #expect(times(60, { $0 < 2 }, { $0 == 30 ? FreedMemory.few : 0 }).isEmpty)
        #expect(times(60, { $0 < 2 }, { $0 == 30 ? FreedMemory.many : 0 }) == [30])
        // A flood gives no more work than each fifth tick.
        #expect(times(20, { _ in false }, { _ in FreedMemory.many }) == [5, 10, 15, 20])
    }
}
