import FKCompatibility
import FKCore
import FKMiddleware
import Foundation
import Testing

@Suite("Changes of existing tasks")
struct PublicChangeTests {
    private let bench: PublicBench
    private var downloader: Downloader { bench.downloader }

    init() throws { bench = try PublicBench() }

    private func add(_ path: String, suspended: Bool = true) async throws -> TaskID {
        bench.files.serve(path, PublicBench.pattern(1_000))
        var builder = try Builder(PublicBench.url(path))
        builder.startsSuspended = suspended
        return try await builder.prepare(in: downloader)
    }

    @Test("a task that starts suspended requests nothing before its resume") func suspended() async throws {
        let id = try await add("/a")
        #expect(await downloader.messager.state(id) == .suspend)
        #expect(bench.transport.requests.isEmpty)
        try await downloader.control.resume(id)
        #expect(await downloader.messager.finished(id)?.state == .complete)
        // Asked for again, it is the same task, and its state stays.
        #expect(try await add("/a") == id)
        #expect(await downloader.messager.state(id) == .complete)
    }

    @Test("options, mirrors and priority change, and a suspended task stays so") func change() async throws {
        let id = try await add("/a")
        var options = TaskOptions()
        options.rateLimit = 5_000
        try await downloader.control.change(id, options: options, mirrors: ["http://mirror.example/ä"], priority: 7)
        let record = try await downloader.messager.records().records.first
        #expect(record?.priority == 7 && record?.mirrors == ["http://mirror.example/%C3%A4"])
        #expect(await downloader.messager.state(id) == .suspend)
    }

    @Test("an impossible change changes no task") func refused() async throws {
        let id = try await add("/a")
        await #expect(throws: DownloadError.self) {
            try await downloader.control.change(id, mirrors: ["nonsense"], priority: 9)
        }
        await #expect { try await downloader.control.change(TaskID(url: "http://nobody/"), priority: 9) } throws: {
            ($0 as? DownloadError)?.code == .notFound
        }
        #expect(try await downloader.messager.records().records.first?.priority == 0)
    }

    @Test("a verb for many tasks: by their ids, and by a query; the numbers about all of them") func many() async throws
    {
        var ids: [TaskID] = []
        for path in ["/a", "/b", "/c"] { ids.append(try await add(path)) }
        let gone = TaskID(url: "http://nobody/")
        let resumed = try await downloader.control.apply(.resume, to: [ids[0], gone, ids[1]])
        #expect(resumed.map(\.applied) == [true, false, true] && resumed.map(\.verb) == [.resume, .resume, .resume])
        for id in ids.prefix(2) { #expect(await downloader.messager.finished(id)?.state == .complete) }
        let metrics = try await downloader.metrics()
        #expect(metrics.states[.complete] == 2 && metrics.states[.suspend] == 1 && metrics.receivedBytes == 2_000)
        #expect(metrics.prometheus.contains("fk_tasks{state=\"complete\"} 2\n"))
        var query = RecordQuery()
        query.states = [.complete]
        #expect(try await downloader.control.apply(.trash, to: query).map(\.after) == [.unknown, .unknown])
        #expect(try await downloader.control.apply(.trash, to: query).isEmpty)
        #expect(await downloader.messager.all().map(\.id) == [ids[2]])
        #expect(DownloadError(.cancelled, "x").isCancellation && !DownloadError(.disk, "x").isCancellation)
    }

    @Test("the limit among the numbers is the lower one of both") func limits() async throws {
        let bench = try PublicBench { $0.rateLimit = 2_000 }
        let downloader = bench.downloader
        #expect(try await downloader.control.rateLimit() == nil)
        #expect(try await downloader.metrics().rateLimit == 2_000)
        try await downloader.control.setRateLimit(1_000)
        #expect(try await downloader.metrics().rateLimit == 1_000)
        await downloader.close()
    }

    @Test("a listener of all changes hears each state of each task, and nothing after its removal") func listener()
        async throws
    {
        let (changes, continuation) = AsyncStream.makeStream(of: DownloadInfo.self)
        let registration = await downloader.messager.addChanges { continuation.yield($0) }
        let id = try await add("/a", suspended: false)
        var states: [DownloadState] = []
        for await info in changes where info.id == id {
            states.append(info.state)
            if info.state == .complete { break }
        }
        #expect(states.first == .idle && states.contains(.action))
        registration.cancel()
    }
}
