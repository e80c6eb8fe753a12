import TestSupport
import Testing

@Suite("Middleware chain")
struct MiddlewareChainTests {
    @Test("the smallest number first, negative ones too; ties in the order of registration")
    func order() {
        let chain = MiddlewareChain<String>()
        #expect(chain.isEmpty)
        for (name, priority) in [
            ("c2", 100), ("a2", 1), ("last", .max), ("c1", 100), ("lowest", .min), ("b", 50), ("a1", 1), ("c3", 100),
            ("zero", 0), ("low", -1),
        ] { chain.register(name, priority: priority) }
        #expect(chain.ordered == ["lowest", "low", "zero", "a2", "a1", "b", "c2", "c1", "c3", "last"])
        #expect(!chain.isEmpty)
    }

    @Test("removing takes out that one registration only, once")
    func removal() {
        let chain = MiddlewareChain<String>()
        let first = chain.register("same", priority: 5)
        chain.register("same", priority: 5)
        let other = chain.register("other", priority: 1)
        #expect(chain.remove(first))
        #expect(!chain.remove(first))
        #expect(chain.ordered == ["other", "same"])
        #expect(chain.remove(other))
        #expect(chain.ordered == ["same"])
    }

    @Test("a walk that has begun keeps its list while others register and remove")
    func concurrent() async {
        let chain = MiddlewareChain<Int>()
        for number in 0..<10 { chain.register(number, priority: 10) }
        await withTaskGroup(of: Void.self) { group in
            for writer in 0..<3 {
                group.addTask {
                    for round in 0..<200 {
                        let registration = chain.register(100 + writer, priority: 1 + round % 20)
                        #expect(chain.remove(registration))
                    }
                }
            }
            group.addTask {
                for _ in 0..<200 {
                    // The ten that never change are always there, in their order.
                    #expect(chain.ordered.filter { $0 < 100 } == Array(0..<10))
                }
            }
        }
        #expect(chain.ordered == Array(0..<10))
    }

    private struct Named: RequestMiddleware, DownloadMiddleware, ResponseMiddleware {
        var priority: Int
        func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest { request }
        func process(_ response: DownloadResponse) async throws -> DownloadResponse { response }
    }

    private struct Plain: DownloadMiddleware {}

    @Test("a middleware is registered under its own priority unless another is given")
    func ownPriority() {
        let chains = MiddlewareChains()
        chains.register(request: Named(priority: 30))
        chains.register(request: Named(priority: 20))
        chains.register(request: Named(priority: 40), priority: 1)
        #expect(chains.request.ordered.map(\.priority) == [40, 20, 30])
        chains.register(download: Plain())
        chains.register(download: Named(priority: 3))
        #expect(chains.download.ordered.map(\.priority) == [3, 100])
        #expect(chains.download.ordered.map(\.name) == ["Named", "Plain"])
        chains.register(response: Named(priority: 3))
        #expect(chains.response.ordered.count == 1)
        // Doing nothing is what a download middleware does by default.
        let task = TaskContext(id: TaskID(url: "http://h/x"), originalURL: URL(fileURLWithPath: "/"))
        for middleware in chains.download.ordered {
            middleware.download(task, didChangeTo: .action, error: nil)
            middleware.download(task, didReceive: ByteCount())
        }
    }
}
