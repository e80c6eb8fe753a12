import TestSupport
import Testing

@testable import FKModel

/// The work grows with the number of tasks and not with its square. Counted is work, not time.
@Suite("Many tasks in one barrel, many files of one name")
struct LongBarrelTests {
    static let content = Bytes.pattern(count: 500)
    static let count = 1_000

    /// An engine that runs nothing, with `count` tasks in a barrel.
    private func filled(_ barrels: [String] = ["big"]) async throws -> Bench {
        let bench = try await Bench(isActive: false, content: Self.content)
        let tasks = (0..<Self.count).map { bench.task("f\($0)") }
        for barrel in barrels { _ = try await bench.engine.add(tasks, barrel: barrel, run: true) }
        return bench
    }

    @Test("adding a list to a barrel, and adding it again, writes the barrel file at most once each")
    func add() async throws {
        let bench = try await filled()
        #expect(await bench.engine.barrelSaves.count <= 2)
        #expect(try BarrelFile.read("big", in: bench.workPath).members.count == Self.count)
        let before = await bench.engine.barrelSaves.count
        _ = await bench.engine.answer(.createBarrel(name: "big", options: BarrelOptions(directory: bench.out)))
        let tasks = (0..<Self.count).map { bench.task("f\($0)") }
        _ = try await bench.engine.add(tasks, barrel: "big", run: false)
        await bench.engine.saveBarrels()
        #expect(await bench.engine.barrelSaves.count - before <= 2)
    }

    @Test("trashing, removing or suspending all members writes each barrel file once", arguments: 0..<5)
    func all(_ way: Int) async throws {
        let names = ["big", "second", "third"]
        let bench = try await filled(names)
        let before = await bench.engine.barrelSaves.count
        var left = 0
        switch way {
        case 0: _ = try await bench.control.trash(.barrel("big"))
        case 1: _ = try await bench.control.trash(.all)
        case 2:
            for name in names {
                let urls = (0..<Self.count).map { "http://h.example/f\($0)" }
                _ = await bench.engine.answer(.removeFromBarrel(name: name, urls: urls))
            }
        case 3:
            _ = try await bench.control.suspendAll()
            left = Self.count
        default:
            _ = try await bench.control.cancel(.barrel("big"))
            _ = try await bench.control.retry(.barrel("big"))
            left = Self.count
        }
        #expect(await bench.engine.barrelSaves.count - before == (left == 0 ? 3 : 0))
        for name in names {
            #expect(try BarrelFile.read(name, in: bench.workPath).members.count == left)
            #expect(try await bench.messager.urls(inBarrel: name).count == left)
        }
    }

    /// Few of the members: each request is several turns of the engine, and other tests run between them.
    @Test(
        "hundreds of single requests for one barrel write a few times its size",
        arguments: ["add", "trash", "remove"])
    func oneByOne(_ verb: String) async throws {
        let requests = 250
        let bench = try await filled(verb == "add" ? [] : ["big"])
        if verb == "add" {
            let tasks = (0..<requests).map { bench.task("f\($0)") }
            _ = try await bench.engine.add(tasks, barrel: nil, run: true)
        }
        let before = await bench.engine.barrelSaves.bytes
        for index in 0..<requests {
            let url = "http://h.example/f\(index)"
            switch verb {
            case "add": #expect(try await bench.messager.add(.url(url), toBarrel: "big") == 1)
            case "trash": try await bench.control.trash(.url(url))
            default: try await bench.messager.remove(url, fromBarrel: "big")
            }
        }
        let members = verb == "add" ? 0..<requests : requests..<Self.count
        let size = max(requests, Self.count - members.count) * 100
        #expect(await bench.engine.barrelSaves.bytes - before < 12 * size)
        let expected = members.map { "http://h.example/f\($0)" }
        #expect(try await bench.messager.urls(inBarrel: "big") == expected)
        await bench.downloader.close()
        #expect(try BarrelFile.read("big", in: bench.workPath).members.map(\.url) == expected)
        #expect(try FileIO.names(in: bench.workPath.barrelsFolder) == ["big.barrel"])
    }

