import FKCompatibility
import Foundation
import Testing

/// FKDownloader's way, by one import.
@Suite("FKDownloader's calls")
struct PublicCompatibilityTests {
    @Test("prepare, listen, suspend, resume, a barrel, and the answers by URL")
    func calls() async throws {
        let bench = try PublicBench { $0.distributeSpeed = 1 }
        bench.files.serve("/a", PublicBench.pattern(10_000), hold: 1_000)
        let url = PublicBench.url("/a")
        let downloader: Downloader = bench.downloader
        let (control, messager) = (downloader.control, downloader.messager)
        let heard = Heard<DownloadInfo>()
        let ends = Heard<Bool>()
        try await messager.addInfo(url) { heard.add($0) }.keep()
        try await messager.addCallbacks(url, completion: { ends.add((try? $0.get()) != nil) }).keep()
        #expect(await !messager.exists(url))
        let builder = try bench.builder("/a")
        let id = try await builder.prepare(in: downloader)
        _ = await heard.until { $0.count.received > 0 }
        #expect(try await control.suspendAll().map(\.id) == [id])
        #expect(try await Builder.prepare([builder], in: downloader).map { try $0.get() } == [id])
        #expect(await messager.state(url) == .suspend)
        #expect(try await messager.addBarrel("list", urls: [url]) == 1)
        #expect(try await messager.urls(inBarrel: "list") == [url])
        #expect(await messager.filePath(url)?.hasSuffix("/files/a") == true)
        #expect(try await control.action(url).map(\.applied) == [false])
        #expect(try await control.resumeAll().map(\.applied) == [true])
        bench.files.release("/a")
        #expect(await ends.until { _ in true } == [true])
        #expect(await messager.state(url) == .complete)
        #expect(await messager.error(url) == nil)
        #expect(try await Builder.loadCache(url, in: downloader).map(\.id) == [id])
        try await messager.remove(url, fromBarrel: "list")
        #expect(try await messager.add(url, toBarrel: "list") == 1)
        try await messager.removeBarrel("list")
        #expect(try await control.cancelAll().map(\.applied) == [false])
    }

    @Test("one call adds, pauses and resumes")
    func toggle() async throws {
        let bench = try PublicBench()
        bench.files.serve("/t", PublicBench.pattern(10_000), hold: 1_000)
        let messager = bench.downloader.messager
        let builder = try bench.builder("/t")
        let states = Heard<String>()
        var button = try await messager.toggle(orAdd: builder)
        button = try await messager.toggle(orAdd: builder, stateChanged: { states.add($0.rawValue) })
        #expect(await states.until { $0 == "suspend" }.last == "suspend")
        bench.files.release("/t")
        let done = Heard<String>()
        button = try await messager.toggle(orAdd: builder, stateChanged: { done.add($0.rawValue) })
        #expect(await done.until { $0 == "complete" }.last == "complete")
        button.cancel()
    }
}
