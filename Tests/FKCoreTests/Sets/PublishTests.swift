import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine

/// Sets on a disk of their own, and what their folder shows.
private struct SetBench {
    let bench: Bench
    let barrel: Barrel
    var set: URL { bench.folder.file("sets/model") }

    /// - Parameter names: the first members.
    init(_ names: [String] = ["a", "b", "c"]) async throws {
        bench = try await Bench { request, _ in .file(Self.content(request.urlRequest.url), to: request) }
        for name in names { try await bench.completed(name, barrel: "model") }
        barrel = try await bench.downloader.barrel("model")
    }

    static func content(_ url: URL?) -> [UInt8] { Array("the bytes of \(url?.lastPathComponent ?? "")".utf8) }

    func publisher(
        durability: Configure.Durability = .process, canExchange: Bool = true, step: @escaping () throws -> Void = {}
    ) -> SetPublisher {
        SetPublisher("model", in: bench.workPath, durability: durability, canExchange: canExchange, step: step)
    }

    func publish(canExchange: Bool = true) throws -> PublishedFiles {
        try publisher(canExchange: canExchange).publish(to: set.path)
    }

    /// Everything beside the folder and in it, except the mark.
    var names: [String] {
        let all = (try? FileManager.default.subpathsOfDirectory(atPath: set.path.folderPart)) ?? []
        return all.filter { !$0.hasSuffix(SetMark.fileName) }.sorted()
    }

    /// The files of the set with their contents; nil without a set.
    var files: [String: String]? {
        guard SetMark(in: set.path) != nil else { return nil }
        var files: [String: String] = [:]
        for (name, status) in (try? SetFile.entries(below: set.path)) ?? []
        where name != SetMark.fileName && status.st_mode & S_IFMT == S_IFREG {
            files[name] = (try? String(contentsOf: set.appendingPathComponent(name), encoding: .utf8)) ?? "?"
        }
        return files
    }

    static func expected(_ names: String...) -> [String: String] {
        Dictionary(uniqueKeysWithValues: names.map { ($0, "the bytes of \($0)") })
    }

    func state() -> BarrelState { PublishedSets.state(of: "model", in: bench.workPath) }
}

@Suite("Sets that appear whole")
struct PublishTests {
    @Test("the records of members that the engine has in memory are not read again") func recordsInMemory() async throws
    {
        let sets = try await SetBench()
        let ids = await sets.barrel.memberInfos.map(\.id)
        for id in ids { try FileManager.default.removeItem(atPath: sets.bench.workPath.infoPath(id)) }
        let result = try await sets.barrel.publish(to: sets.set)
        #expect(result.total == 3 && sets.files == SetBench.expected("a", "b", "c"))
        #expect(await sets.barrel.state == .ready(version: result.version))
        // Another process, which has no engine, finds nothing.
        #expect(try SetMembers("model", in: sets.bench.workPath).missing == 3)
    }

    @Test("the files appear with the mark and nothing beside them; the same again changes nothing")
    func first() async throws {
        let sets = try await SetBench()
        #expect(await sets.barrel.isReady, "before it is published, the members count")
        let result = try await sets.barrel.publish(to: sets.set)
        #expect(result.isChanged && result.total == 3 && result.isOldRemoved)
        #expect(result.cloned + result.linked == 3 && result.copied == 0)
        #expect(sets.files == SetBench.expected("a", "b", "c"))
        #expect(sets.names == ["model", "model/a", "model/b", "model/c"])
        #expect(sets.bench.names == ["a", "b", "c"], "the members' files stay")
        #expect(await sets.barrel.state == .ready(version: result.version))
        let again = try await sets.barrel.publish(to: sets.set)
        #expect(!again.isChanged && again.version == result.version)
    }

    @Test("an update is exchanged, keeps the equal files, and removes the old set", arguments: [true, false])
    func update(canExchange: Bool) async throws {
        let sets = try await SetBench()
        let old = try sets.publish(canExchange: canExchange)
        try await sets.bench.completed("d", barrel: "model")
        #expect(sets.state() == .stale)
        try await sets.barrel.remove("http://h.example/a")
        let open = try FileHandle(forReadingFrom: sets.set.appendingPathComponent("a"))
        let new = try sets.publish(canExchange: canExchange)
        #expect(new.version != old.version && new.isChanged && new.reused == 2 && new.isOldRemoved)
        #expect(sets.files == SetBench.expected("b", "c", "d"))
        #expect(sets.names == ["model", "model/b", "model/c", "model/d"])
        #expect(try open.readToEnd() == Data("the bytes of a".utf8), "open files of the old set stay readable")
        #expect(sets.state() == .ready(version: new.version))
    }

