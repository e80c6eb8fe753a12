import TestSupport
import Testing

@Suite("Middleware scopes")
struct MiddlewareScopeTests {
    private static func task(
        _ url: String = "http://h.example/a", barrels: [String] = [], attributes: [String: String] = [:]
    ) throws -> TaskContext {
        TaskContext(
            id: TaskID(url: url), originalURL: try #require(URL(string: url)), barrels: barrels, attributes: attributes)
    }

    @Test("all, a barrel, a task and a condition")
    func kinds() throws {
        let task = try Self.task(barrels: ["books", "caf\u{e9}"], attributes: ["kind": "video"])
        #expect(MiddlewareScope.all.isAll && MiddlewareScope.all.includes(task))
        #expect(MiddlewareScope.barrel("books").includes(task))
        #expect(!MiddlewareScope.barrel("book").includes(task))
        #expect(!MiddlewareScope.barrel("Books").includes(task))
        // Barrel names are bytes: the same letters in another normal form are another barrel.
        #expect(MiddlewareScope.barrel("caf\u{e9}").includes(task))
        #expect(!MiddlewareScope.barrel("cafe\u{301}").includes(task))
        #expect(!MiddlewareScope.barrel("books").includes(try Self.task()))
        #expect(MiddlewareScope.task(task.id).includes(task))
        #expect(!MiddlewareScope.task(TaskID(url: "http://h.example/b")).includes(task))
        #expect(MiddlewareScope.matching { $0.attributes["kind"] == "video" }.includes(task))
        #expect(!MiddlewareScope.matching { $0.attempt > 1 }.includes(task))
        #expect(!MiddlewareScope.barrel("books").isAll)
    }

    @Test(
        "a host is compared in lower case, without port and final dot",
        arguments: [
            ("h.example", "http://h.example/a", true),
            ("H.Example", "http://h.example/a", true),
            ("h.example.", "http://h.example/a", true),
            ("h.example", "http://h.example./a", true),
            ("h.example", "https://h.example:8443/a", true),
            ("h.example:8443", "https://h.example/a", true),
            ("h.example", "http://user:pass@h.example:80/a", true),
            ("h.example", "http://H.EXAMPLE/a", true),
            ("192.0.2.7", "http://192.0.2.7:81/a", true),
            ("[2001:DB8::1]", "http://[2001:db8::1]/a", true),
            ("2001:db8::1", "http://[2001:db8::1]:81/a", true),
            ("[2001:db8::1]:81", "http://[2001:db8::1]/a", true),
            ("b\u{fc}cher.example", "http://xn--bcher-kva.example/a", true),
            ("XN--BCHER-KVA.example", "http://xn--bcher-kva.example/a", true),
            ("example", "http://h.example/a", false),
            ("h.example", "http://cdn.h.example/a", false),
            ("cdn.h.example", "http://h.example/a", false),
            ("", "http://h.example/a", false),
            ("h.example", "http://other.example/?u=http://h.example/", false),
        ])
    func host(_ name: String, _ url: String, _ isIncluded: Bool) throws {
        #expect(MiddlewareScope.host(name).includes(try Self.task(url)) == isIncluded)
        // The URL that is asked counts where it differs from the task's own.
        let other = try Self.task("http://elsewhere.example/a")
        #expect(MiddlewareScope.host(name).includes(other, url: url) == isIncluded)
        #expect(!MiddlewareScope.host(name).includes(other))
    }

    @Test("the order is by priority across scopes, ties in the order of registration")
    func order() throws {
        let chain = MiddlewareChain<String>()
        let task = try Self.task(barrels: ["books"])
        let scopes: [MiddlewareScope] = [
            .barrel("books"), .all, .host("h.example"), .task(task.id), .matching { _ in true },
        ]
        for (number, scope) in scopes.enumerated() {
            chain.register("late \(number)", priority: 100, for: scope)
            chain.register("early \(number)", priority: 7, for: scope)
            chain.register("other \(number)", priority: 7, for: .barrel("other"))
        }
        let expected = (0..<5).map { "early \($0)" } + (0..<5).map { "late \($0)" }
        #expect(chain.ordered(for: task) == expected)
        #expect(chain.ordered.count == 15)
    }

    @Test("with nothing registered, or for all tasks only, no context is made")
    func cost() throws {
        let chain = MiddlewareChain<String>()
        let task = try Self.task()
        var made = 0
        func context() -> TaskContext {
            made += 1
            return task
        }
        #expect(chain.ordered(for: context()).isEmpty && chain.isEmpty(for: context()))
        chain.register("a", priority: 1)
        #expect(chain.ordered(for: context()) == ["a"] && !chain.isEmpty(for: context()))
        #expect(made == 0)
        let scoped = chain.register("b", priority: 1, for: .barrel("b"))
        #expect(chain.ordered(for: context()) == ["a"])
        #expect(made == 1)
        chain.remove(scoped)
        _ = chain.ordered(for: context())
        #expect(made == 1)
    }

    @Test("a condition may use its own chain")
    func reentrant() throws {
        let chain = MiddlewareChain<String>()
        chain.register("a", priority: 1, for: .matching { _ in !chain.isEmpty && chain.ordered.count == 1 })
        let task = try Self.task()
        #expect(chain.ordered(for: task) == ["a"])
    }

    @Test("two scopes may share a name; each registration is removed by its own value")
    func names() async throws {
        let chains = MiddlewareChains()
        let task = try Self.task(barrels: ["books"])
        let first = chains.onRequest("sign") { request, _ in request.setValue("all", forHTTPHeaderField: "X") }
        chains.onRequest("sign", for: .barrel("books")) { request, _ in
            let before = request.value(forHTTPHeaderField: "X") ?? "nothing"
            request.setValue("\(before), books", forHTTPHeaderField: "X")
        }
        func result() async throws -> String? {
            var request = URLRequest(url: task.originalURL)
            for middleware in chains.request.ordered(for: task) {
                request = try await middleware.process(request, for: task)
            }
            return request.value(forHTTPHeaderField: "X")
        }
        #expect(chains.request.ordered.map(\.name) == ["sign", "sign"])
        #expect(try await result() == "all, books")
        #expect(chains.remove(first))
        #expect(!chains.remove(first))
        #expect(try await result() == "nothing, books")
    }

    @Test("closures stand in the chains like types")
    func closures() async throws {
        let chains = MiddlewareChains()
        let task = try Self.task()
        chains.onRequest("sign", priority: 10, secretHeaders: ["X-Key"]) { request, task in
            request.setValue("\(task.attempt)", forHTTPHeaderField: "X-Key")
        }
        let sign = try #require(chains.request.ordered.first)
        #expect(sign.name == "sign" && sign.priority == 10 && sign.secretHeaders == ["X-Key"])

        let (events, continuation) = AsyncStream.makeStream(of: DownloadEvent.self)
        let listening = chains.onDownload("listen", priority: 3) { event, _ in continuation.yield(event) }
        let listen = try #require(chains.download.ordered.first)
        let error = DownloadError(.timeout, "m")
        listen.download(task, didChangeTo: .error, error: error)
        listen.download(task, didReceive: ByteCount(received: 3))
        continuation.finish()
        var heard: [DownloadEvent] = []
        for await event in events { heard.append(event) }
        #expect(heard == [.state(.error, error: error), .progress(ByteCount(received: 3))])
        #expect(chains.remove(listening))

        let checking = chains.onResponse("check") { response in
            if response.fileURL == nil { throw RetryRequest(reason: "no file") }
            response.fileURL = URL(fileURLWithPath: "/new")
        }
        let check = try #require(chains.response.ordered.first)
        #expect(check.name == "check" && check.priority == 100)
        let response = DownloadResponse(task: task, fileURL: URL(fileURLWithPath: "/old"))
        #expect(try await check.process(response).fileURL?.path == "/new")
        await #expect(throws: RetryRequest.self) { try await check.process(DownloadResponse(task: task)) }
        #expect(chains.remove(checking) && chains.response.isEmpty)
    }

    @Test("a context by the text of a URL is the same as one by the URL")
    func address() throws {
        let text = "http://h.example/a%20b?x=1#y"
        let url = try #require(URL(string: text))
        let id = TaskID(url: text)
        var task = TaskContext(id: id, address: text, givenURL: nil, attempt: 1, barrels: [], attributes: [:])
        #expect(task == TaskContext(id: id, originalURL: url) && task.originalURL == url && task.givenURL == text)
        task.originalURL = try #require(URL(string: "http://other.example/"))
        #expect(MiddlewareScope.host("other.example").includes(task))
    }
}
