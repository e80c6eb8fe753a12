import FKMiddleware
import TestSupport
import Testing

@testable import fk

@Suite("Interrupted and continued") final class InterruptTests: ServedSuite {
    private let body = Bytes.pattern(count: 3_000_000)
    private let gate = Gate()

    @Test("SIGKILL in the middle of a large file: the same command completes it, little is sent twice")
    func killed() async throws {
        let count = 16_000_000
        let large = Bytes.pattern(count: count)
        // Only the first request is slow: the moment to kill in is then as long as the slowest machine needs.
        let nginx = try NginxServer(
            extra: """
                set $speed 0;
                if ($http_range = "") { set $speed 800000; }
                location /once-slow/ { rewrite ^/once-slow(/.*) $1 break; limit_rate $speed; }
                """)
        try nginx.write(large, to: "large")
        let url = "\(nginx.base)/once-slow/large"
        let first = try sandbox.start("get", "-x", "1", url)
        #expect(try await sandbox.record(url) { $0.received > 3_000_000 && $0.state == .action } != nil)
        first.kill()
        #expect(await first.end().status == 137)
        // Further connections on a slow machine would add the bytes in their sockets to what is sent twice.
        let second = try await sandbox.done("get", "-x", "1", url, "--json")
        #expect(Bytes.sha256(try sandbox.bytes("large")) == Bytes.sha256(large))
        let log = try await nginx.log(atLeast: 2)
        #expect(log.contains { $0.status == 206 })
        #expect(log.reduce(0) { $0 + $1.bodyBytesSent } <= count + 8 << 20)
        #expect(try JSON.lines(second.output).last?.number("bytes") ?? .max <= count - 3_000_000)
    }

    @Test("SIGKILL with several connections at work, three times: every range goes on where it was")
    func killedSeveral() async throws {
        let count = 24_000_000
        let large = Bytes.pattern(count: count)
        // Slow until there is a file that says otherwise: a minute, for a test that seldom gets its turn.
        let nginx = try NginxServer(
            extra: """
                set $limit 100000;
                if (-f $document_root/fast) { set $limit 0; }
                location /held/ { rewrite ^/held(/.*) $1 break; limit_rate $limit; }
                """)
        try nginx.write(large, to: "large")
        let url = "\(nginx.base)/held/large"
        for received in [400_000, 800_000, 1_200_000] as [Int64] {
            let run = try sandbox.start("get", "-x", "4", url)
            let record = try await sandbox.record(url) {
                $0.received > received && $0.state == .action && $0.ranges.count > 1
            }
            run.kill()
            let end = await run.end()
            #expect(record != nil && end.status == 137, "\(end)")
        }
        try nginx.write([], to: "fast")
        let last = try await sandbox.done("get", "-x", "4", url, "--json")
        #expect(Bytes.sha256(try sandbox.bytes("large")) == Bytes.sha256(large))
        #expect(try JSON.lines(last.output).last?.number("bytes") ?? .max <= count - 1_200_000)
    }

    /// `fk get` with a million bytes of the file; no more come before the gate opens.
    private func begun() async throws -> (url: String, running: RunningFK) {
        let url = server.url("/f")
        server.serve("/f", body, stallingAt: 1_000_000, gate)
        let running = try sandbox.start("get", "-x1", url)
        try #require(try await sandbox.record(url) { $0.received == 1_000_000 } != nil)
        return (url, running)
    }

    @Test(
        "A signal saves the state, tells how to go on, and fk run finishes",
        arguments: [(SIGINT, 130), (SIGTERM, 143), (SIGHUP, 129)] as [(Int32, Int32)])
    func signal(number: Int32, status: Int32) async throws {
        let (url, running) = try await begun()
        running.signal(number)
        let stopped = await running.end()
        gate.open()
        #expect(stopped.status == status)
        #expect(stopped.output == "")
        let last = stopped.errors.split(separator: "\n").last ?? ""
        #expect(last.contains("kept") && last.contains("fk run"))
        let record = try #require(sandbox.reader.records(url: url).first)
        #expect(record.state == .idle && record.received == 1_000_000)
        try await sandbox.done("run")
        #expect(try sandbox.bytes("f") == body)
        #expect(server.requests.last?["Range"] == "bytes=1000000-")
    }

