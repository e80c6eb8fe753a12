import TestSupport
import Testing

/// Somebody else has made what bears the part file's name.
@Suite("A part file of somebody else")
struct ForeignPartTests {
    private static let content = Bytes.pattern(count: 400_000)
    private static let precious: [UInt8] = [9, 9, 9]

    enum Trap: String, Sendable, CaseIterable {
        case owner, hardLink, symlink, folder, pipe

        static let canChangeOwner = geteuid() == 0

        /// Puts it under the name; `victim` is what a link leads to.
        func set(at path: String, victim: String) throws {
            switch self {
            case .owner:
                try Data(ForeignPartTests.precious).write(to: URL(fileURLWithPath: path))
                #expect(chown(path, 65_534, 65_534) == 0)
            case .hardLink: #expect(link(victim, path) == 0)
            case .symlink: #expect(Foundation.symlink(victim, path) == 0)
            case .folder: #expect(mkdir(path, 0o777) == 0)
            case .pipe: #expect(mkfifo(path, 0o666) == 0)
            }
        }
    }

    static let traps = Trap.allCases.filter { $0 != .owner || Trap.canChangeOwner }

    /// Which file stands there, and what it holds.
    private func identity(_ path: String) throws -> [UInt64] {
        var status = stat()
        try #require(lstat(path, &status) == 0)
        return [UInt64(status.st_ino), UInt64(status.st_uid), UInt64(status.st_nlink), UInt64(status.st_size)]
    }

