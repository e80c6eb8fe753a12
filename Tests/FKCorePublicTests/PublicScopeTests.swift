import FKCompatibility
import FKCore
import FKMiddleware
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Scopes of middlewares")
struct PublicScopeTests {
    /// The names that a request middleware of each scope has put into the requests, by path.
    private func chains(of bench: PublicBench) -> [String: String] {
        var result: [String: String] = [:]
        for request in bench.transport.requests.map(\.urlRequest) {
            result[request.url?.absoluteString ?? ""] = request.value(forHTTPHeaderField: "X-Chain") ?? ""
        }
        return result
    }

    private func mark(_ name: String) -> @Sendable (inout URLRequest, TaskContext) async throws -> Void {
        { request, _ in
            request.setValue((request.value(forHTTPHeaderField: "X-Chain") ?? "") + name, forHTTPHeaderField: "X-Chain")
        }
    }

    @Test("each request passes the middlewares of its scopes, by priority across them")
    func requests() async throws {
        let bench = try PublicBench()
        for path in ["/a", "/b", "/c"] { bench.files.serve(path, [1]) }
        let middlewares = bench.downloader.middlewares
        let builders = try ["/a", "/b", "/c"].map { try bench.builder($0) }
        middlewares.onRequest("all", priority: 50, mark("5"))
        middlewares.onRequest("barrel", priority: 10, for: .barrel("books"), mark("1"))
        middlewares.onRequest("other barrel", priority: 10, for: .barrel("films"), mark("!"))
        middlewares.onRequest("host", priority: 30, for: .host("FILES.example:80"), mark("3"))
        middlewares.onRequest("other host", priority: 30, for: .host("example"), mark("!"))
        middlewares.onRequest("matching", priority: 40, for: .matching { $0.originalURL.path == "/b" }, mark("4"))
        middlewares.onRequest("task", priority: 20, for: .task(builders[2].id), mark("2"))
        let added = try await Builder.prepare(Array(builders[0...1]), barrel: "books", in: bench.downloader)
        let ids = try added.map { try $0.get() } + [try await builders[2].prepare(in: bench.downloader)]
        for id in ids { #expect(await bench.downloader.messager.finished(id)?.state == .complete) }
        #expect(
            chains(of: bench) == [
                PublicBench.url("/a"): "135", PublicBench.url("/b"): "1345", PublicBench.url("/c"): "235",
            ])
    }

    @Test("a request to a mirror passes the middlewares of the mirror's host, and none of another one")
    func mirrors() async throws {
        let bench = try PublicBench()
        bench.files.serve("/copy", [1])
        bench.downloader.middlewares.onRequest("own", for: .host("files.example"), mark("own"))
        bench.downloader.middlewares.onRequest("mirror", for: .host("mirror.example"), mark("mirror"))
        var builder = try bench.builder("/gone")
        try builder.setMirrors(["http://mirror.example/copy"])
        let id = try await builder.prepare(in: bench.downloader)
        #expect(await bench.downloader.messager.finished(id)?.state == .complete)
        #expect(
            chains(of: bench) == [PublicBench.url("/gone"): "own", "http://mirror.example/copy": "mirror"])
    }

    @Test("a task that joins a barrel while it runs has the barrel's middlewares from then on")
    func joining() async throws {
        let bench = try PublicBench()
        let bytes = PublicBench.pattern(400_000)
        bench.files.serve("/a", bytes, hold: 5_000)
        let heard = Heard<String>()
        let middlewares = bench.downloader.middlewares
        middlewares.onDownload("all") { event, _ in
            if case .state(let state, _) = event { heard.add("all \(state)") }
        }
        middlewares.onDownload("books", for: .barrel("books")) { event, task in
            if case .state(let state, _) = event { heard.add("books \(state) \(task.barrels)") }
        }
        middlewares.onResponse("books", for: .barrel("books")) { response in
            heard.add("response \(response.task.barrels)")
        }
        let id = try await bench.builder("/a").prepare(in: bench.downloader)
        var values = await heard.until { $0 == "all action" }
        #expect(try await bench.downloader.messager.add(id, toBarrel: "books") == 1)
        bench.files.release("/a")
        values = await heard.until { $0.hasPrefix("books complete") }
        #expect(values == ["response [\"books\"]", "all complete", "books complete [\"books\"]"])
    }

    @Test("a response middleware of one barrel rejects its files only")
    func responses() async throws {
        let bench = try PublicBench()
        for path in ["/a", "/b"] { bench.files.serve(path, [1]) }
        let registration = bench.downloader.middlewares.onResponse("never", for: .barrel("strict")) { response in
            if response.error == nil { throw DownloadError(.rejected, "not this one") }
        }
        let messager = bench.downloader.messager
        let strict = try await Builder.prepare([bench.builder("/a")], barrel: "strict", in: bench.downloader)[0].get()
        let free = try await bench.builder("/b").prepare(in: bench.downloader)
        #expect(await messager.finished(free)?.state == .complete)
        #expect(await messager.finished(strict)?.error?.code == .rejected)
        #expect(bench.downloader.middlewares.remove(registration))
        try await bench.downloader.control.retry(strict)
        #expect(await messager.finished(strict)?.state == .complete)
    }
}
