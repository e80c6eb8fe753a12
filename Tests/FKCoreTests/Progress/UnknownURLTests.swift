import Foundation
import TestSupport
import Testing

@testable import FKEngine

/// What an application learns about a URL that it has not loaded, and about one as it gave it.
@Suite("URLs without a task, and URLs as given") struct UnknownURLTests {
    private let url = "http://user:word@h.example/missing"

    @Test("A question about a URL without a task is a problem, once; a question whether there is one is not")
    func unknown() async throws {
        let bench = try await Bench(content: [1])
        #expect(await !bench.messager.exists(url))
        #expect(await bench.downloader.task(url) == nil)
        #expect(await bench.downloader.takeProblems().isEmpty)
        #expect(await bench.messager.state(url) == .unknown)
        #expect(await bench.messager.filePath(url) == nil)
        let problems = await bench.downloader.takeProblems()
        #expect(problems.map(\.code) == [.notFound])
        #expect(problems[0].message.contains("http://***@h.example/missing"))
        #expect(await bench.messager.info(url) == nil)
        #expect(await bench.downloader.takeProblems().isEmpty)
        #expect(await bench.messager.error("http://h.example/other") == nil)
        #expect(await bench.downloader.takeProblems().count == 1)
    }

    @Test("Middlewares get the URL as the builder got it, also after a restart", arguments: [false, true])
    func given(restarts: Bool) async throws {
        let given = "http://H.example/图 片.bin"
        let bench = try await Bench(isActive: !restarts, content: [1, 2])
        let seen = Observed<[String]>([])
        bench.chains.onResponse("seen") { response in
            seen.update { $0 += [response.task.givenURL, response.task.originalURL.absoluteString] }
        }
        var builder = try Builder(given)
        builder.folder = URL(fileURLWithPath: bench.out)
        let id = try await builder.prepare(in: bench.downloader)
        if restarts {
            #expect(try bench.stored(id).task.given == given)
            await bench.engine.activate()
        }
        #expect(await bench.finished(id)?.state == .complete)
        #expect(seen.value == [given, "http://h.example/%E5%9B%BE%20%E7%89%87.bin"])
        // What is the same is not stored twice.
        #expect(try Builder("http://h.example/a").description.given == nil)
    }
}