    @Test(
        "killed at every step, the folder is absent, old or new, and the next run leaves nothing",
        arguments: [true, false])
    func kills(canExchange: Bool) async throws {
        let first = SetBench.expected("a", "b", "c")
        let second = SetBench.expected("a", "c", "d").merging(["own/note": "mine"]) { a, _ in a }
        let sets = try await SetBench()
        /// Publishes with an end at each step, first the one, then the next, until there is no further step.
        func sweep(_ prepare: () throws -> Void, old: [String: String]?, new: [String: String]) throws -> Int {
            var count = 0
            while true {
                try prepare()
                var steps = 0
                let publisher = sets.publisher(canExchange: canExchange) {
                    if steps == count { throw SetPublisher.Killed() }
                    steps += 1
                }
                do {
                    _ = try publisher.publish(to: sets.set.path)
                    #expect(sets.files == new)
                    return count
                } catch is SetPublisher.Killed {}
                let seen = sets.files
                #expect(seen == old || seen == new || seen == nil && (!canExchange || old == nil), "step \(count)")
                #expect(PublishedSets.sweep(sets.bench.workPath).isEmpty)
                let kept = sets.files
                #expect(kept == old || kept == new, "step \(count)")
                #expect(!sets.names.contains { $0.contains(".fkset") }, "step \(count): \(sets.names)")
                count += 1
            }
        }
        let begin = try sweep(
            { try? FileManager.default.removeItem(at: sets.set) }, old: nil, new: first)
        #expect(begin > 6)
        try await sets.bench.completed("d", barrel: "model")
        let members = try await sets.bench.messager.urls(inBarrel: "model")
        #expect(members.count == 4)
        try await sets.barrel.remove("http://h.example/b")
        // The old set with a file of another program, as it was before each kill.
        let saved = sets.bench.folder.file("saved")
        try sets.bench.folder.write(Array("mine".utf8), to: "sets/model/own/note")
        try FileManager.default.moveItem(at: sets.set, to: saved)
        let update = try sweep(
            {
                try? FileManager.default.removeItem(at: sets.set)
                try FileManager.default.createDirectory(at: sets.set, withIntermediateDirectories: true)
                for (name, status) in try SetFile.entries(below: saved.path) {
                    let target = sets.set.appendingPathComponent(name)
                    if status.st_mode & S_IFMT == S_IFDIR {
                        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
                    } else {
                        try FileManager.default.linkItem(at: saved.appendingPathComponent(name), to: target)
                    }
                }
            }, old: first.merging(["own/note": "mine"]) { a, _ in a }, new: second)
        #expect(update > 12)
    }

    @Test("a folder, file or symlink of others is refused and stays; an empty folder is used")
    func others() async throws {
        let sets = try await SetBench()
        try sets.bench.folder.write([1], to: "sets/model/own")
        #expect(throws: DownloadError.self) { try sets.publish() }
        #expect(sets.names == ["model", "model/own"])
        try FileManager.default.removeItem(at: sets.set)
        try sets.bench.folder.write([2], to: "sets/model")
        #expect(throws: DownloadError.self) { try sets.publish() }
        try FileManager.default.removeItem(at: sets.set)
        try FileManager.default.createSymbolicLink(atPath: sets.set.path, withDestinationPath: sets.bench.out)
        #expect(throws: DownloadError.self) { try sets.publish() }
        try FileManager.default.removeItem(at: sets.set)
        try FileManager.default.createDirectory(at: sets.set, withIntermediateDirectories: true)
        #expect(try sets.publish().isChanged)
        #expect(sets.names == ["model", "model/a", "model/b", "model/c"])
    }

    @Test("files of others in a set stay; one with the name of a new file, and a changed file of the set, are refused")
    func kept() async throws {
        let sets = try await SetBench()
        _ = try sets.publish()
        try sets.bench.folder.write(Array("mine".utf8), to: "sets/model/notes/own")
        try await sets.bench.completed("d", barrel: "model")
        #expect(try sets.publish().kept == 1)
        var expected = SetBench.expected("a", "b", "c", "d")
        expected["notes/own"] = "mine"
        #expect(sets.files == expected)
        try sets.bench.folder.write(Array("mine".utf8), to: "sets/model/e")
        try await sets.bench.completed("e", barrel: "model")
        let clash = #expect(throws: DownloadError.self) { try sets.publish() }
        #expect(clash?.code == .fileExists && clash?.message.contains("model/e") == true)
        try FileManager.default.removeItem(at: sets.set.appendingPathComponent("e"))
        // A new file: a hard link would change the member, too.
        try FileManager.default.removeItem(at: sets.set.appendingPathComponent("a"))
        try sets.bench.folder.write(Array("changed".utf8), to: "sets/model/a")
        let edited = #expect(throws: DownloadError.self) { try sets.publish() }
        #expect(edited?.code == .fileExists && edited?.message.contains("model/a") == true)
        #expect(try sets.bench.folder.read("sets/model/a") == Array("changed".utf8))
        #expect(!sets.names.contains { $0.contains(".fkset") })
    }

