import TestSupport
import Testing

@testable import FKEngine

@Suite("Downloads by pieces that the system fetches")
struct BackgroundTests {
    static let piece = 64 << 10
    static let content = Bytes.pattern(count: 300_000)

    private func bench(
        _ files: ScriptedFiles, in folder: TemporaryFolder, isActive: Bool = true, content: [UInt8] = content
    ) async throws -> Bench {
        try await Bench(in: folder, isActive: isActive, settings: { files.use(in: &$0) }) { request, _ in
            .file(content, to: request)
        }
    }

    private func added() async throws -> (ScriptedFiles, Bench, TaskID) {
        let folder = try TemporaryFolder()
        let files = ScriptedFiles(in: folder)
        let bench = try await bench(files, in: folder)
        return (files, bench, try await bench.add("a"))
    }

    private func kept(_ bench: Bench) -> [String] {
        ((try? FileIO.names(in: bench.workPath.deliveredFolder)) ?? []).filter { $0.hasSuffix(".body") }
    }

    private func range(_ number: Int) -> String {
        "bytes=\(number * Self.piece)-\(min((number + 1) * Self.piece, Self.content.count) - 1)"
    }

    /// Delivers each request with the file, until the task has ended.
    private func deliverAll(_ files: ScriptedFiles, _ content: [UInt8] = content, count: Int, tag: String? = "\"1\"")
        async throws
    {
        for _ in 0..<count {
            let key = await files.state.wait { !$0.flying.isEmpty }.flying.keys.min { $0.start < $1.start }!
            try files.deliver(key, of: content, tag: tag)
        }
    }

