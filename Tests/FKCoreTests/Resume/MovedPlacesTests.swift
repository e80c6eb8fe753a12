import TestSupport
import Testing

@testable import FKEngine

@Suite("Folders that have moved")
struct MovedPlacesTests {
    private static let content = Bytes.pattern(count: 400_000)

    private static func named(_ folder: TemporaryFolder) -> (inout Configure) -> Void {
        { $0.bases = ["dl": folder.file("out")] }
    }

    /// The work path and the destination in another folder, by renames.
    private func moved(_ folder: TemporaryFolder) throws -> TemporaryFolder {
        let other = try TemporaryFolder()
        for name in ["work", "out"] where FileManager.default.fileExists(atPath: folder.file(name).path) {
            try FileManager.default.moveItem(at: folder.file(name), to: other.file(name))
        }
        return other
    }

    @Test("finished, suspended, queued and barrelled tasks go on under their ids, and nothing is fetched twice")
    func renamed() async throws {
        let (gate, old) = (TestGate(), try TemporaryFolder())
        let first = try await Bench(in: old, settings: Self.named(old)) { request, _ in
            let isHeld = request.urlRequest.url?.lastPathComponent.hasPrefix("held") == true
            return .file(Self.content, to: request, gate: isHeld ? gate : nil, pauseAt: 100_000)
        }
        let whole = try await first.completed("whole")
        let inside = try await first.completed("inside") { $0.directory = nil }
        let member = try await first.completed("member", barrel: "set")
        let held = try await first.add("held")
        await gate.reached()
        _ = try await first.control.suspend(.id(held))
        await first.reached("held", .suspend)
        let held2 = try await first.add("held2", barrel: "set")
        await gate.reached()
        await first.downloader.close()
        #expect(try InfoFile.rawPayload(first.workPath.infoPath(whole)).contains(#""path":"dl:whole""#))
        #expect(try InfoFile.rawPayload(first.workPath.infoPath(whole)).contains(#""directory":"dl:""#))
        #expect(try InfoFile.rawPayload(first.workPath.infoPath(inside)).contains(#""path":"work:files/"#))

        let new = try moved(old)
        let second = try await Bench(in: new, content: Self.content, settings: Self.named(new))
        #expect(try await second.record(whole).path == second.out + "/whole")
        #expect(try await second.record(inside).path?.hasPrefix(new.path + "/work/files/") == true)
        #expect(try await second.record(held).state == .suspend)
        try await second.expect("held2", Self.content, of: held2)
        _ = try await second.control.resume(.id(held))
        try await second.expect("held", Self.content, of: held)
        #expect(second.sent("Range") == ["bytes=100000-", "bytes=100000-"])

        // The same requests find the same tasks.
        #expect(try await second.completed("whole") == whole)
        #expect(try await second.completed("member", barrel: "set") == member)
        #expect(second.transport.requests.count == 2)
        #expect(await second.engine.taskCounts.known == 5)
        #expect(try StoreReader(second.workPath).barrelIDs("set").ids == [member, held2])
        for try await file in second.messager.verify(.all) { #expect(file.result == .right, "\(file)") }
        await second.downloader.close()

        // A reader without settings of its own has the bases of the last engine.
        #expect(try StoreReader(WorkPath(second.workPath.root)).record(whole).path == second.out + "/whole")
    }

    @Test(
        "digests of pieces are those of the task in a base that has moved, and refuse another file",
        arguments: [true, false])
    func pieces(isRight: Bool) async throws {
        let old = try TemporaryFolder()
        let first = try await Bench(in: old, content: PieceTests.content, settings: Self.named(old))
        _ = try await first.completed("before") { $0.options.pieces = PieceTests.digests }
        await first.downloader.close()
        let new = try moved(old)
        let content = isRight ? PieceTests.content : PieceTests.wrong(at: PieceTests.offset)
        let second = try await Bench(in: new, content: content, settings: Self.named(new))
        let id = try await second.add("f") {
            $0.options.pieces = PieceTests.digests
            $0.options.maxAttempts = 1
        }
        let end = await second.finished(id)
        #expect(end?.state == (isRight ? .complete : .error), "\(end?.error as Any)")
        #expect(FileManager.default.fileExists(atPath: second.workPath.digestsPath(id)))
        let there = try await second.add("before") { $0.options.pieces = PieceTests.digests }
        #expect(await second.finished(there)?.state == .complete)
        await second.downloader.close()
    }

    @Test("died while it ran, and both moved: the live counters and the part file count")
    func died() async throws {
        let (gate, old) = (TestGate(), try TemporaryFolder())
        let first = try await Bench(in: old, settings: Self.named(old)) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 100_000)
        }
        let id = try await first.add("a")
        await gate.reached()
        let copy = try first.snapshot()
        let second = try await Bench(in: copy, content: Self.content, settings: Self.named(copy))
        try await second.expect("a", Self.content, of: id)
        #expect(second.sent("Range") == ["bytes=100000-"])
    }

    @Test("damaged after the move: repaired in place, with the damaged bytes alone")
    func repaired() async throws {
        let (content, old) = (Bytes.pattern(count: 3 << 20), try TemporaryFolder())
        let first = try await Bench(in: old, content: content, settings: Self.named(old))
        let id = try await first.completed("a")
        await first.downloader.close()
        let new = try moved(old)
        try Bytes.damage(new.file("out/a").path, at: (1 << 20) + 5)
        let second = try await Bench(in: new, content: content, settings: Self.named(new))
        var found: [VerifiedFile] = []
        for try await file in second.messager.verify(.all) { found.append(file) }
        #expect(found.map(\.result) == [.damaged])
        try await second.control.repair(found)
        try await second.expect("a", content, of: id)
        #expect(second.names == ["a"])
        #expect(second.transport.requests.count == 1)
        #expect(second.sent("Range")[0].hasPrefix("bytes="))
    }

    @Test("records of a former version follow the folders as well, and have the present form after their next write")
    func formerRecords() async throws {
        let old = try TemporaryFolder()
        let first = try await Bench(in: old, content: Self.content)
        let (out, inside) = (try await first.completed("a"), try await first.completed("b") { $0.directory = nil })
        await first.downloader.close()
        // As a former version leaves it.
        for id in [out, inside] {
            var contents = try InfoFile.read(first.workPath.infoPath(id))
            try InfoFile.update(
                first.workPath.infoPath(id), record: &contents.record, places: .none, handle: &contents.handle)
        }
        try write(Array("1\n".utf8), first.workPath.layoutPath)
        let named = try await Bench(in: old, content: Self.content, settings: Self.named(old))
        await named.downloader.close()
        #expect(try InfoFile.rawPayload(first.workPath.infoPath(out)).contains(old.path))

        let new = try moved(old)
        let second = try await Bench(in: new, content: Self.content, settings: Self.named(new))
        #expect(try await second.record(out).path == second.out + "/a")
        #expect(try await second.record(inside).path?.hasPrefix(new.path + "/work/files/") == true)
        #expect(try await second.completed("a") == out)
        #expect(second.transport.requests.isEmpty)
        _ = try await second.control.markUsed(.all)
        #expect(try !InfoFile.rawPayload(second.workPath.infoPath(out)).contains(old.path))
    }

    @Test("a base without a folder: its tasks are left as they are, until it has one")
    func unnamed() async throws {
        let old = try TemporaryFolder()
        let first = try await Bench(in: old, content: Self.content, settings: Self.named(old))
        let id = try await first.completed("a", barrel: "set")
        _ = try await first.completed("b") { $0.directory = old.path + "/elsewhere" }
        await first.downloader.close()
        let path = first.workPath.infoPath(id)
        let before = try bytes(path)

        let without = try await Bench(in: old, content: Self.content)
        #expect(await without.engine.taskCounts.known == 1)
        let problems = await without.engine.takeProblems()
        #expect(problems.contains { $0.remedy == .nameBase && $0.message.contains("\"dl\"") })
        // The same task is refused with the reason, and nothing is fetched.
        let again = try await without.engine.add([without.task("a")], barrel: nil, run: true)
        #expect(again[0].error?.remedy == .nameBase)
        await without.downloader.close()
        #expect(try bytes(path) == before && without.transport.requests.isEmpty)
        #expect(without.workPath.places.bases.map(\.name) == ["work"])

        var found: [DownloadError] = []
        let read = try StoreReader(WorkPath(first.workPath.root)).records(problem: { found.append($0) })
        #expect(read.count == 1)
        #expect(found.map(\.remedy) == [.nameBase])
        let named = try await Bench(in: old, content: Self.content, settings: Self.named(old))
        #expect(try await named.record(id).path == named.out + "/a")
    }

    @Test("a live downloader keeps its bases")
    func locked() async throws {
        let bench = try await Bench(content: Self.content)
        var configure = await bench.engine.currentConfigure
        configure.bases = ["dl": bench.folder.file("out")]
        let error = await #expect(throws: DownloadError.self) { try await bench.downloader.update(configure) }
        #expect(error?.code == .configurationLocked)
    }
}
