import TestSupport
import Testing

@testable import FKEngine

@Suite("Closing, dying and coming back")
struct RestartTests {
    static let content = Bytes.pattern(count: 400_000)

    /// A task without a destination of its own, stopped after 100,000 bytes, so that its files move with the work path.
    private func halfDone(
        _ content: [UInt8] = content, _ change: (inout TaskDescription) -> Void = { _ in }
    ) async throws -> (Bench, TaskID, TestGate) {
        let gate = TestGate()
        let bench = try await Bench { request, _ in .file(content, to: request, gate: gate, pauseAt: 100_000) }
        let id = try await bench.add("a") {
            $0.directory = nil
            change(&$0)
        }
        await gate.reached()
        return (bench, id, gate)
    }

    @Test("closed and opened again: goes on after the bytes it has")
    func closed() async throws {
        let (first, id, _) = try await halfDone()
        await first.downloader.close()
        let record = try first.stored(id)
        #expect(record.state == .idle && record.received == 100_000)
        #expect(first.transport.isShutDown)
        try await goesOn(id, in: first.folder, "bytes=100000-")
    }

    /// The next engine completes the task with one request.
    @discardableResult
    private func goesOn(_ id: TaskID, in folder: TemporaryFolder, _ range: String) async throws -> DownloadInfo {
        let bench = try await Bench(in: folder, content: Self.content)
        let info = try #require(await bench.finished(id))
        #expect(info.state == .complete)
        #expect(bench.sent("Range") == [range])
        #expect(try bytes(#require(info.path)) == Self.content)
        return info
    }

    @Test("died: the live counters tell what arrived after the last record")
    func died() async throws {
        let (first, id, _) = try await halfDone()
        #expect(try first.stored(id).received == 0)
        let copy = try first.snapshot()
        let info = try await goesOn(id, in: copy, "bytes=100000-")
        #expect(info.path?.hasPrefix(copy.path) == true)
    }

    @Test("died with the machine: only what was synced counts", arguments: [0, 50_000])
    func powerCut(_ synced: Int64) async throws {
        let (first, id, _) = try await halfDone()
        let copy = try first.snapshot()
        let path = WorkPath(copy.file("work")).infoPath(id)
        var contents = try InfoFile.read(path)
        contents.record.bootID = "another boot"
        contents.record.edit {
            $0.ranges[0].position = 90_000
            $0.ranges[0].synced = synced
        }
        try InfoFile.update(path, record: contents.record, handle: &contents.handle)
        try await goesOn(id, in: copy, synced == 0 ? "-" : "bytes=50000-")
    }

    @Test("died with the machine, and the file is a shorter one since: nothing of the old part stays behind it")
    func powerCutShorter() async throws {
        let (first, id, _) = try await halfDone()
        let copy = try first.snapshot()
        let path = WorkPath(copy.file("work")).infoPath(id)
        var contents = try InfoFile.read(path)
        contents.record.bootID = "another boot"
        try InfoFile.update(path, record: contents.record, handle: &contents.handle)
        let new = Bytes.pattern(count: 5_000, seed: 9)
        let second = try await Bench(in: copy, content: new)
        #expect(try bytes(#require(await second.finished(id)?.path)) == new)
    }

    @Test("died between the final name and the last record: complete without a request")
    func diedAfterRename() async throws {
        let folder = try TemporaryFolder()
        let id = try published(in: folder)
        let bench = try await Bench(in: folder, content: Self.content)
        let info = try #require(await bench.messager.info(.id(id)))
        #expect(info.state == .complete && info.path == bench.out + "/a")
        #expect(try bench.stored(id).state == .complete)
        #expect(bench.transport.requests.isEmpty)
    }

    @Test("the same with a response chain: it runs again, and nothing is fetched")
    func diedInResponseChain() async throws {
        let folder = try TemporaryFolder()
        let id = try published(in: folder)
        let chains = MiddlewareChains()
        let seen = Observed<[String]>([])
        chains.onResponse("response step") { response in
            seen.update { $0.append(response.fileURL?.lastPathComponent ?? "-") }
        }
        let bench = try await Bench(in: folder, chains: chains, content: Self.content)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(seen.value == ["a"] && bench.names == ["a"])
        #expect(bench.transport.requests.isEmpty)
        #expect(try bench.out("a") == Self.content)
    }