    @Test("a kill before the barrel file is saved: the next engine reads the members from their records")
    func reconciled() async throws {
        let bench = try await filled()
        for index in 0..<5 {
            try await bench.add("new\(index)")
            try await bench.messager.add(.url("http://h.example/new\(index)"), toBarrel: "big")
        }
        try await bench.control.trash(.url("http://h.example/f0"))
        try await bench.messager.remove("http://h.example/f1", fromBarrel: "big")
        // Few changes of a large barrel wait for the tick.
        #expect(try BarrelFile.read("big", in: bench.workPath).members.count == Self.count)
        let crashed = try bench.snapshot()
        let next = try await Bench(in: crashed, content: Self.content)
        let urls = try await next.messager.urls(inBarrel: "big")
        let names = (2..<Self.count).map { "f\($0)" } + (0..<5).map { "new\($0)" }
        #expect(urls == names.map { "http://h.example/\($0)" })
        #expect(try FileIO.names(in: next.workPath.barrelsFolder) == ["big.barrel"])
        await bench.engine.activate()
        await bench.advance(1)
        #expect(try BarrelFile.read("big", in: bench.workPath).members.map(\.url) == urls)
    }

    @Test("a kill while a barrel is trashed: the next engine knows no lost members")
    func lostMembers() async throws {
        let bench = try await filled()
        await bench.downloader.close()
        try BarrelFile.mark("big", in: bench.workPath)
        let half = Self.count / 2
        for index in 0..<half { unlink(bench.workPath.infoPath(bench.task("f\(index)").id)) }
        // One whose info file went to the quarantine stays a member.
        let damaged = bench.workPath.infoPath(bench.task("f\(half)").id)
        _ = Quarantine.move(damaged, in: bench.workPath, because: DownloadError(.corruptInfo, "x"))
        let next = try await Bench(in: bench.folder, content: Self.content)
        #expect(try await next.messager.urls(inBarrel: "big").count == half)
        #expect(try await next.messager.barrelInfo("big").total == half)
    }

    @Test("a barrel that is deleted while a list is added to it is made again with the rest")
    func deletedMeanwhile() async throws {
        let bench = try await Bench(isActive: false, content: Self.content)
        let tasks = (0..<1_000).map { bench.task("f\($0)") }
        async let added = bench.engine.add(tasks, barrel: "b", run: true)
        try await bench.turn { engine in (try? engine.snapshot { try $0.barrelURLs("b").count }) ?? 0 >= 64 }
        _ = await bench.engine.answer(.deleteBarrel(name: "b"))
        #expect(try await added.allSatisfy { $0.error == nil })
        let members = Set(try BarrelFile.read("b", in: bench.workPath).members.map(\.id))
        for task in tasks {
            let record = try await bench.record(task.id)
            #expect(record.barrels == (members.contains(task.id) ? ["b"] : []))
        }
    }

    // MARK: Mirrors

    /// The bytes that the records of a task take whose mirrors all fail.
    ///
    /// - Parameter isCut: true for mirrors that deliver a byte, false for those that have no such file.
    private func recordBytes(mirrors count: Int, isCut: Bool) async throws -> Int {
        let content = Bytes.pattern(count: 100_000)
        let bench = try await Bench { request, _ in
            isCut ? .file(content, etag: nil, to: request, cut: 1) : .status(404)
        }
        let id = try await bench.add("f") {
            $0.mirrors = (0..<count).map { "http://mirror.example/a/long/path/to/the/file/\($0)" }
            $0.options.maxAttempts = 1
        }
        #expect(await bench.finished(id)?.attempts == count + 1)
        #expect(try bench.stored(id).history.count <= 8)
        return await bench.engine.recordBytes
    }

    @Test(
        "a failed attempt writes what it has changed, and not the list of mirrors",
        arguments: [(false, 2), (true, 6)])
    func deadMirrors(isCut: Bool, writes: Int) async throws {
        let few = try await recordBytes(mirrors: 150, isCut: isCut)
        let many = try await recordBytes(mirrors: 600, isCut: isCut)
        #expect(many < 5 * few)
        // Each record has a history of eight lines and a response.
        #expect(many < 600 * writes * 3_000 + 10 * 600 * 60)
    }