    @Test("a folder of others keeps its mode, owner and time through an update")
    func folderOfOthers() async throws {
        let sets = try await SetBench()
        _ = try sets.publish()
        try sets.bench.folder.write(Array("mine".utf8), to: "sets/model/private/key")
        let folder = sets.set.appendingPathComponent("private").path
        if geteuid() == 0 { try #require(chown(folder, 1, 1) == 0) }
        try #require(chmod(folder, 0o500) == 0)
        defer { chmod(folder, 0o700) }
        SetFile.setTime(of: folder, 1_000_000_000_000_000_000)
        var (before, after) = (stat(), stat())
        try #require(lstat(folder, &before) == 0)
        try await sets.bench.completed("d", barrel: "model")
        #expect(try sets.publish().isOldRemoved)
        try #require(lstat(folder, &after) == 0)
        #expect(after.st_mode == before.st_mode && after.st_uid == before.st_uid && after.st_gid == before.st_gid)
        #expect(after.modificationTime == before.modificationTime)
        #expect(sets.files?["private/key"] == "mine")
    }

    @Test("a file of others that is replaced while the set is made: the newer one is shown", arguments: [true, false])
    func replacedMeanwhile(canExchange: Bool) async throws {
        let sets = try await SetBench()
        _ = try sets.publish()
        let note = try sets.bench.folder.write(Array("older".utf8), to: "sets/model/note")
        try await sets.bench.completed("d", barrel: "model")
        var isReplaced = false
        let publisher = sets.publisher(canExchange: canExchange) {
            let isLinked = sets.names.contains { $0.contains(".fkset/") && $0.hasSuffix("/note") }
            guard isLinked, !isReplaced else { return }
            isReplaced = true
            try Data("newer".utf8).write(to: note, options: .atomic)
        }
        let result = try publisher.publish(to: sets.set.path)
        #expect(isReplaced && result.isOldRemoved && result.hidden == [])
        #expect(sets.files?["note"] == "newer")
    }

    @Test(
        "withdrawn with a kill at every step, a set is whole or gone, files of others stay, and nothing is left",
        arguments: [false, true])
    func withdrawKills(hasOthers: Bool) async throws {
        let sets = try await SetBench()
        let whole = SetBench.expected("a", "b", "c").merging(hasOthers ? ["own/note": "mine"] : [:]) { a, _ in a }
        let rest: [String: String]? = hasOthers ? ["own/note": "mine"] : nil
        var count = 0
        var isDone = false
        while !isDone {
            _ = try sets.publish()
            if hasOthers { try sets.bench.folder.write(Array("mine".utf8), to: "sets/model/own/note") }
            var steps = 0
            let publisher = sets.publisher {
                if steps == count { throw SetPublisher.Killed() }
                steps += 1
            }
            do { isDone = try publisher.withdraw() } catch is SetPublisher.Killed {}
            let seen = sets.files
            #expect(seen == whole || seen == rest, "step \(count)")
            #expect(PublishedSets.sweep(sets.bench.workPath).isEmpty)
            let kept = sets.files
            #expect(kept == rest || kept == whole && !isDone, "step \(count)")
            #expect(!sets.names.contains { $0.contains(".fkset") }, "step \(count): \(sets.names)")
            count += 1
        }
        #expect(count > 5)
    }

    @Test("trimming deletes what a killed process has left beside a set") func leftover() async throws {
        let sets = try await SetBench()
        let publisher = sets.publisher {
            if sets.names.contains(where: { $0.hasSuffix("/c") }) { throw SetPublisher.Killed() }
        }
        #expect(throws: SetPublisher.Killed.self) { try publisher.publish(to: sets.set.path) }
        try #require(sets.names.contains { $0.contains(".fkset") })
        _ = try await sets.bench.downloader.trim(to: .max)
        #expect(sets.names == [])
    }

    @Test("an old set that is being read stays until the last reader has ended")
    func lease() async throws {
        let sets = try await SetBench()
        let old = try sets.publish()
        try await sets.barrel.withFiles { files in
            #expect(files.map(\.lastPathComponent) == ["a", "b", "c"])
            try await sets.bench.completed("d", barrel: "model")
            let new = try sets.publish()
            #expect(!new.isOldRemoved && new.version != old.version)
            PublishedSets.sweep(sets.bench.workPath)
            #expect(sets.names.contains { $0.hasSuffix("/a") && $0.contains(".fkset") })
        }
        #expect(PublishedSets.sweep(sets.bench.workPath).isEmpty)
        #expect(sets.names == ["model", "model/a", "model/b", "model/c", "model/d"])
    }

    @Test("an incomplete, changed or empty barrel is not published")
    func incomplete() async throws {
        let sets = try await SetBench()
        try sets.bench.folder.write(Array("other bytes ..".utf8), to: "out/a")
        let changed = #expect(throws: DownloadError.self) { try sets.publish() }
        #expect(changed?.code == .checksumMismatch)
        try FileManager.default.removeItem(atPath: sets.bench.out + "/a")
        let missing = #expect(throws: DownloadError.self) { try sets.publish() }
        #expect(missing?.code == .incompleteBody && missing?.message.contains("1 of 3 members") == true)
        #expect(sets.names == [])
        _ = try await sets.bench.downloader.barrel("empty")
        let empty = #expect(throws: DownloadError.self) {
            try SetPublisher("empty", in: sets.bench.workPath, durability: .process).publish(to: sets.set.path)
        }
        #expect(empty?.code == .notFound)
        // With the API, the missing file is downloaded again.
        #expect(try await sets.barrel.publish(to: sets.set).total == 3)
        #expect(sets.files == SetBench.expected("a", "b", "c"))
    }

