import FKCompatibility
import FKCore
import FKMiddleware
import Foundation
import Testing

@Suite("Handles of barrels")
struct PublicBarrelHandleTests {
    private let bench: PublicBench
    private let paths = (1...5).map { "/\($0).bin" }
    private var downloader: Downloader { bench.downloader }
    private var folder: URL { bench.folder.appendingPathComponent("files") }
    private var urls: [String] { paths.map(PublicBench.url) }

    init() throws {
        bench = try PublicBench { $0.distributeSpeed = 1 }
        for path in paths { bench.files.serve(path, PublicBench.pattern(10_000)) }
    }

    @Test("a barrel is made when it is missing; an invalid name is refused")
    func make() async throws {
        let barrel = try await downloader.barrel("books")
        #expect(try await downloader.messager.barrels() == ["books"])
        #expect(try await downloader.barrel("books") == barrel && barrel.id == "books")
        #expect(try await barrel.info.total == 0)
        await #expect { _ = try await downloader.barrel("a/b") } throws: {
            ($0 as? DownloadError)?.code == .invalidArgument
        }
    }

    @Test("an empty barrel: progress ends after one sum, ended at once, verbs change nothing")
    func empty() async throws {
        let barrel = try await downloader.barrel("empty")
        var sums: [Int] = []
        for await sum in barrel.progress { sums.append(sum.total) }
        #expect(sums == [0])
        for await _ in barrel.ended { Issue.record("nobody ends") }
        #expect(try await barrel.suspend().isEmpty)
        #expect(try await barrel.trash().isEmpty)
        let (files, infos, members) = await (barrel.files, barrel.memberInfos, barrel.members)
        #expect(files.isEmpty && infos.isEmpty && members.isEmpty)
        #expect(try await barrel.add([Builder]()).isEmpty)
        #expect(try await barrel.add([String]()).isEmpty)
    }

    @Test("tasks are named by text, URL, id, handle or barrel alike; failures come with their tasks")
    func names() async throws {
        let barrel = try await downloader.barrel("mixed")
        let url = try #require(URL(string: PublicBench.url("/missing")))
        let added = try await barrel.add([url, try #require(URL(string: urls[0]))], to: folder).map { try $0.get() }
        for await _ in barrel.progress {}
        let failures = await barrel.failures
        #expect(failures.map(\.task) == [added[0]] && failures.map(\.error.status) == [404])
        #expect(added.map(\.url) == [url.absoluteString, urls[0]])
        try await added[0].setPriority(7)
        let messager = downloader.messager
        #expect(await messager.record(added[0])?.priority == 7)
        let found = await [
            messager.info(url.absoluteString), messager.info(url), messager.info(added[0].id), messager.info(added[0]),
            messager.info(barrel), messager.info(.state(.error)), messager.info("http://files.example/missing"),
        ]
        #expect(found.map { $0?.id } == [TaskID?](repeating: added[0].id, count: 7))
        #expect(await downloader.task(url) == added[0])
        #expect(try await downloader.control.trash(barrel).count { $0.applied } == 2)
    }

    @Test("add gives one result for each URL, in order; a bad one does not stop the others")
    func add() async throws {
        let barrel = try await downloader.barrel("five")
        var list = urls
        list.insert("no url", at: 2)
        let results = try await barrel.add(list, to: folder)
        #expect(results.map { (try? $0.get()) != nil } == [true, true, false, true, true, true])
        var last: BarrelInfo?
        for await sum in barrel.progress { last = sum }
        #expect(last?.isComplete == true && last?.count.received == 50_000)
        #expect(await barrel.members == results.compactMap { try? $0.get() })
        #expect(await barrel.files == paths.map { folder.appendingPathComponent(String($0.dropFirst())) })
        #expect(await barrel.memberInfos.map(\.url) == urls)
    }

    @Test("ended: each member once, complete or failed; one that ends early comes before one that is held")
    func ended() async throws {
        bench.files.serve("/held", PublicBench.pattern(10_000), hold: 1_000)
        let barrel = try await downloader.barrel("mixed")
        let all = urls + [PublicBench.url("/missing"), PublicBench.url("/held")]
        let tasks = try await barrel.add(all, to: folder).map { try $0.get() }
        var seen: [DownloadTask] = []
        var failures: [DownloadError.Code] = []
        for await task in barrel.ended {
            seen.append(task)
            do throws(DownloadError) { _ = try await task.file } catch { failures.append(error.code) }
            if seen.count == 6 { bench.files.release("/held") }
        }
        #expect(seen.count == 7 && Set(seen) == Set(tasks) && seen.last == tasks.last)
        #expect(failures == [.httpStatus])
        // Asked for again, those that have ended come at once.
        var again = 0
        for await _ in barrel.ended { again += 1 }
        #expect(again == 7)
    }

    @Test("ended and progress go on while a member is suspended, and end with the last one")
    func suspended() async throws {
        bench.files.serve("/held", PublicBench.pattern(10_000), hold: 1_000)
        let barrel = try await downloader.barrel("stopped")
        let results = try await barrel.add(urls + [PublicBench.url("/held")], to: folder)
        let held = try #require(results.last).get()
        let sums = Task { await barrel.progress.reduce(into: []) { $0.append($1.states) } }
        var ended: [DownloadTask] = []
        for await task in barrel.ended {
            ended.append(task)
            guard ended.count == 5 else { continue }
            try await barrel.suspend()
            #expect(await held.info?.state == .suspend)
            bench.files.release("/held")
            #expect(try await barrel.resume().count { $0.applied } == 1)
        }
        #expect(ended.count == 6 && ended.last == held)
        #expect(await sums.value.last == [.complete: 6])
    }

    @Test("cancelling a reader of ended ends it")
    func cancelled() async throws {
        bench.files.serve("/held", PublicBench.pattern(10_000), hold: 1_000)
        let barrel = try await downloader.barrel("held")
        _ = try await barrel.add([PublicBench.url("/held")], to: folder)
        let reader = Task { for await _ in barrel.ended { Issue.record("nobody ends") } }
        reader.cancel()
        await reader.value
    }

    @Test("members leave by id, URL, another barrel and all; a barrel that is deleted leaves its tasks")
    func remove() async throws {
        let barrel = try await downloader.barrel("a")
        let tasks = try await barrel.add(urls, to: folder).map { try $0.get() }
        let other = try await downloader.barrel("b")
        try await downloader.messager.add(tasks[2].id, toBarrel: "b")
        try await barrel.remove(tasks[0].id)
        try await barrel.remove(urls[1])
        try await barrel.remove(.barrel(other.name))
        #expect(await barrel.members == [tasks[3], tasks[4]])
        await #expect { try await barrel.remove(tasks[0].id) } throws: {
            ($0 as? DownloadError)?.code == .notFound
        }
        try await barrel.remove(.all)
        #expect(await barrel.members.isEmpty)
        #expect(await other.members == [tasks[2]])
        try await other.delete()
        #expect(try await downloader.messager.barrels() == ["a"])
        #expect(await downloader.messager.all().count == 5)
        await #expect { _ = try await other.suspend() } throws: { ($0 as? DownloadError)?.code == .notFound }
        await #expect { _ = try await other.info } throws: { ($0 as? DownloadError)?.code == .notFound }
        for await _ in other.progress { Issue.record("there is no such barrel") }
        for await _ in other.ended { Issue.record("there is no such barrel") }
    }

    @Test("forget empties a barrel and keeps its files")
    func forget() async throws {
        let barrel = try await downloader.barrel("kept")
        for result in try await barrel.add(urls, to: folder) { _ = try result.get() }
        for await _ in barrel.ended {}
        #expect(try await barrel.forget().count { $0.applied } == 5)
        #expect(try await barrel.info.total == 0)
        #expect(try bench.bytes("1.bin").count == 10_000)
    }
}
