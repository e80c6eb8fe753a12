import FKCore
import FKMiddleware
import Foundation
import Testing

@Suite("The public API: one task from Builder to file", .timeLimit(.minutes(10)))
struct PublicTaskTests {
    private let bench: PublicBench
    private let content = PublicBench.pattern(400_000)

    init() throws {
        bench = try PublicBench()
        bench.transport.serve("/a.bin", content)
    }

    @Test("Builder, prepare, finished: the file is at the path that info names")
    func download() async throws {
        var builder = try bench.builder("/a.bin")
        try builder.setFileName("named.bin")
        builder.attributes = ["album": "7"]
        builder.priority = 3
        builder.options.checksum = try Checksum(parsing: Self.sha256(of: content))
        let id = try await builder.prepare(in: bench.downloader)
        let info = try #require(await bench.downloader.messager.finished(id))
        #expect(info.id == id && info.state == .complete && info.url == PublicBench.url("/a.bin"))
        #expect(info.count.received == 400_000 && info.count.expected == 400_000 && info.count.fraction == 1)
        #expect(info.path?.hasSuffix("/files/named.bin") == true)
        #expect(try bench.bytes("named.bin") == content)
        await bench.downloader.close()
    }

    private static func sha256(of bytes: [UInt8]) -> String {
        let digester = Digester(.sha256)
        bytes.withUnsafeBytes { digester.update($0) }
        return "sha-256=\(digester.hex())"
    }

    @Test("A task that fails keeps its error; retry queues it again")
    func failure() async throws {
        let id = try await bench.builder("/later").prepare(in: bench.downloader)
        let failed = try #require(await bench.downloader.messager.finished(id))
        #expect(failed.state == .error && failed.error?.code == .httpStatus && failed.error?.status == 404)
        bench.transport.serve("/later", [1, 2, 3])
        let results = try await bench.downloader.control.retry(.id(id))
        #expect(results.map(\.applied) == [true])
        #expect(await bench.downloader.messager.finished(id)?.state == .complete)
        await bench.downloader.close()
    }

    @Test("Suspend keeps bytes, resume asks for the rest, cancel drops them, trash forgets the task and its file")
    func verbs() async throws {
        let (control, messager) = (bench.downloader.control, bench.downloader.messager)
        bench.transport.serve("/held", content, hold: 300_000)
        let id = try await bench.builder("/held").prepare(in: bench.downloader)
        for await info in messager.infos(.id(id)) where info.count.received >= 300_000 { break }
        #expect(try await control.suspend(.id(id)).first?.after == .suspend)
        #expect(await messager.state(.id(id)) == .suspend)
        bench.transport.release("/held")
        try await control.resume(.id(id))
        #expect(await messager.finished(id)?.state == .complete)
        #expect(try bench.bytes("held") == content)
        let ranges = bench.transport.requests.compactMap { $0.value(forHTTPHeaderField: "Range") }
        #expect(ranges.count == 1 && ranges[0].hasPrefix("bytes=") && ranges[0] != "bytes=0-")

        bench.transport.serve("/other", content, hold: 300_000)
        let other = try await bench.builder("/other").prepare(in: bench.downloader)
        for await info in messager.infos(.id(other)) where info.count.received >= 300_000 { break }
        #expect(try await control.cancel(.id(other)).first?.after == .cancel)
        #expect(await messager.info(.id(other))?.count.received == 0)
        try await control.trash(.all)
        #expect(await messager.all().isEmpty)
        #expect(throws: (any Error).self) { try bench.bytes("held") }
        await bench.downloader.close()
    }

    @Test("Infos: the first value is what is so, the last is the end")
    func infos() async throws {
        let id = try await bench.builder("/a.bin").prepare(in: bench.downloader)
        var last: DownloadInfo?
        for await info in bench.downloader.messager.infos(.id(id)) { last = info }
        #expect(last?.state == .complete && last?.count.received == 400_000)
        await bench.downloader.close()
    }

    @Test("Callbacks: state changes, progress, one completion with the file")
    func callbacks() async throws {
        let ends = Heard<Result<URL, DownloadError>>()
        let states = Heard<DownloadState>()
        bench.transport.serve("/held", content, hold: 100_000)
        let id = try await bench.builder("/held").prepare(in: bench.downloader)
        let registration = try await bench.downloader.messager.addCallbacks(
            .id(id), TaskCallbacks(stateChanged: { states.add($0) }, completion: { ends.add($0) }))
        bench.transport.release("/held")
        guard case .success(let file)? = await ends.until({ _ in true }).last else {
            Issue.record("the completion must come with a file")
            return
        }
        #expect(file.lastPathComponent == "held")
        #expect(await states.until { $0 == .complete }.last == .complete)
        await bench.downloader.messager.removeInfo(registration)
        await bench.downloader.close()
    }

    @Test("Attempts, receipts and records tell of the same task")
    func records() async throws {
        let (control, messager) = (bench.downloader.control, bench.downloader.messager)
        let id = try await bench.builder("/a.bin").prepare(in: bench.downloader)
        _ = await messager.finished(id)
        let receipt = try #require(await messager.receipt(.id(id)))
        #expect(receipt.state == .complete && receipt.name == "a.bin" && receipt.written == 400_000)
        #expect(try Receipt(archive: receipt.archive()) == receipt)
        #expect(try await control.setAttributes(.id(id), ["model": "7"]) == 1)
        var query = RecordQuery()
        query.attributes = ["model": "7"]
        #expect(try await messager.records(query).records.map(\.id) == [id])
        await bench.downloader.close()
        let reader = try RecordReader(workPath: bench.folder.appendingPathComponent("work"))
        #expect(try reader.records().records.map(\.name) == ["a.bin"])
        #expect(try Receipt.stored(workPath: bench.folder.appendingPathComponent("work")).map(\.id) == [id])
    }

    @Test("A second downloader on the same work path is refused; after close it finds every task")
    func restart() async throws {
        let id = try await bench.builder("/a.bin").prepare(in: bench.downloader)
        _ = await bench.downloader.messager.finished(id)
        let configure = await bench.downloader.configure
        #expect {
            _ = try Downloader(configure, transport: MemoryTransport())
        } throws: {
            ($0 as? DownloadError)?.code == .workPathBusy
        }
        await bench.downloader.close()
        let second = try Downloader(configure, transport: bench.transport)
        second.activateQueue()
        #expect(try await Builder.loadAll(in: second).map(\.id) == [id])
        #expect(try await Builder.loadCache(PublicBench.url("/a.bin"), in: second).map(\.state) == [.complete])
        #expect(await second.takeProblems() == [])
        await second.close()
    }

    @Test("Settings change while tasks run; the work path does not")
    func update() async throws {
        var configure = await bench.downloader.configure
        configure.maxAction = 1
        configure.rateLimit = 1 << 30
        try await bench.downloader.update(configure)
        #expect(await bench.downloader.configure.maxAction == 1)
        configure.workPath = bench.folder.appendingPathComponent("elsewhere")
        await #expect {
            try await bench.downloader.update(configure)
        } throws: {
            ($0 as? DownloadError)?.code == .configurationLocked
        }
        await bench.downloader.close()
    }

    @Test("Progress of a task is steered and ends as its file does")
    func progress() async throws {
        let id = try await bench.builder("/a.bin").prepare(in: bench.downloader)
        _ = await bench.downloader.messager.finished(id)
        let queue = DispatchQueue(label: "progress")
        let progress = try await bench.downloader.messager.progress(.id(id), on: queue)
        #expect(queue.sync { progress.isFinished && progress.completedUnitCount == 400_000 })
        await bench.downloader.close()
    }
}
