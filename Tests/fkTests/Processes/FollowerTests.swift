import TestSupport
import Testing

@testable import fk

/// Commands beside a process that runs the downloads.
@Suite("Followers")
struct FollowerTests {
    private let sandbox: Sandbox
    private let server: FaultServer
    private let gate = Gate()
    private let body = Bytes.pattern(count: 40_000)

    init() throws {
        sandbox = try Sandbox()
        server = try FaultServer()
        server.serve("/slow", Bytes.pattern(count: 2_000_000), stallingAt: 500_000, gate)
    }

    /// A process that runs the downloads until `gate` is open.
    private func owner() async throws -> RunningFK {
        let owner = try sandbox.start("get", server.url("/slow"), "-b", "set")
        #expect(try await sandbox.record(server.url("/slow")) { $0.received == 500_000 } != nil)
        return owner
    }

    private func count(_ state: String, _ output: String) throws -> Int {
        try JSON.lines(output).count { $0["event"] as? String == "state" && $0["state"] as? String == state }
    }

    private func end(_ owner: RunningFK) async {
        gate.open()
        #expect(await owner.end().status == 0)
    }

    @Test("-v says that another process sends the requests, and which") func verbose() async throws {
        let owner = try await owner()
        server.route("/a") { [body] _ in .ok(body) }
        let result = try await sandbox.done("get", server.url("/a"), "-v")
        #expect(
            result.errors.contains("-v shows what this process sends, and process \(owner.pid) sends the requests"),
            "\(result.errors)")
        #expect(!result.errors.contains(" in 0ms") && !result.errors.contains(" in 1ms"))
        await end(owner)
    }

    @Test("a command says that the process that runs the downloads has not its proxy, unless it has the same one")
    func otherProxy() async throws {
        let owner = try await owner()
        server.serve("/a", body)
        let proxy = ["http_proxy": "http://me:secret@127.0.0.1:1"]
        let told = try await sandbox.start(["get", server.url("/a")], environment: proxy).end()
        #expect(
            told.errors.contains(
                "process \(owner.pid) runs the downloads of this work path. It uses the proxies of its own environment, not "
                    + "127.0.0.1:1 of this one"), "\(told.errors)")
        #expect(!told.errors.contains("secret"))
        let detached = try await sandbox.start(["get", server.url("/a"), "--detach"], environment: proxy).end()
        #expect(detached.errors.contains("not 127.0.0.1:1 of this one"), "\(detached.errors)")
        let spared = proxy.merging(["no_proxy": "127.0.0.1"]) { $1 }
        for environment in [spared, [:]] {
            let same = try await sandbox.start(["get", server.url("/a")], environment: environment).end()
            #expect(same.status == 0 && !same.errors.contains("of its own environment"), "\(same.errors)")
        }
        await end(owner)
    }

    @Test("the warning names the credentials that the files may need and the other process has not")
    func otherCredentials() throws {
        func warnings(_ attributes: [String: String], _ change: (inout TaskOptions) -> Void = { _ in }) -> [String] {
            var task = TaskDescription(url: "https://files.example/a")
            task.attributes = attributes
            change(&task.options)
            let own = ["AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "s3cret", "DOCKER_CONFIG": "/d"]
            return EngineEnvironment(of: ProcessInfo.processInfo.processIdentifier, own: own).warnings(about: [task])
        }
        #expect(warnings([:]).isEmpty)
        let signed = warnings([:]) { $0.awsSignature = "aws:amz:us-east-1:s3" }
        #expect(signed.first?.contains("not this AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY. If") == true, "\(signed)")
        #expect(!signed.joined().contains("s3cret"))
        #expect(warnings(["source-token": "oci"]).first?.contains("not this DOCKER_CONFIG. If these") == true)
    }

    @Test("a file that failed before is fetched again: no old error, status 0; a new watch prints nothing of it")
    func earlierFailure() async throws {
        let owner = try await owner()
        let isThere = Locked(false)
        server.route("/a") { [body] _ in isThere.withLock(\.self) ? .status(200, body: body) : .status(404) }
        for _ in 0..<3 {
            let failed = try await sandbox.fk("get", server.url("/a"))
            #expect(failed.status == 1 && failed.errors.contains("404"))
        }
        let watch = try sandbox.start("watch", "--json")
        #expect(try await eventually { watch.output.contains("progress") ? true : nil } == true)
        isThere.withLock { $0 = true }
        let again = try await sandbox.fk("get", server.url("/a"))
        #expect(again.status == 0 && !again.errors.contains("404"), "\(again.errors)")
        #expect(try sandbox.bytes("a") == body)
        _ = try await eventually { watch.output.contains("\"complete\"") ? true : nil }
        watch.signal(SIGINT)
        let watched = await watch.end().output
        #expect(try count("error", watched) == 0 && count("complete", watched) == 1)
        await end(owner)
        #expect(
            try await eventually {
                FileManager.default.fileExists(atPath: WorkPath(sandbox.workPath).changesPath) ? nil : true
            } == true)
    }

    @Test("each path and each final state is printed once")
    func once() async throws {
        let owner = try await owner()
        let names = (0..<40).map { "f\($0)" }
        for name in names { server.serve("/\(name)", Array(body.prefix(1_000))) }
        try sandbox.put(names.map { server.url("/\($0)") }.joined(separator: "\n"), "list")
        let watch = try sandbox.start("watch", "--json")
        #expect(try await eventually { watch.output.contains("progress") ? true : nil } == true)
        let paths = try await sandbox.done("get", "-i", "list", "--print", "path")
        #expect(
            paths.output.split(separator: "\n").map { $0.split(separator: "/").last ?? "" }.sorted()
                == names.map { $0[...] }.sorted())
        let fetched = try await sandbox.done("get", "-i", "list", "-d", "other", "--json").output
        #expect(try count("complete", fetched) == names.count)
        _ = try await eventually {
            (try? count("complete", watch.output)) ?? 0 >= 2 * names.count ? true : nil
        }
        watch.signal(SIGINT)
        let watched = await watch.end().output
        #expect(try count("complete", watched) == 2 * names.count)
        await end(owner)
    }

    @Test("the sums of barrel watch count members from before and those that join")
    func sums() async throws {
        for name in ["one", "two", "three", "four"] { server.serve("/\(name)", body) }
        try await sandbox.done("get", server.url("/one"), server.url("/two"), "-b", "set")
        let owner = try await owner()
        try await sandbox.done("get", server.url("/three"))
        let watch = try sandbox.start("barrel", "watch", "set", "--json")
        #expect(try await eventually { watch.output.contains("\"complete\":2") ? true : nil } == true)
        try await sandbox.done("get", server.url("/four"), "-b", "set")
        // It is complete when it joins.
        try await sandbox.done("barrel", "add", "set", server.url("/three"))
        #expect(
            try await eventually { watch.output.contains("\"complete\":4") ? true : nil } == true, "\(watch.output)")
        await end(owner)
        let watched = await watch.end()
        #expect(watched.status == 0)
        let last = try #require(try JSON.lines(watched.output).last { $0["event"] as? String == "barrel" })
        #expect(last["complete"] as? Int == 5 && last["total"] as? Int == 5)
        #expect(last["isExpectedKnown"] as? Bool == true)
    }

    @Test("barrel watch --json reports the end of a member that is trashed") func trashed() async throws {
        server.serve("/one", body)
        try await sandbox.done("get", server.url("/one"), "-b", "set")
        let owner = try await owner()
        let watch = try sandbox.start("barrel", "watch", "set", "--json")
        #expect(try await eventually { watch.output.contains("\"complete\":1") ? true : nil } == true)
        try await sandbox.done("trash", "-y", server.url("/one"))
        #expect(
            try await eventually { watch.output.contains("\"state\":\"unknown\"") ? true : nil } == true,
            "\(watch.output)")
        await end(owner)
        _ = await watch.end()
    }

    @Test(
        "barrel watch ends when its open members are forgotten or removed, also while no process runs",
        arguments: [true, false])
    func forgotten(forgets: Bool) async throws {
        let urls = [server.url("/one"), server.url("/two")]
        try await sandbox.done(["barrel", "create", "set"] + urls)
        let watch = try sandbox.start("barrel", "watch", "set", "--json")
        #expect(try await eventually { watch.output.contains("\"total\":2") ? true : nil } == true)
        try await sandbox.done(forgets ? ["barrel", "forget", "set"] : ["barrel", "remove", "set"] + urls)
        let watched = await watch.end()
        #expect(watched.status == 0, "\(watched.errors)")
        // Leaving a barrel is no change of a task.
        let unknown = try JSON.lines(watched.output).count { $0["state"] as? String == "unknown" }
        #expect(forgets || unknown == 0, "\(watched.output)")
    }

    @Test("watch --json says that a task waits again after each process that was killed with it") func killed()
        async throws
    {
        let gate = Gate()
        server.serve("/b", Bytes.pattern(count: 1_000_000), stallingAt: 300_000, gate)
        let get = try sandbox.start("get", server.url("/b"))
        #expect(try await sandbox.record(server.url("/b")) { $0.received == 300_000 } != nil)
        let watch = try sandbox.start("watch", "--json")
        func states() throws -> [String] {
            try JSON.lines(watch.output).filter { $0["event"] as? String == "state" }.compactMap {
                $0["state"] as? String
            }
        }
        func reaches(_ expected: [String]) async throws -> Bool {
            try await eventually(within: 30) { (try? states()) == expected ? true : nil } == true
        }
        #expect(try await reaches(["action"]), "\(watch.output)")
        kill(get.pid, SIGKILL)
        _ = await get.end()
        #expect(try await reaches(["action", "idle"]), "\(watch.output)")
        let run = try sandbox.start("run")
        #expect(try await reaches(["action", "idle", "action"]), "\(watch.output)")
        kill(run.pid, SIGKILL)
        _ = await run.end()
        #expect(try await reaches(["action", "idle", "action", "idle"]), "\(watch.output)")
        watch.signal(SIGINT)
        _ = await watch.end()
        gate.open()
    }

    @Test("Ctrl-C of a follower says what becomes of its files when the owner ends")
    func interrupted() async throws {
        let owner = try await owner()
        let gate = Gate()
        server.serve("/b", Bytes.pattern(count: 1_000_000), stallingAt: 300_000, gate)
        let follower = try sandbox.start("get", server.url("/b"))
        #expect(try await sandbox.record(server.url("/b")) { $0.received == 300_000 } != nil)
        follower.signal(SIGINT)
        let stopped = await follower.end()
        #expect(stopped.status == 130)
        #expect(
            stopped.errors.contains("Process \(owner.pid) continues with these files until it ends"),
            "\(stopped.errors)")
        // The owner is stopped, so it takes nothing more: what was cut off has not failed.
        owner.signal(SIGSTOP)
        let early = try sandbox.start("get", server.url("/c"))
        let mailbox = "\(sandbox.workPath)/mailbox"
        #expect(
            try await eventually {
                try FileManager.default.contentsOfDirectory(atPath: mailbox).isEmpty ? nil : true
            } == true)
        early.signal(SIGINT)
        let cut = await early.end()
        owner.signal(SIGCONT)
        #expect(
            cut.status == 130 && !cut.errors.contains("\u{2717}") && !cut.errors.contains("closed"), "\(cut.errors)")
        #expect(
            cut.errors.contains("Stopped before process \(owner.pid) had all files of this command"), "\(cut.errors)")
        await end(owner)
        #expect(try await sandbox.record(server.url("/b"))?.state == .idle)
        gate.open()
        try await sandbox.done("run")
        #expect(try sandbox.bytes("b").count == 1_000_000)
    }
}