    @Test("the state is never a false ready: a missing, shorter, or later file, and a restart without a sync")
    func states() async throws {
        let sets = try await SetBench([])
        #expect(sets.state() == .absent)
        try await sets.bench.completed("a", barrel: "model")
        try await sets.bench.completed("b", barrel: "model")
        let result = try sets.publisher(durability: .power).publish(to: sets.set.path)
        #expect(sets.state() == .ready(version: result.version))
        #expect(SetMark(in: sets.set.path)?.boot == nil)
        let file = sets.set.appendingPathComponent("a")
        let time = try #require(
            try FileManager.default.attributesOfItem(atPath: file.path)[.modificationDate] as? Date)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: file.path)
        #expect(sets.state() == .stale)
        try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: file.path)
        try FileManager.default.removeItem(at: file)
        #expect(sets.state() == .partial)
        try sets.bench.folder.write([1], to: "sets/model/a")
        #expect(sets.state() == .partial)
        try FileManager.default.removeItem(at: sets.set)
        #expect(sets.state() == .absent)
        #expect(try sets.publish().isChanged)
        #expect(SetMark(in: sets.set.path)?.boot == BootID.current)
    }

    @Test("complete(): the files, or the failures; a cancelled Swift task suspends the members")
    func complete() async throws {
        let sets = try await SetBench()
        try await sets.barrel.suspend()
        guard case .files(let files) = try await sets.barrel.complete() else { return unexpected("no files") }
        #expect(files.map(\.lastPathComponent) == ["a", "b", "c"])
        let gate = TestGate()
        let held = try await Bench { request, _ in
            request.urlRequest.url?.lastPathComponent == "bad"
                ? .status(404) : .file(Bytes.pattern(count: 1_000), to: request, gate: gate, pauseAt: 10)
        }
        for name in ["good", "bad"] { try await held.add(name, barrel: "mixed") }
        let barrel = try await held.downloader.barrel("mixed")
        let good = try #require(await barrel.members.first).id
        let waiting = Task { try await barrel.complete() }
        await gate.reached()
        // A call that was cancelled before it waits for the members suspends none.
        while held.downloader.waiters.count(good) == 0 { await Task.yield() }
        waiting.cancel()
        await #expect { try await waiting.value } throws: { ($0 as? DownloadError)?.code == .cancelled }
        #expect(await held.messager.state(.url("http://h.example/good")) == .suspend)
        gate.open()
        guard case .failures(let failures) = try await barrel.complete() else { return unexpected("no failures") }
        #expect(failures.map(\.task.url) == ["http://h.example/bad"] && failures.first?.error.status == 404)
        #expect(await held.messager.state(.url("http://h.example/good")) == .complete)
    }

    /// As it is after a restart of the system, with the bytes of a file gone or other bytes in their place.
    private func tear(_ name: String, _ bytes: [UInt8], of sets: SetBench) throws {
        var mark = try #require(SetMark(in: sets.set.path))
        mark.boot = "another boot"
        try Data(StoreJSON.encode(mark)).write(to: sets.set.appendingPathComponent(SetMark.fileName))
        let file = try #require(mark.files.first { $0.name == name })
        let path = sets.set.appendingPathComponent(name)
        // A file of its own: a hard link is the member's.
        try FileManager.default.removeItem(at: path)
        try Data(bytes).write(to: path)
        let time = timespec(tv_sec: Int(file.time / 1_000_000_000), tv_nsec: Int(file.time % 1_000_000_000))
        let times = [time, time]
        try #require(utimensat(AT_FDCWD, path.path, times, 0) == 0)
    }

    @Test("after a restart, unsynced files of a set are not reused, and a torn one is no other program's")
    func torn() async throws {
        let sets = try await SetBench()
        _ = try sets.publish()
        try tear("a", Array("00000000000000".utf8), of: sets)
        #expect(sets.state() == .stale)
        let result = try sets.publish()
        #expect(result.isChanged && result.reused == 0 && result.isOldRemoved)
        #expect(sets.files == SetBench.expected("a", "b", "c"))
        try tear("b", [], of: sets)
        #expect(sets.state() == .partial)
        #expect(try sets.publish().isOldRemoved)
        #expect(sets.files == SetBench.expected("a", "b", "c"))
        #expect(sets.names == ["model", "model/a", "model/b", "model/c"])
    }

    @Test("a damaged record of the folder is named with what to do")
    func damagedRecord() async throws {
        let sets = try await SetBench()
        _ = try sets.publish()
        try Data(count: 40).write(to: URL(fileURLWithPath: sets.bench.workPath.setPath("model")))
        let error = #expect(throws: DownloadError.self) { try sets.publish() }
        #expect(error?.code == .corruptInfo && error?.message.contains("sets/model.set") == true)
    }

    @Test("restored from a backup: ready if it kept times, else stale, and then compared", arguments: [true, false])
    func backup(keepsTimes: Bool) async throws {
        let sets = try await SetBench()
        let version = try sets.publisher(durability: .power).publish(to: sets.set.path).version
        let folder = sets.bench.folder
        await sets.bench.engine.close()
        func copy(_ from: String, _ to: String) throws {
            let copy = Process()
            copy.executableURL = URL(fileURLWithPath: "/bin/cp")
            copy.arguments = [keepsTimes ? "-Rp" : "-R", folder.file(from).path, folder.file(to).path]
            try copy.run()
            copy.waitUntilExit()
            try #require(copy.terminationStatus == 0)
        }
        for name in ["work", "out", "sets"] {
            try copy(name, "backup-\(name)")
            try FileManager.default.removeItem(at: folder.file(name))
            try copy("backup-\(name)", name)
        }
        if !keepsTimes {
            // The copy may be of the same moment.
            for name in ["out/a", "sets/model/a"] {
                try FileManager.default.setAttributes(
                    [.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)],
                    ofItemAtPath: folder.file(name).path)
            }
        }
        let bench = try await Bench(in: folder) { request, _ in
            .file(SetBench.content(request.urlRequest.url), to: request)
        }
        let barrel = try await bench.downloader.barrel("model")
        #expect(await barrel.state == (keepsTimes ? .ready(version: version) : .stale))
        let result = try await barrel.publish(to: sets.set)
        #expect(result.version == version && result.isChanged == !keepsTimes)
        #expect(await barrel.isReady)
        #expect(sets.files == SetBench.expected("a", "b", "c"))
        #expect(bench.transport.requests.isEmpty, "nothing is downloaded again")
    }

    @Test("the next start looks for leftovers once, and is no use of the set")
    func nextStart() async throws {
        let sets = try await SetBench()
        _ = try sets.publish()
        let path = sets.bench.workPath.setPath("model")
        let pending = { try SetRecord("model", in: sets.bench.workPath)?.pending }
        #expect(try pending() == [sets.set.path])
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: path)
        PublishedSets.sweep(sets.bench.workPath)
        #expect(try pending() == [])
        var status = stat()
        try #require(stat(path, &status) == 0)
        #expect(status.modificationTime == 1_000_000_000)
        #expect(await sets.barrel.isReady)
    }
}
