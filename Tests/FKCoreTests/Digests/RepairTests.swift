import TestSupport
import Testing

@testable import FKEngine

@Suite("Verifying, repairing and refreshing finished files")
struct RepairTests {
    static let mib = 1 << 20
    static let content = Bytes.pattern(count: 3 * mib + 77)

    /// Damages a byte as a disk does: the file's time stays.
    private func flip(_ bench: Bench, _ name: String, at offset: Int) throws {
        let path = "\(bench.out)/\(name)"
        let time = try #require(FileIdentity(path: path)).time
        defer { try? setTime(time, of: path) }
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        defer { try? handle.close() }
        try handle.seek(toOffset: UInt64(offset))
        let byte = try #require(try handle.read(upToCount: 1)?.first)
        try handle.seek(toOffset: UInt64(offset))
        try handle.write(contentsOf: Data([~byte]))
    }

    @Test("a damaged piece: found, fetched alone, and right again; the task is complete under the same path")
    func repair() async throws {
        let bench = try await Bench(content: Self.content)
        let id = try await bench.add("a")
        let path = try #require(await bench.finished(id)?.path)
        #expect(try await bench.verify().map(\.result) == [.right])
        try flip(bench, "a", at: Self.mib + 9)
        let damaged = try await bench.verify(.id(id))
        #expect(damaged.map(\.result) == [.damaged])
        #expect(damaged[0].damaged == [Int64(Self.mib)..<Int64(2 * Self.mib)] && damaged[0].path == path)
        #expect(try await bench.control.repair(damaged) == 1)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(try bench.out("a") == Self.content && bench.names == ["a"])
        #expect(bench.sent("Range") == ["-", "bytes=1048576-2097151"])
        #expect(try await bench.verify().map(\.result) == [.right])
        #expect(try await bench.control.repair(damaged.filter { $0.result == .right }) == 0)
    }

    @Test(
        "a changed file whose fetch is interrupted: the next engine has the task, and replaces the file",
        arguments: ["a", ".a"])
    func interruptedRefresh(_ name: String) async throws {
        let (old, new) = (Bytes.pattern(count: 200_000), Bytes.pattern(count: 200_001, seed: 2))
        let (gate, isNew) = (TestGate(), Locked(false))
        let bench = try await Bench { request, _ in
            isNew.withLock(\.self)
                ? .file(new, etag: "\"2\"", to: request, gate: gate, pauseAt: 100_000) : .file(old, to: request)
        }
        let id = try await bench.add("a") { $0.fileName = name }
        let path = try #require(await bench.finished(id)?.path)
        isNew.withLock { $0 = true }
        _ = await bench.engine.answer(.renew([Renewal(id)]))
        await gate.reached()
        await bench.downloader.close()
        #expect(try bench.out(name) == old, "the old file stays until the new one is there")

        let next = try await Bench(in: bench.folder) { request, _ in .file(new, etag: "\"2\"", to: request) }
        let info = await next.finished(id)
        #expect(info?.state == .complete && info?.path == path)
        #expect(try next.out(name) == new)
        #expect(await next.downloader.takeProblems() == [])
        #expect(next.names == [name])
    }

    @Test("the sums of a file that was resumed in another attempt are those of the file")
    func resumed() async throws {
        let bench = try await Bench { request, number in
            .file(Self.content, to: request, cut: number == 1 ? Self.mib + 500_000 : nil)
        }
        let id = try await bench.add("a")
        await bench.retried("a", after: 1)
        #expect(await bench.finished(id)?.state == .complete)
        let written = try #require(try bench.stored(id).written)
        let file = try #require(PieceFile.read(bench.workPath.piecesPath(id), of: written))
        #expect(file.sums.count == 4)
        for (index, sum) in file.sums.enumerated() {
            let range = PieceSums.range(index, of: Int64(Self.content.count))
            let piece = Array(Self.content[Int(range.lowerBound)..<Int(range.upperBound)])
            #expect(sum == piece.withUnsafeBytes { CRC32C.checksum($0) })
        }
    }

    @Test("a response middleware that changes the file: its sums are those of the changed file")
    func changedByMiddleware() async throws {
        let bench = try await Bench(content: Self.content)
        bench.chains.onResponse("response step") { response in
            guard let file = response.fileURL else { return }
            var data = try Data(contentsOf: file)
            data[7] = ~data[7]
            try data.write(to: file)
        }
        try await bench.completed("a")
        #expect(try await bench.verify().map(\.result) == [.right])
    }

    @Test("verify selects: unfinished tasks are left out, unknown ones throw; nothing is changed")
    func selects() async throws {
        let bench = try await Bench { request, _ in
            request.urlRequest.url?.lastPathComponent == "none" ? .status(404) : .file([1, 2, 3], to: request)
        }
        let id = try await bench.add("a", barrel: "x")
        let failed = try await bench.add("none", barrel: "x")
        #expect(await bench.finished(id)?.state == .complete)
        #expect(await bench.finished(failed)?.state == .error)
        #expect(try await bench.verify(.barrel("x")).map(\.id) == [id])
        await #expect(throws: DownloadError.self) { try await bench.verify(.barrel("none")) }
        await #expect(throws: DownloadError.self) { try await bench.verify(.url("http://h.example/other")) }
        #expect(bench.transport.requests.count == 2)
    }

    @Test(
        "a renewal of a task that is not complete changes nothing; the whole file is fetched where the damage is unknown"
    )
    func renewals() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, number in
            .file(number == 1 ? [1, 2, 3] : [4, 5, 6, 7], to: request, gate: number > 1 ? gate : nil)
        }
        let id = try await bench.completed("a")
        _ = await bench.engine.answer(.renew([Renewal(id), Renewal(TaskID(url: "http://h/none"))]))
        await gate.reached()
        #expect(try bench.out("a") == [1, 2, 3], "the old file stays until the new one is whole")
        _ = await bench.engine.answer(.renew([Renewal(id)]))
        gate.open()
        #expect(await bench.finished(id)?.state == .complete)
        #expect(try bench.out("a") == [4, 5, 6, 7] && bench.names == ["a"])
        #expect(try await bench.verify().map(\.result) == [.right])
        #expect(bench.transport.requests.count == 2)
    }
}
