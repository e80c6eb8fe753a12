import TestSupport
import Testing

@testable import fk

@Suite("fk get, end to end") final class GetCommandTests: ServedSuite {
    private let a = Bytes.pattern(count: 200_000, seed: 1)
    private let b = Bytes.pattern(count: 300_000, seed: 2)

    override init() throws {
        try super.init()
        server.serve("/a.bin", a)
        server.serve("/b.bin", b)
    }

    @Test("Several URLs, a folder that is made, and their paths on standard output") func several() async throws {
        let result = try await sandbox.done("get", server.url("/a.bin"), server.url("/b.bin"), "-d", "new/deep")
        let paths = ["a.bin", "b.bin"].map { "\(sandbox.files)/new/deep/\($0)" }
        #expect(result.output.split(separator: "\n").sorted() == paths.map { Substring($0) })
        #expect(result.errors.contains("2 of 2 complete") && !result.errors.contains("\u{1b}"))
        #expect(try sandbox.bytes("new/deep/a.bin") == a)
        #expect(try sandbox.bytes("new/deep/b.bin") == b)
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(sandbox.files)/new/deep").count == 2)
    }

    @Test("-o names the file, with a folder as well") func output() async throws {
        try await sandbox.done("get", server.url("/a.bin"), "-o", "sub/name.txt")
        #expect(try sandbox.bytes("sub/name.txt") == a)
    }

    @Test("The second identical command says so and asks the server for nothing; a deleted file is fetched again")
    func again() async throws {
        let words = ["get", server.url("/a.bin")]
        _ = try await sandbox.fk(words)
        let second = try await sandbox.done(words)
        #expect(second.errors.contains("already complete"))
        #expect(server.requests.count == 1)
        try FileManager.default.removeItem(atPath: "\(sandbox.files)/a.bin")
        let third = try await sandbox.fk(words)
        #expect(third.status == 0 && !third.errors.contains("already"))
        #expect(try sandbox.bytes("a.bin") == a)
        #expect(server.requests.count == 2)
    }

    @Test("fk info and fk list tell name, format, type and percentage of a file, complete or not")
    func record() async throws {
        let body = a
        server.route("/x") { request in
            let headers: KeyValuePairs = [
                "Content-Type": "Application/Zip; a=b", "Content-Disposition": "attachment; filename=\"One two.ZIP\"",
            ]
            let whole = FaultResponse.ok(body, headers: headers)
            return request.index == 0 ? whole.cut(at: body.count * 2 / 3) : whole
        }
        func fields(_ document: [String: Any]?) -> [String] {
            ["name", "format", "mimeType", "percentage"].map { name in document?[name].map { "\($0)" } ?? "-" }
        }
        for (status, percentage) in [(1, "66"), (0, "100")] as [(Int32, String)] {
            #expect(try await sandbox.fk("get", "--retry", "0", server.url("/x")).status == status)
            let expected = ["One two.ZIP", "zip", "application/zip", percentage]
            let info = try await sandbox.done("info", "--json", server.url("/x")).output
            #expect(fields(try JSONSerialization.jsonObject(with: Data(info.utf8)) as? [String: Any]) == expected)
            let list = try await sandbox.done("list", "--json").output
            #expect(
                fields((try JSONSerialization.jsonObject(with: Data(list.utf8)) as? [[String: Any]])?.first) == expected
            )
        }
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
        #expect(result.errors.contains("404") && result.errors.contains("The server says: \"No such thing here\""))
        #expect(result.errors.contains("1 of 2 complete, 1 failed"))
        #expect(try sandbox.names() == ["a.bin"])
        let info = try await sandbox.json("info", server.url("/gone"))
        #expect(info.text("state") == "error")
        #expect(info["error", "code"] as? String == "http-status")
        #expect(info["error", "status"] as? Int == 404)
    }

    @Test("a finished file that somebody has changed stays, and is named") func edited() async throws {
        server.serve("/a", [1, 2, 3])
        try await sandbox.done("get", server.url("/a"))
        let unedited = try await sandbox.done("get", server.url("/a"))
        #expect(!unedited.errors.contains("changed"))
        try Data([9, 9, 9]).write(to: URL(fileURLWithPath: "\(sandbox.files)/a"))
        let again = try await sandbox.done("get", server.url("/a"))
        #expect(
            again.errors.contains("1 finished file was changed after fk wrote it, and stays: fk verify --repair"),
            "\(again)")
        #expect(try sandbox.bytes("a") == [9, 9, 9])
        let id = try #require(again.errors.firstMatch(of: /--repair ([0-9a-f]{12})/)?.1)
        try await sandbox.done("verify", "--repair", String(id))
        #expect(try sandbox.bytes("a") == [1, 2, 3])
    }
}
