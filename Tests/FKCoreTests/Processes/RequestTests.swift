import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine
@testable import FKModel
@testable import FKStore

/// In one process: the engine is a bench, other processes are mailboxes on its work path.
@Suite("Requests of other processes", .timeLimit(.minutes(10)))
struct RequestTests {
    static let content = Bytes.pattern(count: 400_000)

    /// A work path with tasks, whose engine has closed, and what a request left there before a kill.
    private func closed(_ names: String..., barrel: String? = nil) async throws -> Bench {
        let bench = try await Bench(isActive: false, content: Self.content)
        for name in names { try await bench.add(name, barrel: barrel) }
        await bench.downloader.close()
        return bench
    }

    /// As `EngineClient` does it: an engine for a moment that runs nothing.
    private func momentary(_ bench: Bench) async throws -> Bench {
        try await Bench(in: bench.folder, scope: .chosen, isActive: false, content: Self.content)
    }

    private func state(_ name: String, _ bench: Bench) -> DownloadState {
        (try? bench.stored(bench.task(name).id).state) ?? .unknown
    }

    @Test(
        "a toggle that was carried out before a kill is not carried out again, wherever the kill came",
        arguments: ["written", "acted", "answered", "done"])
    func toggledOnce(_ moment: String) async throws {
        let bench = try await closed("a")
        let mailbox = Mailbox(bench.workPath)
        let id = try mailbox.post(.toggle(.all))
        let message = bench.workPath.mailboxFolder + "/\(id.name).msg"
        let image = Observed<[UInt8]?>(nil)
        let first = try await momentary(bench)
        // What stands in the mailbox when the task is about to change is what a kill leaves there.
        _ = await first.engine.observeStates { info in
            if info.state == .suspend { image.update { $0 = try? bytes(message) } }
        }
        await first.engine.afterLeftovers()
        await first.engine.callbacks.drained()
        #expect(state("a", bench) == .suspend)
        await first.downloader.close()
        switch moment {
        case "written":
            // Before the act: the next engine carries it out, once.
            let again = try await momentary(bench)
            _ = try await again.control.resume(.all)
            await again.downloader.close()
            let chosen = EngineMessage(.chosen([.init(id: bench.task("a").id, verb: .suspend)]))
            try write(Array(try StoreJSON.encode(chosen)), message)
            try FileIO.remove(bench.workPath.repliesFolder + "/\(id.name).reply")
        case "acted":
            try FileIO.remove(bench.workPath.repliesFolder + "/\(id.name).reply")
            let chosen = EngineMessage(.chosen([.init(id: bench.task("a").id, verb: .suspend)]))
            try write(Array(try StoreJSON.encode(chosen)), message)
        case "answered": try write(Array(try StoreJSON.encode(EngineMessage(.toggle(.all)))), message)
        default:
            try FileIO.remove(bench.workPath.repliesFolder + "/\(id.name).reply")
            try write(
                Array(try StoreJSON.encode(EngineMessage(.toggle(.all)))),
                bench.workPath.mailboxFolder + "/\(id.name).done")
        }
        let second = try await momentary(bench)
        await second.engine.afterLeftovers()
        #expect(state("a", bench) == .suspend)
        #expect(try FileIO.names(in: bench.workPath.mailboxFolder).isEmpty)
        let reply = try #require(try mailbox.readReply(id))
        if moment == "done" {
            #expect(reply.failure != nil)
        } else {
            let results = try #require(reply.verbResults)
            #expect(results.map(\.after) == [.suspend])
        }
    }

    @Test("what a toggle comes to stands in the mailbox before the first task changes")
    func writtenFirst() async throws {
        let bench = try await closed("a", "b")
        let mailbox = Mailbox(bench.workPath)
        let id = try mailbox.post(.toggle(.all))
        let message = bench.workPath.mailboxFolder + "/\(id.name).msg"
        let engine = try Engine(
            configure: Configure(workPath: bench.folder.file("work")), scope: .chosen,
            transport: FakeTransport { request, _ in .file(Self.content, to: request) }, clock: ManualClock())
        // The engine's thread is held in the middle of the answer: no reply can be written.
        try FileManager.default.removeItem(atPath: bench.workPath.repliesFolder)
        try write([], bench.workPath.repliesFolder)
        await engine.afterLeftovers()
        let done = message.replacingOccurrences(of: ".msg", with: ".done")
        let request = try StoreJSON.decode(EngineMessage.self, from: bytes(done))
        let choices = try #require(request.request as? ChosenVerbs).choices
        #expect(choices.map(\.id) == ["a", "b"].map { bench.task($0).id })
        #expect(choices.map(\.verb) == [.suspend, .suspend])
        await engine.close()
    }

