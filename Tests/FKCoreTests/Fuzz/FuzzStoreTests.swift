import TestSupport
import Testing

@testable import FKEngine

/// Barrel files and messages that were damaged or forged.
@Suite("Fuzzed barrels and messages")
struct FuzzStoreTests {
    private static let barrels = [
        BarrelRecord(name: "books", created: Date(timeIntervalSince1970: 1_700_000_000.5)),
        BarrelRecord(
            name: "ü/b".replacingOccurrences(of: "/", with: "-"), created: Date(timeIntervalSince1970: 1_700_000_001),
            options: BarrelOptions(directory: "/data", options: TaskRecord.full().task.options),
            members: (0..<20).map { BarrelMember(id: TaskID(url: "http://h/\($0)"), url: "http://h/\($0)") }),
    ]

    @Test("a barrel file is the barrel that was saved, or damaged and moved away", arguments: FuzzRun.shards)
    func barrelFiles(shard: Int) async throws {
        let scratch = try ScratchWorkPath()
        let files = try Self.barrels.map { barrel in
            try BarrelFile.write(barrel, in: scratch.path)
            return try bytes(scratch.path.barrelPath(barrel.name))
        }
        try await FuzzRun("barrel files", usual: 6_000)(shard: shard, of: FuzzRun.shards.count) { random in
            let which = random.below(files.count)
            let barrel = Self.barrels[which]
            var file = files[which]
            let isForged = random.oneIn(2)
            if isForged {
                Self.forge(&file, &random)
            } else {
                for _ in 0...random.below(3) { Mutation.apply(&file, with: files[1 - which], &random) }
            }
            let path = scratch.path.barrelPath(barrel.name)
            try write(file, path)
            let loaded = Result { try BarrelFile.read(barrel.name, in: scratch.path) }
            defer {
                for name in (try? FileIO.names(in: scratch.path.quarantineFolder)) ?? [] {
                    unlink(scratch.path.quarantineFolder + "/" + name)
                }
            }
            let all = try BarrelFile.readAll(in: scratch.path)
            let isKept = FileManager.default.fileExists(atPath: path)
            switch loaded {
            case .success(let found):
                guard isForged || found == barrel else { return "a barrel nobody saved: \(found)" }
                guard all.barrels.contains(where: { $0.name == barrel.name }), isKept else {
                    return "moved away, although it can be read"
                }
                return Set(found.members.map(\.id.hex.count)) == [64] || found.members.isEmpty
                    ? nil : "members without an id"
            case .failure(let error as DownloadError):
                guard [.corruptInfo, .laterVersion].contains(error.code) else {
                    return "an error of another kind: \(error)"
                }
                guard isKept == (error.code == .laterVersion) else {
                    return isKept ? "not moved away" : "moved away: \(error)"
                }
                return all.problems.isEmpty ? "not reported" : nil
            case .failure(let error): return "an error of another kind: \(error)"
            }
        }
    }

    /// Changes what it says and makes the checksum right.
    private static func forge(_ file: inout [UInt8], _ random: inout SeededRandom) {
        guard let end = file.firstIndex(of: 0x0a) else { return }
        var body = Array(file[(end + 1)...])
        for _ in 0...random.below(2) { JSONMutation.apply(&body, &random) }
        let crc = body.withUnsafeBytes { CRC32C.checksum($0) }
        let count =
            random.oneIn(3)
            ? Int64(bitPattern: random.pick(Mutation.evilNumbers)) : Int64(body.count { $0 == 0x0a } - 1)
        file = Array("{\"format\":1,\"count\":\(count),\"crc\":\(crc)}\n".utf8) + body
    }

