import TestSupport
import Testing

/// The plan A, B: A's connection is lost half way, B goes on, or begins again where the files are not the same.
@Suite("Bytes across mirrors")
struct MirrorTests {
    static let sizes = [10_000, 400_000]
    static let a = "http://a.example/f"
    static let b = "http://b.example/f"

    /// What the mirror B has, and how it presents it.
    struct Mirror: Sendable {
        var content: [UInt8]
        var etag: String? = "\"b\""
        var fields: [HeaderField] = []
    }

    private func run(
        _ content: [UInt8], fields: [HeaderField] = [], _ mirror: Mirror, checksum: Bool = false,
        policy: MirrorPolicy? = .combine
    ) async throws -> (Bench, DownloadInfo) {
        let (bench, id) = try await start(content, fields: fields, mirror, checksum: checksum, policy: policy)
        return (bench, try #require(await bench.finished(id)))
    }

    private func start(
        _ content: [UInt8], fields: [HeaderField] = [], _ mirror: Mirror, checksum: Bool = false,
        policy: MirrorPolicy? = .combine
    ) async throws -> (Bench, TaskID) {
        let bench = try await Bench { request, number in
            if request.urlRequest.url?.host == "b.example" {
                return .file(mirror.content, etag: mirror.etag, to: request).adding(mirror.fields)
            }
            let isFirst = number == 1
            return .file(content, etag: "\"a\"", to: request, cut: isFirst ? content.count / 2 : nil).adding(fields)
        }
        let sum = try Checksum(.sha256, hex: Bytes.sha256(content))
        let id = try await bench.add(Self.a) {
            $0.mirrors = [Self.b]
            $0.options.mirrorPolicy = policy
            if checksum { $0.options.checksum = sum }
        }
        return (bench, id)
    }

    private func hosts(_ bench: Bench) -> [String] { bench.transport.requests.map { $0.urlRequest.url?.host ?? "" } }

    @Test("secret headers go to the origin of the task's URL alone; the others to every mirror")
    func secrets() async throws {
        let bench = try await Bench { request, _ in
            request.urlRequest.url?.host == "c.example" ? .file([1, 2, 3], to: request) : .status(404)
        }
        try await bench.completed(Self.a) {
            $0.mirrors = [
                "http://a.example/other", "http://a.example:81/f", "https://a.example/f", "http://c.example/f",
            ]
            $0.options.headers = [
                .init("Authorization", "Basic c2VjcmV0"), .init("Cookie", "a=secret"), .init("X-Key", "secret"),
                .init("Accept-Language", "de"),
            ]
            $0.options.secretHeaders = ["x-key"]
        }
        #expect(bench.sent("Accept-Language") == ["de", "de", "de", "de", "de"])
        for name in ["Authorization", "Cookie", "X-Key"] {
            #expect(bench.sent(name).map { $0 != "-" } == [true, true, false, false, false], "\(name)")
        }
    }

    @Test("header fields of a list's entry go to all of its addresses, those of the command line to the first origin")
    func headersOfList() async throws {
        let bench = try await Bench { request, _ in
            request.urlRequest.url?.host == "b.example" ? .file([1, 2, 3], to: request) : .status(404)
        }
        try await bench.completed(Self.a) { task in
            task.mirrors = [Self.b]
            task.options.headers = [
                .init("Cookie", "a=secret"), .init("Authorization", "Basic list"), .init("X-Key", "k"),
                .init("User-Agent", "lab"),
            ]
            task.options.secretHeaders = ["cookie", "authorization"]
            task.options.listHeaders = ["authorization", "user-agent", "x-key"]
        }
        for (name, value) in [("Authorization", "Basic list"), ("X-Key", "k"), ("User-Agent", "lab")] {
            #expect(bench.sent(name) == [value, value])
        }
        #expect(bench.sent("Cookie") == ["a=secret", "-"])
    }

    @Test("the same file under other validators: B sends the rest and the seam once more", arguments: sizes)
    func joined(_ size: Int) async throws {
        let content = Bytes.pattern(count: size)
        let (bench, info) = try await run(content, Mirror(content: content))
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(bench.sent("Range") == ["-", "bytes=\(size / 2 - 4096)-"])
        #expect(bench.sent("If-Range") == ["-", "-"])
        #expect(try bench.out("f") == content)
        let record = try bench.stored(info.id)
        #expect(record.source == Self.b && record.validator?.etag == "\"b\"")
    }

    @Test("equal bytes at the seam prove nothing about the rest: B sends the whole file", arguments: sizes)
    func unproven(_ size: Int) async throws {
        let content = Bytes.pattern(count: size)
        var other = content
        other[size - 1] ^= 1
        for policy in [nil, MirrorPolicy.prove, .failover] {
            let (bench, info) = try await run(content, Mirror(content: other), policy: policy)
            #expect(info.state == .complete, "\(String(describing: info.error))")
            #expect(try bench.out("f") == other)
            #expect(try bench.stored(info.id).history.contains { $0.what.hasPrefix("nothing proves") })
        }
    }

    @Test("the same strong tag proves it: B sends the rest", arguments: sizes)
    func proven(_ size: Int) async throws {
        let content = Bytes.pattern(count: size)
        let (bench, info) = try await run(content, Mirror(content: content, etag: "\"a\""), policy: nil)
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(bench.sent("Range") == ["-", "bytes=\(size / 2 - 4096)-"])
        #expect(try bench.out("f") == content)
    }

    @Test("a file of another length at B: refused, with the reason recorded, and A goes on", arguments: sizes)
    func anotherLength(_ size: Int) async throws {
        let content = Bytes.pattern(count: size)
        let other = Mirror(content: Bytes.pattern(count: size + 1, seed: 2))
        let (bench, id) = try await start(content, other, policy: nil)
        await bench.reached("f", .idle, times: 3)
        #expect(try bench.stored(id).received == size / 2)
        await bench.advance(60)
        let end = try #require(await bench.finished(id))
        #expect(end.state == .complete, "\(String(describing: end.error))")
        #expect(hosts(bench) == ["a.example", "b.example", "a.example"])
        #expect(try bench.out("f") == content)
        let reason = "\(Self.b) has another file than the one begun: it has \(size + 1) bytes, not \(size)."
        #expect(try bench.stored(id).history.contains { $0.what == reason })
    }

    @Test("other bytes of the same length at B are noticed at the seam", arguments: sizes)
    func anotherContent(_ size: Int) async throws {
        let other = Bytes.pattern(count: size, seed: 2)
        let (bench, info) = try await run(Bytes.pattern(count: size), Mirror(content: other, etag: nil))
        #expect(info.state == .complete)
        #expect(bench.sent("Range") == ["-", "bytes=\(size / 2 - 4096)-", "-"])
        #expect(try bench.out("f") == other)
        #expect(try bench.stored(info.id).history.contains { $0.what.contains("another file") })
    }

    @Test("other digests of the two servers: the mirror is refused before its body, and A goes on", arguments: sizes)
    func anotherDigest(_ size: Int) async throws {
        let content = Bytes.pattern(count: size)
        var other = content
        other[size - 1] ^= 1
        let (bench, id) = try await start(
            content, fields: [Self.digest(content)], Mirror(content: other, fields: [Self.digest(other)]))
        await bench.reached("f", .idle, times: 3)
        #expect(try bench.stored(id).error?.code == .checksumMismatch)
        #expect(try bench.stored(id).received == size / 2)
        await bench.advance(60)
        let end = try #require(await bench.finished(id))
        #expect(end.state == .complete, "\(String(describing: end.error))")
        #expect(hosts(bench) == ["a.example", "b.example", "a.example"])
        #expect(bench.sent("Range").last == "bytes=\(size / 2)-")
        #expect(try bench.out("f") == content)
    }

    @Test("a digest that A told is what the rest from B must fit: else once more from 0", arguments: sizes)
    func digestOfFirst(_ size: Int) async throws {
        let content = Bytes.pattern(count: size)
        var other = content
        other[size - 1] ^= 1
        let (bench, id) = try await start(content, fields: [Self.digest(content)], Mirror(content: other))
        await bench.reached("f", .idle, times: 3)
        #expect(try bench.stored(id).error?.code == .checksumMismatch)
        await bench.advance(60)
        let end = try #require(await bench.finished(id))
        #expect(end.state == .complete, "\(String(describing: end.error))")
        #expect(try bench.out("f") == content)
        #expect(hosts(bench) == ["a.example", "b.example", "a.example"])
    }

    @Test("a run of one value at the seam proves nothing, unless a digest follows", arguments: [false, true])
    func blankSeam(_ hasChecksum: Bool) async throws {
        let content = [UInt8](repeating: 0, count: 300_000) + Bytes.pattern(count: 100_000)
        let (bench, info) = try await run(content, Mirror(content: content), checksum: hasChecksum)
        #expect(info.state == .complete)
        #expect(try bench.out("f") == content)
        #expect(bench.sent("Range").last == (hasChecksum ? "bytes=195904-" : "-"))
    }

    @Test("the plan A, A, B keeps the bytes over all three attempts")
    func planOfThree() async throws {
        let content = Bytes.pattern(count: 400_000)
        let bench = try await Bench { request, number in
            .file(
                content, etag: request.urlRequest.url?.host == "b.example" ? "\"b\"" : "\"a\"", to: request,
                cut: number < 3 ? 100_000 : nil)
        }
        let id = try await bench.add(Self.a) {
            $0.mirrors = [Self.a, Self.b]
            $0.options.mirrorPolicy = .combine
        }
        await bench.retried("f", after: 1)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(hosts(bench) == ["a.example", "a.example", "b.example"])
        #expect(bench.sent("Range") == ["-", "bytes=100000-", "bytes=\(200_000 - 4096)-"])
        #expect(bench.sent("If-Range") == ["-", "\"a\"", "-"])
        #expect(try bench.out("f") == content)
    }

    @Test("the plan A, A, A, C ends at the first success")
    func planOfFour() async throws {
        let content = Bytes.pattern(count: 1_000)
        let bench = try await Bench { request, _ in
            request.urlRequest.url?.host == "c.example" ? .file(content, to: request) : .status(404)
        }
        try await bench.completed(Self.a) { $0.mirrors = [Self.a, Self.a, "http://c.example/f"] }
        #expect(hosts(bench) == ["a.example", "a.example", "a.example", "c.example"])
    }

    @Test("a restart between the mirrors changes nothing")
    func restarted() async throws {
        let content = Bytes.pattern(count: 400_000)
        let clock = ManualClock()
        let first = try await Bench(clock: clock) { request, _ in
            .file(content, etag: "\"a\"", to: request, cut: 200_000)
        }
        let id = try await first.add(Self.a) {
            $0.mirrors = [Self.a, Self.b]
            $0.options.mirrorPolicy = .combine
        }
        await first.reached("f", .idle, times: 2)
        await first.downloader.close()
        let second = try await Bench(in: first.folder, clock: clock) { request, number in
            request.urlRequest.url?.host == "b.example" ? .file(content, etag: "\"b\"", to: request) : .status(500)
        }
        await second.advance(60)
        #expect(await second.finished(id)?.state == .complete)
        #expect(second.sent("Range") == ["bytes=200000-", "bytes=\(200_000 - 4096)-"])
        #expect(try second.out("f") == content)
    }

    private static func digest(_ content: [UInt8]) -> HeaderField {
        .init("Repr-Digest", "sha-256=:\(Bytes.base64(.sha256, content)):")
    }
}

@Suite("The digest a server tells")
struct ServerDigestTests {
    private static let content = Bytes.pattern(count: 400_000)