    @Test("a file arrives by ranges, each requested once, some ahead, and nothing is left")
    func pieces() async throws {
        let (files, bench, id) = try await added()
        let first = await files.request("bytes=0-65535")
        #expect(files.ranges == ["bytes=0-65535"])
        #expect(files.state.value.flying[first]?.urlRequest.value(forHTTPHeaderField: "If-Range") == nil)
        try files.deliver(first, of: Self.content)
        for number in 1...4 { _ = await files.request(range(number)) }
        #expect(
            files.state.value.flying.values.allSatisfy {
                $0.urlRequest.value(forHTTPHeaderField: "If-Range") == "\"1\""
            })
        // Not in their order.
        for number in [2, 4, 1, 3] { try files.deliver(await files.request(range(number)), of: Self.content) }
        try await bench.expect("a", Self.content, of: id)
        #expect(files.ranges.sorted() == (0...4).map(range).sorted())
        #expect(bench.transport.requests.isEmpty && kept(bench).isEmpty && files.state.value.cancelled.isEmpty)
        await bench.downloader.close()
        #expect(files.state.value.hasLeft)
    }

    @Test("without a strong validator the pieces follow each other, and 4 KiB are compared")
    func weak() async throws {
        let (files, bench, id) = try await added()
        try await deliverAll(files, count: 5, tag: nil)
        try await bench.expect("a", Self.content, of: id)
        #expect(files.ranges.prefix(2) == ["bytes=0-65535", "bytes=61440-131071"])
    }

    @Test("answers that are no part of the file: a 404, another offset, a cut and a vanished file, another version")
    func answers() async throws {
        let (files, bench, id) = try await added()
        let url = "http://h.example/a"
        let first = await files.request(range(0))
        try files.deliver(first, of: Self.content)
        // A wrong offset is asked for again without If-Range, and then from the beginning.
        let second = await files.request(range(1))
        let wrong = ResponseHead(
            status: 206, fields: [.init("ETag", "\"1\""), .init("Content-Range", "bytes 0-65535/300000")], url: url)
        try files.deliver(second, wrong, Self.content[0..<Self.piece])
        let plain = await files.state.wait {
            $0.flying.values.contains { $0.urlRequest.value(forHTTPHeaderField: "If-Range") == nil }
        }
        .flying.first { $0.value.urlRequest.value(forHTTPHeaderField: "If-Range") == nil }!.key
        #expect(plain.start == second.start)
        // The file vanishes before it can be kept; the next attempt asks again.
        let count = files.ranges.count { $0 == range(1) }
        files.state.update { $0.flying[plain] = nil }
        files.report(.finished(plain, wrong, file: bench.folder.path + "/nothing"))
        try await bench.advance(by: 1) { files.ranges.count { $0 == range(1) } > count }
        let again = await files.request(range(1))
        // A part of it.
        try files.deliver(
            again,
            ResponseHead(
                status: 206,
                fields: [
                    .init("ETag", "\"1\""), .init("Content-Range", "bytes 65536-131071/300000"),
                    .init("Content-Length", "65536"),
                ], url: url), Self.content[Self.piece..<Self.piece + 10_000])
        try await bench.advance(by: 1) { files.ranges.contains("bytes=75536-141071") }
        // The file has changed: an answer to If-Range is the whole new one.
        let new = Bytes.pattern(count: 200_000, seed: 9)
        let rest = await files.request("bytes=75536-141071")
        try files.deliver(
            rest,
            ResponseHead(status: 200, fields: [.init("ETag", "\"2\""), .init("Content-Length", "200000")], url: url),
            new)
        try await bench.expect("a", new, of: id)
        #expect(kept(bench).isEmpty && bench.transport.requests.isEmpty)

        let other = try await bench.add("b")
        let key = await files.state.wait { $0.flying.keys.contains { $0.task == other } }.flying.keys.first {
            $0.task == other
        }!
        try files.deliver(key, ResponseHead(status: 404, url: url), Array("gone".utf8))
        let info = await bench.finished(other)
        #expect(info?.state == .error && info?.error?.status == 404 && info?.error?.underlying == "gone")
        #expect(kept(bench).isEmpty && !bench.names.contains("b"))
    }

    @Test("a delivery resumes no task: what the user suspended keeps its pieces until the user resumes it")
    func suspended() async throws {
        let (files, bench, id) = try await added()
        try files.deliver(await files.request(range(0)), of: Self.content)
        let (second, third) = (await files.request(range(1)), await files.request(range(2)))
        try files.deliver(third, of: Self.content)
        try await bench.control.suspend(.id(id))
        #expect(files.state.value.cancelled.contains(second) && files.state.value.flying.isEmpty)
        // It has arrived all the same, and late.
        try files.deliver(second, of: Self.content)
        try files.deliver(second, of: Self.content)
        await bench.settle()
        #expect(await bench.state(id) == .suspend && kept(bench).count == 2)
        #expect(try bench.stored(id).received == Int64(Self.piece))
        try await bench.control.resume(.id(id))
        try await deliverAll(files, count: 2)
        try await bench.expect("a", Self.content, of: id)
        #expect(files.ranges.count { $0 == range(1) } == 1 && files.ranges.count { $0 == range(2) } == 1)
    }

    @Test("pieces for tasks that were trashed, completed or never known are removed, and requests ended")
    func strangers() async throws {
        let folder = try TemporaryFolder()
        let stranger = PieceKey(task: TaskID(url: "http://h.example/x"), generation: 1, start: 0, end: 10)
        let files = ScriptedFiles(in: folder, adopts: [stranger])
        let bench = try await bench(files, in: folder)
        _ = await files.state.wait { $0.cancelled.contains(stranger) }
        try files.deliver(stranger, of: Self.content)
        let id = try await bench.add("a")
        let first = await files.request(range(0))
        try await bench.control.trash(.id(id))
        try files.deliver(first, of: Self.content)
        await bench.settle()
        #expect(kept(bench).isEmpty && bench.names.isEmpty)
        // The same task again is another generation.
        let again = try await bench.add("a")
        #expect(again == id)
        let second = await files.request(range(0))
        #expect(second != first)
        try files.deliver(first, of: Bytes.pattern(count: 300_000, seed: 5))
        try files.deliver(second, of: Self.content)
        try await deliverAll(files, count: 4)
        try await bench.expect("a", Self.content, of: id)
        try files.deliver(second, of: Self.content)
        await bench.settle()
        #expect(kept(bench).isEmpty)
    }

    @Test(
        "the next process takes what was delivered before its activation, what is in flight, and asks for nothing twice"
    )
    func nextProcess() async throws {
        let (files, bench, id) = try await added()
        try files.deliver(await files.request(range(0)), of: Self.content)
        let keys = [await files.request(range(1)), await files.request(range(2)), await files.request(range(3))]
        _ = try files.deliver(keys[1], of: Self.content)
        try await bench.wait { try bench.stored(id).received == Int64(Self.piece) }
        // Killed: nothing is closed.
        let crash = try bench.snapshot()
        await bench.downloader.close()
        #expect(files.state.value.cancelled.isEmpty)

        let later = ScriptedFiles(in: crash, adopts: [keys[0], keys[2]])
        let next = try await self.bench(later, in: crash, isActive: false)
        let called = Observed(0)
        next.downloader.handleBackgroundEvents(identifier: "test") { called.update { $0 += 1 } }
        next.downloader.handleBackgroundEvents(identifier: "somebody else's") { called.update { $0 += 100 } }
        #expect(await called.wait { $0 >= 100 } == 100)
        try later.deliver(keys[0], of: Self.content)
        try later.deliver(keys[2], of: Self.content)
        await next.engine.activate()
        // All three are used, and the rest is requested before the handler is called.
        let last = await later.request(range(4))
        #expect(called.value == 100)
        later.report(.allDelivered(identifier: "test"))
        #expect(await called.wait { $0 > 100 } == 101)
        #expect(try next.stored(id).received == Int64(4 * Self.piece) && kept(next).isEmpty)
        try later.deliver(last, of: Self.content)
        #expect(await next.finished(id)?.state == .complete)
        #expect(try bench.out("a") == Self.content)
        #expect(later.ranges == [range(4)])
        await next.downloader.close()
        #expect(called.value == 101)
    }

    @Test("a process that is killed while a piece is appended continues in the middle of the piece")
    func killedInside() async throws {
        let (files, bench, id) = try await added()
        let first = await files.request(range(0))
        try files.deliver(first, of: Self.content)
        _ = await files.request(range(1))
        let crash = try bench.snapshot()
        await bench.downloader.close()
        // Half of the piece is in the part file, and its file is there.
        let path = WorkPath(crash.file("work")).infoPath(id)
        let record = try InfoFile.read(path).record
        var half = record
        half.edit {
            $0.ranges[0].position = 20_000
            $0.pieces = nil
        }
        try FileManager.default.removeItem(atPath: path)
        _ = try InfoFile.create(at: path, record: half)
        let store = DeliveredFiles(WorkPath(crash.file("work")))
        let body = try crash.write(Array(Self.content[..<Self.piece]), to: "body")
        let head = ResponseHead(
            status: 206,
            fields: [
                .init("ETag", "\"1\""), .init("Content-Range", "bytes 0-65535/300000"),
                .init("Content-Length", "65536"),
            ], url: "http://h.example/a")
        _ = try store.keep(body.path, of: first, head: head)

        let later = ScriptedFiles(in: crash, adopts: [])
        let next = try await self.bench(later, in: crash)
        try await deliverAll(later, count: 4)
        #expect(await next.finished(id)?.state == .complete)
        #expect(try bench.out("a") == Self.content)
        #expect(later.ranges.contains(range(0)) == false)
    }

    @Test("a running transfer is handed over at its last byte, the lock is released, and it comes back")
    func handOver() async throws {
        let folder = try TemporaryFolder()
        let files = ScriptedFiles(in: folder)
        let gate = TestGate()
        let bench = try await Bench(in: folder, settings: { files.use(in: &$0) }) { request, _ in
            request.urlRequest.value(forHTTPHeaderField: "Range") == nil
                ? .file(Self.content, to: request, gate: gate, pauseAt: 100_000)
                : .file(Self.content, to: request)
        }
        let id = try await bench.add("a") { $0.type = .foreground }
        await gate.reached()
        #expect(files.state.value.started.isEmpty)
        await bench.downloader.enterBackground()
        #expect(files.ranges.first == "bytes=100000-165535")
        #expect(!EngineLock.isHeld(bench.workPath) && files.state.value.cancelled.isEmpty)
        #expect(try bench.stored(id).received == 100_000 && bench.stored(id).state == .idle)
        await #expect(throws: DownloadError.self) { try await bench.control.suspend(.id(id)) }
        // The system delivers while the process is suspended, and wakes it.
        let called = Observed(0)
        try files.deliver(await files.request("bytes=100000-165535"), of: Self.content)
        bench.downloader.handleBackgroundEvents(identifier: "test") { called.update { $0 += 1 } }
        try files.deliver(await files.request("bytes=165536-231071"), of: Self.content)
        files.report(.allDelivered(identifier: "test"))
        _ = await called.wait { $0 > 0 }
        #expect(!EngineLock.isHeld(bench.workPath))
        let received = try bench.stored(id).received
        #expect(received == 231_072)
        try await bench.downloader.leaveBackground()
        #expect(EngineLock.isHeld(bench.workPath))
        try files.deliver(await files.request("bytes=231072-296607"), of: Self.content)
        try files.deliver(await files.request("bytes=296608-299999"), of: Self.content)
        try await bench.expect("a", Self.content, of: id)
        #expect(Set(files.ranges).count == files.ranges.count && called.value == 1)
    }

    @Test("a downloader whose work path another process used meanwhile closes, and no error is a cancellation")
    func usedMeanwhile() async throws {
        let folder = try TemporaryFolder()
        let files = ScriptedFiles(in: folder)
        let bench = try await bench(files, in: folder)
        await bench.downloader.enterBackground()
        let other = try Engine(
            configure: Configure(workPath: folder.file("work")), scope: .all,
            transport: ScriptedTransport { request, _ in .status(404) })
        await other.close()
        let isBusy = { @Sendable (error: any Error) in (error as? DownloadError)?.code == .workPathBusy }
        await #expect { try await bench.downloader.leaveBackground() } throws: { isBusy($0) }
        #expect(await bench.downloader.takeProblems().map(\.code) == [.workPathBusy])
        await #expect { try await bench.downloader.add("http://h.example/a") } throws: { isBusy($0) }
        await #expect { try await bench.downloader.leaveBackground() } throws: { isBusy($0) }
        await bench.downloader.close()
    }

    @Test("requests that the system cannot perform use the other transport, and the history says why")
    func refused() async throws {
        let folder = try TemporaryFolder()
        let files = ScriptedFiles(in: folder)
        files.state.update { $0.refusal = DownloadError(.invalidArgument, "URLSession cannot do this.") }
        let bench = try await bench(files, in: folder)
        let id = try await bench.completed("a")
        #expect(files.state.value.started.isEmpty)
        #expect(try await bench.record(id).history.count { $0.by == "background" } == 1)
    }
}
