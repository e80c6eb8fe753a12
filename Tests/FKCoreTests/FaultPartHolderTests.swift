import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore

/// Row 94: somebody else has made what bears the part file's name.
@Suite("Faults: a part file of somebody else", .timeLimit(.minutes(1)))
struct FaultPartHolderTests {
    private static let content = Bytes.pattern(count: 400_000)
    private static let precious: [UInt8] = [9, 9, 9]

    enum Trap: String, Sendable, CaseIterable {
        case owner, hardLink, symlink, folder, pipe

        static let canChangeOwner = geteuid() == 0

        /// Puts it under the name; `victim` is what a link leads to.
        func set(at path: String, victim: String) throws {
            switch self {
            case .owner:
                try Data(FaultPartHolderTests.precious).write(to: URL(fileURLWithPath: path))
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

    private func held(_ path: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) }

    @Test(
        "fault 94: what somebody else has put at the part's name is not adopted, and stays",
        arguments: traps, [Durability.process, .power])
    func newTask(_ trap: Trap, _ durability: Durability) async throws {
        for count in [1_000, 400_000] {
            let content = Array(Self.content.prefix(count))
            let bench = try await Bench(content: content) { $0.durability = durability }
            let victim = bench.folder.file("victim").path
            try bench.folder.write(Self.precious, to: "victim")
            try FileManager.default.createDirectory(atPath: bench.out, withIntermediateDirectories: true)
            let part = bench.out + "/" + FileNameRules.partName(for: "a.bin", id: bench.task("a.bin").id)
            try trap.set(at: part, victim: victim)
            let before = try identity(part)
            let id = try await bench.add("a.bin")
            #expect(await bench.finished(id)?.state == .complete)
            #expect(try bench.out("a.bin") == content)
            #expect(try identity(part) == before)
            #expect(try held(victim) == Self.precious)
            if trap == .owner { #expect(try held(part) == Self.precious) }
            #expect(bench.names.sorted() == [part.lastPathPart, "a.bin"])
            var status = stat()
            #expect(lstat(bench.out + "/a.bin", &status) == 0)
            #expect(status.st_uid == geteuid() && status.st_nlink == 1)
        }
    }

    /// Half of the file is there and the task is suspended; `meddle` has the part, and then the task goes on or is dropped.
    private func interrupted(
        closes: Bool, meddle: (_ live: LiveBench, _ part: String) throws -> Void, then verb: Verb
    ) async throws -> (live: LiveBench, info: DownloadInfo?, requests: [FaultRequest]) {
        let server = try FaultServer()
        let gate = Gate()
        server.route("/a") { request in
            FaultResponse.ranged(Self.content, for: request, etag: "\"1\"").stalling(
                at: request.index == 0 ? 300_000 : 0, until: gate)
        }
        var live = try LiveBench()
        let id = try await live.add(server.url("/a"))
        let isHeld = try await eventually { () -> Bool? in
            await live.downloader.messager.info(.id(id))?.count.received == 300_000 ? true : nil
        }
        #expect(isHeld == true)
        try await live.downloader.control.suspend(.id(id))
        gate.open()
        if closes { await live.downloader.close() }
        try meddle(live, "\(live.out)/\(try #require(live.names.first))")
        if closes { live = try LiveBench(in: live.folder) }
        var info: DownloadInfo?
        switch verb {
        case .resume:
            try await live.downloader.control.resume(.id(id))
            info = await live.downloader.messager.finished(id)
        case .cancel: try await live.downloader.control.cancel(.id(id))
        default: try await live.downloader.control.trash(.id(id))
        }
        await live.downloader.close()
        return (live, info, server.requests)
    }

    @Test(
        "fault 94: the part is swapped between two attempts: not adopted, fetched anew",
        arguments: traps, [true, false])
    func swapped(_ trap: Trap, _ closes: Bool) async throws {
        var place = ""
        var before: [UInt64] = []
        let (live, info, requests) = try await interrupted(
            closes: closes,
            meddle: { live, part in
                try live.folder.write(Self.precious, to: "victim")
                #expect(unlink(part) == 0)
                try trap.set(at: part, victim: live.folder.file("victim").path)
                before = try identity(part)
                place = part
            }, then: .resume)
        #expect(info?.state == .complete, "\(String(describing: info?.error))")
        #expect(try live.out("a") == Self.content)
        #expect(requests.map { $0["Range"] } == [nil, nil])
        #expect(try identity(place) == before)
        #expect(try held(live.folder.file("victim").path) == Self.precious)
    }

    @Test("fault 94: a part that somebody has linked elsewhere is not written to any more")
    func linkedElsewhere() async throws {
        let (live, info, _) = try await interrupted(
            closes: true,
            meddle: { live, part in
                #expect(link(part, live.folder.file("backup").path) == 0)
            }, then: .resume)
        #expect(info?.state == .complete)
        #expect(try live.out("a") == Self.content)
        #expect(try held(live.folder.file("backup").path) == Array(Self.content.prefix(300_000)))
    }

    @Test("fault 94: cancel and trash leave what is somebody else's", arguments: traps, [Verb.cancel, .trash])
    func dropped(_ trap: Trap, _ verb: Verb) async throws {
        var place = ""
        var before: [UInt64] = []
        let (live, _, _) = try await interrupted(
            closes: false,
            meddle: { live, part in
                try live.folder.write(Self.precious, to: "victim")
                #expect(unlink(part) == 0)
                try trap.set(at: part, victim: live.folder.file("victim").path)
                before = try identity(part)
                place = part
            }, then: verb)
        #expect(try identity(place) == before)
        #expect(try held(live.folder.file("victim").path) == Self.precious)
    }

    @Test("fault 94: the part is replaced while the bytes arrive: what replaces it is not published")
    func replaced() async throws {
        let server = try FaultServer()
        let gate = Gate()
        server.route("/a") { request in
            FaultResponse.ranged(Self.content, for: request, etag: "\"1\"").stalling(
                at: request.index == 0 ? 300_000 : 0, until: gate)
        }
        let live = try LiveBench()
        let id = try await live.add(server.url("/a"))
        let isHeld = try await eventually { () -> Bool? in
            await live.downloader.messager.info(.id(id))?.count.received == 300_000 ? true : nil
        }
        #expect(isHeld == true)
        let part = "\(live.out)/\(try #require(live.names.first))"
        #expect(unlink(part) == 0)
        try Data(repeating: 7, count: Self.content.count).write(to: URL(fileURLWithPath: part))
        gate.open()
        let info = try #require(await live.downloader.messager.finished(id))
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a") == Self.content)
        await live.downloader.close()
    }

    @Test("fault 94: what has replaced the part is not built upon, though it has the very time of our last write")
    func sameTime() async throws {
        let server = try FaultServer()
        let gate = Gate()
        server.route("/a") { request in
            let answer = FaultResponse.ranged(Self.content, for: request, etag: "\"1\"")
            return request.index == 0 ? answer.stalling(at: 300_000, until: gate) : answer
        }
        let live = try LiveBench()
        let id = try await live.add(server.url("/a"))
        let isHeld = try await eventually { () -> Bool? in
            await live.downloader.messager.info(.id(id))?.count.received == 300_000 ? true : nil
        }
        #expect(isHeld == true)
        let part = "\(live.out)/\(try #require(live.names.first))"
        var status = stat()
        #expect(stat(part, &status) == 0)
        #expect(unlink(part) == 0)
        try Data(repeating: 7, count: Self.content.count).write(to: URL(fileURLWithPath: part))
        let nanoseconds = Int(status.modificationTime)
        let time = timespec(tv_sec: nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000)
        #expect(utimensat(AT_FDCWD, part, [time, time], 0) == 0)
        try await live.downloader.control.suspend(.id(id))
        try await live.downloader.control.resume(.id(id))
        #expect(await live.downloader.messager.finished(id)?.state == .complete)
        #expect(try live.out("a") == Self.content)
        await live.downloader.close()
    }

    @Test(
        "a part that was linked to its final name by a killed process has its rename finished",
        arguments: [true, false])
    func halfRenamed(_ saysComplete: Bool) async throws {
        let folder = try TemporaryFolder()
        let bench = try await Bench(in: folder, content: Self.content)
        let id = try await bench.add("a.bin")
        #expect(await bench.finished(id)?.state == .complete)
        let part = FileNameRules.partName(for: "a.bin", id: id)
        var record = try bench.stored(id)
        await bench.downloader.close()
        record.partName = part
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
        await again.downloader.close()
    }
}
