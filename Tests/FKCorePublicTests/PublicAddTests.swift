import FKCore
import FKMiddleware
import Foundation
import Testing

/// What FKCore has in the place of FKDownloader's calls: no other product is imported here.
@Suite("Adding tasks with FKCore alone")
struct PublicAddTests {
    private let bench: PublicBench
    private var downloader: Downloader { bench.downloader }
    private var folder: URL { bench.folder.appendingPathComponent("files") }

    init() throws {
        bench = try PublicBench { $0.progressInterval = .milliseconds(200) }
        for name in ["/a", "/b", "/c"] { bench.files.serve(name, PublicBench.pattern(10_000)) }
    }

    @Test("a text, a URL and a builder name the same task; what a call names replaces what the builder says")
    func downloadable() async throws {
        let text = PublicBench.url("/a")
        let url = try #require(URL(string: text))
        let task = try await downloader.add(text, to: folder)
        #expect(try await downloader.add(url, to: folder) == task)
        #expect(try await downloader.add(try bench.builder("/a")) == task)
        var other = try bench.builder("/a")
        other.folder = bench.folder.appendingPathComponent("other")
        #expect(try await downloader.add(other, to: folder) == task)
        try other.setFileName("of-the-builder")
        let named = try await downloader.download(other, named: "of-the-call")
        #expect(named.path == other.folder?.appendingPathComponent("of-the-call").path)
        await #expect { try await downloader.add("no url") } throws: {
            ($0 as? DownloadError)?.code == .invalidURL
        }
        let builder = try url.builder
        #expect(builder.url == text && builder.replacing == .named)
        let wrong = try Checksum(parsing: "sha-256=" + String(repeating: "0", count: 64))
        await #expect { try await downloader.download(try bench.builder("/b"), checksum: wrong) } throws: {
            ($0 as? DownloadError)?.code == .checksumMismatch
        }
    }

    @Test("many at once: one result for each, in order, and a bad one does not stop the others")
    func many() async throws {
        let results = try await downloader.add([PublicBench.url("/a"), "no url", PublicBench.url("/b")], to: folder)
        #expect(results.map { (try? $0.get())?.url } == [PublicBench.url("/a"), nil, PublicBench.url("/b")])
        for case .success(let task) in results { #expect(try await task.file.path.hasPrefix(folder.path)) }
        let builders = try ["/b", "/c"].map { try bench.builder($0) }
        let again = try await downloader.add(builders).map { try $0.get() }
        #expect(again[0] == (try results[2].get()))
        #expect(await downloader.messager.all().count == 3)
        #expect(try await downloader.add([URL]()).isEmpty)
    }

    @Test("queued: false leaves a known task in its state; a new task is queued")
    func unqueued() async throws {
        bench.files.serve("/slow", PublicBench.pattern(10_000), hold: 1_000)
        let task = try await downloader.add(PublicBench.url("/slow"), to: folder, queued: false)
        #expect(await task.info?.state.isSettled == false)
        try await task.suspend()
        #expect(try await downloader.add(PublicBench.url("/slow"), to: folder, queued: false) == task)
        #expect(try await downloader.add([PublicBench.url("/slow")], to: folder, queued: false).count == 1)
        #expect(await task.info?.state == .suspend)
        bench.files.release("/slow")
        #expect(try await downloader.add(PublicBench.url("/slow"), to: folder) == task)
        #expect(try await task.file.lastPathComponent == "slow")
    }

    @Test("what is printed of a task has no secret of its URL")
    func printed() async throws {
        let url = "http://me:hunter2@files.example/a?token=hunter2"
        var builder = try Builder(url)
        builder.startsSuspended = true
        let results = try await downloader.add([builder], to: folder)
        let task = try #require(results.first).get()
        let info = try #require(await task.info)
        let verb = try await task.suspend()
        let records = try await downloader.messager.records().records
        for text in ["\(builder)", "\(results)", "\(task)", "\(info)", "\(verb)", "\(records)", "\(url.selector)"] {
            #expect(text.contains("***") && !text.contains("hunter2"), "\(text)")
        }
    }

    @Test("known tasks join a barrel and change nothing else; a URL without a task joins when its task is made")
    func join() async throws {
        var builder = try bench.builder("/a")
        builder.startsSuspended = true
        let task = try await downloader.add(builder)
        let barrel = try await downloader.barrel("album")
        #expect(try await barrel.join(task) == 1)
        #expect(try await barrel.join(task) == 0)
        #expect(try await barrel.join(PublicBench.url("/b")) == 0)
        #expect(await task.info?.state == .suspend)
        let late = try await downloader.add(PublicBench.url("/b"), to: folder)
        #expect(await barrel.members == [task, late])
        try await barrel.remove(task)
        #expect(await barrel.members == [late])
    }

    @Test("polled callbacks of a task, a barrel and all tasks")
    func polled() async throws {
        let (infos, sums, totals) = (Heard<DownloadInfo>(), Heard<BarrelInfo>(), Heard<BarrelInfo>())
        let barrel = try await downloader.barrel("polled")
        let messager = downloader.messager
        let registrations = [
            try await messager.addInfo(PublicBench.url("/a")) { infos.add($0) },
            try await messager.addBarrelInfo("polled") { sums.add($0) },
            try await messager.addTotalInfo { totals.add($0) },
        ]
        for result in try await barrel.add([PublicBench.url("/a")], to: folder) { _ = try result.get() }
        #expect(await infos.until { $0.state == .complete }.last?.count.received == 10_000)
        #expect(await sums.until { $0.isComplete }.last?.total == 1)
        #expect(await totals.until { $0.isComplete }.last?.count.received == 10_000)
        for registration in registrations { registration.cancel() }
    }
}
