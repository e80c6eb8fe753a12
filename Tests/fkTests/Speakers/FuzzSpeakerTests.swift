import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine
@testable import FKModel
@testable import FKTransport
@testable import fk

/// The owner's commands and lists, an application's calls, lists and Metalinks of servers, mirrors, redirects and
/// middlewares, in random order, at two work paths with one URL and one folder. A model (`SpeakerModel`) says what may be in force after
/// each word; the servers (`SpeakerServers`) see who gets which secret; the disk has the published files and those of the user.
///
/// `FK_FUZZ_TOLERATE` names the findings to ignore instead of `SpeakerFinding.known`.
@Suite("Fuzzed courses of speakers", .timeLimit(.minutes(60)))
struct FuzzSpeakerTests {
    private static let fuzz = FuzzRun("courses of speakers", usual: 400)

    @Test("the owner decides, secrets stay with their hosts, and nothing that was said is lost", arguments: 0..<4)
    func courses(shard: Int) async throws {
        try await Self.fuzz.waiting(shard: shard, of: 4) { random in
            try await SpeakerCourse(random, tolerating: SpeakerFinding.tolerated).run().complaint
        }
    }

    @Test("every finding that is known on this base is found", arguments: SpeakerFinding.known.sorted(by: <))
    func known(finding: SpeakerFinding) async throws {
        for seed in 0..<2_000 {
            let course = try await SpeakerCourse(
                SeededRandom(seed: UInt64(seed)), tolerating: Set(SpeakerFinding.allCases)
            ).run()
            if course.found.contains(finding) { return }
        }
        Issue.record("2,000 courses do not find it")
    }
}

extension SpeakerFinding: Comparable {
    static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
}

/// A work path and its engine.
private final class SpeakerSide {
    let number: Int
    let workPath: URL
    let clock = ManualClock()
    private let servers: SpeakerServers
    private let connections: Int
    private let isMoved: Bool
    private(set) var transport: FakeTransport
    private(set) var engine: Engine
    private(set) var downloader: Downloader
    /// True once its file was looked at.
    var isDone = false
    var digestOfList = false

    init(_ number: Int, _ folder: TemporaryFolder, _ servers: SpeakerServers, _ connections: Int, isMoved: Bool)
        async throws
    {
        self.number = number
        self.servers = servers
        self.connections = connections
        self.isMoved = isMoved
        workPath = folder.file("work\(number)")
        (transport, engine, downloader) = try Self.make(number, workPath, clock, servers, connections, isMoved)
        await engine.activate()
    }

    private static func make(
        _ number: Int, _ workPath: URL, _ clock: ManualClock, _ servers: SpeakerServers, _ connections: Int,
        _ isMoved: Bool
    ) throws -> (FakeTransport, Engine, Downloader) {
        let transport = FakeTransport(clock: clock) { request, _ in servers.answer(request, number) }
        var configure = Configure(workPath: workPath)
        configure.retry.jitter = 0
        configure.retry.maxAttempts = 4
        configure.connections = .fixed(connections)
        let chains = MiddlewareChains()
        if isMoved {
            chains.onRequest("mover") { request, _ in
                request.url = URL(string: "http://\(SpeakerServers.Host.moved)/f")
            }
        }
        let engine = try Engine(configure: configure, scope: .all, transport: transport, chains: chains, clock: clock)
        return (transport, engine, Downloader(engine: engine))
    }

    func reopen() async throws {
        await downloader.close()
        (transport, engine, downloader) = try Self.make(number, workPath, clock, servers, connections, isMoved)
        await engine.activate()
    }

    func info(_ id: TaskID) async -> DownloadInfo? { await downloader.messager.info(.id(id)) }
}

