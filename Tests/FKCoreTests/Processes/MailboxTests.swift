import TestSupport
import Testing

@testable import FKEngine

@Suite("Mailbox")
struct MailboxTests {
    static let requests: [EngineMessage] = [
        .init(.add(tasks: [TaskRecord.full().task, TaskRecord.sample().task], barrel: "b", run: true)),
        .init(.add(tasks: [], barrel: nil, run: false)), .init(.verb(.suspend, .url("https://example.com/"))),
        .init(.verb(.trash, .id(TaskID(url: "x")))), .init(.verb(.cancel, .barrel("b"))), .init(.verb(.action, .all)),
        .init(
            .createBarrel(name: "b", options: BarrelOptions(directory: "/d", options: TaskRecord.full().task.options))),
        .init(.removeFromBarrel(name: "b", urls: ["u"])), .init(.deleteBarrel(name: "b")), .init(.run(.all)),
        .init(.setLimits(maxAction: 3, rateLimit: nil)), .init(.limits, own: OwnLimits(name: "c", maxAction: 2)),
    ]

    @Test("every request survives the way", arguments: requests)
    func roundTrip(request: EngineMessage) throws {
        let scratch = try ScratchWorkPath()
        let id = try Mailbox(scratch.path).post(request)
        let engine = Mailbox(scratch.path)
        let taken = try engine.drain()
        #expect(taken.map(\.0) == [id])
        #expect(try taken.first?.1.get() == request)
        try engine.finish(id)
        #expect(scratch.names(scratch.path.mailboxFolder).isEmpty)
    }