    /// A task whose file has its final name already, although its record says that it runs, or still names its part.
    private func published(in folder: TemporaryFolder, state: DownloadState = .action) throws -> TaskID {
        let workPath = WorkPath(folder.file("work"))
        try workPath.open(create: true)
        try folder.write(Self.content, to: "out/a")
        var record = TaskRecord.sample("http://h.example/a", directory: folder.path + "/out")
        record.state = state
        record.edit {
            $0.attempts = 1
            $0.expected = Int64(Self.content.count)
            $0.ranges = [SavedRange(start: 0, end: $0.expected, position: $0.expected)]
        }
        record.bootID = BootID.current
        record.edit {
            $0.path = folder.path + "/out/a"
            $0.written = FileIdentity(path: folder.path + "/out/a")
            $0.partName = FileNameRules.partName(for: "a", id: $0.id)
        }
        _ = try InfoFile.create(at: workPath.infoPath(record.id), record: record)
        return record.id
    }

    @Test("background tasks go on by themselves, foreground ones come back suspended with their bytes")
    func types() async throws {
        let (first, id, _) = try await halfDone { $0.type = .foreground }
        let waiting = try await first.engine.add(
            [first.task("idle") { $0.type = .foreground }, first.task("background")], barrel: nil, run: true)
        await first.downloader.close()
        let second = try await Bench(in: first.folder, content: Self.content)
        await second.engine.waitUntilDrained()
        #expect(await second.state(id) == .suspend)
        #expect(await second.messager.info(.id(id))?.count.received == 100_000)
        #expect(await second.state(waiting[0].id) == .suspend)
        #expect(await second.state(waiting[1].id) == .complete)
        try await second.control.resumeAll()
        #expect(await second.finished(id)?.state == .complete)
        #expect(second.sent("Range").contains("bytes=100000-"))
    }

    @Test("an engine of chosen tasks leaves the others alone")
    func chosen() async throws {
        let (first, id, _) = try await halfDone()
        await first.downloader.close()
        let second = try await Bench(in: first.folder, scope: .chosen, content: Self.content)
        try await second.completed("other")
        await second.engine.waitUntilDrained()
        #expect(second.transport.requests.count == 1)
        #expect(await second.state(id) == .idle)
        #expect(await second.engine.answer(.run(.id(id))).doneNote != nil)
        #expect(await second.finished(id)?.state == .complete)
    }

    @Test("in an engine of chosen tasks, what is added without `run` waits, also when it is added again")
    func notedDown() async throws {
        let bench = try await Bench(scope: .chosen, content: Self.content)
        let id = try await bench.engine.add([bench.task("a")], barrel: "b", run: false)[0].id
        try await bench.control.suspend(.id(id))
        await bench.downloader.close()
        let second = try await Bench(in: bench.folder, scope: .chosen, content: Self.content)
        _ = try await second.engine.add([second.task("a")], barrel: "b", run: false)
        #expect(await second.state(id) == .idle)
        await second.sync()
        #expect(second.transport.requests.isEmpty)
    }

    @Test("a garbage info file goes to the quarantine and is reported; the others go on")
    func garbage() async throws {
        let first = try await Bench(isActive: false, content: Self.content)
        let bad = try await first.add("bad")
        let good = try await first.add("good")
        await first.downloader.close()
        try write(Array(repeating: 7, count: 3_000), first.workPath.infoPath(bad))
        let second = try await Bench(in: first.folder, content: Self.content)
        #expect(await second.finished(good)?.state == .complete)
        #expect(await second.messager.all().map(\.id) == [good])
        let problems = await second.downloader.takeProblems()
        #expect(problems.count == 1 && problems[0].message.contains("quarantine"), "\(problems)")
        #expect(try FileIO.names(in: second.workPath.quarantineFolder).count == 1)
        #expect(await second.downloader.takeProblems().isEmpty)
        #expect(try await second.add("bad") == bad)
        #expect(await second.finished(bad)?.state == .complete)
    }

