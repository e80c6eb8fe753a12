import TestSupport
import Testing

@testable import FKEngine

@Suite("Files with digests of pieces")
struct PieceFileTests {
    @Test("an existing file is compared with the digests of its pieces before it counts", arguments: [true, false])
    func existing(isRight: Bool) async throws {
        let bench = try await Bench { request, _ in .file(PieceTests.content, to: request) }
        let there = isRight ? PieceTests.content : PieceTests.wrong(at: PieceTests.offset)
        let file = bench.folder.file("out/f")
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(there).write(to: file)
        let id = try await bench.add(PieceTests.a) {
            $0.options.pieces = PieceTests.digests
            $0.options.existing = .skip
        }
        let end = await bench.finished(id)
        #expect(bench.transport.requests.isEmpty)
        #expect(try bench.out("f") == there)
        if isRight {
            #expect(end?.state == .complete)
            #expect(try bench.stored(id).history.contains { $0.what.contains("its pieces have the list's sha-256") })
        } else {
            #expect(end?.error?.code == .checksumMismatch)
            #expect(
                end?.error?.message.contains("1 of 13 pieces differs from the list") == true, "\(end?.error as Any)")
        }
    }

    @Test("an existing file does not count while the digests of its pieces are lost")
    func lost() async throws {
        let bench = try await Bench { request, _ in .file(PieceTests.content, to: request) }
        let file = bench.folder.file("out/f")
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        let id = try await bench.add(PieceTests.a) {
            $0.options.pieces = PieceTests.digests
            $0.options.existing = .skip
            $0.startsSuspended = true
        }
        unlink(bench.workPath.digestsPath(id))
        try Data(PieceTests.wrong(at: PieceTests.offset)).write(to: file)
        _ = try await bench.control.resume(.id(id))
        let end = await bench.finished(id)
        #expect(end?.error?.message.contains("digests of its pieces are lost") == true, "\(end?.error as Any)")
    }

    @Test("an existing file of another length is refused")
    func otherLength() async throws {
        let folder = try TemporaryFolder()
        let file = folder.file("f").path
        try Data(PieceTests.content.prefix(1_000_000)).write(to: folder.file("f"))
        let fault = try FileVerifier.fault(of: file, PieceTests.digests)
        #expect(fault == "its 1000000 bytes are not the 13 pieces of the list")
    }

    @Test("files beside info files that are gone are removed at the start; those of tasks stay")
    func orphans() async throws {
        let folder = try TemporaryFolder()
        let workPath = WorkPath(folder.file("work"))
        try workPath.open(create: true)
        let (gone, kept) = (TaskID(url: "http://h/gone"), TaskID(url: "http://h/kept"))
        for id in [gone, kept] {
            try PieceDigestFile.write(PieceTests.digests, workPath.digestsPath(id))
            try Data([1]).write(to: URL(fileURLWithPath: workPath.piecesPath(id)))
        }
        let other = workPath.infoPath(gone) + ".txt"
        for path in [workPath.infoPath(kept), other] { try Data().write(to: URL(fileURLWithPath: path)) }
        #expect(try workPath.sweptTaskIDs() == [kept])
        func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }
        #expect(!exists(workPath.digestsPath(gone)) && !exists(workPath.piecesPath(gone)))
        #expect(exists(workPath.digestsPath(kept)) && exists(workPath.piecesPath(kept)) && exists(other))
        #expect(try workPath.sweptTaskIDs() == workPath.allTaskIDs())
    }

    @Test("an engine sweeps when it reads its tasks")
    func engine() async throws {
        let folder = try TemporaryFolder()
        let configure = Configure(workPath: folder.file("work"))
        let workPath = WorkPath(configure.workPath)
        try workPath.open(create: true)
        let path = workPath.digestsPath(TaskID(url: "http://h/gone"))
        try PieceDigestFile.write(PieceTests.digests, path)
        let downloader = try Downloader(configure)
        downloader.activateQueue()
        _ = await downloader.messager.all()
        #expect(!FileManager.default.fileExists(atPath: path))
        await downloader.close()
    }

    @Test("an engine does not sweep while tasks are made, whose digests are there before their info files")
    func making() async throws {
        let bench = try await Bench(content: [1])
        let path = bench.workPath.digestsPath(TaskID(url: "http://h/coming"))
        try PieceDigestFile.write(PieceTests.digests, path)
        try await bench.engine.loadAllWhileMaking()
        #expect(FileManager.default.fileExists(atPath: path))
    }

    @Test("digests are written again only where others are there")
    func rewritten() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("aa/x.digests").path
        let digests = PieceTests.digests
        try PieceDigestFile.write(digests, path)
        let first = try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int
        try PieceDigestFile.write(digests, path)
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int == first)
        let others = PieceTests.digests(of: PieceTests.wrong(at: 7), PieceTests.piece)
        try PieceDigestFile.write(others, path)
        #expect(PieceDigestFile.read(path, of: others.summary) == others)
    }
}

extension Engine {
    fileprivate func loadAllWhileMaking() async throws {
        await book.beginMaking()
        defer { book.endMaking() }
        try book.loadAll()
    }
}