    @Test("requests come in the order of posting, over two posters")
    func order() throws {
        let scratch = try ScratchWorkPath()
        let posters = [Mailbox(scratch.path), Mailbox(scratch.path)]
        let ids = try (0..<40).map { try posters[$0 % 2].post(.setLimits(maxAction: $0, rateLimit: nil)) }
        let taken = try Mailbox(scratch.path).drain()
        #expect(taken.map(\.0) == ids)
        #expect(
            taken.map { try? $0.1.get() } == (0..<40).map { EngineMessage(.setLimits(maxAction: $0, rateLimit: nil)) })
    }

    @Test("posting at the same time on many threads loses nothing and repeats no name")
    func concurrent() async throws {
        let scratch = try ScratchWorkPath()
        let mailbox = Mailbox(scratch.path)
        let ids = await withTaskGroup(of: [MessageID].self) { group in
            for _ in 0..<4 {
                group.addTask { (0..<25).compactMap { _ in try? mailbox.post(.verb(.action, .all)) } }
            }
            return await group.reduce(into: Set<MessageID>()) { $0.formUnion($1) }
        }
        #expect(ids.count == 100)
        #expect(Set(try mailbox.drain().map(\.0)) == ids)
    }

    @Test("a request is handed out once by one engine, and again by the next until it is finished")
    func takeover() throws {
        let scratch = try ScratchWorkPath()
        let first = Mailbox(scratch.path)
        let id = try first.post(.verb(.action, .all))
        #expect(try first.drain().map(\.0) == [id])
        #expect(try first.drain().isEmpty)
        // The first engine died here.
        let second = Mailbox(scratch.path)
        #expect(try second.drain().map(\.0) == [id])
        try second.finish(id)
        #expect(try Mailbox(scratch.path).drain().isEmpty)
    }

    @Test("garbage and oversize are set aside and reported, the rest is taken")
    func garbage() throws {
        let scratch = try ScratchWorkPath()
        let mailbox = Mailbox(scratch.path)
        let folder = scratch.path.mailboxFolder
        try write(Array("{".utf8), folder + "/00000000000000000001-1-a.msg")
        try write([], folder + "/00000000000000000002-1-a.msg")
        try write([1], folder + "/.tmp-00000000000000000003-1-a")
        try write([1], folder + "/other")
        let huge = folder + "/00000000000000000004-1-a.msg"
        try write([1], huge)
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: huge))
        try handle.truncate(atOffset: UInt64(Mailbox.maxMessage) + 1)
        try handle.close()
        try FileManager.default.createDirectory(
            atPath: folder + "/00000000000000000005-1-a.msg", withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(
            atPath: folder + "/00000000000000000006-1-a.msg", withDestinationPath: "/etc/hostname")
        let id = try mailbox.post(.verb(.action, .all))
        let taken = try mailbox.drain()
        #expect(taken.count == 6)
        for (_, result) in taken.dropLast() {
            #expect(throws: DownloadError.self) { try result.get() }
        }
        #expect(taken.last?.0 == id)
        #expect(scratch.names(scratch.path.quarantineFolder).count == 5)
        #expect(try mailbox.drain().isEmpty)
        #expect(try Mailbox(scratch.path).drain().map(\.0) == [id])
    }

    @Test("a request that the system cannot read is left to the next call, and quarantined if that lasts")
    func unreadable() throws {
        let scratch = try ScratchWorkPath()
        let mailbox = Mailbox(scratch.path)
        let later = Date(timeIntervalSinceNow: 60)
        // The text of a system call's error is all that `contents` has of it.
        var isBroken = true
        let id = try mailbox.post(.verb(.action, .all))
        let read: (String) throws -> [UInt8] = { path in
            guard isBroken else { return try FileIO.contents(of: path, limit: Mailbox.maxMessage) }
            throw DownloadError(system: EMFILE, "open", path)
        }
        for _ in 0..<20 {
            #expect(try mailbox.drain(now: later, read: read).isEmpty)
            #expect(mailbox.hasNews())
        }
        isBroken = false
        #expect(try mailbox.drain(now: later, read: read).map(\.0) == [id])
        try mailbox.finish(id)
        let other = try mailbox.post(.verb(.action, .all))
        for _ in 1..<Mailbox.maxReads {
            let taken = try mailbox.drain(now: later) { throw DownloadError(system: EIO, "read", $0) }
            #expect(taken.isEmpty)
        }
        let last = try mailbox.drain(now: later) { throw DownloadError(system: EIO, "read", $0) }
        #expect(last.map(\.0) == [other])
        #expect(scratch.names(scratch.path.quarantineFolder).count == 1)
    }

    @Test("news is told after a post, and silence once the folder has been quiet")
    func news() throws {
        let scratch = try ScratchWorkPath()
        let engine = Mailbox(scratch.path)
        #expect(engine.hasNews())
        let later = Date(timeIntervalSinceNow: 60)
        _ = try engine.drain(now: later)
        #expect(!engine.hasNews())
        let id = try Mailbox(scratch.path).post(.verb(.action, .all))
        #expect(engine.hasNews())
        // Looked at within the granularity of folder times: not believed yet.
        _ = try engine.drain()
        #expect(engine.hasNews())
        _ = try engine.drain(now: later)
        #expect(!engine.hasNews())
        try engine.finish(id)
        _ = try engine.drain(now: later)
        #expect(!engine.hasNews())
    }

    @Test(
        "an answer reaches whoever asked, once",
        arguments: [
            EngineReply.done(note: "x"), .failed(DownloadError(.notFound, "m")),
            .added([.init(id: TaskID(url: "x"), state: .idle, isNew: true, error: DownloadError(.disk, "d"))]),
            .verbs([
                VerbResult(
                    id: TaskID(url: "x"), url: "x", verb: .cancel, before: .action, after: .cancel, applied: true,
                    note: "n")
            ]),
        ])
    func reply(reply: EngineReply) throws {
        let scratch = try ScratchWorkPath()
        let client = Mailbox(scratch.path)
        let id = try client.post(.verb(.action, .all))
        #expect(try client.readReply(id) == nil)
        try Mailbox(scratch.path).reply(to: id, reply)
        #expect(try client.readReply(id) == reply)
        #expect(try client.readReply(id) == nil)
    }

    @Test("a request can be withdrawn until it is finished")
    func withdraw() throws {
        let scratch = try ScratchWorkPath()
        let mailbox = Mailbox(scratch.path)
        let id = try mailbox.post(.verb(.action, .all))
        #expect(try mailbox.withdraw(id))
        #expect(try !mailbox.withdraw(id))
        #expect(try mailbox.drain().isEmpty)
        try mailbox.finish(id)
    }

    @Test("answers and leftovers go after ten minutes, requests never")
    func sweep() throws {
        let scratch = try ScratchWorkPath()
        let mailbox = Mailbox(scratch.path)
        let id = try mailbox.post(.verb(.action, .all))
        let answered = MessageID()
        try mailbox.reply(to: answered, .done(note: ""))
        try write([1], scratch.path.mailboxFolder + "/.tmp-x")
        try mailbox.sweep()
        #expect(scratch.names(scratch.path.mailboxFolder).count == 2)
        try mailbox.sweep(now: Date(timeIntervalSinceNow: 700))
        #expect(try mailbox.readReply(answered) == nil)
        #expect(scratch.names(scratch.path.mailboxFolder).count == 1)
        #expect(try mailbox.drain().map(\.0) == [id])
    }

    @Test("posting to a work path that is not there says so")
    func missing() throws {
        let scratch = try ScratchWorkPath(create: false)
        #expect(throws: DownloadError.self) { try Mailbox(scratch.path).post(.verb(.action, .all)) }
        #expect(!Mailbox(scratch.path).hasNews())
        #expect(try Mailbox(scratch.path).drain().isEmpty)
    }
}
