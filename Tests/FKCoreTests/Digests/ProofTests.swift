import TestSupport
import Testing

@testable import FKEngine
@testable import FKStore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A file that was complete and never synced, after a boot in which anything may have become of it.
@Suite("What was not synced, after another boot")
struct ProofTests {
    static let content = Bytes.pattern(count: 300_000)

    /// A work path and a destination as another boot finds them.
    private func afterBoot(
        checksum: Bool = false, name: String? = nil, isActive: Bool = true,
        _ change: (inout RecordDraft) -> Void = { _ in },
        file: (URL, Int64) throws -> Void = { _, _ in }
    ) async throws -> (Bench, TaskID) {
        let first = try await Bench(content: Self.content)
        let id = try await first.completed("a") {
            $0.fileName = name
            if checksum { $0.options.checksum = try? Checksum(.sha256, hex: Bytes.sha256(Self.content)) }
        }
        await first.downloader.close()
        var contents = try InfoFile.read(first.workPath.infoPath(id))
        contents.record.bootID = "another boot"
        let written = try #require(contents.record.written).time
        // The clock of the test is not that of the file system: what a folder's time is compared with is of the latter.
        contents.record.edit {
            $0.started = Date(timeIntervalSince1970: Double(written) / 1e9 - 1)
            $0.finished = Date(timeIntervalSince1970: Double(written) / 1e9)
        }
        contents.record.edit(change)
        try InfoFile.update(
            first.workPath.infoPath(id), record: contents.record, handle: &contents.handle, rangesChanged: true)
        try file(first.folder.file("out/a"), written)
        let bench = try await Bench(in: first.folder, isActive: isActive, content: Self.content)
        return (bench, id)
    }

    /// Other bytes in the same file, at the time of the last ones: as a power cut leaves it.
    static func torn(_ bytes: [UInt8]) -> (URL, Int64) throws -> Void {
        { url, written in
            let handle = try FileHandle(forWritingTo: url)
            try handle.truncate(atOffset: 0)
            try handle.write(contentsOf: Data(bytes))
            try handle.close()
            try setTime(written, of: url.path)
        }
    }