/// One course of words about one file.
final class SpeakerCourse {
    private var random: SeededRandom
    private let tolerated: Set<SpeakerFinding>
    private let folder: TemporaryFolder
    private let servers: SpeakerServers
    private let asking: FakeTransport
    private var sides: [SpeakerSide] = []
    private let context: CommandContext
    private let usersFiles: [String: [UInt8]]
    private(set) var found: Set<SpeakerFinding> = []
    private var lists = 0
    private var url: String { "http://\(SpeakerServers.Host.own)/f" }
    private var out: String { folder.path + "/out" }
    private var home: String { folder.path + "/home" }

    private static let nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC)

    init(_ seeded: SeededRandom, tolerating tolerated: Set<SpeakerFinding>) async throws {
        var random = seeded
        self.tolerated = tolerated
        let folder = try TemporaryFolder(in: TemporaryFolder.memory ?? FileManager.default.temporaryDirectory)
        self.folder = folder
        let servers = SpeakerServers(&random)
        self.servers = servers
        asking = FakeTransport { request, _ in servers.answer(request, 2) }
        usersFiles = ["home/.bashrc": [1, 2, 3], "out/mine.txt": [4, 5], "out/.bashrc": [6]]
        for (name, bytes) in usersFiles { try folder.write(bytes, to: name) }
        var context = CommandContext(
            environment: [
                "HOME": folder.path + "/home", "TMPDIR": folder.path, "FK_WORK_PATH": folder.path + "/commands",
            ], workingDirectory: folder.path)
        context.output = OutputStream(Self.nowhere)
        context.errors = OutputStream(Self.nowhere)
        self.context = context
        let connections = random.pick([1, 1, 2, 4])
        let isMoved = random.oneIn(6)
        servers.note("\(connections) connections, moved by a middleware: \(isMoved)")
        for number in 0..<2 {
            sides.append(try await SpeakerSide(number, folder, servers, connections, isMoved: isMoved))
        }
        self.random = random
    }

    private var id: TaskID {
        var task = TaskDescription(url: url)
        task.directory = out
        return task.id
    }

    /// - Returns: what is wrong with the outcome, and the steps to it; and all findings, those that are ignored included.
    func run() async -> (complaint: String?, found: Set<SpeakerFinding>) {
        var complaint: String?
        do {
            for _ in 0..<5 + random.below(10) { try await step() }
            try await end()
        } catch {
            complaint = "\(error); the folder has \(names("out"))\n" + servers.log.joined(separator: "\n")
        }
        servers.openGate()
        for side in sides { await side.downloader.close() }
        return (complaint, found)
    }

    private func complain(_ finding: SpeakerFinding, _ text: String) throws {
        found.insert(finding)
        servers.note("!! \(finding): \(text)")
        if !tolerated.contains(finding) { throw SpeakerComplaint(finding: finding, text: text) }
    }

    private func names(_ name: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder.path + "/" + name))?.sorted() ?? []
    }

    // MARK: Steps

    private func step() async throws {
        let side = sides[random.below(2)]
        let control = side.downloader.control
        let number = side.number
        switch random.below(20) {
        case 0, 1, 2:
            let (words, said) = command()
            try await speak(side, .command, said, "get \(words.joined(separator: " "))") {
                try await SpeakerWords.get(words + ["-d", out, url], context, over: asking)
            }
        case 3: try await ownersList(side)
        case 4, 5, 6: try await call(side)
        case 7: try await serversList(side)
        case 8: try await metalink(side)
        case 9, 10:
            servers.note("-- the server changes")
            servers.change()
        case 11:
            servers.note("-- the gate opens")
            servers.openGate()
        case 12, 13, 14:
            servers.note("-- time passes")
            for side in sides { side.clock.advance(seconds: 60) }
        case 15:
            servers.note("-- \(number) suspend")
            _ = try? await control.suspend(.id(id))
        case 16:
            servers.note("-- \(number) resume")
            _ = try? await control.resume(.id(id))
        case 17:
            servers.note("-- \(number) retry")
            _ = try? await control.retry(.id(id))
        case 18:
            servers.note("-- \(number) cancel")
            _ = try? await control.cancel(.id(id))
            servers.drop(number)
        default:
            servers.note("-- \(number) reopen")
            servers.openGate()
            try await side.reopen()
        }
        try await look()
    }

    /// Honest servers let every task end.
    private func end() async throws {
        servers.note("-- end")
        servers.settle()
        for _ in 0..<30 {
            for side in sides {
                _ = try? await side.downloader.control.resume(.id(id))
                side.clock.advance(seconds: 60)
            }
            servers.openGate()
            try await look()
            var states: [DownloadState?] = []
            for side in sides { states.append(await side.info(id)?.state) }
            if states.allSatisfy({ $0 != .idle && $0 != .action && $0 != .suspend }) { return }
        }
        try complain(.noEnd, "\(await sides[0].info(id)?.state as Any), \(await sides[1].info(id)?.state as Any)")
    }

    // MARK: Words

    /// Some options of a command, and what they say.
    private func command(for hosts: Set<String> = [SpeakerServers.Host.own]) -> ([String], InForce) {
        var words: [String] = []
        var said = InForce()
        switch random.below(5) {
        case 0:
            let secret = servers.secret(for: hosts)
            words += ["-H", "X-Api-Key: \(secret)"]
            said.orders["x-api-key"] = secret
        case 1:
            let secret = servers.secret(for: hosts)
            words += ["-H", "Authorization: Bearer \(secret)"]
            said.orders["authorization"] = "Bearer \(secret)"
        case 2:
            let login = "me:\(servers.secret(for: hosts))"
            let encoded = Data(login.utf8).base64EncodedString()
            servers.note(secret: encoded, for: hosts)
            words += ["--user", login]
            said.orders["authorization"] = "Basic \(encoded)"
        default: break
        }
        if random.oneIn(4) {
            words.append("--insecure")
            said.orders["insecure"] = "true"
        }
        if random.oneIn(4) {
            words += ["--max-size", "900000"]
            said.orders["max-size"] = "900000"
        }
        if random.oneIn(4) {
            let proxy = "http://p\(random.below(3)).example:8080"
            words += ["--proxy", proxy]
            said.orders["proxy"] = proxy
        }
        if random.oneIn(3) {
            said.digest = digest()
            words += ["--checksum", "sha-256=\(said.digest ?? "")"]
        }
        if random.oneIn(3) { words += ["--mirror", "http://\(SpeakerServers.Host.mirror)/f"] }
        return (words, said)
    }

    /// That of the file, rarely that of the other one.
    private func digest() -> String { Bytes.sha256(random.oneIn(6) ? servers.other : servers.right) }

    private func ownersList(_ side: SpeakerSide) async throws {
        let secret = servers.secret(for: [SpeakerServers.Host.own])
        var said = InForce()
        said.orders["x-api-key"] = secret
        var text = "\(url)\n  header=X-Api-Key: \(secret)\n"
        if random.oneIn(2) {
            said.orders["proxy"] = "http://p7.example:8080"
            text += "  all-proxy=http://p7.example:8080\n"
        }
        if random.oneIn(2) {
            said.digest = digest()
            text += "  checksum=sha-256=\(said.digest ?? "")\n"
        }
        try folder.write(Array(text.utf8), to: "list")
        try await speak(side, .command, said, "the owner's list \(text.debugDescription)") {
            try await SpeakerWords.get(["-d", out, "-i", folder.path + "/list"], context, over: asking)
        }
    }

    private func call(_ side: SpeakerSide) async throws {
        var said = InForce()
        if random.oneIn(3) { said.digest = digest() }
        if random.oneIn(3) { said.orders["x-api-key"] = servers.secret(for: [SpeakerServers.Host.own]) }
        if random.oneIn(5) { said.orders["proxy"] = "http://p9.example:8080" }
        if random.oneIn(4) { said.priority = 1 + random.below(5) }
        servers.note("-- \(side.number) call \(said)")
        let before = await side.engine.task(id).map(SpeakerWords.inForce)
        var failed = false
        do {
            _ = try await SpeakerWords.call(url, to: URL(fileURLWithPath: out), said, side.downloader)
        } catch {
            servers.note("   \(error)")
            failed = true
        }
        try await judge(side, before, .call, said, failed)
    }

    /// A list of a server that names the owner's file, and others, with orders.
    private func serversList(_ side: SpeakerSide) async throws {
        lists += 1
        var said = InForce()
        let evil = "http://\(SpeakerServers.Host.stranger)"
        said.orders = ["proxy": "\(evil):1", "x-evil": "1", "existing": "overwrite", "netrc": "true"]
        if random.oneIn(2) { said.digest = Bytes.sha256(servers.right) }
        let orders = "  all-proxy=\(evil):1\n  header=X-Evil: 1\n  allow-overwrite=true\n"
        let text: String
        let type: String
        switch random.below(3) {
        case 0:
            type = "text/plain"
            text = "\(url)\n\(orders)" + (said.digest.map { "  checksum=sha-256=\($0)\n" } ?? "")
        case 1:
            type = "text/plain"
            text =
                "\(evil)/1\n  dir=\(home)\n  out=.bashrc\n  allow-overwrite=true\n"
                + "\(evil)/2\n  out=mine.txt\n  allow-overwrite=true\n\(evil)/3\n  dir=\(home)\n  out=new\n"
        default:
            type = "application/json"
            text = "[{\"url\": \"\(evil)/\(lists)\", \"directory\": \"\(home)\", \"fileName\": \"new\"}]"
        }
        servers.serve(text, as: type, at: "/list\(lists)")
        let list = "http://\(SpeakerServers.Host.lists)/list\(lists)"
        try await speak(side, .server, said, "a server's list \(text.debugDescription)") {
            try await SpeakerWords.imported(list, random.oneIn(2) ? ["-d", out] : [], context, over: asking)
        }
    }

    /// A Metalink in place of the file that the command names.
    private func metalink(_ side: SpeakerSide) async throws {
        lists += 1
        let name = random.pick(["x.bin", "mine.txt", ".bashrc"])
        let host = random.pick([SpeakerServers.Host.stranger, SpeakerServers.Host.lists])
        let mirror = random.oneIn(2) ? "<url priority=\"2\">http://\(SpeakerServers.Host.stranger)/mirror</url>" : ""
        servers.serve(
            "<?xml version=\"1.0\"?><metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"\(name)\">"
                + "<url priority=\"1\">http://\(host)/x\(lists)</url>\(mirror)</file></metalink>",
            as: "application/metalink4+xml", at: "/meta\(lists)")
        var (words, said) = command(for: [SpeakerServers.Host.lists])
        for option in ["--checksum", "--mirror"] {
            if let place = words.firstIndex(of: option) { words.removeSubrange(place...place + 1) }
        }
        said.digest = nil
        if random.oneIn(2) { words.append("--overwrite") }
        words += ["--metalink", "-d", out, "http://\(SpeakerServers.Host.lists)/meta\(lists)"]
        try await speak(side, .command, said, "get \(words.joined(separator: " ")), \(name) at \(host)") {
            try await SpeakerWords.get(words, context, over: asking)
        }
    }

    /// Adds the tasks of a command or list, and compares what is in force for the file with the model.
    private func speak(
        _ side: SpeakerSide, _ speaker: Speaker, _ said: InForce, _ text: String,
        _ make: () async throws -> [TaskDescription]
    ) async throws {
        servers.note("-- \(side.number) \(text)")
        let tasks: [TaskDescription]
        do { tasks = try await make() } catch {
            servers.note("   \(error)")
            return
        }
        let before = await side.engine.task(id).map(SpeakerWords.inForce)
        let errors = try await SpeakerWords.add(tasks, to: side.engine)
        for (task, error) in zip(tasks, errors) {
            if let error { servers.note("   \(error)") }
            if task.id == id { try await judge(side, before, speaker, said, error != nil) }
        }
        guard speaker == .server else { return }
        for task in tasks where task.id != id {
            let orders = SpeakerWords.inForce(task).orders
            if !orders.isEmpty { try complain(.listOrders, "\(orders) of \(task.url)") }
            let folder = task.directory ?? ""
            if folder != self.folder.path, !folder.hasPrefix(self.folder.path + "/list"), !folder.hasPrefix(out) {
                try complain(.listOrders, "the folder \(folder) of \(task.url)")
            }
        }
    }

    private func judge(
        _ side: SpeakerSide, _ before: InForce?, _ speaker: Speaker, _ said: InForce, _ failed: Bool
    ) async throws {
        guard let after = await side.engine.task(id).map(SpeakerWords.inForce) else { return }
        let complaints = SpeakerModel.judge(
            before, speaker, said, after, failed: failed, digestOfList: side.digestOfList)
        for complaint in complaints { try complain(complaint.finding, complaint.text) }
        if after.digest != before?.digest { side.digestOfList = speaker == .server }
    }

    // MARK: Looking

    private func look() async throws {
        try await settle()
        for complaint in servers.takeComplaints() { try complain(complaint.finding, complaint.text) }
        for (name, bytes) in usersFiles where (try? folder.read(name)) != bytes {
            try complain(.touchedFile, name)
            try folder.write(bytes, to: name)
        }
        for name in names("home") where name != ".bashrc" {
            try complain(.touchedFile, "home/\(name) is new")
            try FileManager.default.removeItem(at: folder.file("home/\(name)"))
        }
        try lookAtParts()
        for side in sides { try await lookAtFile(of: side) }
    }

    private func settle() async throws {
        for _ in 0..<3 {
            var events = -1
            while true {
                let now = sides.reduce(0) { $0 + $1.transport.events }
                if now == events { break }
                events = now
                for side in sides {
                    await side.transport.idle()
                    _ = await side.engine.taskCounts
                }
            }
            for side in sides { await side.engine.finishDiskWork() }
        }
    }

    /// No part file is open twice for writing, and none of a running task has lost its name.
    private func lookAtParts() throws {
        #if os(Linux)
            var writers: [String: Int] = [:]
            for name in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
                guard let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)"),
                    path.hasPrefix(out + "/."), path.contains(".fkpart"), let number = Int32(name),
                    fcntl(number, F_GETFL) & O_ACCMODE == O_RDWR
                else { continue }
                writers[path, default: 0] += 1
                if path.hasSuffix(".old") { try complain(.twoWriters, "\(path) was taken away from its writer") }
            }
            for (path, count) in writers where count > 1 && !path.hasSuffix(" (deleted)") {
                try complain(.twoWriters, "\(path) has \(count) writers")
            }
        #endif
    }

    private func lookAtFile(of side: SpeakerSide) async throws {
        guard let info = await side.info(id), info.state == .complete, let path = info.path else {
            side.isDone = false
            return
        }
        guard !side.isDone, let bytes = try? [UInt8](Data(contentsOf: URL(fileURLWithPath: path))) else { return }
        side.isDone = true
        let isOther = bytes == servers.other
        guard isOther || bytes == servers.right else {
            return try complain(.twoWriters, "\(path.lastPathPart) of \(side.number) is neither version")
        }
        let digest = await side.engine.task(id).map(SpeakerWords.inForce)?.digest
        if let digest, digest != Bytes.sha256(bytes) {
            try complain(.otherFile, "\(side.number) has a file with another digest than \(digest)")
        }
        if isOther, digest == nil, servers.isBound(side.number) {
            try complain(.otherFile, "\(side.number) has another file than the first server's digest binds")
        }
    }
}