    @Test("a message is a request that does no harm, or is set aside", arguments: FuzzRun.shards)
    func messages(shard: Int) async throws {
        let scratch = try ScratchWorkPath()
        let originals = try FuzzRequests.all.map { try StoreJSON.encode($0) }
        try await FuzzRun("messages", usual: 6_000)(shard: shard, of: FuzzRun.shards.count) { random in
            var message = random.pick(originals)
            for _ in 0...random.below(2) {
                if random.oneIn(3) {
                    Mutation.apply(&message, with: random.pick(originals), &random)
                } else {
                    JSONMutation.apply(&message, &random)
                }
            }
            let name = "\(scratch.path.mailboxFolder)/00000000000000000001-1-a.msg"
            try write(message, name)
            let taken = try Mailbox(scratch.path).drain()
            guard taken.count == 1 else { return "\(taken.count) requests" }
            if case .success = taken[0].1 {
                try Mailbox(scratch.path).finish(taken[0].0)
                return nil
            }
            let aside = try FileIO.names(in: scratch.path.quarantineFolder)
            for name in aside { unlink(scratch.path.quarantineFolder + "/" + name) }
            return aside.count == 1 && access(name, F_OK) != 0 ? nil : "\(aside.count) set aside"
        }
    }

    @Test(
        "whatever a message asks, the engine answers, and nothing appears outside of its folders")
    func performed() async throws {
        let folder = try TemporaryFolder()
        try folder.write([1, 2, 3], to: "outside/victim")
        let bench = try await Bench(in: folder) { request, _ in .file([1, 2, 3], to: request) }
        let originals = try FuzzRequests.all.map { try StoreJSON.encode($0) }
        var random = SeededRandom(seed: 5)
        var asked = 0
        for _ in 0..<1_500 {
            var message = random.pick(originals)
            for _ in 0...random.below(2) { JSONMutation.apply(&message, &random) }
            guard var request = try? StoreJSON.decode(EngineMessage.self, from: message) else { continue }
            // Folders are anybody's to choose: here they stay in the test's own.
            switch request.request {
            case .add(var tasks, let barrel, let run):
                for index in tasks.indices {
                    tasks[index].directory = tasks[index].directory.map { $0.hasPrefix("/") ? bench.out : $0 }
                }
                request = EngineMessage(.add(tasks: tasks, barrel: barrel, run: run))
            case .createBarrel(let name, var options):
                options.directory = options.directory.map { $0.hasPrefix("/") ? bench.out : $0 }
                request = EngineMessage(.createBarrel(name: name, options: options))
            default: break
            }
            _ = await bench.engine.answer(request)
            asked += 1
        }
        #expect(asked > 200)
        _ = await bench.engine.answer(.verb(.suspend, .all))
        await bench.downloader.close()
        #expect(try folder.read("outside/victim") == [1, 2, 3])
        #expect(try FileIO.names(in: folder.path + "/outside") == ["victim"])
        #expect(try FileIO.names(in: folder.path).sorted().filter { $0 != "out" } == ["outside", "work"])
        for name in bench.names where !name.hasPrefix(".") { #expect(FileNameRules.isOneComponent(name)) }
    }
}

/// One request of each kind.
enum FuzzRequests {
    static let all: [EngineMessage] = {
        var full = TaskRecord.full().task
        full.directory = "/out"
        full.fileName = "name.bin"
        full.options.proxy = nil
        var plain = TaskDescription(url: "http://h.example/a.bin")
        plain.directory = "/out"
        return [
            .init(.add(tasks: [plain], barrel: nil, run: true)),
            .init(.add(tasks: [full, plain], barrel: "b", run: true)),
            .init(.verb(.suspend, .all)), .init(.verb(.cancel, .url("http://h.example/a.bin"))),
            .init(.verb(.trash, .id(plain.id))), .init(.toggle(.barrel("b"))),
            .init(.setAttributes(.all, ["k": "v", "x": nil])), .init(.markUsed(.id(plain.id))),
            .init(.createBarrel(name: "c", options: BarrelOptions(directory: "/out", options: full.options))),
            .init(.removeFromBarrel(name: "b", urls: ["http://h.example/a.bin"])), .init(.deleteBarrel(name: "c")),
            .init(.run(.all)), .init(.setLimits(maxAction: 5, rateLimit: 1_000_000)),
        ]
    }()
}
