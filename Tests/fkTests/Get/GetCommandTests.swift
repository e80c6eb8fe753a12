import Foundation
import TestSupport
import Testing

@testable import fk

@Suite("fk get, end to end", .timeLimit(.minutes(10))) struct EndToEndGetTests {
    private let sandbox: Sandbox
    private let server: FaultServer
    private let a = Bytes.pattern(count: 200_000, seed: 1)
    private let b = Bytes.pattern(count: 300_000, seed: 2)

    init() throws {
        sandbox = try Sandbox()
        server = try FaultServer()
        server.serve("/a.bin", a)
        server.serve("/b.bin", b)
    }

    @Test("Several URLs, a folder that is made, and their paths on standard output") func several() async throws {
        let result = try await sandbox.fk("get", server.url("/a.bin"), server.url("/b.bin"), "-d", "new/deep")
        #expect(result.status == 0)
        let paths = ["a.bin", "b.bin"].map { "\(sandbox.files)/new/deep/\($0)" }
        #expect(result.output.split(separator: "\n").sorted() == paths.map { Substring($0) })
        #expect(result.errors.contains("2 of 2 complete") && !result.errors.contains("\u{1b}"))
        #expect(try sandbox.bytes("new/deep/a.bin") == a)
        #expect(try sandbox.bytes("new/deep/b.bin") == b)
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(sandbox.files)/new/deep").count == 2)
    }

    @Test("-o names the file, with a folder as well") func output() async throws {
        #expect(try await sandbox.fk("get", server.url("/a.bin"), "-o", "sub/name.txt").status == 0)
        #expect(try sandbox.bytes("sub/name.txt") == a)
    }

    @Test("The second identical command says so and asks the server for nothing; a deleted file is fetched again")
    func again() async throws {
        let words = ["get", server.url("/a.bin")]
        _ = try await sandbox.fk(words)
        let second = try await sandbox.fk(words)
        #expect(second.status == 0)
        #expect(second.errors.contains("already complete"))
        #expect(server.requests.count == 1)
        try FileManager.default.removeItem(atPath: "\(sandbox.files)/a.bin")
        let third = try await sandbox.fk(words)
        #expect(third.status == 0 && !third.errors.contains("already"))
        #expect(try sandbox.bytes("a.bin") == a)
        #expect(server.requests.count == 2)
    }

    @Test("A file that is there: another name, replaced, kept", arguments: ["", "--rename", "--overwrite", "--skip"])
    func existing(policy: String) async throws {
        try sandbox.put("mine", "a.bin")
        let result = try await sandbox.fk(["get", server.url("/a.bin")] + (policy.isEmpty ? [] : [policy]))
        #expect(result.status == 0, "\(result.errors)")
        switch policy {
        case "--overwrite": #expect(try sandbox.bytes("a.bin") == a)
        case "--skip":
            #expect(try sandbox.bytes("a.bin") == Array("mine".utf8))
            #expect(try sandbox.names() == ["a.bin"] && server.requests.isEmpty)
        default:
            #expect(try sandbox.bytes("a.bin") == Array("mine".utf8))
            #expect(try sandbox.bytes("a.1.bin") == a)
        }
    }

    @Test("-o never replaces a file unasked") func outputExists() async throws {
        try sandbox.put("mine", "x")
        let result = try await sandbox.fk("get", server.url("/a.bin"), "-o", "x")
        #expect(result.status == 1)
        #expect(result.errors.contains("--overwrite"))
        #expect(try sandbox.bytes("x") == Array("mine".utf8))
    }

    @Test("A list from a file or standard input, in the form of aria2 as well", arguments: [false, true])
    func list(fromInput: Bool) async throws {
        let text = """
            # two files
            \(server.url("/a.bin"))

            \(server.url("/gone"))\t\(server.url("/b.bin"))
              out=second.bin
              dir=listed
              checksum=sha-256=\(Bytes.sha256(b))
            """
        try sandbox.put(text, "list")
        let result =
            fromInput
            ? try await sandbox.fk("get", "-i", "-", input: text) : try await sandbox.fk("get", "-i", "list")
        #expect(result.status == 0, "\(result.errors)")
        #expect(try sandbox.bytes("a.bin") == a)
        #expect(try sandbox.bytes("listed/second.bin") == b)
    }

    @Test("A mirror is used when the first address fails") func mirror() async throws {
        let result = try await sandbox.fk(
            "get", server.url("/gone.bin"), "--mirror", server.url("/a.bin"), "-o", "x", "--retry", "1")
        #expect(result.status == 0, "\(result.errors)")
        #expect(try sandbox.bytes("x") == a)
    }

    @Test("A right digest passes; with a wrong one nothing gets the final name") func checksum() async throws {
        let url = server.url("/a.bin")
        #expect(try await sandbox.fk("get", url, "-o", "good", "--checksum", "sha-256=\(Bytes.sha256(a))").status == 0)
        let wrong = try await sandbox.fk("get", url, "-o", "bad", "--checksum=sha-256=\(Bytes.sha256(b))")
        #expect(wrong.status == 1)
        #expect(wrong.errors.contains(Bytes.sha256(a)))
        #expect(sandbox.exists("good") && !sandbox.exists("bad"))
        let documents = try await sandbox.json("info", url).array
        #expect(documents.contains { $0["error", "code"] as? String == "checksum-mismatch" })
    }

    @Test("-H reaches the server, and its value stays out of what is shown") func header() async throws {
        let result = try await sandbox.fk("get", server.url("/a.bin"), "-H", "X-Token: s3cret", "-HAccept: a/b")
        #expect(result.status == 0)
        #expect(server.requests.first?["X-Token"] == "s3cret" && server.requests.first?["Accept"] == "a/b")
        #expect(try await !sandbox.fk("info", server.url("/a.bin")).output.contains("s3cret"))
    }

    @Test("--max-size refuses a larger file") func maxSize() async throws {
        let result = try await sandbox.fk("get", server.url("/a.bin"), "--max-size", "100K")
        #expect(result.status == 1)
        #expect(result.errors.contains("102400"))
        #expect(try sandbox.names() == [])
    }

    @Test("--limit-rate holds the server back") func limitRate() async throws {
        let body = Bytes.pattern(count: 30_000_000)
        server.route("/large") { _ in .ok(body) }
        let running = try sandbox.start("get", server.url("/large"), "--limit-rate", "200K")
        // A client that reads at this rate leaves the server with full buffers at once.
        let requests = await server.wait { $0.first.map { $0.timesBlocked > 0 } ?? false }
        #expect(requests[0].bytesSent < 20_000_000)
        let record = try #require(try await sandbox.record(server.url("/large")) { $0.received > 0 })
        #expect(record.received < 5_000_000)
        running.signal(SIGINT)
        #expect(await running.end().status == 130)
    }

    @Test("503 is tried again as often as --retry says", arguments: [(3, 0), (1, 1)])
    func retry(retries: Int, status: Int32) async throws {
        let body = a
        server.route("/busy") { request in
            request.index < 2 ? .status(503, headers: ["Retry-After": "0"]) : .ok(body)
        }
        let result = try await sandbox.fk("get", server.url("/busy"), "--retry", "\(retries)")
        #expect(result.errors.contains("busy: The server answered 503: it has a problem of its own. Next attempt in "))
        #expect(result.status == status)
        #expect(server.requests.count == min(retries + 1, 3))
        #expect(try await sandbox.json("info", server.url("/busy")).number("attempts") == min(retries + 1, 3))
    }

    @Test("404 ends with 1, the status and the words of the page, and leaves nothing behind") func notFound()
        async throws
    {
        server.route("/gone") { _ in
            .status(404, body: Array("<html><title>404</title><body><h1>No such thing here</h1></body>".utf8))
        }
        let result = try await sandbox.fk("get", server.url("/gone"), server.url("/a.bin"))
        #expect(result.status == 1)
        #expect(result.errors.contains("404") && result.errors.contains("(No such thing here)"))
        #expect(result.errors.contains("1 of 2 complete, 1 failed"))
        #expect(try sandbox.names() == ["a.bin"])
        let info = try await sandbox.json("info", server.url("/gone"))
        #expect(info.text("state") == "error")
        #expect(info["error", "code"] as? String == "http-status")
        #expect(info["error", "status"] as? Int == 404)
    }

    @Test("Names that would leave the folder or the terminal do neither") func names() async throws {
        let body = a
        server.route("/evil") { _ in
            .ok(body, headers: ["Content-Disposition": "attachment; filename=\"../../e\u{1b}[31mvil\""])
        }
        let result = try await sandbox.fk("get", server.url("/evil"))
        #expect(result.status == 0)
        #expect(!result.errors.contains("\u{1b}"))
        let names = try sandbox.names()
        #expect(names.count == 1 && !names[0].contains("\u{1b}") && !names[0].contains("/"))
    }
}
