import TestSupport
import Testing

@testable import FKEngine

/// Messages and answers as fk 1.0 wrote them, byte for byte, one of each kind. Its clients read only answers of this form.
@Suite("Mailbox: messages of the version before")
struct MailboxVersionTests {
    /// Performed in this order. ID is the task of the first message, OUT a folder.
    static let course: [(message: String, answer: String)] = [
        (
            #"{"add":{"barrel":"b","run":true,"tasks":[{"attributes":{},"directory":"OUT","fileName":"a.bin","mirrors":[],"options":{},"priority":0,"type":"background","url":"http://h/a"}]}}"#,
            #"{"added":{"_0":[{"id":"ID","isNew":true,"state":"idle"}]}}"#
        ),
        (
            #"{"add":{"run":false,"tasks":[]}}"#,
            #"{"added":{"_0":[]}}"#
        ),
        (
            #"{"verb":{"_0":"suspend","_1":{"url":{"_0":"http://h/a"}}}}"#,
            #"{"verbs":{"_0":[{"after":"suspend","applied":true,"before":"idle","id":"ID","note":"suspended, 0 B kept","url":"http://h/a","verb":"suspend"}]}}"#
        ),
        (
            #"{"toggle":{"_0":{"id":{"_0":"ID"}}}}"#,
            #"{"verbs":{"_0":[{"after":"idle","applied":true,"before":"suspend","id":"ID","note":"queued: it starts with the next run","url":"http://h/a","verb":"resume"}]}}"#
        ),
        (
            #"{"chosen":{"_0":[{"chosenIn":"action","id":"ID","number":1,"performedIn":"idle","url":"http://h/a","verb":"suspend"}]}}"#,
            #"{"verbs":{"_0":[{"after":"suspend","applied":true,"before":"idle","id":"ID","note":"suspended, 0 B kept","url":"http://h/a","verb":"suspend"}]}}"#
        ),
        (
            #"{"chosen":{"_0":[{"id":"ID","verb":"suspend"}]}}"#,
            #"{"verbs":{"_0":[{"after":"suspend","applied":true,"before":"idle","id":"ID","note":"suspended, 0 B kept","url":"http://h/a","verb":"suspend"}]}}"#
        ),
        (
            #"{"added":{"_0":[{"id":"ID","isNew":true,"state":"idle"}],"comparisons":[],"run":true}}"#,
            #"{"added":{"_0":[{"id":"ID","isNew":true,"state":"idle"}]}}"#
        ),
        (
            #"{"setAttributes":{"_0":{"all":{}},"_1":{"gone":null,"k":"v"}}}"#,
            #"{"done":{"note":"attributes of 1 task changed"}}"#
        ),
        (
            #"{"markUsed":{"_0":{"id":{"_0":"ID"}}}}"#,
            #"{"done":{"note":"1 task marked as used"}}"#
        ),
        (
            #"{"relink":{"_0":"ID","to":"http://h/b"}}"#,
            #"{"done":{"note":"the new address of the task is http://h/b"}}"#
        ),
        (
            #"{"change":{"_0":[{"id":"ID","priority":7}]}}"#,
            #"{"done":{"note":"1 task changed"}}"#
        ),
        (
            #"{"createBarrel":{"name":"c","options":{"directory":"OUT","rateLimit":5}}}"#,
            #"{"done":{"note":"barrel c created"}}"#
        ),
        (
            #"{"join":{"_0":[{"url":{"_0":"http://h/a"}},{"id":{"_0":"ID"}}],"barrel":"c"}}"#,
            #"{"count":{"_0":1}}"#
        ),
        (
            #"{"run":{"_0":{"all":{}}}}"#,
            #"{"done":{"note":"0 of 1 task can run"}}"#
        ),
        (
            #"{"setLimits":{"maxAction":3}}"#,
            #"{"done":{"note":"limits changed"}}"#
        ),
        (
            #"{"limit":{"barrel":"b","rate":9}}"#,
            #"{"done":{"note":"barrel b: at most 9 B/s"}}"#
        ),
        (
            #"{"limits":{}}"#,
            #"{"limits":{"_0":{"barrels":[{"name":"b","rate":9}],"commands":[]}}}"#
        ),
        (
            #"{"limit":{}}"#,
            #"{"done":{"note":"all tasks: no limit"}}"#
        ),
        (
            #"{"renew":{"_0":[{"damaged":[{"end":2,"start":1}],"id":"ID"}]}}"#,
            #"{"count":{"_0":0}}"#
        ),
        (
            #"{"addProgram":{"_0":{"directory":"/","name":"p","priority":100,"program":["/bin/true"],"stage":"head","timeLimit":10}}}"#,
            #"{"done":{"note":"p added to the head chain"}}"#
        ),
        (
            #"{"removeProgram":{"name":"p"}}"#,
            #"{"done":{"note":"p removed"}}"#
        ),
        (
            #"{"follow":{}}"#,
            #"{"done":{"note":"changes are written"}}"#
        ),
        (
            #"{"resumeAll":{}}"#,
            #"{"verbs":{"_0":[{"after":"idle","applied":true,"before":"suspend","id":"ID","note":"queued: it starts with the next run","url":"http://h/a","verb":"resume"}]}}"#
        ),
        (
            #"{"limited":{"_0":{"connections":{"fixed":{"_0":3}},"maxAction":2,"name":"c","rateLimit":8},"_1":{"run":{"_0":{"all":{}}}}}}"#,
            #"{"done":{"note":"1 of 1 task can run"}}"#
        ),
        (
            #"{"removeFromBarrel":{"name":"b","urls":["http://h/a"]}}"#,
            #"{"done":{"note":"1 removed from barrel b"}}"#
        ),
        (
            #"{"deleteBarrel":{"name":"b"}}"#,
            #"{"done":{"note":"barrel b deleted; it had no tasks"}}"#
        ),
        (
            #"{"verb":{"_0":"retry","_1":{"state":{"_0":"error"}}}}"#,
            #"{"verbs":{"_0":[]}}"#
        ),
        (
            #"{"verb":{"_0":"trash","_1":{"barrel":{"_0":"c"}}}}"#,
            #"{"verbs":{"_0":[{"after":"unknown","applied":true,"before":"idle","id":"ID","note":"forgotten","url":"http://h/a","verb":"trash"}]}}"#
        ),
        (
            #"{"deleteBarrel":{"name":"none"}}"#,
            #"{"failed":{"_0":{"code":"not-found","isRetryable":false,"message":"There is no barrel named \"none\"."}}}"#
        ),
    ]

