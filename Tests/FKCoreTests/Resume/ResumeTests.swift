import TestSupport
import Testing

/// What a second attempt makes of what the first one left, end to end. The rules themselves are tested as values.
@Suite("Resuming")
struct ResumeTests {
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

    /// What the server does with the second request, and what is asked for after that.
    enum Answer: CaseIterable {
        case same, another, anotherInPart, shorter, ignoresRange, ignoresIfRange, comparesEqual, comparesDifferent
    }

    @Test("the second answer decides whether the first one's bytes stay", arguments: sizes, Answer.allCases)
    func second(_ size: Int, _ answer: Answer) async throws {
        let old = Bytes.pattern(count: size)
        let other = Bytes.pattern(count: answer == .shorter ? size / 4 : size, seed: 2)
        let isOther = [.another, .anotherInPart, .shorter, .comparesDifferent].contains(answer)
        let hasTag = ![.ignoresRange, .comparesEqual, .comparesDifferent].contains(answer)
        let (half, tail) = ("bytes=\(size / 2)-", "bytes=\(size / 2 - 4_096)-")
        let asked =
            switch answer {
            case .same, .another: [half]
            case .anotherInPart, .shorter: [half, "-"]
            case .ignoresRange, .comparesEqual: [tail]
            case .ignoresIfRange: [half, half]
            case .comparesDifferent: [tail, "-"]
            }
        let (bench, info) = try await resumed(old, etag: hasTag ? "\"1\"" : nil) { request, _ in
            var request = request
            let hasCondition = request.urlRequest.value(forHTTPHeaderField: "If-Range") != nil
            if answer == .anotherInPart || answer == .shorter {
                request.urlRequest.setValue(nil, forHTTPHeaderField: "If-Range")
            }
            if answer == .ignoresRange || (answer == .ignoresIfRange && hasCondition) {
                request.urlRequest.setValue(nil, forHTTPHeaderField: "Range")
            }
            return .file(isOther ? other : old, etag: hasTag ? isOther ? "\"2\"" : "\"1\"" : nil, to: request)
        }
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(bench.sent("Range") == ["-"] + asked)
        #expect(try bench.out("a") == (isOther ? other : old) && bench.names == ["a"])
        #expect(try bench.stored(info.id).validator?.etag == (hasTag ? isOther ? "\"2\"" : "\"1\"" : nil))
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
        await bench.retried("a", after: 1)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Range") == ["-", "bytes=\(size)-"])
        #expect(try bench.out("a") == content)
    }

    @Test(
        "the part was shortened by somebody: what is left counts if a digest is known, otherwise from 0",
        arguments: sizes, [true, false])
    func shortened(_ size: Int, _ isVerified: Bool) async throws {
        let bench = try await truncated(size, to: 100, isVerified)
        #expect(bench.sent("Range") == ["-", isVerified ? "bytes=100-" : "-"])
    }

    @Test("somebody appended to the part: the file has its own length in the end", arguments: sizes, [true, false])
    func appended(_ size: Int, _ isVerified: Bool) async throws {
        _ = try await truncated(size, to: size + 5_000, isVerified)
    }

    /// Half of a file arrives, somebody gives the part this length, and the file is right in the end.
    private func truncated(_ size: Int, to length: Int, _ isVerified: Bool) async throws -> Bench {
        let content = Bytes.pattern(count: size)
        let bench = try await Bench { request, number in
            .file(content, to: request, cut: number == 1 ? size / 2 : nil)
        }
        let id = try await bench.add("a") {
            if isVerified { $0.options.checksum = try? Checksum(.sha256, hex: Bytes.sha256(content)) }
        }
        await bench.reached("a", .idle, times: 2)
        #expect(truncate("\(bench.out)/\(try #require(bench.names.first))", off_t(length)) == 0)
        await bench.advance(1)
        try await bench.expect("a", content, of: id)
        return bench
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
}
