import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine
@testable import FKModel
@testable import FKTransport

/// What a second attempt makes of what the first one left, end to end. The rules themselves are tested as values.
@Suite("Engine: resuming", .timeLimit(.minutes(10)))
struct EngineResumeTests {
    /// Small enough to be written without the engine being asked, and too large for that.
    static let sizes = [10_000, 400_000]

    /// The first answer is cut after half of `old`; the second one is `answer`'s.
    private func resumed(
        _ old: [UInt8], etag: String? = "\"1\"", _ meddle: @Sendable (Bench) throws -> Void = { _ in },
        _ answer: @escaping @Sendable (TransportRequest, Int) -> Bench.Answer
    ) async throws -> (Bench, DownloadInfo) {
        let bench = try await Bench { request, number in
            number == 1 ? .file(old, etag: etag, to: request, cut: old.count / 2) : answer(request, number)
        }
        let id = try await bench.add("a")
        await bench.reached("a", .idle, times: 2)
        try meddle(bench)
        await bench.advance(1)
        return (bench, try #require(await bench.finished(id)))
    }

    @Test("same ETag: 206, the rest is appended", arguments: sizes)
    func same(_ size: Int) async throws {
        let content = Bytes.pattern(count: size)
        let (bench, info) = try await resumed(content) { request, _ in .file(content, to: request) }
        #expect(info.state == .complete)
        #expect(bench.sent("Range") == ["-", "bytes=\(size / 2)-"])
        #expect(try bench.out("a") == content)
    }

    @Test("another ETag: the whole file from 0, longer, shorter or equally long", arguments: sizes, [-1_000, 0, 1_000])
    func changed(_ size: Int, _ difference: Int) async throws {
        let new = Bytes.pattern(count: size + difference, seed: 2)
        let (bench, info) = try await resumed(Bytes.pattern(count: size)) { request, _ in
            .file(new, etag: "\"2\"", to: request)
        }
        #expect(info.state == .complete)
        #expect(try bench.out("a") == new)
        #expect(try bench.stored(info.id).validator?.etag == "\"2\"")
        #expect(bench.names == ["a"])
    }

    @Test("a 206 of another version: asked for again from 0", arguments: sizes, [-1_000, 0, 1_000])
    func partOfAnother(_ size: Int, _ difference: Int) async throws {
        let new = Bytes.pattern(count: size + difference, seed: 2)
        let (bench, info) = try await resumed(Bytes.pattern(count: size)) { request, number in
            // This server does not heed If-Range.
            var request = request
            request.urlRequest.setValue(nil, forHTTPHeaderField: "If-Range")
            return .file(new, etag: "\"2\"", to: request)
        }
        #expect(info.state == .complete)
        #expect(bench.sent("Range") == ["-", "bytes=\(size / 2)-", "-"])
        #expect(try bench.out("a") == new)
    }

    @Test("416 because the file became shorter than what is held: from 0", arguments: sizes, ["\"1\"", nil])
    func shrunk(_ size: Int, _ etag: String?) async throws {
        let new = Bytes.pattern(count: size / 4, seed: 2)
        let (bench, info) = try await resumed(Bytes.pattern(count: size), etag: etag) { request, number in
            .file(new, etag: etag, to: request)
        }
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try bench.out("a") == new)
    }

    @Test("416 with our length: everything is here", arguments: sizes)
    func already(_ size: Int) async throws {
        let content = Bytes.pattern(count: size)
        let bench = try await Bench { request, number in
            // No length, and the end of the body is lost together with the connection.
            guard number == 1 else { return .file(content, to: request) }
            let head = ResponseHead(status: 200, fields: [.init("ETag", "\"1\"")], url: "http://h.example/a")
            return Bench.Answer([
                .head(head), .bytes(content), .fail(DownloadError(.connectionLost, "lost", isRetryable: true)),
            ])
        }
        let id = try await bench.add("a")
        await bench.reached("a", .idle, times: 2)
        await bench.advance(1)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Range") == ["-", "bytes=\(size)-"])
        #expect(try bench.out("a") == content)
    }

    @Test("a server that ignores Range: the whole file, from 0", arguments: sizes)
    func ignoresRange(_ size: Int) async throws {
        let content = Bytes.pattern(count: size)
        let (bench, info) = try await resumed(content, etag: nil) { request, _ in
            var request = request
            request.urlRequest.setValue(nil, forHTTPHeaderField: "Range")
            return .file(content, etag: nil, to: request)
        }
        #expect(info.state == .complete)
        #expect(try bench.out("a") == content)
        #expect(bench.transport.requests.count == 2)
    }

    @Test(
        "a 200 with our own strong ETag: the server only ignores If-Range, so a plain Range is tried", arguments: sizes)
    func ignoresIfRange(_ size: Int) async throws {
        let content = Bytes.pattern(count: size)
        let (bench, info) = try await resumed(content) { request, _ in
            var request = request
            if request.urlRequest.value(forHTTPHeaderField: "If-Range") != nil {
                request.urlRequest.setValue(nil, forHTTPHeaderField: "Range")
            }
            return .file(content, to: request)
        }
        #expect(info.state == .complete)
        #expect(bench.sent("Range") == ["-", "bytes=\(size / 2)-", "bytes=\(size / 2)-"])
        #expect(bench.sent("If-Range") == ["-", "\"1\"", "-"])
        #expect(try bench.out("a") == content)
    }

