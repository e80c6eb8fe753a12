import TestSupport
import Testing

@testable import fk

/// Digests and mirrors that servers tell, links that expire, and bytes that are there already.
@Suite("Digests, links and reuse, end to end") final class DigestOptionTests: ServedSuite {
    private let body = Bytes.pattern(count: 600_000)

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
        try await sandbox.done("get", server.url("/good"), "-d", "a")
        #expect(server.requests.allSatisfy { $0["Want-Repr-Digest"] == "sha-256=10, sha-512=5" })
        let bad = try await sandbox.fk("get", server.url("/bad"), "-d", "b")
        #expect(bad.status == 1 && bad.errors.contains("as the server tells"), "\(bad)")
        #expect(
            try await sandbox.fk("get", server.url("/other"), "-d", "c").status == 0, "another length: not of this file"
        )
    }

    @Test("--reuse takes the bytes of an unchanged file of the work path, and of no other") func reuse() async throws {
        server.serve("/a", body)
        server.serve("/b", body)
        let sum = ["--checksum", Bytes.sha256(body)]
        try await sandbox.done(["get", server.url("/a"), "-d", "one"] + sum)
        let before = server.requests.count
        try await sandbox.done(["get", server.url("/b"), "-d", "two", "--reuse"] + sum)
        #expect(server.requests.count == before)
        #expect(try sandbox.bytes("two/b") == body)
        #expect(
            try await sandbox.fk("why", server.url("/b")).output.contains("has the same bytes: nothing was fetched"))
        // Without the option, or when the file has changed, it is fetched.
        try await sandbox.done(["get", server.url("/b"), "-d", "three"] + sum)
        #expect(server.requests.count == before + 1)
        for folder in ["one/a", "two/b", "three/b"] { try sandbox.put("changed", folder) }
        try await sandbox.done(["get", server.url("/a"), "-d", "four", "--reuse"] + sum)
        #expect(server.requests.count == before + 2)
        #expect(try sandbox.bytes("four/a") == body)
    }

    @Test("--reuse of other bytes under the same record fetches the file") func reuseOfOtherBytes() async throws {
        server.serve("/a", body)
        let sum = ["--checksum", Bytes.sha256(body)]
        try await sandbox.done(["get", server.url("/a"), "-d", "one", "--reuse"] + sum)
        // The same inode, length and time, and other bytes.
        let path = "\(sandbox.files)/one/a"
        var status = stat()
        #expect(stat(path, &status) == 0)
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try handle.write(contentsOf: Data([0xff, 0xfe, 0xfd, 0xfc]))
        try handle.close()
        var times = [status.st_atim, status.st_mtim]
        #expect(utimensat(AT_FDCWD, path, &times, 0) == 0)
        try await sandbox.done(["get", server.url("/a"), "-d", "two", "--reuse"] + sum)
        #expect(try sandbox.bytes("two/a") == body)
    }
}
