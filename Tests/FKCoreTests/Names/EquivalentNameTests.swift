import TestSupport
import Testing

@testable import FKEngine

/// Names of folders, files and barrels are bytes. `é` as one scalar (NFC) and as a letter with a mark (NFD) are equal
/// to a `String`, and two names to Linux.
@Suite("Names that are canonically equivalent")
struct EquivalentNameTests {
    static let composed = "caf\u{e9}"
    static let decomposed = "cafe\u{301}"

    /// Each URL delivers its own byte, so many times.
    private static func answer(_ request: TransportRequest, _: Int) -> Bench.Answer {
        let byte: UInt8 = request.urlRequest.url?.lastPathComponent == "b" ? 2 : 1
        return .file([UInt8](repeating: byte, count: Int(byte) * 10), to: request)
    }

    private static func bytes(_ path: String) -> [UInt8]? { FileManager.default.contents(atPath: path).map(Array.init) }

    @Test("a text is a key by its bytes")
    func keys() {
        #expect(Self.composed == Self.decomposed)
        #expect(!Self.composed.isExactly(Self.decomposed) && Self.composed.isExactly("caf\u{e9}"))
        #expect(Set([Self.composed, Self.decomposed, "caf\u{e9}"].map(ExactText.init)).count == 2)
        var map = ExactText.Map<Int>()
        map[Self.composed] = 1
        map[Self.decomposed] = 2
        #expect(map.count == 2 && map[Self.composed] == 1 && map[Self.decomposed] == 2)
        #expect(map.remove(Self.composed) == 1 && map[Self.composed] == nil && map[Self.decomposed] == 2)
        #expect(TaskSelector.barrel(Self.composed) != .barrel(Self.decomposed))
        #expect(WorkPath("/w/\(Self.composed)") != WorkPath("/w/\(Self.decomposed)"))
    }

    @Test("folders with canonically equivalent names each get their own file", arguments: [false, true])
    func folders(afterRestart: Bool) async throws {
        var bench = try await Bench(isActive: !afterRestart, answer: Self.answer)
        let folders = [Self.composed, Self.decomposed].map { "\(bench.out)/\($0)" }
        for (name, folder) in zip(["a", "b"], folders) {
            try await bench.add(name) {
                $0.directory = folder
                $0.fileName = "x"
                $0.options.existing = .overwrite
            }
        }
        if afterRestart {
            await bench.downloader.close()
            bench = try await Bench(in: bench.folder, answer: Self.answer)
        }
        await bench.engine.waitUntilDrained()
        #expect(Self.bytes("\(folders[0])/x") == [UInt8](repeating: 1, count: 10))
        #expect(Self.bytes("\(folders[1])/x") == [UInt8](repeating: 2, count: 20))
    }

    @Test("file names that are canonically equivalent are two files of one folder")
    func files() async throws {
        let bench = try await Bench(answer: Self.answer)
        for (path, name) in zip(["a", "b"], [Self.composed, Self.decomposed]) {
            try await bench.completed(path) { $0.fileName = name }
        }
        #expect(Self.bytes("\(bench.out)/\(Self.composed)")?.count == 10)
        #expect(Self.bytes("\(bench.out)/\(Self.decomposed)")?.count == 20)
    }

    @Test("barrels with canonically equivalent names are two, in memory and on disk")
    func barrels() async throws {
        let bench = try await Bench(answer: Self.answer)
        let both = [Self.composed, Self.decomposed]
        try await bench.add("a", barrel: both[0])
        try await bench.add("b", barrel: both[1])
        // One task is a member of both.
        try await bench.add("c", barrel: both[0])
        try await bench.add("c", barrel: both[1])
        await bench.engine.waitUntilDrained()
        for (name, path) in zip(both, ["a", "b"]) {
            #expect(
                try await bench.messager.urls(inBarrel: name) == ["http://h.example/\(path)", "http://h.example/c"])
            let info = try await bench.messager.barrelInfo(name)
            #expect(info.total == 2 && info.count.received == (path == "a" ? 20 : 30))
            #expect(try BarrelFile.read(name, in: bench.workPath).members.count == 2)
        }
        #expect(await bench.messager.info("http://h.example/c")?.barrels.count == 2)
        _ = await bench.engine.answer(.deleteBarrel(name: both[1]))
        #expect(try await bench.messager.barrels().count == 1)
        let left = try #require(await bench.messager.info("http://h.example/c")?.barrels.first)
        #expect(left.isExactly(both[0]))
        #expect(try await bench.messager.urls(inBarrel: both[0]).count == 2)
    }

    @Test("a query for a barrel does not find the members of an equivalent one")
    func query() async throws {
        let bench = try await Bench(answer: Self.answer)
        try await bench.add("a", barrel: Self.composed)
        try await bench.add("b", barrel: Self.decomposed)
        await bench.engine.waitUntilDrained()
        var query = RecordQuery()
        query.barrel = Self.decomposed
        let page = try await bench.messager.records(query)
        #expect(page.records.map(\.url) == ["http://h.example/b"])
    }

    @Test("a limit of a barrel leaves a command's limit at the members of an equivalent one")
    func limit() {
        var groups = CommandGroups()
        let group = groups.number(for: OwnLimits(name: "command", rateLimit: 100), now: 0)
        groups.liftRates(ofBarrel: Self.composed)
        #expect(groups.limiter(of: group, barrels: [Self.composed]) == nil)
        #expect(groups.limiter(of: group, barrels: [Self.decomposed]) != nil)
    }

    @Test("a file is moved to a folder with a canonically equivalent name, not taken to be there")
    func moved() async throws {
        let folder = try TemporaryFolder()
        let target = URL(fileURLWithPath: "\(folder.path)/\(Self.decomposed)", isDirectory: true)
        try folder.write([1, 2, 3], to: "\(Self.composed)/x")
        let context = TaskContext(id: TaskID(url: "http://h/x"), originalURL: URL(string: "http://h/x")!)
        let response = DownloadResponse(
            task: context, response: nil, fileURL: URL(fileURLWithPath: "\(folder.path)/\(Self.composed)/x"))
        _ = try await MoveToFolderMiddleware(folder: target).process(response)
        #expect(Self.bytes("\(folder.path)/\(Self.decomposed)/x") == [1, 2, 3])
    }
}