    @Test("whole: complete again without a request, and from then on known to be synced", arguments: [false, true])
    func whole(_ checksum: Bool) async throws {
        let (bench, id) = try await afterBoot(checksum: checksum)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.transport.requests.isEmpty)
        let record = try bench.stored(id)
        #expect(
            record.synced == true && (record.pieces == nil) == checksum && record.attempts == 1
                && record.bootID == BootID.current)
        #expect(bench.names == ["a"])
    }

    @Test(
        "empty, shorter, longer, or with other bytes: fetched again, and nothing is left of it",
        arguments: [0, 299_999, 300_000, 300_001], [false, true])
    func torn(_ length: Int, _ checksum: Bool) async throws {
        let (bench, id) = try await afterBoot(checksum: checksum, file: Self.torn([UInt8](repeating: 0, count: length)))
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Range") == ["-"])
        #expect(try bench.out("a") == Self.content)
        #expect(bench.names == ["a"])
        #expect(try bench.stored(id).history.contains { $0.what.contains("went down") })
    }

    @Test("whole, but nothing is known to compare it with: fetched again")
    func incomparable() async throws {
        let (bench, id) = try await afterBoot { $0.pieces = nil }
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.transport.requests.count == 1)
        #expect(try bench.out("a") == Self.content)
    }

    @Test("written to by somebody since: left alone")
    func edited() async throws {
        let (bench, id) = try await afterBoot(file: { url, written in
            try Self.torn([1, 2, 3])(url, written + 3_600_000_000_000)
        })
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.transport.requests.isEmpty)
        #expect(try bench.out("a") == [1, 2, 3])
    }

    @Test("not there, and nothing has changed in the folder since before it got its name: it never reached the disk")
    func lost() async throws {
        let (bench, id) = try await afterBoot(file: { url, written in
            try FileManager.default.removeItem(at: url)
            try setTime(written - 1_000_000_000, of: url.deletingLastPathComponent().path)
        })
        try await bench.expect("a", Self.content, of: id)
    }

    @Test("taken away by somebody: not fetched again by itself")
    func gone() async throws {
        let (bench, id) = try await afterBoot(file: { url, written in
            try FileManager.default.removeItem(at: url)
            try setTime(written + 1_000_000_000, of: url.deletingLastPathComponent().path)
        })
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.transport.requests.isEmpty && bench.names.isEmpty)
    }

    @Test("taken away, and asked for while it is examined: fetched")
    func goneAndAskedFor() async throws {
        let (bench, id) = try await afterBoot(
            isActive: false,
            file: { url, written in
                try FileManager.default.removeItem(at: url)
                try setTime(written + 1_000_000_000, of: url.deletingLastPathComponent().path)
            })
        try await bench.turn { engine in
            engine.activate()
            let entry = try #require(engine.book[id])
            #expect(entry.run != nil)
            _ = try engine.control.readmit(entry, as: entry.record.task, mayRun: true)
            return true
        }
        try await bench.expect("a", Self.content, of: id)
    }

    // MARK: The record was lost

    /// As if what the first engine wrote of the task's end had never reached the disk.
    private func forget(_ record: inout RecordDraft) {
        record.state = .idle
        record.ranges = []
        record.expected = nil
        record.path = nil
        record.partName = nil
        record.finished = nil
        record.pieces = nil
    }

    /// The file was left so before the boot by a task of that work path.
    private func leave(_ bytes: [UInt8], at url: URL, by workPath: String, _ id: TaskID) throws {
        try Self.torn(bytes)(url, 1_000_000_000_000_000)
        let file = open(url.path, O_RDWR)
        defer { close(file) }
        FileOwner(of: workPath).mark(file, try #require(FileIdentity(path: url.path)), as: id)
    }

    private func id(in folder: String, name: String? = nil) -> TaskID {
        var task = TaskDescription(url: "http://h.example/a")
        task.directory = folder
        task.fileName = name
        return task.id
    }

    @Test("a file with the task's mark from before the boot is not in its own way", arguments: [nil, "a"])
    func leftover(_ name: String?) async throws {
        let (bench, id) = try await afterBoot(name: name) {
            forget(&$0)
        } file: { url, _ in
            let out = url.deletingLastPathComponent()
            let work = out.deletingLastPathComponent().appendingPathComponent("work").path
            try leave([0, 0], at: url, by: work, self.id(in: out.path, name: name))
        }
        try await bench.expect("a", Self.content, of: id)
        #expect(bench.names == ["a"])
    }

    enum Stranger: CaseIterable { case unmarked, writtenSince, edited, ofAnotherWorkPath, copied }

    @Test(
        "without the mark, written to since, or of another work path, it is a stranger's", arguments: Stranger.allCases)
    func strangers(_ stranger: Stranger) async throws {
        let (bench, id) = try await afterBoot {
            forget(&$0)
        } file: { url, _ in
            let out = url.deletingLastPathComponent()
            let work = out.deletingLastPathComponent().appendingPathComponent("work").path
            switch stranger {
            case .unmarked:
                try FileManager.default.removeItem(at: url)
                _ = FileManager.default.createFile(atPath: url.path, contents: Data([1]))
                try setTime(1_000_000_000_000_000, of: url.path)
            case .writtenSince:
                try Self.torn([1])(url, Int64(Date().timeIntervalSince1970 * 1e9))
            case .edited:
                try leave([7], at: url, by: work, self.id(in: out.path))
                try Self.torn([1])(url, 1_000_003_000_000_000)
            case .ofAnotherWorkPath:
                let other = try TemporaryFolder()
                try leave([1], at: url, by: other.path, self.id(in: out.path))
            case .copied:
                try leave([1], at: url, by: work, self.id(in: out.path))
                #expect(rename(url.path, url.path + ".backup") == 0)
                _ = try Program.run("cp", ["-a", url.path + ".backup", url.path])
            }
        }
        #expect(await bench.finished(id)?.state == .complete)
        #expect(try bench.out("a") == [1])
        #expect(try bench.out("a.1") == Self.content)
    }
}

/// Nanoseconds since 1970.
func setTime(_ time: Int64, of path: String) throws {
    var times = [timespec](
        repeating: timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000)), count: 2)
    guard utimensat(AT_FDCWD, path, &times, AT_SYMLINK_NOFOLLOW) == 0 else {
        throw DownloadError(system: errno, "set the time of", path)
    }
}

@Suite("Syncing in the background")
struct SyncingTests {
    private func isMarked(_ bench: Bench, _ id: TaskID) -> Bool {
        FileOwner.mark(of: bench.out + "/a").isOf(id, orNone: false)
    }

