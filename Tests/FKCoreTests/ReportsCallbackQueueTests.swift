import FKMiddleware
import Testing

@testable import FKCore

@Suite("The queue of callbacks")
struct ReportsCallbackQueueTests {
    private let heard = Locked<[String]>([])
    private let queue = CallbackQueue()
    /// Callbacks run only for a connected engine. This is its identity.
    private let engine = EngineInbox()

    init() { queue.connect(engine.engine) }

    private func listeners(_ name: String) -> StateListeners {
        StateListeners([1: { [heard] infos in heard.withLock { $0.append(name + infos.map(\.url).joined()) } }])
    }

    private func info(_ url: String) -> DownloadInfo {
        DownloadInfo(id: TaskID(url: url), url: url, state: .idle)
    }

    private func note(_ text: String) { queue.async { [heard] in heard.withLock { $0.append(text) } } }

    @Test("changes of state that follow each other arrive together, and everything in its order")
    func order() {
        let all = listeners(":")
        queue.report(info("a"), to: all)
        queue.report(info("b"), to: all)
        note("x")
        note("y")
        queue.report(info("c"), to: all)
        queue.sync()
        #expect(heard.withLock(\.self) == [":ab", "x", "y", ":c"])
        queue.report(info("d"), to: all)
        queue.sync { [heard] in heard.withLock { $0.append("end") } }
        #expect(heard.withLock(\.self).suffix(2) == [":d", "end"])
    }

    @Test("a new set of listeners hears nothing that happened before")
    func listenersChange() {
        let one = listeners("1")
        queue.report(info("a"), to: one)
        queue.report(info("b"), to: one.setting(2) { [heard] infos in heard.withLock { $0.append("2\(infos.count)") } })
        queue.report(info("c"), to: one.setting(1, nil))
        queue.sync()
        #expect(heard.withLock { Set($0) } == ["1a", "1b", "21"])
        #expect(one.setting(1, nil).isEmpty && !one.isEmpty)
    }
}
