import FKCore
import Foundation
import TestSupport
import Testing

@testable import fk

/// Digests and mirrors that servers tell, links that expire, and bytes that are there already.
@Suite("Digests, links and reuse, end to end", .timeLimit(.minutes(10))) struct EndToEndDigestTests {
    private let sandbox: Sandbox
    private let server: FaultServer
    private let body = Bytes.pattern(count: 600_000)

    init() throws {
        sandbox = try Sandbox()
        server = try FaultServer()
    }

    @Test("A digest is asked for, and one that a redirect to a linked file tells is checked") func linked() async throws
    {
        let sha = Bytes.sha256(body)
        for (path, tag, size) in [
            ("/good", sha, body.count), ("/bad", String(repeating: "0", count: 64), body.count),
            ("/other", String(repeating: "0", count: 64), 5),
        ] {
            server.route(path) { [url = server.url("/store")] _ in
                .redirect(to: url).adding("X-Linked-ETag", "\"\(tag)\"").adding("X-Linked-Size", "\(size)")
            }
        }
        server.serve("/store", body)
        #expect(try await sandbox.fk("get", server.url("/good"), "-d", "a").status == 0)
        #expect(server.requests.allSatisfy { $0["Want-Repr-Digest"] == "sha-256=10, sha-512=5" })
        let bad = try await sandbox.fk("get", server.url("/bad"), "-d", "b")
        #expect(bad.status == 1 && bad.errors.contains("as the server tells"), "\(bad)")
        #expect(
            try await sandbox.fk("get", server.url("/other"), "-d", "c").status == 0, "another length: not of this file"
        )
    }

    @Test("403 in the middle asks the first address again, and counts as no attempt") func expired() async throws {
        let asked = Observed(0)
        server.route("/f") { [base = server.base] _ in
            let number = asked.update { number in
                number += 1
                return number
            }
            return .redirect(to: "\(base)/link\(number)")
        }
        for number in 1...4 {
            server.route("/link\(number)") { [body] request in
                let isUsed = request.range(of: body.count)?.lowerBound == 0
                // Each link serves one answer that breaks off; the last one serves all.
                if number.isMultiple(of: 2) { return .status(403, body: Array("expired".utf8)) }
                let answer = FaultResponse.ranged(body, for: request, etag: "\"v\"")
                return number < 3 || isUsed ? answer.cut(at: 100_000) : answer
            }
        }
        let result = try await sandbox.fk("get", server.url("/f"), "-x", "1", "--retry", "1")
        #expect(result.status == 0, "\(result)")
        #expect(try sandbox.bytes("f") == body)
        #expect(asked.value == 3)
    }

    @Test("A mirror that the server offers is tried and used, and gets no secret") func duplicate() async throws {
        let large = Bytes.pattern(count: 12 << 20)
        let mirror = try FaultServer()
        mirror.route("/m") { .ranged(large, for: $0, etag: "\"other\"") }
        let gate = Gate()
        server.route("/f") { [url = mirror.url("/m")] request in
            FaultResponse.ranged(large, for: request, etag: "\"own\"").adding("Link", "<\(url)>; rel=duplicate; pri=1")
                .stalling(at: 1 << 20, until: gate)
        }
        let run = try sandbox.start(
            "get", server.url("/f"), "-x", "4", "--mirrors", "combine", "-H", "Authorization: Bearer s3cret")
        await mirror.waitForRequests(2)
        gate.open()
        #expect(await run.end().status == 0)
        #expect(try sandbox.bytes("f") == large)
        #expect(mirror.requests.allSatisfy { $0["Authorization"] == nil })
        #expect(server.requests.allSatisfy { $0["Authorization"] == "Bearer s3cret" })
    }

    @Test("--reuse takes the bytes of an unchanged file of the work path, and of no other") func reuse() async throws {
        server.serve("/a", body)
        server.serve("/b", body)
        let sum = ["--checksum", Bytes.sha256(body)]
        #expect(try await sandbox.fk(["get", server.url("/a"), "-d", "one"] + sum).status == 0)
        let before = server.requests.count
        #expect(try await sandbox.fk(["get", server.url("/b"), "-d", "two", "--reuse"] + sum).status == 0)
        #expect(server.requests.count == before)
        #expect(try sandbox.bytes("two/b") == body)
        #expect(
            try await sandbox.fk("why", server.url("/b")).output.contains("has the same bytes: nothing was fetched"))
        // Without the option, or when the file has changed, it is fetched.
        #expect(try await sandbox.fk(["get", server.url("/b"), "-d", "three"] + sum).status == 0)
        #expect(server.requests.count == before + 1)
        for folder in ["one/a", "two/b", "three/b"] { try sandbox.put("changed", folder) }
        #expect(try await sandbox.fk(["get", server.url("/a"), "-d", "four", "--reuse"] + sum).status == 0)
        #expect(server.requests.count == before + 2)
        #expect(try sandbox.bytes("four/a") == body)
    }

    @Test("--reuse of other bytes under the same record fetches the file") func reuseOfOtherBytes() async throws {
        server.serve("/a", body)
        let sum = ["--checksum", Bytes.sha256(body)]
        #expect(try await sandbox.fk(["get", server.url("/a"), "-d", "one", "--reuse"] + sum).status == 0)
        // The same inode, length and time, and other bytes.
        let path = "\(sandbox.files)/one/a"
        var status = stat()
        #expect(stat(path, &status) == 0)
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try handle.write(contentsOf: Data([0xff, 0xfe, 0xfd, 0xfc]))
        try handle.close()
        var times = [status.st_atim, status.st_mtim]
        #expect(utimensat(AT_FDCWD, path, &times, 0) == 0)
        #expect(try await sandbox.fk(["get", server.url("/a"), "-d", "two", "--reuse"] + sum).status == 0)
        #expect(try sandbox.bytes("two/a") == body)
    }
}
