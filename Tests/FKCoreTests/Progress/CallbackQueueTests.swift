import TestSupport
import Testing

@testable import FKEngine

@Suite("The queue of callbacks")
struct CallbackQueueTests {
    @Test("callbacks run in their order, and all have run when the queue is drained")
    func order() async {
        let heard = Locked<[Int]>([])
        let queue = CallbackQueue()
        // Callbacks run only for a connected engine. This is its identity.
        let engine = EngineInbox()
        queue.connect(engine.engine)
        for number in 0..<1_000 { queue.async { heard.withLock { $0.append(number) } } }
        await queue.drained()
        #expect(heard.withLock(\.self) == Array(0..<1_000))
    }

    @Test("while a callback blocks, results, waits, verbs and sequences go on")
    func blocked() async throws {
        let bench = try await Bench(content: [1, 2, 3])
        let downloader = bench.downloader
        let folder = URL(fileURLWithPath: bench.out)
        let gate = DispatchSemaphore(value: 0)
        let first = try await downloader.add("http://h.example/first", to: folder)
        try await bench.messager.addInfo(.id(first.id)) { _ in gate.wait() }.keep()
        #expect(try await first.file.lastPathComponent == "first")
        #expect(try await downloader.download("http://h.example/second", to: folder).lastPathComponent == "second")
        let barrel = try await downloader.barrel("all")
        _ = try await barrel.add(["http://h.example/third"], to: folder)
        var ended: [DownloadState?] = []
        for await member in barrel.ended { ended.append(await member.info?.state) }
        #expect(ended == [.complete])
        #expect(await bench.messager.finished(first.id)?.state == .complete)
        await downloader.waitUntilDrained()
        #expect(try await first.suspend().applied == false)
        for _ in 0..<100 { gate.signal() }
        await downloader.close()
    }

    @Test("a callback may wait for the result of another download")
    func waiting() async throws {
        let bench = try await Bench(content: [1, 2, 3])
        let downloader = bench.downloader
        let folder = URL(fileURLWithPath: bench.out)
        let names = Observed<[String]>([])
        let first = try await downloader.add("http://h.example/first", to: folder)
        try await bench.messager.addInfo(.id(first.id)) { info in
            guard info.state == .complete, names.value.isEmpty else { return }
            let isDone = DispatchSemaphore(value: 0)
            Task.detached {
                let file = try? await downloader.download("http://h.example/second", to: folder)
                names.update { $0.append(file?.lastPathComponent ?? "none") }
                isDone.signal()
            }
            isDone.wait()
        }.keep()
        _ = await names.wait { !$0.isEmpty }
        #expect(names.value == ["second"])
        await downloader.close()
    }

    @Test("a callback on the application's queue does not wait for the library's")
    func ownQueue() async throws {
        let bench = try await Bench(content: [1, 2, 3])
        let gate = DispatchSemaphore(value: 0)
        let first = try await bench.add("first")
        try await bench.messager.addInfo(.id(first)) { _ in gate.wait() }.keep()
        let states = Observed<[DownloadState]>([])
        try await bench.messager.addInfo(.id(first), on: DispatchQueue(label: "app")) { info in
            states.update { $0.append(info.state) }
        }.keep()
        _ = await states.wait { $0.contains(.complete) }
        for _ in 0..<100 { gate.signal() }
    }
}