    @Test("a trash from before a kill comes before the addition of the same task by the next engine")
    func trashThenAdd() async throws {
        let bench = try await closed("a")
        try Mailbox(bench.workPath).post(.verb(.trash, .id(bench.task("a").id)))
        let next = try await Bench(in: bench.folder, content: Self.content)
        let id = try await next.completed("a")
        await next.advance(5)
        #expect(await next.state(id) == .complete)
        #expect(try next.out("a") == Self.content)
    }

    @Test("a trash that is carried out a second time says so and takes nothing that came since")
    func trashedTwice() async throws {
        let bench = try await closed("a", "b", barrel: "x")
        let mailbox = Mailbox(bench.workPath)
        let choices = ["a", "b"].map { VerbChoice(id: bench.task($0).id, verb: .trash) }
        let first = try await momentary(bench)
        _ = await first.engine.answer(.chosen([choices[0]]))
        try await first.add("c", barrel: "x")
        await first.downloader.close()
        let id = try mailbox.post(.chosen(choices))
        let next = try await momentary(bench)
        await next.engine.afterLeftovers()
        let results = try #require(try mailbox.readReply(id)?.verbResults)
        #expect(results.map(\.applied) == [false, true])
        #expect(try await next.messager.urls(inBarrel: "x") == ["http://h.example/c"])
    }

    @Test("a client whose engine was killed has its request carried out in its turn, once")
    func posted() async throws {
        let bench = try await closed("a")
        let mailbox = Mailbox(bench.workPath)
        try mailbox.post(.verb(.suspend, .all))
        let id = try mailbox.post(.toggle(.all))
        let engine = try await momentary(bench)
        let reply = await engine.engine.answer(EngineMessage(.toggle(.all)), posted: id)
        let results = try #require(reply.verbResults)
        #expect(results.map(\.before) == [.suspend] && results.map(\.after) == [.idle])
        #expect(state("a", bench) == .idle)
        #expect(try FileIO.names(in: bench.workPath.mailboxFolder).isEmpty)
    }

    /// An engine with a running task whose end a response middleware holds up.
    private func slow() async throws -> (bench: Bench, id: TaskID, gate: FakeGate) {
        let bench = try await Bench(content: Self.content) { $0.maxAction = 1 }
        let gate = bench.holdResponses()
        let id = try await bench.add("slow")
        await gate.reached()
        return (bench, id, gate)
    }

    @Test("what is resumed while suspend for all still waits stays resumed", arguments: [true, false])
    func resumedMeanwhile(_ isOtherProcess: Bool) async throws {
        let (bench, id, gate) = try await slow()
        for name in ["b", "c"] { try await bench.add(name) }
        let c = bench.task("c").id
        let mailbox = Mailbox(bench.workPath)
        var posted: [MessageID] = []
        if isOtherProcess {
            posted.append(try mailbox.post(.verb(.suspend, .all)))
            await bench.advance(1)
            posted.append(try mailbox.post(.verb(.resume, .id(c))))
            await bench.advance(1)
            await bench.reached("c", .idle, times: 2)
        } else {
            async let suspended = bench.control.suspendAll()
            await bench.reached("c", .suspend)
            #expect(try await bench.control.resume(.id(c)).map(\.applied) == [true])
            gate.open()
            #expect(try await suspended.map(\.after) == [.suspend, .suspend, .suspend])
        }
        gate.open()
        #expect(await bench.finished(c)?.state == .complete)
        #expect(await bench.state(id) == .suspend)
        #expect(await bench.state(bench.task("b").id) == .suspend)
        for id in posted {
            _ = try await bench.reply(to: id, mailbox)
        }
    }

    /// What a later engine finds after a kill in this moment, once it has taken the mailbox.
    private func killed(_ bench: Bench) async throws -> Bench {
        let next = try await Bench(in: try bench.snapshot(), scope: .chosen, isActive: false, content: Self.content)
        await next.engine.afterLeftovers()
        return next
    }