    @Test("no validator: the last 4 KiB are asked for again and compared", arguments: sizes)
    func tail(_ size: Int) async throws {
        let content = Bytes.pattern(count: size)
        let (bench, info) = try await resumed(content, etag: nil) { request, _ in
            .file(content, etag: nil, to: request)
        }
        #expect(info.state == .complete)
        #expect(bench.sent("Range") == ["-", "bytes=\(size / 2 - 4_096)-"])
        #expect(try bench.out("a") == content)
    }

    @Test("no validator and other bytes before the seam: from 0", arguments: sizes)
    func seam(_ size: Int) async throws {
        let new = Bytes.pattern(count: size, seed: 2)
        let (bench, info) = try await resumed(Bytes.pattern(count: size), etag: nil) { request, _ in
            .file(new, etag: nil, to: request)
        }
        #expect(info.state == .complete)
        #expect(bench.sent("Range") == ["-", "bytes=\(size / 2 - 4_096)-", "-"])
        #expect(try bench.out("a") == new)
    }

    @Test(
        "the part was shortened by somebody: what is left counts if a digest is known, otherwise from 0",
        arguments: sizes, [true, false])
    func shortened(_ size: Int, _ isVerified: Bool) async throws {
        let content = Bytes.pattern(count: size)
        let bench = try await Bench { request, number in
            .file(content, to: request, cut: number == 1 ? size / 2 : nil)
        }
        let id = try await bench.add("a") {
            if isVerified { $0.options.checksum = try? Checksum(.sha256, hex: Bytes.sha256(content)) }
        }
        await bench.reached("a", .idle, times: 2)
        #expect(truncate("\(bench.out)/\(try #require(bench.names.first))", 100) == 0)
        await bench.advance(1)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Range") == ["-", isVerified ? "bytes=100-" : "-"])
        #expect(try bench.out("a") == content)
    }

    @Test("the part was deleted by somebody: from 0", arguments: sizes)
    func deleted(_ size: Int) async throws {
        let content = Bytes.pattern(count: size)
        let (bench, info) = try await resumed(content) { bench in
            for name in bench.names { unlink("\(bench.out)/\(name)") }
        } _: { request, _ in
            .file(content, to: request)
        }
        #expect(info.state == .complete)
        #expect(bench.sent("Range") == ["-", "-"])
        #expect(try bench.out("a") == content)
    }

    @Test("somebody appended to the part: the file has its own length in the end", arguments: sizes, [true, false])
    func appended(_ size: Int, _ isVerified: Bool) async throws {
        let content = Bytes.pattern(count: size)
        let bench = try await Bench { request, number in
            .file(content, to: request, cut: number == 1 ? size / 2 : nil)
        }
        let id = try await bench.add("a") {
            if isVerified { $0.options.checksum = try? Checksum(.sha256, hex: Bytes.sha256(content)) }
        }
        await bench.reached("a", .idle, times: 2)
        let part = "\(bench.out)/\(try #require(bench.names.first))"
        #expect(truncate(part, off_t(size) + 5_000) == 0)
        await bench.advance(1)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(try bench.out("a") == content)
    }

    @Test("a part file whose info file is lost is kept as .old")
    func lostInfo() async throws {
        let content = Bytes.pattern(count: 5_000)
        let bench = try await Bench(content: content)
        let task = bench.task("a")
        let part = FileNameRules.partName(for: "a", id: task.id)
        try bench.folder.write([1, 2, 3], to: "out/\(part)")
        let id = try await bench.add("a")
        #expect(await bench.finished(id)?.state == .complete)
        #expect(try bench.out("\(part).old") == [1, 2, 3])
        #expect(await bench.downloader.takeProblems().contains { $0.contains(".old") })
        #expect(try bench.out("a") == content)
    }

    @Test("a server that sends less than asked for each time: the rest is asked for until it is whole")
    func pieces() async throws {
        let content = Bytes.pattern(count: 10_000)
        let bench = try await Bench { request, number in
            guard let range = request.urlRequest.value(forHTTPHeaderField: "Range") else {
                return .file(content, to: request, cut: 1_000)
            }
            let start = Int(range.dropFirst(6).prefix { $0 != "-" }) ?? 0
            let end = min(content.count, start + 3_000)
            return Bench.Answer([
                .head(
                    ResponseHead(
                        status: 206,
                        fields: [
                            .init("ETag", "\"1\""), .init("Content-Length", "\(end - start)"),
                            .init("Content-Range", "bytes \(start)-\(end - 1)/\(content.count)"),
                        ], url: "http://h.example/a")),
                .bytes(Array(content[start..<end])),
            ])
        }
        let id = try await bench.add("a")
        await bench.reached("a", .idle, times: 2)
        await bench.advance(1)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Range") == ["-", "bytes=1000-", "bytes=4000-", "bytes=7000-"])
        #expect(try bench.out("a") == content)
    }
}
