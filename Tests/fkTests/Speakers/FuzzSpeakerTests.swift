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
    private static let fuzz = FuzzRun("courses of speakers", usual: 600)

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

/// One course of words about one file.
final class SpeakerCourse {
    private var random: SeededRandom
    private let tolerated: Set<SpeakerFinding>
    private let folder: TemporaryFolder
    private let servers: SpeakerServers
    private let asking: ScriptedTransport
    private var sides: [SpeakerSide] = []
    private let context: CommandContext
    private let usersFiles: [String: [UInt8]]
    private(set) var found: Set<SpeakerFinding> = []
    private var lists = 0
    private var url: String { "http://\(SpeakerServers.Host.own)/f" }
    private var out: String { folder.path + "/out" }
    private var home: String { folder.path + "/home" }

    /// The signatures of all courses have these keys.
    private static let awsKeys = {
        let keys = AWSCredentials(accessKeyID: "AWSKEY", secretAccessKey: "s", sessionToken: "AWSTOKEN")
        AWSCredentialBook.shared.store(keys, seconds: nil)
        return keys
    }()

    private static let nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC)

    init(_ seeded: SeededRandom, tolerating tolerated: Set<SpeakerFinding>) async throws {
        var random = seeded
        self.tolerated = tolerated
        let folder = try TemporaryFolder(in: TemporaryFolder.memory ?? FileManager.default.temporaryDirectory)
        self.folder = folder
        let servers = SpeakerServers(&random)
        self.servers = servers
        asking = ScriptedTransport { request, _ in servers.answer(request, 2) }
        usersFiles = [
            "home/.bashrc": [1, 2, 3], "home/.netrc": [7], "out/mine.txt": [4, 5], "out/.bashrc": [6],
        ]
        for (name, bytes) in usersFiles { try folder.write(bytes, to: name) }
        chmod(folder.path + "/home/.netrc", 0o600)
        var context = CommandContext(
            environment: [
                "HOME": folder.path + "/home", "TMPDIR": folder.path, "FK_WORK_PATH": folder.path + "/commands",
                "AWS_ACCESS_KEY_ID": Self.awsKeys.accessKeyID, "AWS_SECRET_ACCESS_KEY": Self.awsKeys.secretAccessKey,
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
        servers.watch(id)
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
        // Its own engine may change its part.
        side.restingPart = nil
        let control = side.downloader.control
        let number = side.number
        switch random.below(20) {
        case 0, 1, 2:
            let (words, said) = try command()
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
            for side in sides { (side.restingPart, _) = (nil, side.clock.advance(seconds: 60)) }
        case 15 where random.oneIn(3): await relink(side)
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
                side.restingPart = nil
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

    /// The owner gives the task another address.
    private func relink(_ side: SpeakerSide) async {
        let host = random.pick([SpeakerServers.Host.own, SpeakerServers.Host.mirror, SpeakerServers.Host.port])
        servers.note("-- \(side.number) relink to \(host)")
        servers.forgetRequests(of: side.number)
        do { try await side.downloader.control.relink(id, to: "http://\(host)/f") } catch {
            return servers.note("   \(error)")
        }
        // The word of the new address counts.
        side.isMovedByOwner = host != SpeakerServers.Host.own
        servers.drop(side.number)
    }

    /// Some options of a command, and what they say.
    private func command(for hosts: Set<String> = [SpeakerServers.Host.own]) throws -> ([String], InForce) {
        var words: [String] = []
        var said = InForce()
        switch random.below(9) {
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
        case 3:
            let secret = servers.secret(for: hosts)
            words += ["-H", "Cookie: s=\(secret)"]
            said.orders["cookie"] = "s=\(secret)"
        case 4:
            words.append("--netrc")
            servers.allowNetrc(at: hosts)
            said.orders["netrc"] = "true"
        case 5:
            let name = "cookies-\(servers.secret(for: hosts))"
            try folder.write(Array("\(hosts.first ?? "")\tFALSE\t/\tFALSE\t0\ts\tv\n".utf8), to: name)
            words += ["--cookies", folder.path + "/" + name]
            said.orders["cookies"] = folder.path + "/" + name
        case 6:
            words += ["--aws-sigv4", "aws:amz:eu-west-1:s3"]
            for value in ["AWSKEY", "AWSTOKEN"] { servers.note(secret: value, for: hosts) }
            said.orders["awsSignature"] = "set"
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
        if random.oneIn(3) {
            words += ["--mirror", "http://\(random.pick([SpeakerServers.Host.mirror, SpeakerServers.Host.port]))/f"]
        }
        return (words, said)
    }

    /// That of the file, rarely that of the other one.
    private func digest() -> String { Bytes.sha256(random.oneIn(6) ? servers.other : servers.right) }

    private func ownersList(_ side: SpeakerSide) async throws {
        // The fields of a list are for all addresses of its entry.
        let hosts = random.pick([[SpeakerServers.Host.own], [SpeakerServers.Host.own, SpeakerServers.Host.mirror]])
        let secret = servers.secret(for: Set(hosts))
        var said = InForce()
        said.orders["x-api-key"] = secret
        var text = hosts.map { "http://\($0)/f" }.joined(separator: "\t") + "\n  header=X-Api-Key: \(secret)\n"
        if random.oneIn(2) {
            said.orders["proxy"] = "http://p7.example:8080"
            text += "  all-proxy=http://p7.example:8080\n"
        }
        if random.oneIn(2) {
            said.digest = digest()
            text += "  checksum=sha-256=\(said.digest ?? "")\n"
        }
        let name = random.pick(["list-a", "list-b"])
        try folder.write(Array(text.utf8), to: name)
        try await speak(side, .command, said, "the owner's \(name) \(text.debugDescription)", ownersList: name) {
            try await SpeakerWords.get(["-d", out, "-i", folder.path + "/" + name], context, over: asking)
        }
    }

    private func call(_ side: SpeakerSide) async throws {
        var said = InForce()
        if random.oneIn(3) { said.digest = digest() }
        if random.oneIn(3) {
            let name = random.pick(["x-api-key", "authorization", "cookie"])
            said.orders[name] = servers.secret(for: [SpeakerServers.Host.own])
        }
        if random.oneIn(5) { said.orders["proxy"] = "http://p9.example:8080" }
        if random.oneIn(4) { said.priority = 1 + random.below(5) }
        servers.note("-- \(side.number) call \(said)")
        servers.forgetRequests(of: side.number)
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
        let isOwn = random.oneIn(2)
        let digest = isOwn && random.oneIn(2) ? Bytes.sha256(servers.right) : nil
        let (text, type) = hostileList(isOwn, digest)
        if let digest, text.contains(digest) { said.digest = digest }
        servers.serve(text, as: type, at: "/list\(lists)")
        let list = "http://\(SpeakerServers.Host.lists)/list\(lists)"
        let way = random.below(5)
        let what = ["import -d", "import", "an application's"][min(way, 2)]
        guard way < 3 else {
            // The command gives orders of its own, whose secrets are for the host that it names.
            var (words, owner) = isOwn ? ([], InForce()) : try command(for: [SpeakerServers.Host.lists])
            Self.drop(["--checksum", "--mirror"], from: &words)
            owner.digest = said.digest
            let shown = "get -i \(words.joined(separator: " ")) list \(text.debugDescription)"
            return try await speak(side, .command, owner, shown, isList: true) {
                try await SpeakerWords.get(words + ["-d", out, "-i", list], context, over: asking)
            }
        }
        try await speak(side, .server, said, "\(what) list \(text.debugDescription)", isList: true) {
            switch way {
            case 0: try await SpeakerWords.imported(list, ["-d", out], context, over: asking)
            case 1: try await SpeakerWords.imported(list, [], context, over: asking)
            default: try SpeakerWords.application(text, to: URL(fileURLWithPath: out))
            }
        }
    }

    /// Removes options with their values.
    private static func drop(_ options: [String], from words: inout [String]) {
        for option in options {
            if let place = words.firstIndex(of: option) { words.removeSubrange(place...place + 1) }
        }
    }

    private static let orders = [
        "all-proxy=http://\(SpeakerServers.Host.stranger):1", "header=X-Evil: 1", "allow-overwrite=true",
        "no-netrc=false", "max-tries=7", "split=7", "max-download-limit=7", "timeout=7", "pause=true",
        "gid=0123456789abcdef", "http-user=evil", "referer=http://\(SpeakerServers.Host.stranger)/", "user-agent=Evil",
        "auto-file-renaming=false", "http-no-cache=true",
    ]

    /// A list of one of the forms that have orders: of the owner's file, or of others with the names of the user's files.
    private func hostileList(_ isOwn: Bool, _ digest: String?) -> (text: String, type: String) {
        let stranger = "http://\(SpeakerServers.Host.stranger)/\(lists)"
        let address = isOwn ? url : stranger
        let name = isOwn ? nil : random.pick(["mine.txt", ".bashrc", "new", "../home/.bashrc", "\(home)/.bashrc"])
        let folder = isOwn ? nil : random.pick([home, out, "../home", nil])
        switch random.below(5) {
        case 0, 1:
            // A mirror of the list gets nothing that the owner has said for the first address.
            var lines = [isOwn && random.oneIn(3) ? "\(url)\thttp://\(SpeakerServers.Host.mirror)/f" : address]
            if let name { lines.append("  out=\(name)") }
            if let folder { lines.append("  dir=\(folder)") }
            if let digest { lines.append("  checksum=sha-256=\(digest)") }
            for _ in 0..<random.below(4) { lines.append("  " + random.pick(Self.orders)) }
            return (lines.joined(separator: "\n") + "\n", "text/plain")
        case 2:
            var lines = ["url = \"\(address)\"", random.pick(["header = \"X-Evil: 1\"", "user-agent = \"Evil\""])]
            if let name { lines.append("output = \"\(name)\"") }
            if let folder { lines.append("output-dir = \"\(folder)\"") }
            lines += ["proxy = \"\(stranger)\"", "netrc"]
            return (lines.joined(separator: "\n") + "\n", "text/plain")
        case 3:
            let members = [
                "\"url\": \"\(address)\"", name.map { "\"fileName\": \"\($0)\"" },
                folder.map { "\"directory\": \"\($0)\"" },
                "\"headers\": [\"X-Evil: 1\"], \"options\": {\"existing\": \"overwrite\"}",
                digest.map { "\"sha256\": \"\($0)\"" },
            ]
            let text = "{\(members.compactMap(\.self).joined(separator: ", "))}"
            return random.oneIn(2) ? ("[\(text)]", "application/json") : (text + "\n", "application/x-ndjson")
        default:
            let cells = [address, name ?? "", folder ?? "", stranger, "X-Evil: 1"]
            return ("url,name,folder,proxy,headers\n\(cells.joined(separator: ","))\n", "text/csv")
        }
    }

    /// A Metalink in place of the file that the command names.
    private func metalink(_ side: SpeakerSide) async throws {
        lists += 1
        let name = random.pick(["x.bin", "mine.txt", ".bashrc", ".profile"])
        let host = random.pick([SpeakerServers.Host.stranger, SpeakerServers.Host.lists])
        let mirror = random.oneIn(2) ? "<url priority=\"2\">http://\(SpeakerServers.Host.stranger)/mirror</url>" : ""
        if random.oneIn(3) {
            servers.serve(
                "<metalink version=\"3.0\" xmlns=\"http://www.metalinker.org/\"><files><file name=\"\(name)\"><resources>"
                    + "<url type=\"http\" preference=\"100\">http://\(host)/x\(lists)</url></resources></file></files></metalink>",
                as: "application/metalink+xml", at: "/meta\(lists)")
        } else {
            servers.serve(
                "<?xml version=\"1.0\"?><metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"\(name)\">"
                    + "<url priority=\"1\">http://\(host)/x\(lists)</url>\(mirror)</file></metalink>",
                as: "application/metalink4+xml", at: "/meta\(lists)")
        }
        var (words, said) = try command(for: [SpeakerServers.Host.lists])
        Self.drop(["--checksum", "--mirror"], from: &words)
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
        isList: Bool = false, ownersList: String? = nil, _ make: () async throws -> [TaskDescription]
    ) async throws {
        servers.note("-- \(side.number) \(text)")
        servers.forgetRequests(of: side.number)
        let tasks: [TaskDescription]
        do { tasks = try await make() } catch {
            servers.note("   \(error)")
            return
        }
        let before = await side.engine.task(id).map(SpeakerWords.inForce)
        let errors = try await SpeakerWords.add(tasks, to: side.engine)
        for (task, error) in zip(tasks, errors) {
            if let error { servers.note("   \(error)") }
            if task.id == id { try await judge(side, before, speaker, said, error != nil, ownersList) }
        }
        guard isList else { return }
        for task in tasks {
            let orders = SpeakerWords.inForce(task).orders
            if orders != (speaker == .server ? [:] : said.orders) {
                try complain(.listOrders, "\(orders) of \(task.url)")
            }
            let folder = task.directory ?? ""
            if folder != self.folder.path, folder != out {
                try complain(.listOrders, "the folder \(folder) of \(task.url)")
            }
        }
    }

    private func judge(
        _ side: SpeakerSide, _ before: InForce?, _ speaker: Speaker, _ said: InForce, _ failed: Bool,
        _ ownersList: String? = nil
    ) async throws {
        guard let after = await side.engine.task(id).map(SpeakerWords.inForce) else { return }
        let complaints = SpeakerModel.judge(
            before, speaker, said, after, failed: failed, digestOfList: side.digestOfList,
            renews: ownersList != nil && ownersList == side.ownersList)
        for complaint in complaints { try complain(complaint.finding, complaint.text) }
        guard after.digest != before?.digest else { return }
        side.digestOfList = speaker == .server
        side.ownersList = ownersList
    }

    // MARK: Looking

    private func look() async throws {
        try await settle()
        for complaint in servers.takeComplaints() { try complain(complaint.finding, complaint.text) }
        for (name, bytes) in usersFiles where (try? folder.read(name)) != bytes {
            try complain(.touchedFile, name)
            try folder.write(bytes, to: name)
        }
        for name in names("home") where usersFiles["home/\(name)"] == nil {
            try complain(.touchedFile, "home/\(name) is new")
            try FileManager.default.removeItem(at: folder.file("home/\(name)"))
        }
        if names("out").contains(".profile") {
            try complain(.touchedFile, "out/.profile is new")
            try FileManager.default.removeItem(at: folder.file("out/.profile"))
        }
        try lookAtParts()
        for side in sides { try await lookAtRest(of: side) }
        for side in sides { try await lookAtFile(of: side) }
        for side in sides { try await lookAtRequests(of: side) }
    }

    /// A request to the own server has the secrets that are in force, and no others.
    private func lookAtRequests(of side: SpeakerSide) async throws {
        guard let sent = servers.lastRequest(of: side.number), let task = await side.engine.task(id) else { return }
        // Secrets for the host of a list go nowhere else.
        let isOwn = task.secretOrigin == URLOrigin(url)
        let orders = isOwn ? SpeakerWords.inForce(task).orders : [:]
        var names = ["x-api-key", "authorization", "cookie", "cookies", "netrc"]
        if orders["awsSignature"] != nil { names.remove(at: 1) }
        for name in names where sent[name] != orders[name] {
            let (word, text) = (orders[name] ?? "none", sent[name] ?? "none")
            try complain(.lostWord, "\(name) of \(side.number) is \(word) and \(text) was sent")
        }
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

    /// Nobody else touches the part of a task that rests.
    private func lookAtRest(of side: SpeakerSide) async throws {
        var now: RestingPart?
        if let record = await side.engine.record(id), record.received > 0,
            [.suspend, .error, .idle].contains(record.state), let path = record.partPath(home: out)
        {
            var status = stat()
            let isThere = stat(path, &status) == 0
            let file = [Int64(status.st_ino), Int64(status.st_size), Int64(status.st_mtim.tv_nsec)]
            now = RestingPart(
                path: path, state: record.state, events: side.transport.events, file: isThere ? file : [])
        }
        defer { side.restingPart = now?.file.isEmpty == false ? now : nil }
        guard let before = side.restingPart, let now, before.state == now.state, before.events == now.events,
            before.path == now.path, before.file != now.file
        else { return }
        let what = now.file.isEmpty ? "removed" : "changed"
        try complain(.twoWriters, "the part of \(side.number), which rests, was \(what): \(before.path.lastPathPart)")
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
        if isOther, digest == nil, servers.isBound(side.number), !side.isMovedByOwner {
            try complain(.otherFile, "\(side.number) has another file than the first server's digest binds")
        }
    }
}