    @Test(
        "a verb for all that waited at a kill undoes no verb that was answered since",
        arguments: [
            (Verb.suspend, Verb.resume, DownloadState.idle), (.suspend, .cancel, .cancel), (.cancel, .retry, .idle),
        ])
    func overtaken(_ verb: Verb, _ later: Verb, _ state: DownloadState) async throws {
        let (bench, id, gate) = try await slow()
        try await bench.add("b") { $0.priority = -1 }
        let b = bench.task("b").id
        let mailbox = Mailbox(bench.workPath)
        let first = try mailbox.post(.verb(verb, .all))
        await bench.advance(1)
        let second = try mailbox.post(.verb(later, .id(b)))
        #expect(try await bench.reply(to: second, mailbox).verbResults?.map(\.after) == [state])
        #expect(try mailbox.readReply(first) == nil)
        let next = try await killed(bench)
        let mailboxOfNext = Mailbox(next.workPath)
        #expect(try next.stored(b).state == state)
        #expect(await next.state(id) == (verb == .suspend ? .suspend : .cancel))
        let results = try #require(try mailboxOfNext.readReply(first)?.verbResults)
        #expect(results.map(\.id) == [id, b])
        #expect(results.map(\.applied) == [true, true])
        #expect(try FileIO.names(in: next.workPath.mailboxFolder).isEmpty)
        gate.open()
    }

    @Test("the same task: a resume that was answered before its suspend is not undone after a kill")
    func resumedSame() async throws {
        let (bench, id, gate) = try await slow()
        let mailbox = Mailbox(bench.workPath)
        let first = try mailbox.post(.verb(.suspend, .id(id)))
        await bench.advance(1)
        let second = try mailbox.post(.verb(.resume, .id(id)))
        #expect(try await bench.reply(to: second, mailbox).verbResults?.map(\.after) == [.idle])
        #expect(try mailbox.readReply(first) == nil)
        let next = try await killed(bench)
        #expect(await next.state(id) == .idle)
        #expect(try Mailbox(next.workPath).readReply(first)?.verbResults?.map(\.after) == [.suspend])
        gate.open()
    }

    @Test("a trash that waited at a kill takes no task that was made since")
    func trashedAndMadeAnew() async throws {
        let (bench, id, gate) = try await slow()
        try await bench.add("b")
        let b = bench.task("b").id
        let mailbox = Mailbox(bench.workPath)
        let first = try mailbox.post(.verb(.trash, .all))
        await bench.advance(1)
        let second = try mailbox.post(.add(tasks: [bench.task("b")], barrel: nil, run: true))
        #expect(try await bench.reply(to: second, mailbox).addedTasks?.count == 1)
        #expect(try mailbox.readReply(first) == nil)
        let next = try await killed(bench)
        #expect(await next.state(b) == .idle)
        #expect(await next.state(id) == .unknown)
        // The snapshot's tasks have the folder of the first engine.
        #expect(bench.names.isEmpty)
        let results = try #require(try Mailbox(next.workPath).readReply(first)?.verbResults)
        #expect(results.map(\.after) == [.unknown, .unknown])
        gate.open()
    }

    @Test("a cancel that waited at a kill leaves no bytes behind")
    func cancelledBytes() async throws {
        let gate = FakeGate()
        let bench = try await Bench { request, _ in .file(Self.content, to: request, gate: gate, pauseAt: 300_000) }
        let id = try await bench.add("a")
        await gate.reached()
        _ = try await bench.control.suspend(.id(id))
        let held = bench.holdRequests()
        _ = try await bench.control.resume(.id(id))
        await held.reached()
        #expect(bench.names.count == 1)
        let first = try Mailbox(bench.workPath).post(.verb(.cancel, .all))
        await bench.advance(1)
        #expect(bench.names.count == 1)
        let next = try await killed(bench)
        #expect(await next.state(id) == .cancel)
        #expect(bench.names.isEmpty)
        #expect(try Mailbox(next.workPath).readReply(first)?.verbResults?.map(\.applied) == [true])
        held.open()
        gate.open()
    }

    @Test("an addition that waited at a kill, for a finished file to be compared, queues no task again")
    func comparedMeanwhile() async throws {
        let bench = try await Bench(in: nil, scope: .chosen, content: Self.content)
        let a = try await bench.completed("a")
        let asked = bench.task("a") { $0.options.checksum = try? Checksum(.sha256, hex: Bytes.sha256(Self.content)) }
        let request = AddTasks.add(tasks: [asked, bench.task("b")], barrel: nil, run: false)
        guard case .waiting(let task, let rest) = try await bench.engine.attempt(request, nil).get() else {
            Issue.record("nothing is compared")
            return
        }
        _ = await task.value
        let b = bench.task("b").id
        _ = try await bench.control.suspend(.id(b))
        await bench.downloader.close()
        let first = try Mailbox(bench.workPath).post(EngineMessage(rest))
        let next = try await momentary(bench)
        await next.engine.afterLeftovers()
        var reply: EngineReply?
        while reply == nil {
            await next.sync()
            reply = try Mailbox(next.workPath).readReply(first)
        }
        #expect(reply?.addedTasks?.map(\.id) == [a, b])
        #expect(reply?.addedTasks?.compactMap(\.error).isEmpty == true)
        #expect(await next.state(b) == .suspend)
    }

