import TestSupport
import Testing

/// The first server breaks off and does not answer again. A mirror continues with the file that it has under the same name.
@Suite("Mirrors that disagree")
struct DisagreeingMirrorTests {
    enum Other: String, CaseIterable, Sendable {
        case same, otherLength, otherBytes, otherDigest

        func content(_ segments: Int) -> [UInt8] {
            switch self {
            case .same: RangeContent.before(segments)
            case .otherLength: RangeContent.after(segments, 1_000)
            case .otherBytes, .otherDigest: RangeContent.after(segments, 0)
            }
        }
    }

    private static func digest(_ body: [UInt8]) -> String {
        "sha-256=:\(Bytes.base64(.sha256, body)):"
    }

    @Test("mirrors that disagree in length, bytes or digest are never mixed", arguments: [1, 4, 16], Other.allCases)
    func disagree(_ segments: Int, _ other: Other) async throws {
        let before = RangeContent.before(segments)
        let after = other.content(segments)
        let hasDigest = other == .otherDigest
        let digests = hasDigest ? (Self.digest(before), Self.digest(after)) : ("", "")
        let first = try FaultServer()
        first.route("/a") { request in
            guard request.index < segments else { return .status(404) }
            let answer = FaultResponse.ranged(before, for: request, etag: "\"first\"").cut(at: 100_000)
            return hasDigest ? answer.adding("Repr-Digest", digests.0) : answer
        }
        let mirror = try FaultServer()
        mirror.route("/a") { request in
            let answer = FaultResponse.ranged(after, for: request, etag: "\"mirror\"")
            return hasDigest ? answer.adding("Repr-Digest", digests.1) : answer
        }
        let live = try LiveBench {
            $0.connections = .fixed(segments)
            $0.retry.maxAttempts = 6
        }
        var builder = try Builder(first.url("/a"))
        builder.directory = live.out
        try builder.setMirrors([mirror.url("/a")])
        let id = try await builder.prepare(in: live.downloader)
        let info = try #require(await live.downloader.messager.finished(id))
        if hasDigest || other == .otherLength {
            // The digest and the length of the first server bind the mirror, and the first server has the file no more.
            #expect(info.state == .error)
            #expect(live.names.filter { !$0.hasPrefix(".") } == [])
            return
        }
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(live.names.filter { !$0.hasPrefix(".") } == ["a"])
        let isWhole = try live.out("a") == after
        #expect(isWhole, "bytes of two files")
    }

    @Test(
        "a server dies at a byte: the mirror that it offered sends the rest, if the server's digest vouches for it",
        arguments: [1, 4], [true, false])
    func offered(_ segments: Int, _ hasDigest: Bool) async throws {
        let content = Bytes.pattern(count: 900_000)
        let cut = 123_457
        let mirror = try FaultServer()
        mirror.route("/b") { FaultResponse.ranged(content, for: $0, etag: "\"mirror\"") }
        let first = try FaultServer()
        first.route("/a") { request in
            guard request.index == 0 else { return .status(404) }
            let answer = FaultResponse.ranged(content, for: request, etag: "\"first\"")
                .adding("Link", "<\(mirror.url("/b"))>; rel=duplicate; pri=1").cut(at: cut)
            return hasDigest ? answer.adding("Repr-Digest", Self.digest(content)) : answer
        }
        let live = try LiveBench {
            $0.connections = .fixed(segments)
            $0.retry.maxAttempts = 2
            $0.retry.baseDelay = .milliseconds(1)
        }
        var builder = try Builder(first.url("/a"))
        builder.directory = live.out
        builder.options.headers = [.init("Authorization", "Basic secret"), .init("X-Lab", "7")]
        let id = try await builder.prepare(in: live.downloader)
        let info = try #require(await live.downloader.messager.finished(id))
        if hasDigest {
            #expect(info.state == .complete, "\(String(describing: info.error))")
            #expect(try live.out("a") == content)
            #expect(info.attempts == 2)
            #expect(mirror.requests.first?["Range"] == "bytes=\(cut - 4096)-")
        } else {
            #expect(info.error?.status == 404)
        }
        #expect(mirror.requests.allSatisfy { $0["Authorization"] == nil && $0["X-Lab"] == nil })
        #expect(first.requests[0]["X-Lab"] == "7")
        let record = try InfoFile.read(WorkPath(live.folder.path + "/work").infoPath(id)).record
        #expect(record.offered == (hasDigest ? [mirror.url("/b")] : nil))
    }
}