    @Test("A part that somebody has deleted: the whole file counts as fetched, and the history says why")
    func deletedPart() async throws {
        let (url, running) = try await begun()
        running.signal(SIGINT)
        _ = await running.end()
        gate.open()
        let part = try #require(try sandbox.names().first { $0.hasSuffix(".fkpart") })
        try FileManager.default.removeItem(atPath: "\(sandbox.files)/\(part)")
        let second = try await sandbox.done("get", "-x1", url, "--json")
        #expect(try JSON.lines(second.output).last?.number("bytes") == body.count)
        #expect(try await sandbox.done("why", url).output.contains("the part file is gone: starting again"))
    }

    @Test("SIGTERM ends fk get while servers redirect to endless URLs, quote them in refusals or never answer")
    func hostileServers() async throws {
        let signature = String(repeating: "y", count: 90_000)
        let target = server.url("/refused?sig=\(signature)")
        for index in 0..<20 { server.route("/\(index)") { _ in .redirect(to: target) } }
        server.route("/refused") { _ in .status(503, body: Array(signature.utf8.prefix(512))) }
        server.serve("/deaf", body, stallingAt: 0, gate)
        let running = try sandbox.start(
            ["get", "-j", "30", "--retry", "1000", server.url("/deaf")] + (0..<20).map { server.url("/\($0)") })
        await server.waitForRequests(30)
        running.signal(SIGTERM)
        #expect(await running.end().status == 143)
    }

    @Test("SIGTERM, and Ctrl-C again and again, end fk get whose output nobody reads", arguments: [SIGTERM, SIGINT])
    func deafReader(number: Int32) async throws {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        let zeros = [UInt8](repeating: 0, count: 4_096)
        while write(ends[1], zeros, zeros.count) > 0 {}
        _ = fcntl(ends[1], F_SETFL, 0)
        server.serve("/f", body, stallingAt: 1_000_000, gate)
        let child = try ChildProcess(
            [FKProgram.path, "get", "--json", server.url("/f")],
            environment: FKProgram.environment(["FK_WORK_PATH": sandbox.workPath]), folder: sandbox.files,
            output: .descriptor(ends[1]), errors: .null)
        await server.waitForRequests(1)
        kill(child.pid, number)
        let hasEnded = Locked(false)
        let typing = Task {
            while number == SIGINT, !hasEnded.withLock(\.self) {
                kill(child.pid, number)
                await Task.yield()
            }
        }
        let status = try await offPool {
            var info = siginfo_t()
            // The process number stays that of the child until `end`.
            _ = waitid(P_PID, id_t(child.pid), &info, WEXITED | WNOWAIT)
            hasEnded.withLock { $0 = true }
            return 0
        }
        #expect(status == 0)
        await typing.value
        #expect(try await offPool { child.end() } == 128 + number)
    }

    @Test("Signals that come together, as timeout sends them, are one: the state is saved") func together() async throws
    {
        let (url, running) = try await begun()
        // The system joins those that come before the first is handled.
        for _ in 0..<200 { running.signal(SIGTERM) }
        let stopped = await running.end()
        gate.open()
        #expect(stopped.status == 143 && stopped.errors.contains("fk run"), "\(stopped)")
        #expect(try sandbox.reader.records(url: url).first?.state == .idle)
    }

    @Test("A second Ctrl-C ends it at once, and the bytes are there all the same") func twice() async throws {
        let (url, running) = try await begun()
        running.signal(SIGINT)
        running.signal(SIGINT)
        #expect(await running.end().status == 130)
        gate.open()
        try await sandbox.done("get", url)
        #expect(try sandbox.bytes("f") == body)
        #expect(server.requests.last?["Range"] == "bytes=1000000-")
    }

    @Test("A suspended task does not hold fk run, and goes on after resume") func suspended() async throws {
        let (url, running) = try await begun()
        running.signal(SIGTERM)
        _ = await running.end()
        gate.open()
        #expect(try await sandbox.fk("suspend", url).output.contains("suspended"))
        try await sandbox.done("run")
        #expect(server.requests.count == 1)
        #expect(try await sandbox.fk("why", url).output.contains("fk resume"))
        try await sandbox.done("resume", url)
        try await sandbox.done("run")
        #expect(try sandbox.bytes("f") == body)
    }
}