    @Test("a task that is added while it is being trashed is made anew when that is over", arguments: [true, false])
    func addedMeanwhile(_ isOtherProcess: Bool) async throws {
        let (bench, id, gate) = try await slow()
        if isOtherProcess {
            let mailbox = Mailbox(bench.workPath)
            try mailbox.post(.verb(.trash, .id(id)))
            await bench.advance(1)
            try mailbox.post(.add(tasks: [bench.task("slow")], barrel: nil, run: true))
            await bench.reached("slow", .unknown)
            await bench.advance(1)
            gate.open()
        } else {
            async let trashed = bench.control.trash(.id(id))
            await bench.reached("slow", .unknown)
            async let added = bench.add("slow")
            gate.open()
            #expect(try await trashed.map(\.applied) == [true])
            #expect(try await added == id)
        }
        await bench.reached("slow", .complete)
        #expect(try bench.out("slow") == Self.content)
    }

    @Test("requests that wait in the mailbox are carried out in order, however many looks it takes")
    func order() async throws {
        let bench = try await Bench(isActive: false, content: Self.content)
        let mailbox = Mailbox(bench.workPath)
        let tasks = (0..<300).map { bench.task("f\($0)") }
        var posted: [MessageID] = []
        for round in 0..<4 {
            posted.append(try mailbox.post(.add(tasks: tasks, barrel: "x", run: true)))
            posted.append(try mailbox.post(.verb(.suspend, .barrel("x"))))
            posted.append(try mailbox.post(.verb(round % 2 == 0 ? .cancel : .trash, .barrel("x"))))
            await bench.engine.readMailbox()
        }
        await bench.engine.afterLeftovers()
        for (index, id) in posted.enumerated() {
            switch try mailbox.readReply(id) {
            case .added(let list): #expect(list.count == 300 && list.allSatisfy { $0.error == nil })
            case .verbs(let results): #expect(results.count == 300 && results.allSatisfy(\.applied), "\(index)")
            case let reply: Issue.record("\(index) \(String(describing: reply))")
            }
        }
        #expect(try await bench.messager.urls(inBarrel: "x").isEmpty)
    }

    @Test("an answer of any length reaches its asker, in pages where it is long", arguments: [1, 3_000, 40_000])
    func pages(_ count: Int) throws {
        let scratch = try ScratchWorkPath()
        let asker = Mailbox(scratch.path)
        let id = try asker.post(.verb(.suspend, .all))
        let url = "http://h.example/" + String(repeating: "/p", count: 500)
        let reply = EngineReply.verbs(
            (0..<count).map { index in
                VerbResult(
                    id: TaskID(url: "\(index)"), url: url, verb: .suspend, before: .idle, after: .suspend,
                    applied: true,
                    note: "\(index)")
            })
        let engine = Mailbox(scratch.path)
        #expect(try engine.take().map(\.0) == [id])
        #expect(engine.answer(id, reply) == nil)
        let largest = try FileIO.names(in: scratch.path.repliesFolder).map { name in
            (try? FileIO.contents(of: "\(scratch.path.repliesFolder)/\(name)", limit: 1 << 30).count) ?? 0
        }.max()
        #expect(try #require(largest) < 2 * Mailbox.pageSize)
        #expect(try asker.readReply(id) == reply)
        #expect(scratch.names(scratch.path.repliesFolder).isEmpty && scratch.names(scratch.path.mailboxFolder).isEmpty)
    }

    @Test("an answer that cannot be written is tried again, and its request not carried out again")
    func unwritable() async throws {
        let bench = try await Bench { request, _ in .file(Self.content, to: request) }
        let mailbox = Mailbox(bench.workPath)
        let replies = bench.workPath.repliesFolder
        try FileManager.default.removeItem(atPath: replies)
        try write([], replies)
        let id = try mailbox.post(.createBarrel(name: "x", options: .init()))
        await bench.advance(1)
        while mailbox.requestState(of: id) != .done { await bench.advance(1) }
        unlink(replies)
        try FileIO.makeFolder(replies)
        #expect(try await bench.reply(to: id, mailbox) == .done(note: "barrel x created"))
        #expect(try FileIO.names(in: bench.workPath.mailboxFolder).isEmpty)
    }