    @Test(
        "killed between making an info file and its first write: the same call makes the task", arguments: [0, 3_000])
    func unwritten(_ size: Int) async throws {
        let first = try await Bench(isActive: false, content: Self.content)
        let ids = [try await first.add("a"), try await first.add("b")]
        await first.downloader.close()
        for id in ids { try write(Array(repeating: 7, count: size), first.workPath.infoPath(id)) }
        let second = try await Bench(in: first.folder, isActive: false, content: Self.content)
        let replies = try await second.engine.add([second.task("a"), second.task("b")], barrel: nil, run: true)
        #expect(replies.map(\.id) == ids && replies.allSatisfy { $0.error == nil && $0.isNew })
        await second.engine.activate()
        for id in ids { #expect(await second.finished(id)?.state == .complete) }
        // Only what holds something is worth keeping.
        #expect(try FileIO.names(in: second.workPath.quarantineFolder).count == (size == 0 ? 0 : 2))
    }

    @Test("the same tasks added twice at the same moment are made once")
    func addedTwice() async throws {
        let bench = try await Bench(content: Self.content)
        let tasks = (0..<100).map { bench.task("\($0)") }
        async let one = bench.engine.add(tasks, barrel: nil, run: true)
        async let two = bench.engine.add(tasks.reversed(), barrel: nil, run: true)
        let replies = try await one + two
        #expect(replies.allSatisfy { $0.error == nil })
        #expect(replies.count(where: \.isNew) == 100)
        for task in tasks { #expect(await bench.finished(task.id)?.state == .complete) }
        #expect(bench.transport.requests.count == 100)
    }

    @Test("a garbage barrel file is quarantined and its tasks stay")
    func garbageBarrel() async throws {
        let first = try await Bench(content: Self.content)
        let id = try await first.completed("a", barrel: "b")
        await first.downloader.close()
        try write([1, 2, 3], first.workPath.barrelPath("b"))
        let second = try await Bench(in: first.folder, content: Self.content)
        await #expect { try await second.messager.barrelInfo("b") } throws: {
            ($0 as? DownloadError)?.code == .corruptInfo
        }
        #expect(await second.state(id) == .complete)
        #expect(try await second.messager.add(.id(id), toBarrel: "b") == 1)
        #expect(try await second.messager.barrelInfo("b").isComplete)
    }

    @Test("all tasks come back in the order of their submission")
    func loadAll() async throws {
        let first = try await Bench(isActive: false, content: Self.content)
        var ids: [TaskID] = []
        for index in 0..<40 { ids.append(try await first.add("f\(index)")) }
        await first.downloader.close()
        let second = try await Bench(in: first.folder, isActive: false, content: Self.content)
        #expect(await second.engine.taskCounts.known == 0)
        #expect(try await Builder.loadCache("http://h.example/f7", in: second.downloader).map(\.id) == [ids[7]])
        #expect(await second.downloader.messager.all().map(\.id) == ids)
        #expect(await second.engine.taskCounts.known == 40)
        let next = try await second.add("next")
        #expect(try await second.record(next).number > second.record(ids[39]).number)
    }

    @Test("a complete task stays complete; asked for again it does nothing, unless its file is gone")
    func again() async throws {
        let first = try await Bench(content: Self.content)
        let id = try await first.completed("a")
        await first.downloader.close()
        let second = try await Bench(in: first.folder, content: Self.content)
        #expect(try await second.add("a") == id)
        #expect(await second.state(id) == .complete)
        #expect(second.transport.requests.isEmpty)
        unlink("\(second.out)/a")
        #expect(try await second.add("a") == id)
        try await second.expect("a", Self.content, of: id)
        #expect(second.sent("Range") == ["-"])
    }

    @Test("stopped at any moment and opened again and again: right bytes in the end, none fetched twice")
    func manyRestarts() async throws {
        let folder = try TemporaryFolder()
        var fetched = 0
        for round in 1...6 {
            let gate = TestGate()
            let bench = try await Bench(in: folder) { request, _ in
                .file(Self.content, to: request, gate: gate, pauseAt: 70_000)
            }
            let id = try await bench.add("a")
            if round < 6 {
                await gate.reached()
            } else {
                gate.open()
                try await bench.expect("a", Self.content, of: id)
            }
            #expect(bench.sent("Range") == [round == 1 ? "-" : "bytes=\(fetched)-"])
            fetched += 70_000
            await bench.downloader.close()
        }
    }
}
