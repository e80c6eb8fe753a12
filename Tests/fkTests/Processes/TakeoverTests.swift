import TestSupport
import Testing

@testable import fk

/// A downloader of this process beside the real program, which owns the work path first.
@Suite("A library's client of the program's downloads")
struct TakeoverTests {
    private func downloader(_ sandbox: Sandbox, _ role: DownloaderRole) throws -> Downloader {
        var configure = Configure(workPath: URL(fileURLWithPath: sandbox.workPath))
        configure.distributeSpeed = 1
        return try Downloader(configure, role: role)
    }

    @Test("the program is killed: the library takes over and resumes after its bytes")
    func killed() async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        let gate = Gate()
        let body = Bytes.pattern(count: 2_000_000)
        server.serve("/a", body, stallingAt: 500_000, gate)
        let program = try sandbox.start("get", server.url("/a"))
        let record = try #require(try await sandbox.record(server.url("/a")) { $0.received == 500_000 })
        let downloader = try downloader(sandbox, .either)
        let states = Observed<[DownloadState]>([])
        try await downloader.messager.addInfo(.id(record.id)) { info in
            states.update { if $0.last != info.state { $0.append(info.state) } }
        }.keep()
        downloader.activateQueue()
        var owners = downloader.owners.makeAsyncIterator()
        guard case .process(let pid, _) = await owners.next() else {
            Issue.record("nobody owns the work path")
            return
        }
        #expect(pid == program.pid)
        program.signal(SIGKILL)
        // Between the two owners there may be none for a moment.
        var owner = await owners.next()
        if owner == .nobody { owner = await owners.next() }
        #expect(owner == .thisDownloader)
        gate.open()
        #expect(await downloader.messager.finished(record.id)?.state == .complete)
        _ = await states.wait { $0.last == .complete }
        await downloader.close()
        #expect(try sandbox.bytes("a") == body)
        #expect(server.requests.last?["Range"] == "bytes=500000-")
    }

    @Test("what a killed process has left running waits, until the new owner is asked for it") func left() async throws
    {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        let gate = Gate()
        server.serve("/a", Bytes.pattern(count: 2_000_000), stallingAt: 500_000, gate)
        server.serve("/b", Bytes.pattern(count: 2_000_000), stallingAt: 500_000, gate)
        let first = try sandbox.start("get", server.url("/a"))
        let record = try #require(try await sandbox.record(server.url("/a")) { $0.received == 500_000 })
        first.kill()
        _ = await first.end()
        // It was killed a while ago.
        let info = WorkPath(sandbox.workPath).infoPath(record.id)
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSinceNow: -1)], ofItemAtPath: info)
        let second = try sandbox.start("get", server.url("/b"))
        _ = try await sandbox.record(server.url("/b")) { $0.received == 500_000 }
        let states = try sandbox.reader.records().map { "\($0.task.url.suffix(1)) \($0.state.rawValue)" }.sorted()
        #expect(states == ["a idle", "b action"])
        let run = try sandbox.start("run")
        #expect(try await sandbox.record(server.url("/a")) { $0.state == .action } != nil)
        gate.open()
        #expect(await second.end().status == 0)
        #expect(await run.end().status == 0)
        #expect(try sandbox.bytes("a") == Bytes.pattern(count: 2_000_000))
    }
}