    @Test("a small finished file keeps its checksum; five seconds later its record says so")
    func later() async throws {
        let bench = try await Bench(content: ProofTests.content)
        let id = try await bench.completed("a")
        let before = try bench.stored(id)
        #expect(before.synced != true && before.pieces?.map(\.end) == [300_000])
        #expect(isMarked(bench, id))
        for _ in 0..<4 { await bench.advance(1) }
        #expect(try bench.stored(id).synced != true)
        await bench.advance(1)
        // Behind everything on the queue that syncs, and what the engine makes of it.
        try await offPool { [engine = bench.engine] in engine.diskWork.sync(flags: .barrier) {} }
        await bench.sync()
        let after = try bench.stored(id)
        #expect(after.synced == true)
        #expect(after.pieces == before.pieces && after.state == .complete && after.ranges.map(\.synced) == [300_000])
        #expect(!isMarked(bench, id))
    }

    @Test(
        "a small file keeps a checksum although an earlier attempt has received a part of it, or was killed",
        arguments: [false, true])
    func inParts(_ isKilled: Bool) async throws {
        let folder = try TemporaryFolder()
        var bench = try await Bench(in: folder, settings: { $0.retry.maxAttempts = isKilled ? 1 : 2 }) {
            request, number in
            .file(ProofTests.content, to: request, cut: number == 1 ? 100_000 : nil)
        }
        let id = try await bench.add("a")
        if isKilled {
            await bench.reached("a", .error)
            await bench.downloader.close()
            // A killed process has written no checksum of its last bytes.
            var record = try bench.stored(id)
            record.edit { $0.pieces = nil }
            let path = bench.workPath.infoPath(id)
            #expect(unlink(path) == 0)
            _ = try InfoFile.create(at: path, record: record)
            bench = try await Bench(in: folder, content: ProofTests.content)
            try await bench.control.retry(.id(id))
        } else {
            await bench.retried("a", after: 60)
        }
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Range").last == "bytes=100000-")
        for _ in 0..<6 { await bench.advance(1) }
        try await offPool { [engine = bench.engine] in engine.diskWork.sync(flags: .barrier) {} }
        await bench.sync()
        let record = try bench.stored(id)
        #expect(record.synced == true && record.pieces?.map(\.end) == [300_000])
        #expect(try PartFile(in: Folder(path: bench.out), name: "a").matches(try #require(record.pieces)))
    }

    @Test("a file of somebody else in the place of the finished one is not synced, and keeps its mark")
    func replaced() async throws {
        let bench = try await Bench(content: ProofTests.content)
        let (mine, other) = (try await bench.add("a"), try await bench.add("b"))
        #expect(await bench.finished(mine)?.state == .complete)
        #expect(await bench.finished(other)?.state == .complete)
        #expect(rename(bench.out + "/b", bench.out + "/a") == 0)
        let mark = FileOwner.mark(of: bench.out + "/a")
        for _ in 0..<6 { await bench.advance(1) }
        try await offPool { [engine = bench.engine] in engine.diskWork.sync(flags: .barrier) {} }
        await bench.sync()
        #expect(FileOwner.mark(of: bench.out + "/a") == mark)
        #expect(try bench.stored(mine).synced != true)
    }

    @Test("an engine that ran for a while syncs before it closes, a short one does not", arguments: [1, 5])
    func closing(_ seconds: Int) async throws {
        let bench = try await Bench(content: ProofTests.content)
        await bench.advance(Double(seconds))
        let id = try await bench.completed("a")
        await bench.downloader.close()
        #expect(try bench.stored(id).synced == (seconds == 5 ? true : nil))
    }

    @Test("power: synced at once, no mark")
    func power() async throws {
        let bench = try await Bench(content: ProofTests.content) { $0.durability = .power }
        let id = try await bench.completed("a")
        let record = try bench.stored(id)
        #expect(record.synced == true && record.pieces?.count == 1 && !isMarked(bench, id))
    }

    @Test("pieces from several connections, and from before a suspension, cover the file")
    func pieces() async throws {
        let content = Bytes.pattern(count: 8 << 20)
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.connections = .fixed(4) }) { request, number in
            number == 1 ? .file(content, to: request, gate: gate, pauseAt: 300_000) : .file(content, to: request)
        }
        let id = try await bench.add("a")
        await bench.transport.started(4)
        try await bench.control.suspend(.id(id))
        gate.open()
        try await bench.control.resume(.id(id))
        #expect(await bench.finished(id)?.state == .complete)
        let pieces = try #require(try bench.stored(id).pieces)
        #expect(pieces.count > 1 && PieceChecksum.covering(pieces, length: 8 << 20) == pieces)
        let file = try PartFile(in: Folder(path: bench.out), name: "a")
        #expect(try file.matches(pieces))
    }
}