    private func bytes(_ path: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) }

    @Test(
        "what somebody else has put at the part's name is not adopted, and stays",
        arguments: traps, [Configure.Durability.process, .power])
    func newTask(_ trap: Trap, _ durability: Configure.Durability) async throws {
        for count in [1_000, 400_000] {
            let content = Array(Self.content.prefix(count))
            let bench = try await Bench(content: content) { $0.durability = durability }
            let victim = bench.folder.file("victim").path
            try bench.folder.write(Self.precious, to: "victim")
            try FileManager.default.createDirectory(atPath: bench.out, withIntermediateDirectories: true)
            let part = bench.out + "/" + FileNameRules.partName(for: "a.bin", id: bench.task("a.bin").id)
            try trap.set(at: part, victim: victim)
            let before = try identity(part)
            try await bench.completed("a.bin")
            #expect(try bench.out("a.bin") == content)
            #expect(try identity(part) == before)
            #expect(try bytes(victim) == Self.precious)
            if trap == .owner { #expect(try bytes(part) == Self.precious) }
            #expect(bench.names.sorted() == [part.lastPathPart, "a.bin"])
            var status = stat()
            #expect(lstat(bench.out + "/a.bin", &status) == 0)
            #expect(status.st_uid == geteuid() && status.st_nlink == 1)
        }
    }

    /// A task of which 300,000 bytes are there and no more come until `gate` is open.
    private struct Held {
        let server: FaultServer
        let gate = Gate()
        var live: LiveBench
        let id: TaskID
        var part: String { get throws { "\(live.out)/\(try #require(live.names.first))" } }

        init() async throws {
            server = try FaultServer()
            server.route("/a") { [gate] request in
                FaultResponse.ranged(ForeignPartTests.content, for: request, etag: "\"1\"").stalling(
                    at: request.index == 0 ? 300_000 : 0, until: gate)
            }
            live = try LiveBench()
            id = try await live.add(server.url("/a"))
            try await live.received(300_000, of: id)
        }

        /// Returns once the file is complete, with the server's bytes.
        func complete() async throws {
            let info = try #require(await live.downloader.messager.finished(id))
            #expect(info.state == .complete, "\(String(describing: info.error))")
            #expect(try live.out("a") == ForeignPartTests.content)
            await live.downloader.close()
        }
    }

    /// The task is suspended, `meddle` has its part, and then the task is resumed, in the next engine if this one `closes`.
    private func resumed(closes: Bool, meddle: (Held) throws -> Void) async throws -> Held {
        var held = try await Held()
        try await held.live.downloader.control.suspend(.id(held.id))
        held.gate.open()
        if closes { await held.live.downloader.close() }
        try meddle(held)
        if closes { held.live = try LiveBench(in: held.live.folder) }
        try await held.live.downloader.control.resume(.id(held.id))
        try await held.complete()
        return held
    }

    /// Puts the trap in the part's place.
    private func swap(_ held: Held, for trap: Trap) throws -> (place: String, identity: [UInt64]) {
        let part = try held.part
        try held.live.folder.write(Self.precious, to: "victim")
        #expect(unlink(part) == 0)
        try trap.set(at: part, victim: held.live.folder.file("victim").path)
        return (part, try identity(part))
    }

    private func expectUntouched(_ trap: (place: String, identity: [UInt64]), _ held: Held) throws {
        #expect(try identity(trap.place) == trap.identity)
        #expect(try bytes(held.live.folder.file("victim").path) == Self.precious)
    }

    @Test("the part is swapped between two attempts: not adopted, fetched anew", arguments: traps, [true, false])
    func swapped(_ trap: Trap, _ closes: Bool) async throws {
        var place: (place: String, identity: [UInt64]) = ("", [])
        let held = try await resumed(closes: closes) { place = try swap($0, for: trap) }
        #expect(held.server.requests.map { $0["Range"] } == [nil, nil])
        try expectUntouched(place, held)
    }

    @Test("a part that somebody has linked elsewhere is not written to any more")
    func linkedElsewhere() async throws {
        let held = try await resumed(closes: true) { held in
            let part = try held.part
            #expect(link(part, held.live.folder.file("backup").path) == 0)
        }
        #expect(try bytes(held.live.folder.file("backup").path) == Array(Self.content.prefix(300_000)))
    }

    @Test("cancel and trash leave what is somebody else's", arguments: traps, [Verb.cancel, .trash])
    func dropped(_ trap: Trap, _ verb: Verb) async throws {
        let held = try await Held()
        let control = held.live.downloader.control
        try await control.suspend(.id(held.id))
        let place = try swap(held, for: trap)
        _ = try await verb == .cancel ? control.cancel(.id(held.id)) : control.trash(.id(held.id))
        await held.live.downloader.close()
        try expectUntouched(place, held)
    }

    @Test("the part is replaced while the bytes arrive: what replaces it is not published")
    func replaced() async throws {
        let held = try await Held()
        let part = try held.part
        #expect(unlink(part) == 0)
        try Data(repeating: 7, count: Self.content.count).write(to: URL(fileURLWithPath: part))
        held.gate.open()
        try await held.complete()
    }

    @Test("what has replaced the part is not built upon, though it has the very time of our last write")
    func sameTime() async throws {
        let held = try await Held()
        let part = try held.part
        var status = stat()
        #expect(stat(part, &status) == 0)
        #expect(unlink(part) == 0)
        try Data(repeating: 7, count: Self.content.count).write(to: URL(fileURLWithPath: part))
        let nanoseconds = Int(status.modificationTime)
        let time = timespec(tv_sec: nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000)
        #expect(utimensat(AT_FDCWD, part, [time, time], 0) == 0)
        try await held.live.downloader.control.suspend(.id(held.id))
        held.gate.open()
        try await held.live.downloader.control.resume(.id(held.id))
        try await held.complete()
    }

    @Test(
        "a part that was linked to its final name by a killed process has its rename finished",
        arguments: [true, false])
    func halfRenamed(_ saysComplete: Bool) async throws {
        let folder = try TemporaryFolder()
        let bench = try await Bench(in: folder, content: Self.content)
        let id = try await bench.completed("a.bin")
        let part = FileNameRules.partName(for: "a.bin", id: id)
        var record = try bench.stored(id)
        await bench.downloader.close()
        record.edit { $0.partName = part }
        if !saysComplete { record.state = .action }
        let path = bench.workPath.infoPath(id)
        #expect(unlink(path) == 0)
        _ = try InfoFile.create(at: path, record: record)
        #expect(link(bench.out + "/a.bin", bench.out + "/" + part) == 0)
        let again = try await Bench(in: folder, content: Self.content)
        #expect(await again.finished(id)?.state == .complete)
        #expect(again.transport.requests.isEmpty)
        #expect(again.names == ["a.bin"])
        #expect(try again.out("a.bin") == Self.content)
    }
}