    @Test("every message is answered in the form in which it was written")
    func answered() async throws {
        let closed = try await Bench(isActive: false) { request, _ in .file([], to: request) }
        await closed.downloader.close()
        var task = TaskDescription(url: "http://h/a")
        task.directory = closed.out
        task.fileName = "a.bin"
        func filled(_ text: String) -> String {
            text.replacing("ID\"", with: task.id.hex + "\"").replacing("OUT", with: closed.out)
        }
        let ids = try Self.course.map { step in
            let id = MessageID()
            try write(Array(filled(step.message).utf8), closed.workPath.mailboxFolder + "/\(id.name).msg")
            return id
        }
        let bench = try await Bench(in: closed.folder, scope: .chosen, isActive: false) { request, _ in
            .file([], to: request)
        }
        await bench.engine.afterLeftovers()
        for (id, step) in zip(ids, Self.course) {
            let answer = try bytes(bench.workPath.repliesFolder + "/\(id.name).reply")
            #expect(String(decoding: answer, as: UTF8.self) == filled(step.answer), "\(step.message)")
        }
        #expect(try FileIO.names(in: bench.workPath.mailboxFolder).isEmpty)
        await bench.downloader.close()
    }

    @Test("a message of a later version is refused, and one of this version says its version")
    func versions() throws {
        let message = try StoreJSON.encode(EngineMessage(.run(.all)))
        #expect(String(decoding: message, as: UTF8.self) == #"{"run":{"_0":{"all":{}}},"version":2}"#)
        for text in [#"{"run":{"_0":{"all":{}}},"version":3}"#, #"{"version":2}"#, #"{"limits":{},"resumeAll":{}}"#] {
            #expect(throws: DownloadError.self) {
                try StoreJSON.decode(EngineMessage.self, from: Array(text.utf8))
            }
        }
    }

    @Test("an owner of the version before answers with a line where this one gives a number")
    func lines() throws {
        let set = Request.setAttributes(.all, [:])
        #expect(try set.reply(.done(note: "attributes of 3 tasks changed")) == 3)
        #expect(try set.reply(.count(2)) == 2)
        #expect(throws: DownloadError.self) { try set.reply(.verbs([])) }
    }
}
