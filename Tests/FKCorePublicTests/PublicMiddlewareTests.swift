import FKCore
import FKMiddleware
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

private struct Sign: RequestMiddleware {
    var name: String
    var priority: Int

    func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        var request = request
        let before = request.value(forHTTPHeaderField: "X-Chain") ?? ""
        request.setValue(before + name, forHTTPHeaderField: "X-Chain")
        return request
    }
}

private final class Listen: DownloadMiddleware {
    let states = Heard<DownloadState>()

    func download(_ task: TaskContext, didChangeTo state: DownloadState, error: DownloadError?) { states.add(state) }
}

private struct Reject: ResponseMiddleware {
    func process(_ response: DownloadResponse) async throws -> DownloadResponse {
        if response.error == nil { throw DownloadError(.rejected, "not this one") }
        return response
    }
}

@Suite("The public API: middlewares of an application's own", .timeLimit(.minutes(10)))
struct PublicMiddlewareTests {
    @Test("Request middlewares run by priority, nearer 0 first; equal ones in the order of registering")
    func order() async throws {
        let bench = try PublicBench()
        bench.transport.serve("/a", [1])
        let chains = bench.downloader.middlewares
        chains.register(request: Sign(name: "c", priority: 30))
        chains.register(request: Sign(name: "a", priority: 10))
        chains.register(request: Sign(name: "b", priority: 10))
        chains.register(request: Sign(name: "z", priority: 99), priority: 0)
        let id = try await bench.builder("/a").prepare(in: bench.downloader)
        #expect(await bench.downloader.messager.finished(id)?.state == .complete)
        #expect(bench.transport.requests.map { $0.value(forHTTPHeaderField: "X-Chain") } == ["zabc"])
        await bench.downloader.close()
    }

    @Test("Download middlewares hear of every state") func states() async throws {
        let bench = try PublicBench()
        bench.transport.serve("/a", [1])
        let listen = Listen()
        bench.downloader.middlewares.register(download: listen)
        _ = try await bench.builder("/a").prepare(in: bench.downloader)
        #expect(await listen.states.until { $0 == .complete }.suffix(2) == [.action, .complete])
        await bench.downloader.close()
    }

    @Test("A response middleware refuses a file: it gets no final name") func reject() async throws {
        let bench = try PublicBench()
        bench.transport.serve("/a", [1])
        bench.downloader.middlewares.register(response: Reject())
        let id = try await bench.builder("/a").prepare(in: bench.downloader)
        let info = try #require(await bench.downloader.messager.finished(id))
        #expect(info.state == .error && info.error?.code == .rejected && info.path == nil)
        #expect(throws: (any Error).self) { try bench.bytes("a") }
        await bench.downloader.close()
    }

    @Test("The shipped ones: a bearer token, headers, a folder for finished files") func shipped() async throws {
        let bench = try PublicBench()
        bench.transport.serve("/a", [1, 2])
        let target = bench.folder.appendingPathComponent("sorted")
        let chains = bench.downloader.middlewares
        chains.register(request: BearerTokenMiddleware { _ in "secret" })
        chains.register(response: MoveToFolderMiddleware(folder: target))
        let id = try await bench.builder("/a").prepare(in: bench.downloader)
        let info = try #require(await bench.downloader.messager.finished(id))
        #expect(info.path == target.appendingPathComponent("a").path)
        #expect(bench.transport.requests.first?.value(forHTTPHeaderField: "Authorization") == "Bearer secret")
        await bench.downloader.close()
    }
}
