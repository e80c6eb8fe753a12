import TestSupport
import Testing

@Suite("What a middleware that moves the file leaves to the engine")
struct LeftBehindTests {
    static let content = Bytes.pattern(count: 1_000)

    /// Makes a second name of the file; its first one is left to the engine.
    private static func link(to target: URL) -> ResponseStep {
        ResponseStep(priority: 1) { response in
            guard let file = response.fileURL else { return response }
            var response = response
            try? FileManager.default.createDirectory(
                at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
            try FileManager.default.linkItem(at: file, to: target)
            response.fileURL = target
            response.leftBehind.append(file)
            return response
        }
    }

    @Test(
        "is removed once the record tells of the new place, and the record then says nothing of it",
        arguments: [Configure.Durability.process, .power])
    func removed(_ durability: Configure.Durability) async throws {
        let bench = try await Bench(content: Self.content) { $0.durability = durability }
        let target = bench.folder.file("moved/a.bin")
        bench.chains.register(response: Self.link(to: target))
        let id = try await bench.add("a.bin")
        let info = try #require(await bench.finished(id))
        #expect(info.state == .complete && info.path == target.path)
        #expect(bench.names == [])
        #expect(try bench.folder.read("moved/a.bin") == Self.content)
        let record = try bench.stored(id)
        #expect(record.path == target.path && record.leftBehind == nil)
    }

    @Test("of a file that is rejected afterwards nothing stays")
    func rejected() async throws {
        let bench = try await Bench(content: Self.content)
        bench.chains.register(response: Self.link(to: bench.folder.file("moved/a.bin")))
        bench.chains.onResponse("response step", priority: 2) { response in
            guard response.error == nil else { return }
            throw DownloadError(.rejected, "no")
        }
        let id = try await bench.add("a.bin")
        #expect(await bench.finished(id)?.error?.code == .rejected)
        #expect(bench.names == [])
        let moved = try FileManager.default.contentsOfDirectory(atPath: bench.folder.file("moved").path)
        #expect(moved == [FileNameRules.rejectedName(for: "a.bin", id: id)])
        #expect(try bench.stored(id).leftBehind == nil)
    }

    @Test("a copy is removed; a file of another length cannot be one, stays and is named")
    func foreign() async throws {
        let bench = try await Bench(content: Self.content)
        let (copy, foreign) = (bench.folder.file("copy"), bench.folder.file("foreign"))
        try Data(Self.content).write(to: copy)
        try Data(Self.content.dropLast()).write(to: foreign)
        bench.chains.onResponse("response step") { response in
            response.leftBehind = [copy, foreign, bench.folder.file("none")]
        }
        try await bench.completed("a.bin")
        #expect(try bench.names == ["a.bin"] && FileIO.names(in: bench.folder.path).contains("foreign"))
        #expect(!FileManager.default.fileExists(atPath: copy.path))
        let problems = await bench.downloader.takeProblems()
        let expected = "\(foreign.path) stays: it is no copy of \(bench.out)/a.bin, because their lengths differ."
        #expect(problems.map(\.message) == [expected])
    }

    @Test("the same place by another path is not removed")
    func samePlace() async throws {
        let bench = try await Bench(content: Self.content)
        let alias = bench.folder.file("alias")
        try FileManager.default.createSymbolicLink(at: alias, withDestinationURL: URL(fileURLWithPath: bench.out))
        bench.chains.onResponse("response step") { response in
            guard let file = response.fileURL else { return }
            response.fileURL = alias.appendingPathComponent(file.lastPathComponent)
            response.leftBehind = [file]
        }
        try await bench.completed("a.bin")
        #expect(bench.names == ["a.bin"])
    }

    @Test("killed between the record and the removal: the next engine removes it, unless it is another file by now")
    func killed() async throws {
        let first = try await Bench(content: Self.content)
        let id = try await first.add("a.bin")
        let path = try #require(await first.finished(id)?.path)
        await first.downloader.close()
        let other = first.folder.file("other").path
        let foreign = first.folder.file("foreign").path
        try FileManager.default.linkItem(atPath: path, toPath: other)
        try first.folder.write(Self.content, to: "foreign")
        let info = first.workPath.infoPath(id)
        var contents = try InfoFile.read(info)
        contents.record.edit { $0.leftBehind = [other, foreign, path] }
        try InfoFile.update(info, record: contents.record, handle: &contents.handle)

        let second = try await Bench(in: first.folder, content: Self.content)
        #expect(await second.state(id) == .complete)
        #expect(!FileManager.default.fileExists(atPath: other))
        #expect(FileManager.default.fileExists(atPath: foreign))
        #expect(try second.out("a.bin") == Self.content)
        #expect(try second.stored(id).leftBehind == nil)
    }

    @Test("killed while the chain ran behind the move: nothing is fetched again, and there is one file")
    func killedInTheChain() async throws {
        let chains = MiddlewareChains()
        let folder = try TemporaryFolder()
        let moved = folder.file("moved")
        chains.register(response: MoveToFolderMiddleware(folder: moved, priority: 1))
        let isMoved = Observed(false)
        chains.register(
            response: ResponseStep(priority: 2) { _ in
                isMoved.update { $0 = true }
                // The engine closes while the chain is at work.
                try await untilCancelled()
            })
        let first = try await Bench(in: folder, chains: chains, content: Self.content)
        let id = try await first.add("a.bin")
        let place = moved.appendingPathComponent("a.bin").path
        _ = await isMoved.wait { $0 }
        let record = try Data(contentsOf: URL(fileURLWithPath: first.workPath.infoPath(id)))
        await first.downloader.close()
        #expect(first.names == [])
        // As a kill would have left it.
        try record.write(to: URL(fileURLWithPath: first.workPath.infoPath(id)))
        try FileManager.default.linkItem(atPath: place, toPath: "\(first.out)/a.bin")

        let mover = MiddlewareChains()
        mover.register(response: MoveToFolderMiddleware(folder: moved))
        let second = try await Bench(in: folder, chains: mover, content: Self.content)
        let info = try #require(await second.finished(id))
        #expect(info.state == .complete && info.path == place)
        #expect(second.transport.requests.isEmpty)
        #expect(second.names == [])
        #expect(try FileManager.default.contentsOfDirectory(atPath: moved.path) == ["a.bin"])
    }
}
