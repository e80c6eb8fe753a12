import TestSupport
import Testing

/// The digest that the first server announced binds every source of the task.
@Suite("The digest of the first server")
struct AnnouncedDigestTests {
    private static let content = Bytes.pattern(count: 3_000_000)
    /// Another file of the same length, whose first bytes are the same.
    private static let other: [UInt8] = content.dropLast() + [content[content.count - 1] ^ 1]
    private static let a = try? Checksum(.sha256, hex: Bytes.sha256([1]))
    private static let b = try? Checksum(.sha256, hex: Bytes.sha256([2]))
    private static let long = try? Checksum(.sha512, hex: String(repeating: "a", count: 128))

    fileprivate static func digest(_ algorithm: Checksum.Algorithm, _ content: [UInt8]) -> String {
        "\(algorithm.rawValue)=:\(Bytes.base64(algorithm, content)):"
    }

    @Test("which digest counts after a response")
    func table() throws {
        let (a, b, long) = (try #require(Self.a), try #require(Self.b), try #require(Self.long))
        let known = AnnouncedDigest(a, by: "o")
        func after(
            _ known: AnnouncedDigest?, _ sent: Checksum?, from source: String, isOwn: Bool = false,
            isWhole: Bool = true,
            isSame: Bool = false
        ) -> AnnouncedDigest? {
            .after(known, sent, from: source, isOwn: isOwn, isWhole: isWhole, isSame: isSame)
        }
        for isOwn in [false, true] {
            for isWhole in [false, true] {
                #expect(after(nil, a, from: "o", isOwn: isOwn, isWhole: isWhole) == known)
                #expect(after(nil, nil, from: "o", isOwn: isOwn, isWhole: isWhole) == nil)
            }
            let source = isOwn ? "p" : "o"
            #expect(after(known, b, from: source, isOwn: isOwn) == AnnouncedDigest(b, by: source))
            #expect(after(known, nil, from: source, isOwn: isOwn) == nil)
            #expect(after(known, nil, from: source, isOwn: isOwn, isSame: true) == known)
            #expect(after(known, b, from: source, isOwn: isOwn, isWhole: false)?.checksum == a)
            #expect(after(known, long, from: source, isOwn: isOwn, isWhole: false)?.checksum == long)
            #expect(after(known, nil, from: source, isOwn: isOwn, isWhole: false)?.checksum == a)
        }
        for isWhole in [false, true] {
            for sent in [nil, a, b, long] {
                #expect(after(known, sent, from: "m", isWhole: isWhole, isSame: true) == known)
            }
        }
    }

    /// What a mirror with another file says about it.
    enum Lie: CaseIterable, Sendable {
        case nothing, sameAlgorithm, stronger, sameTag

        func fields(_ content: [UInt8]) -> [(String, String)] {
            switch self {
            case .nothing: []
            case .sameAlgorithm: [("Repr-Digest", AnnouncedDigestTests.digest(.sha256, content))]
            case .stronger: [("Repr-Digest", AnnouncedDigestTests.digest(.sha512, content))]
            case .sameTag: [("ETag", "\"o\"")]
            }
        }
    }

    /// What the first server does after its first answer.
    enum Course: CaseIterable, Sendable { case goesOn, isGone }

    private func servers(_ lie: Lie, hasRanges: Bool, _ course: Course, isLink: Bool) throws -> (
        FaultServer, FaultServer
    ) {
        let mirror = try FaultServer()
        mirror.route("/a") { request in
            var answer =
                hasRanges
                ? FaultResponse.ranged(Self.other, for: request, etag: "\"m\"")
                : .ok(Self.other, headers: ["ETag": "\"m\""])
            for (name, value) in lie.fields(Self.other) { answer = answer.setting(name, value) }
            return answer
        }
        let first = try FaultServer()
        first.route("/a") { request in
            if request.index > 0, course == .isGone { return .status(404) }
            var answer = FaultResponse.ranged(Self.content, for: request, etag: "\"o\"")
                .adding("Repr-Digest", Self.digest(.sha256, Self.content))
            if isLink { answer = answer.adding("Link", "<\(mirror.url("/a"))>; rel=duplicate") }
            return request.index == 0 ? answer.cut(at: 1_000_000) : answer
        }
        return (first, mirror)
    }

    @Test(
        "a mirror with another file is an error or is not used, and its file never gets the name",
        arguments: [(1, true), (1, false), (4, true), (4, false)] as [(connections: Int, hasRanges: Bool)], Lie.allCases
    )
    func mirrors(_ way: (connections: Int, hasRanges: Bool), _ lie: Lie) async throws {
        for course in Course.allCases {
            for isLink in [true, false] {
                let (first, mirror) = try servers(lie, hasRanges: way.hasRanges, course, isLink: isLink)
                let live = try LiveBench {
                    $0.connections = .fixed(way.connections)
                    $0.retry.maxAttempts = 6
                }
                let info = try await live.fetch(first.url("/a"), mirrors: isLink ? [] : [mirror.url("/a")])
                switch course {
                case .goesOn:
                    #expect(info.state == .complete, "\(String(describing: info.error))")
                    #expect(try live.out("a") == Self.content)
                case .isGone:
                    #expect(info.state == .error)
                    #expect(live.names.filter { !$0.hasPrefix(".") } == [], "\(isLink)")
                }
            }
        }
    }

    @Test("the next engine knows the digest, whatever became of the bytes", arguments: Lie.allCases)
    func resumed(_ lie: Lie) async throws {
        let (first, mirror) = try servers(lie, hasRanges: false, .isGone, isLink: false)
        let live = try LiveBench { $0.retry.maxAttempts = 1 }
        let id = try await live.add(first.url("/a"), mirrors: [mirror.url("/a")])
        _ = await live.downloader.messager.finished(id)
        await live.downloader.close()
        let record = try InfoFile.read(WorkPath(live.folder.path + "/work").infoPath(id)).record
        #expect(record.announced?.checksum.hex == Bytes.sha256(Self.content))
        #expect(record.announced?.source == first.url("/a"))
        let next = try LiveBench(in: live.folder)
        for _ in 1...2 {
            let info = try await next.fetch(first.url("/a"), mirrors: [mirror.url("/a")])
            #expect(info.state == .error)
            #expect(next.names.filter { !$0.hasPrefix(".") } == [])
        }
    }

    @Test("a mirror with the same file completes it, and the first server's own new version replaces its digest")
    func same() async throws {
        let mirror = try FaultServer()
        mirror.route("/a") { .ranged(Self.content, for: $0, etag: "\"m\"") }
        let first = try FaultServer()
        first.route("/a") { request in
            guard request.index > 0 else {
                return FaultResponse.ranged(Self.content, for: request, etag: "\"o\"")
                    .adding("Repr-Digest", Self.digest(.sha256, Self.content)).cut(at: 1_000_000)
            }
            return .status(404)
        }
        let live = try LiveBench()
        let info = try await live.fetch(first.url("/a"), mirrors: [mirror.url("/a")])
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a") == Self.content)
        let changing = try FaultServer()
        changing.route("/b") { request in
            let content = request.index == 0 ? Self.content : Self.other
            let answer = FaultResponse.ranged(content, for: request, etag: "\"\(request.index)\"")
                .adding("Repr-Digest", Self.digest(.sha256, content))
            return request.index == 0 ? answer.cut(at: 1_000_000) : answer
        }
        let changed = try await live.fetch(changing.url("/b"))
        #expect(changed.state == .complete, "\(String(describing: changed.error))")
        #expect(try live.out("b") == Self.other)
    }
}
