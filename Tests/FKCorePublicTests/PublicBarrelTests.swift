import FKCore
import FKMiddleware
import Foundation
import Testing

@Suite("The public API: barrels", .timeLimit(.minutes(10)))
struct PublicBarrelTests {
    private let bench: PublicBench
    private let paths = (1...5).map { "/\($0).bin" }

    init() throws {
        bench = try PublicBench()
        for path in paths { bench.transport.serve(path, PublicBench.pattern(10_000)) }
    }

    @Test("A barrel of five: one sum, its members, its end")
    func sum() async throws {
        let messager = bench.downloader.messager
        let builders = try paths.map { try bench.builder($0) }
        let ids = try await Builder.prepare(builders, barrel: "five", in: bench.downloader).map { try $0.get() }
        var last: BarrelInfo?
        for await info in messager.barrelInfos("five") { last = info }
        #expect(last?.isComplete == true && last?.count.received == 50_000 && last?.total == 5)
        #expect(Set(await messager.all(.barrel("five")).map(\.id)) == Set(ids))
        #expect(try await messager.urls(inBarrel: "five") == paths.map(PublicBench.url))
        #expect(try await messager.barrels() == ["five"])
        await bench.downloader.close()
    }

    @Test("Tasks join, leave, and stay when their barrel is removed")
    func membership() async throws {
        let messager = bench.downloader.messager
        let id = try await bench.builder(paths[0]).prepare(in: bench.downloader)
        #expect(try await messager.add(.id(id), toBarrel: "group") == 1)
        #expect(await messager.info(.id(id))?.barrels == ["group"])
        try await messager.remove(PublicBench.url(paths[0]), fromBarrel: "group")
        #expect(try await messager.barrelInfo("group").total == 0)
        #expect(try await messager.addBarrel("group", urls: [PublicBench.url(paths[0])]) == 1)
        try await messager.removeBarrel("group")
        #expect(try await messager.barrels() == [])
        #expect(await messager.exists(.id(id)))
        await bench.downloader.close()
    }

    @Test("The drained queue is told of and waited for")
    func drained() async throws {
        let drained = Heard<Bool>()
        await bench.downloader.onQueueDrained { drained.add(true) }
        _ = try await Builder.prepare(try paths.map { try bench.builder($0) }, in: bench.downloader)
        await bench.downloader.waitUntilDrained()
        #expect(await drained.until { $0 } == [true])
        #expect(await bench.downloader.messager.all().allSatisfy { $0.state == .complete })
        await bench.downloader.close()
    }
}