    @Test("an attempt looks at a part of a long plan: the mirrors that follow its address, and the offered ones")
    func longPlan() {
        let mirrors = (1...1_000).map { "m\($0)" }
        let plan = SourcePlan(own: "own", mirrors: mirrors, offered: ["o"])
        let count = SourcePlan.maxBeside
        #expect(plan.beside(0) == mirrors.prefix(count) + ["o"])
        #expect(plan.beside(999) == ["m1000", "o", "own"] + mirrors.prefix(count - 3) + ["o"])
        let short = SourcePlan(own: "own", mirrors: Array(mirrors.prefix(count)), offered: ["o"])
        for index in [0, 5, count + 1] { #expect(short.beside(index) == ["own"] + mirrors.prefix(count) + ["o"]) }
    }

    // MARK: Names

    @Test(
        "each of many files that want one name writes its record as often as a file alone",
        arguments: ["URL", "Content-Disposition", "asked for"])
    func sameName(_ source: String) async throws {
        let count = 150
        let bench = try await Bench(settings: { $0.maxAction = 8 }) { request, _ in
            let isNamed = source == "Content-Disposition"
            return .file(
                Self.content, to: request,
                fields: isNamed ? [.init("Content-Disposition", "attachment; filename=item")] : [])
        }
        let alone = try await bench.completed("alone")
        var ids: [TaskID] = []
        for index in 0..<count {
            ids.append(
                try await bench.add(source == "URL" ? "\(index)/item" : "\(index)") {
                    guard source == "asked for" else { return }
                    $0.url = "http://h.example/same/\(index)"
                    $0.fileName = "item"
                    $0.options.existing = .rename
                })
        }
        await bench.engine.waitUntilDrained()
        let names = Set(bench.names)
        if source != "Content-Disposition" { #expect(names.contains("alone")) }
        #expect(names.contains("item") && names.count == count + 1)
        for index in 1..<count - 1 { #expect(names.contains("item.\(index)")) }
        let usual = try InfoFile.read(bench.workPath.infoPath(alone)).handle.generation
        for id in ids {
            #expect(try InfoFile.read(bench.workPath.infoPath(id)).handle.generation <= usual + 1)
        }
    }

    @Test("the search for free numbers looks at each taken name about once, and gives freed ones again")
    func numbers() {
        var numbers = NameNumbers()
        var taken: Set<Int> = Set(0..<1_000)
        var looks = 0
        func next(_ owner: String = "me") -> Int {
            numbers.next("/d/item", owner: owner) { number in
                looks += 1
                return taken.contains(number) ? .taken : .free
            }
        }
        for expected in 1_000..<5_000 {
            #expect(next() == expected)
            taken.insert(expected)
        }
        #expect(looks < 4 * 5_000)
        // A name that is found free and not taken is found again.
        #expect(next() == 5_000 && next() == 5_000)
        // The end became free, then everything.
        taken = Set(0..<10)
        #expect(next() == 10)
        taken = []
        #expect(next() == 0)
        taken = [0]
        #expect(next() == 1)
        // Somebody was quicker.
        #expect(numbers.next("/d/item", owner: "me", least: 7) { _ in .free } == 7)
    }

    @Test("a file left behind by its task is found by that task, however many names have been given since")
    func leftovers() {
        var numbers = NameNumbers()
        let leftovers = ["a": 3, "b": 700]
        func next(_ owner: String, _ looks: inout Int) -> Int {
            numbers.next("/d/item", owner: owner) { number in
                looks += 1
                if let owner = leftovers.first(where: { $0.value == number })?.key { return .leftover(of: owner) }
                return number < 1_000 ? .taken : .free
            }
        }
        var looks = 0
        #expect(next("c", &looks) == 1_000)
        looks = 0
        #expect(next("b", &looks) == 700 && next("a", &looks) == 3)
        #expect(looks <= 4)
    }
}
