import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore

/// Row 29: the first address breaks off and is gone, and another one goes on with what it holds for the same file.
@Suite("Faults: mirrors that disagree", .timeLimit(.minutes(10)))
struct FaultMirrorTests {
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
        let hex = Array(Bytes.sha256(body).utf8)
        let bytes = stride(from: 0, to: hex.count, by: 2).map {
            UInt8(String(decoding: hex[$0..<$0 + 2], as: UTF8.self), radix: 16) ?? 0
        }
        return "sha-256=:\(Data(bytes).base64EncodedString()):"
    }

    @Test(
        "fault 29: mirrors that disagree in length, bytes or digest are never mixed", arguments: [1, 4, 16],
        Other.allCases)
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
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(live.names.filter { !$0.hasPrefix(".") } == ["a"])
        let isWhole = try live.out("a") == after
        #expect(isWhole, "bytes of two files")
        await live.downloader.close()
    }
}
