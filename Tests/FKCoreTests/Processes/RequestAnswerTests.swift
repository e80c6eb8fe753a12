import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine

/// What reaches the process that asked.
@Suite("Answers to requests of other processes")
struct RequestAnswerTests {
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
        #expect(try engine.drain().map(\.0) == [id])
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
        let bench = try await Bench(content: [1])
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
        let bench = try await Bench(content: [1])
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
        _ = try engine.drain()
        try mailbox.withdraw(id)
        #expect(engine.answer(id, .done(note: "")) == nil)
        #expect(try FileIO.names(in: bench.workPath.repliesFolder).isEmpty)
    }

    @Test("a list too long for one request is handed over in several, and answered as one")
    func longList() async throws {
        let bench = try await Bench(isActive: false, content: [1])
        let path = String(repeating: "p", count: 8_000)
        let tasks = (0..<3_000).map { bench.task("\(path)/\($0)") }
        let messages = EngineRequest.add(tasks: tasks, barrel: "x", run: false).messages
        #expect(messages.count > 2)
        for message in messages { #expect(try StoreJSON.encode(message).count < Mailbox.maxMessage / 2) }
        let replies = try messages.map { message -> EngineReply in
            guard case .add(let tasks, "x", false) = message else {
                throw DownloadError(.corruptInfo, "It asks something else: \(message)")
            }
            return .added(tasks.map { .init(id: $0.id, state: .idle, isNew: true) })
        }
        let list = try #require(try EngineReply(pages: replies).addedTasks)
        #expect(list.map(\.id) == tasks.map(\.id))
    }
}