    @Test("an asker whose answer is lost is told so")
    func lost() throws {
        let scratch = try ScratchWorkPath()
        let mailbox = Mailbox(scratch.path)
        for isDone in [true, false] {
            let id = try mailbox.post(.verb(.suspend, .all))
            var inquiry = Inquiry(id)
            #expect(try inquiry.answer(mailbox, now: 1_000_000_000_000) == nil)
            #expect(try inquiry.answer(mailbox, now: 2_000_000_000_000) == nil)
            let message = "\(scratch.path.mailboxFolder)/\(id.name)"
            try FileIO.rename("\(message).msg", to: isDone ? "\(message).done" : "\(message).elsewhere")
            #expect(try inquiry.answer(mailbox, now: 3_000_000_000_000) == nil)
            #expect(try inquiry.answer(mailbox, now: 3_004_000_000_000) == nil)
            #expect(throws: DownloadError.self) { try inquiry.answer(mailbox, now: 3_006_000_000_000) }
        }
    }

    @Test("answers that nobody fetches do not pile up")
    func unread() async throws {
        let bench = try await Bench { request, _ in .file(Self.content, to: request) }
        let mailbox = Mailbox(bench.workPath)
        for index in 0..<Mailbox.maxReplies + 50 {
            try mailbox.reply(to: MessageID(), .done(note: "\(index)"))
        }
        try mailbox.sweep()
        #expect(try FileIO.names(in: bench.workPath.repliesFolder).count == Mailbox.maxReplies)
        try mailbox.sweep(now: Date(timeIntervalSinceNow: 700))
        #expect(try FileIO.names(in: bench.workPath.repliesFolder).isEmpty)
        // Who has withdrawn a request gets no answer.
        let engine = Mailbox(bench.workPath)
        let id = try mailbox.post(.verb(.suspend, .all))
        _ = try engine.take()
        try mailbox.withdraw(id)
        #expect(engine.answer(id, .done(note: "")) == nil)
        #expect(try FileIO.names(in: bench.workPath.repliesFolder).isEmpty)
    }

    @Test("a list too long for one request is handed over in several, and answered as one")
    func longList() async throws {
        let bench = try await Bench(isActive: false, content: Self.content)
        let path = String(repeating: "p", count: 8_000)
        let tasks = (0..<3_000).map { bench.task("\(path)/\($0)") }
        let messages = AddTasks.add(tasks: tasks, barrel: "x", run: false).messages
        #expect(messages.count > 2)
        for message in messages { #expect(try StoreJSON.encode(message).count < Mailbox.maxMessage / 2) }
        let replies = messages.map { message -> EngineReply in
            #expect(message.barrel == "x" && !message.run)
            return .added(message.tasks.map { .init(id: $0.id, state: .idle, isNew: true) })
        }
        let list = try #require(try EngineReply(pages: replies).addedTasks)
        #expect(list.map(\.id) == tasks.map(\.id))
    }

    private static let second: Int64 = 1_000_000_000

    @Test("an engine without a sign of life for five seconds is silent, once, until it shows one")
    func watch() {
        var watch = EngineWatch(interval: 1)
        var news: [EngineWatch.News?] = []
        for second in 0..<20 {
            // Alive for three seconds, then not until the twelfth.
            let content: [UInt8] = [UInt8(second < 3 ? second : second < 12 ? 2 : second)]
            news.append(watch.look(content, now: Int64(second) * Self.second))
        }
        #expect(news.map { $0 != nil } == (0..<20).map { $0 == 7 || $0 == 12 })
        #expect(news[7] == .silent && news[12] == .back)
    }

    @Test("a watcher that was itself stopped, or a machine that slept, does not take the engine for silent")
    func gap() {
        var watch = EngineWatch(interval: 1)
        #expect(watch.look([1], now: 0) == nil)
        #expect(watch.look([1], now: 1 * Self.second) == nil)
        // An hour later, the first look comes before the engine's first tick.
        #expect(watch.look([1], now: 3_600 * Self.second) == nil)
        #expect(watch.silence(3_600 * Self.second) == 0)
        #expect(watch.look([2], now: 3_601 * Self.second) == nil)
        // A lock file that is gone for a moment is no silence either.
        #expect(watch.look(nil, now: 3_602 * Self.second) == nil)
        #expect(!watch.isSilent)
    }

    @Test("each tick changes the lock file, whatever the wall clock says")
    func beat() async throws {
        let bench = try await Bench(content: Self.content)
        let date = bench.clock.date
        var seen: Set<[UInt8]> = []
        for _ in 0..<5 {
            await bench.advance(1)
            bench.clock.setDate(date)
            await bench.sync()
            seen.insert(try #require(EngineLock.content(bench.workPath)))
        }
        #expect(seen.count == 5)
    }
}
