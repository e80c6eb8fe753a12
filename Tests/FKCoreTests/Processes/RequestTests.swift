import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine

/// In one process: the engine is a bench, other processes are mailboxes on its work path.
@Suite("Requests of other processes")
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
            transport: ScriptedTransport { request, _ in .file(Self.content, to: request) }, clock: ManualClock())
        // The engine's thread is held in the middle of the answer: no reply can be written.
        try FileManager.default.removeItem(atPath: bench.workPath.repliesFolder)
        try write([], bench.workPath.repliesFolder)
        await engine.afterLeftovers()
        let done = message.replacingOccurrences(of: ".msg", with: ".done")
        let request = try StoreJSON.decode(EngineMessage.self, from: bytes(done))
        guard case .chosen(let choices) = request.request else { return unexpected("\(request)") }
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
    private func slow() async throws -> (bench: Bench, id: TaskID, gate: TestGate) {
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
        let (bench, id, gate) = try await Bench.held(Self.content, at: 300_000)
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
        let request = EngineRequest.add(tasks: [asked, bench.task("b")], barrel: nil, run: false)
        guard case .waiting(let task, let rest) = try await bench.engine.attempt(request, nil).get() else {
            return unexpected("nothing is compared")
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
}
