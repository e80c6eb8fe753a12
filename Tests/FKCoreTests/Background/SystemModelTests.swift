import TestSupport
import Testing

/// Courses of a real application, which is killed, against a model of the system, whose requests outlive it.
@Suite("Background downloads of an application that is killed", .serialized, .timeLimit(.minutes(20)))
struct SystemModelTests {
    static let piece = 64 << 10
    static let old = Bytes.pattern(count: 300_000)
    static let new = Bytes.pattern(count: 280_000, seed: 3)

    /// One application, one file, one server.
    final class Course: Sendable {
        let folder: TemporaryFolder
        let server: FaultServer
        let content = Locked((bytes: SystemModelTests.old, tag: "\"1\""))
        let seed: UInt64
        private let shim: String

        init(seed: UInt64 = 0, shim: String) throws {
            folder = try TemporaryFolder()
            server = try FaultServer()
            self.seed = seed
            self.shim = shim
            server.route("/file") { [content] request in
                let (bytes, tag) = content.withLock(\.self)
                return .ranged(bytes, for: request, etag: tag)
            }
            try FileManager.default.createDirectory(atPath: folder.path + "/out", withIntermediateDirectories: true)
            try folder.write([UInt8](repeating: 0, count: 4_096), to: "state")
        }

        var id: TaskID { get throws { try builder.id } }
        private var builder: Builder {
            get throws {
                var builder = try Builder(server.url("/file"))
                builder.folder = folder.file("out")
                return builder
            }
        }
        var system: SystemModel { SystemModel(folder: folder.file("system")) }
        var record: TaskRecord? {
            guard let id = try? id else { return nil }
            return (try? InfoFile.read(WorkPath(folder.file("work")).infoPath(id)))?.record
        }
        var log: [String] {
            let text = (try? folder.read("log")) ?? []
            return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
        }
        var isPending: Bool {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path + "/system/model")) ?? []
            return names.contains { $0.hasPrefix("fk1") }
        }

        /// Starts the application, which is killed at that change of a file; 0 for never.
        ///
        /// - Returns: its status, and the number of changes.
        func launch(_ verb: String, killAt: UInt64 = 0, _ action: String = "before") throws -> (
            status: Int32, calls: UInt64
        ) {
            try folder.write([UInt8](repeating: 0, count: 4_096), to: "state")
            var environment = ["PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": folder.path]
            for name in ["LD_LIBRARY_PATH", "LLVM_PROFILE_FILE"] {
                environment[name] = ProcessInfo.processInfo.environment[name]
            }
            environment["LD_PRELOAD"] = shim
            environment["TORTURE_STATE"] = folder.file("state").path
            environment["TORTURE_CALLS"] = "disk"
            environment["TORTURE_AT"] = String(killAt)
            environment["TORTURE_ACTION"] = action
            let status = try ChildProcess(
                [Self.program, folder.path, server.url("/file"), verb, String(seed)], environment: environment,
                output: .file(folder.file("output").path)
            ).end()
            let state = try folder.read("state")
            return (status, state.withUnsafeBytes { $0.load(as: UInt64.self) })
        }

        static let program: String = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
            .deletingLastPathComponent().appendingPathComponent("BackgroundApp").path

        /// Waits until the system has nothing in flight.
        func idle() async throws { _ = try await eventually { [system] in system.isIdle ? true : nil } }

        /// Wakes the application for events, or starts it, until the file is complete.
        ///
        /// - Returns: what is wrong; nil if nothing is.
        func finish() async throws -> String? {
            for _ in 0..<20 {
                // After a kill behind the record, the next launch gives the file its name.
                if record?.state == .complete, names == ["file"] {
                    // One that was delivered twice is removed by the launch after the last one.
                    if !left.isEmpty { _ = try launch("run") }
                    return check()
                }
                if record?.state == .error { return "failed: \(record?.error?.description ?? "")" }
                try await idle()
                let lines = log.count { $0.hasPrefix("called") }
                let verb = isPending ? "events" : "run"
                let (status, _) = try launch(verb)
                guard status == 0 else { return "\(verb) ended with \(status): \(output)" }
                if verb == "events", log.count(where: { $0.hasPrefix("called") }) != lines + 1 {
                    return "the handler was called \(log.count - lines) times"
                }
            }
            return
                "it did not end: \(record.map { "\($0.state) \($0.received) \($0.history)" } ?? "no record"), \(names)"
        }

        private var left: [String] {
            (try? FileManager.default.contentsOfDirectory(atPath: folder.path + "/work/delivered")) ?? []
        }

        private var names: [String] {
            ((try? FileManager.default.contentsOfDirectory(atPath: folder.path + "/out")) ?? []).sorted()
        }

        var output: String { String(decoding: (try? folder.read("output")) ?? [], as: UTF8.self) }

        /// The file, the log and what is left.
        func check() -> String? {
            guard names == ["file"], let bytes = try? folder.read("out/file") else { return "files: \(names)" }
            guard bytes == SystemModelTests.old || bytes == SystemModelTests.new else { return "bytes of no version" }
            for line in log where line.hasPrefix("called") {
                let words = line.split(separator: " ")
                // What the application knows when it may be suspended is on the disk.
                guard let stored = Int(words[1]), let known = Int(words[2]), stored >= known else {
                    return "the record was not written: \(line)"
                }
            }
            return left.isEmpty ? nil : "left: \(left)"
        }

        /// How often each range was requested.
        var counts: [String: Int] {
            server.requests("/file").reduce(into: [:]) { $0[$1["Range"] ?? "all", default: 0] += 1 }
        }
    }

    /// The library that kills the application.
    private static func shim(in folder: TemporaryFolder) throws -> String {
        let library = folder.file("shim.so").path
        try Program.run(
            "cc",
            ["-O1", "-shared", "-fPIC", "-o", library, Repository.url("Tests/Torture/shim.c").path, "-ldl", "-pthread"])
        return library
    }

    #if os(Linux)
        @Test(
            "killed at each of its changes of a file, it fetches every range once and completes",
            .enabled(if: !Sanitizer.isActive))
        func sweep() async throws {
            let tools = try TemporaryFolder()
            let shim = try Self.shim(in: tools)
            let whole = try Course(shim: shim)
            let (status, calls) = try whole.launch("run")
            #expect(status == 0, "\(whole.output)")
            #expect(whole.check() == nil)
            let ranges = whole.counts
            #expect(ranges.count == 5 && ranges.values.allSatisfy { $0 == 1 })
            let environment = ProcessInfo.processInfo.environment
            let step = environment["FK_FUZZ_COUNT"] == nil ? max(1, calls / 10) : 1
            for number in stride(from: 1, through: calls, by: Int(step)) {
                for action in environment["FK_FUZZ_COUNT"] == nil
                    ? [number % 2 == 0 ? "before" : "after"] : ["before", "half", "after"]
                {
                    let course = try Course(shim: shim)
                    _ = try await offPool { try course.launch("run", killAt: number, action) }
                    let fault = try await course.finish()
                    #expect(fault == nil, "killed \(action) call \(number) of \(calls)")
                    #expect(course.counts == ranges, "killed \(action) call \(number) of \(calls)")
                }
            }
        }

        @Test(
            "random courses: kills, faults of the system, a changed file, a force-quit, a suspension",
            .enabled(if: !Sanitizer.isActive))
        func courses() async throws {
            let tools = try TemporaryFolder()
            let shim = try Self.shim(in: tools)
            try await FuzzRun("background courses", usual: 8).waiting { random in
                var random = random
                let course = try Course(seed: random.oneIn(3) ? 0 : random.next() >> 1, shim: shim)
                for _ in 0..<(1 + random.below(3)) {
                    if random.oneIn(4) { course.content.withLock { $0 = (Self.new, "\"2\"") } }
                    let verb = course.isPending && random.oneIn(2) ? "events" : "run"
                    _ = try course.launch(
                        verb, killAt: 1 + random.next() % 150, random.pick(["before", "half", "after"]))
                    if random.oneIn(4) { course.system.forceQuit() }
                }
                if course.record != nil, course.record?.state != .complete, random.oneIn(3) {
                    if let fault = try await Self.suspended(course) { return fault }
                }
                return try await course.finish()
            }
        }

        /// Suspends the task: events resume nothing.
        private static func suspended(_ course: Course) async throws -> String? {
            guard try course.launch("suspend").status == 0 else { return course.output }
            try await course.idle()
            let asked = course.server.requests.count
            if course.isPending, try course.launch("events").status != 0 { return "events: \(course.output)" }
            if course.record?.state != .suspend { return "an event resumed the task" }
            if course.server.requests.count != asked { return "a suspended task has requested bytes" }
            return nil
        }
    #endif

    @Test("the model follows redirects, delivers a 404, and tells of requests that it has ended")
    func model() async throws {
        let folder = try TemporaryFolder()
        let server = try FaultServer()
        let gate = Gate()
        server.route("/moved") { _ in .redirect(to: "/file") }
        server.route("/file") { .ranged(Self.old, for: $0, etag: "\"1\"") }
        server.route("/slow") { _ in .ok(Self.old).stalling(at: 10, until: gate) }
        let system = SystemModel(folder: folder.file("system"))
        let session = system.session()
        let transport = try #require(session.makeTransport(session, Networks()))
        let events = Observed<[String]>([])
        transport.adopt { event in
            switch event {
            case .adopted(let keys): events.update { $0.append("adopted \(keys.count)") }
            case .finished(_, let head, let file):
                let length = (try? Data(contentsOf: URL(fileURLWithPath: file)).count) ?? -1
                events.update { $0.append("\(head.status) \(head.redirects) \(length)") }
            case .failed(_, let error): events.update { $0.append("\(error.code)") }
            case .allDelivered(let identifier): events.update { $0.append(identifier) }
            }
        }
        func start(_ path: String, _ end: Int64?) throws {
            var request = try TransportConformance.Context.request(server.url(path))
            let key = PieceKey(task: TaskID(url: path), generation: 1, end: end)
            request.urlRequest.setValue(key.rangeHeader, forHTTPHeaderField: "Range")
            transport.start(request, piece: key)
        }
        try start("/moved", 100)
        _ = await events.wait { $0.contains("model") }
        #expect(events.value == ["adopted 0", "206 1 100", "model"])
        try start("/nothing", nil)
        _ = await events.wait { $0.count >= 5 }
        #expect(events.value[3...] == ["404 0 0", "model"])
        try start("/slow", nil)
        await server.wait { $0.contains { $0.path == "/slow" } }
        #expect(!system.isIdle)
        system.forceQuit()
        _ = await events.wait { $0.count >= 7 }
        #expect(events.value[5...] == ["connectionLost", "model"] || events.value[5] == "connection-lost")
        #expect(system.isIdle)
        gate.open()
        transport.leave()
    }
}