    private func run(_ field: HeaderField, checksum: String? = nil, isTwice: Bool = false) async throws -> (
        Bench, DownloadInfo
    ) {
        let bench = try await Bench { request, _ in .file(Self.content, to: request).adding([field]) }
        let id = try await bench.add("a") {
            $0.options.checksum = checksum.flatMap { try? Checksum(parsing: $0) }
        }
        if isTwice {
            await bench.retried("a", after: 1)
        }
        return (bench, try #require(await bench.finished(id)))
    }

    private static func sum(_ algorithm: Checksum.Algorithm) -> Digester {
        let digester = Digester(algorithm)
        content.withUnsafeBytes { digester.update($0) }
        return digester
    }

    @Test("is compared: a file that fits is complete", arguments: [Checksum.Algorithm.sha256, .sha512])
    func fits(_ algorithm: Checksum.Algorithm) async throws {
        let base64 = Data(Self.sum(algorithm).bytes()).base64EncodedString()
        let (bench, info) = try await run(.init("Repr-Digest", "\(algorithm.rawValue)=:\(base64):"))
        #expect(info.state == .complete)
        #expect(try bench.stored(info.id).validator?.digest?.algorithm == algorithm)
    }

    @Test("that differs twice ends in an error; the bytes are set aside and never get the final name")
    func differs() async throws {
        let (bench, info) = try await run(.init("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg=="), isTwice: true)
        #expect(info.error?.code == .checksumMismatch)
        #expect(info.error?.message.contains("as the server tells") == true)
        #expect(!bench.names.contains("a") && bench.names.count == 1)
    }

    @Test("yields to the digest the task was given")
    func yields() async throws {
        let (_, info) = try await run(
            .init("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg=="), checksum: "sha-256=\(Self.sum(.sha256).hex())")
        #expect(info.state == .complete)
    }
}

extension ScriptedTransport.Answer {
    /// The same answer with more header fields.
    fileprivate func adding(_ fields: [HeaderField]) -> Self {
        var result = self
        if case .head(var head) = result.steps.first {
            head.fields += fields
            result.steps[0] = .head(head)
        }
        return result
    }
}
