import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine

@Suite("A downloader's life")
struct DownloaderTests {
    static let content = Bytes.pattern(count: 1_000)

    @Test("a work path has one downloader at a time; close gives it free")
    func busy() async throws {
        let bench = try await Bench(content: Self.content)
        let configure = await bench.downloader.configure
        for _ in 0..<2 {
            #expect { try Downloader(configure, transport: ScriptedTransport { request, _ in .status(404) }) } throws: {
                ($0 as? DownloadError)?.code == .workPathBusy
            }
        }
        await bench.downloader.close()
        let second = try Downloader(
            configure, transport: ScriptedTransport { request, _ in .file(Self.content, to: request) })
        second.activateQueue()
        var builder = try Builder("http://h.example/a")
        builder.directory = bench.out
        let id = try await builder.prepare(in: second)
        #expect(await second.messager.finished(id)?.state == .complete)
        await second.close()
    }

    @Test(
        "fifty downloaders that are released without a close keep no file open and no transport",
        arguments: [DownloaderRole.owner, .either, .client])
    func released(_ role: DownloaderRole) async throws {
        let folder = try TemporaryFolder()
        let server = try FaultServer()
        server.routeOthers { _ in .ok(Self.content) }
        var transports: [WeakObject] = []
        for number in 0..<50 {
            var configure = Configure(workPath: folder.file("work\(number)"))
            configure.transport.proxy = ""
            let transport = try configure.transportKind.makeTransport()
            transports.append(WeakObject(transport as AnyObject))
            let downloader = try Downloader(configure, role: role, transport: transport)
            downloader.activateQueue()
            if role == .client {
                _ = await downloader.messager.all()
            } else {
                try await downloader.download(server.url("/a"))
            }
        }
        let isReleased = try await eventually {
            Self.open(in: folder).isEmpty && transports.allSatisfy { $0.object == nil } ? true : nil
        }
        #expect(isReleased == true, "\(Self.open(in: folder))")
    }

    /// The files of a folder that this process has open.
    private static func open(in folder: TemporaryFolder) -> [String] {
        let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return numbers.map { "/proc/self/fd/\($0)" }
            .compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: $0) }
            .filter { $0.hasPrefix(folder.path) }
    }

    @Test("nor does one with transfers under way keep its thread, the lock, a run, or a file open")
    func droppedWhileRunning() async throws {
        let folder = try TemporaryFolder()
        let gate = TestGate()
        weak var engine: Engine?
        weak var executor: EngineExecutor?
        var run = Weak(nil)
        do {
            let bench = try await Bench(in: folder) { request, _ in
                .file(Self.content, to: request, gate: gate, pauseAt: 1)
            }
            let id = try await bench.add("a")
            await gate.reached()
            engine = bench.engine
            executor = bench.engine.executor
            run = await bench.engine.run(of: id)
            #expect(run.isThere)
        }
        gate.open()
        while engine != nil || executor != nil || run.isThere { await Task.yield() }
        let isReleased = try await eventually { Self.open(in: folder).isEmpty ? true : nil }
        #expect(isReleased == true, "\(Self.open(in: folder))")
        #expect(!EngineLock.isHeld(WorkPath(folder.file("work"))))
    }

    @Test("an engine that has work when its downloader is released still does it")
    func outlived() async throws {
        let folder = try TemporaryFolder()
        weak var shared: SharedEngine?
        let engine: Engine
        do {
            let downloader = try Downloader(Configure(workPath: folder.file("work")), role: .either)
            shared = downloader.engine as? SharedEngine
            engine = try #require(shared?.engine)
        }
        while shared != nil { await Task.yield() }
        #expect(await engine.taskCounts.known == 0)
        await engine.close()
        #expect(!EngineLock.isHeld(WorkPath(folder.file("work"))))
    }

    @Test("closing twice at once: both return when it is done")
    func closedTwice() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in
            .file(Bytes.pattern(count: 400_000), to: request, gate: gate, pauseAt: 1_000)
        }
        let id = try await bench.add("a")
        await gate.reached()
        await withTaskGroup(of: Int64?.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    await bench.downloader.close()
                    return try? bench.stored(id).received
                }
            }
            for await received in group { #expect(received == 1_000) }
        }
        #expect(!EngineLock.isHeld(bench.workPath))
    }

    @Test("whoever waits is let go when the downloader closes")
    func waitersAtClose() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in .file(Self.content, to: request, gate: gate) }
        let id = try await bench.add("a")
        await gate.reached()
        async let finished = bench.finished(id)
        async let drained: Void = bench.downloader.waitUntilDrained()
        await bench.sync()
        await bench.downloader.close()
        #expect(await finished?.state == .idle)
        await drained
    }

    @Test("another work path is refused; the same one spelled otherwise is not")
    func update() async throws {
        let bench = try await Bench(content: Self.content)
        var configure = await bench.downloader.configure
        configure.maxAction = 7
        configure.workPath = URL(fileURLWithPath: bench.folder.path + "/./work/", isDirectory: true)
        try await bench.downloader.update(configure)
        #expect(await bench.downloader.configure.maxAction == 7)
        configure.workPath = bench.folder.file("elsewhere")
        configure.maxAction = 2
        await #expect { try await bench.downloader.update(configure) } throws: {
            ($0 as? DownloadError)?.code == .configurationLocked
        }
        #expect(await bench.downloader.configure.maxAction == 7)
    }

    @Test("onQueueDrained is called each time the queue has drained, suspended tasks or not")
    func drained() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, number in
            .file(Self.content, to: request, gate: number == 2 ? gate : nil)
        }
        let count = Observed(0)
        await bench.downloader.onQueueDrained { count.update { $0 += 1 } }
        try await bench.add("a")
        _ = await count.wait { $0 >= 1 }
        let id = try await bench.add("b")
        await gate.reached()
        try await bench.control.suspend(.id(id))
        _ = await count.wait { $0 >= 2 }
        try await bench.control.resume(.id(id))
        _ = await count.wait { $0 >= 3 }
        #expect(await bench.state(id) == .complete)
    }

    @Test(
        "`Downloader.shared` waits for its application: settings and middlewares come before the tasks of an earlier run"
    )
    func configuredShared() async {
        await #expect(processExitsWith: .success) {
            struct Mark: RequestMiddleware {
                let seen: Observed<Int>
                func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
                    seen.update { $0 += 1 }
                    return request
                }
            }
            let folder = try TemporaryFolder()
            let server = try FaultServer()
            server.route("/a") { _ in .ok([1]) }
            setDefaultPlaces(in: folder)
            // Without configureShared nothing starts by itself.
            let before = try Downloader.shared
            try await Builder(server.url("/a")).prepare(in: before)
            #expect(await !before.engine.startsTasks)
            let late = #expect(throws: DownloadError.self) { try Downloader.configureShared { _, _ in } }
            #expect(late?.code == .configurationLocked)
            await before.close()
            #expect(server.requests.isEmpty)
            let seen = Observed(0)
            let shared = try Downloader.configureShared { configure, middlewares in
                configure.maxAction = 7
                middlewares.register(request: Mark(seen: seen))
            }
            #expect(try shared === Downloader.shared)
            #expect(await shared.configure.maxAction == 7)
            _ = await seen.wait { $0 == 1 }
            #expect(throws: DownloadError.self) { try Downloader.configureShared { _, _ in } }
            await shared.close()
            // Made anew, it has them again.
            #expect(try await Downloader.shared.configure.maxAction == 7)
            await (try Downloader.shared).close()
        }
    }

    @Test("`Downloader.shared` is made once, of the default work path, and runs")
    func shared() async {
        // In a process of its own: the environment and the shared object are everybody's.
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder()
            let own = setDefaultPlaces(in: folder)
            let one = try Downloader.shared
            let two = try Downloader.shared
            #expect(one === two)
            #expect(await one.configure.workPath.path == own && Configure().workPath.path == own)
            // The command's is another one, also for an application that `fk` started.
            #expect(Configure.sharedWithFk.workPath.path == folder.path + "/of-fk")
            try await withDownloader(.sharedWithFk) {
                #expect(await $0.configure.workPath.path == folder.path + "/of-fk")
            }
            let id = try await DownloadTool.add("http://127.0.0.1:1/none", to: URL(fileURLWithPath: folder.path))
            let url = "http://127.0.0.1:1/none"
            let workPath = WorkPath(await one.configure.workPath.path)
            #expect(try StoreReader(workPath).record(id).task.directory == folder.path)
            let heard = Observed<[DownloadState]>([])
            try await DownloadTool.addInfo(url) { info in
                if info.id == id { heard.update { $0.append(info.state) } }
            }
            // The names of the originals.
            #expect(try await DownloadTool.download(url, to: URL(fileURLWithPath: folder.path)) == id)
            try await DownloadTool.info("http://127.0.0.1:1/other") { _ in }
            #expect(try await DownloadTool.suspend(url).map(\.after) == [.suspend])
            #expect(try await DownloadTool.resume(url).map(\.after) == [.idle])
            #expect(try await DownloadTool.suspendAll().map(\.applied) == [true])
            #expect(try await DownloadTool.resumeAll().map(\.applied) == [true])
            #expect(try await DownloadTool.cancelAndDelete("http://127.0.0.1:1/none").count == 1)
            #expect(await one.messager.all().isEmpty)
            // The callback receives each of these states.
            let states = await heard.wait { $0.last == .unknown }
            #expect(states.count { $0 == .suspend } >= 2)
            await one.close()
        }
    }
}

/// Moves the default work paths of this process and of `fk` into a folder.
///
/// - Returns: that of this process.
@discardableResult
private func setDefaultPlaces(in folder: TemporaryFolder) -> String {
    setenv("FK_WORK_PATH", folder.path + "/of-fk", 1)
    setenv("HOME", folder.path, 1)
    setenv("XDG_STATE_HOME", folder.path + "/state", 1)
    #if canImport(Darwin)
        let states = folder.path + "/Library/Application Support/"
        return states + (Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName) + "/fk"
    #else
        return folder.path + "/state/" + ProcessInfo.processInfo.processName + "/fk"
    #endif
}

extension Engine {
    /// To be looked at by nobody else: whether it is still there.
    fileprivate func run(of id: TaskID) -> Weak { Weak(book[id]?.taskRun) }
}

/// A run seen from outside of its engine. Sendable because only its being there is asked for.
private struct WeakObject {
    weak var object: AnyObject?
    init(_ object: AnyObject) { self.object = object }
}

fileprivate struct Weak: @unchecked Sendable {
    private weak var run: TaskRun?
    init(_ run: TaskRun?) { self.run = run }
    var isThere: Bool { run != nil }
}
