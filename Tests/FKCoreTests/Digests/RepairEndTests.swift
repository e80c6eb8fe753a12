import TestSupport
import Testing

@testable import FKEngine

@Suite("The damaged file stays until its repair is proven")
struct RepairEndTests {
    private static let mib = 1 << 20
    static let content = Bytes.pattern(count: 3 * Self.mib + 77)
    /// The same, with another byte in the second piece.
    static let other = changed(content, at: mib + 300_000)
    static let damaged = changed(content, at: mib + 9)

    private static func changed(_ bytes: [UInt8], at offset: Int) -> [UInt8] {
        var bytes = bytes
        bytes[offset] = ~bytes[offset]
        return bytes
    }

    /// A server without ranges.
    private static func whole(_ content: [UInt8], hasLength: Bool = true) -> ScriptedTransport.Answer {
        let fields = hasLength ? [HeaderField("Content-Length", "\(content.count)")] : []
        return .init([.head(ResponseHead(status: 200, fields: fields, url: "http://h/")), .bytes(content)])
    }

    /// The server after the file was fetched.
    enum Server: String, CaseIterable {
        case gone, otherWithoutTag, otherWithTag, otherWithoutRanges, shorter

        func answer(_ request: TransportRequest) -> ScriptedTransport.Answer {
            switch self {
            case .gone: return .status(404)
            case .otherWithoutTag: return .file(other, etag: nil, to: request)
            case .otherWithTag: return .file(other, etag: "\"2\"", to: request)
            case .otherWithoutRanges: return RepairEndTests.whole(other)
            case .shorter: return .file(Array(content.dropLast()), etag: nil, to: request)
            }
        }
    }

    /// A complete task, whose file is damaged by its disk.
    private func bench(
        etag: String? = "\"1\"", change: (inout TaskDescription) -> Void = { _ in },
        answer: @escaping @Sendable (TransportRequest) -> ScriptedTransport.Answer
    ) async throws -> (Bench, TaskID) {
        let isNew = Locked(false)
        let bench = try await Bench { request, _ in
            isNew.withLock(\.self) ? answer(request) : .file(Self.content, etag: etag, to: request)
        }
        let id = try await bench.add("a", change)
        let path = try #require(await bench.finished(id)?.path)
        isNew.withLock { $0 = true }
        try damage(path)
        return (bench, id)
    }

    private func damage(_ path: String) throws {
        let time = try #require(FileIdentity(path: path)).time
        try overwrite(path, with: Self.damaged)
        try setTime(time, of: path)
    }

    /// Starts a repair, and returns when it has received `count` bytes.
    private func repairing(_ count: Int) async throws -> (Bench, TaskID, TestGate) {
        let gate = TestGate()
        let (bench, id) = try await bench { .file(Self.content, to: $0, gate: gate, pauseAt: count) }
        _ = try await bench.control.repair(try await bench.verify())
        await gate.reached()
        return (bench, id, gate)
    }

    @Test(
        "a repair that fails leaves the damaged file as it was, which verify names; the next repair succeeds",
        arguments: Server.allCases, ["\"1\"", nil])
    func fails(_ server: Server, etag: String?) async throws {
        let isWell = Locked(false)
        let (bench, id) = try await bench(etag: etag) {
            isWell.withLock(\.self) ? .file(Self.content, etag: etag, to: $0) : server.answer($0)
        }
        let before = try #require(FileIdentity(path: bench.out + "/a"))
        #expect(try await bench.control.repair(try await bench.verify()) == 1)
        let info = try #require(await bench.finished(id))
        #expect(info.state == .error)
        #expect(
            info.error?.code == (server == .gone ? .httpStatus : .changedOnServer), "\(String(describing: info.error))")
        #expect(server == .gone || info.error?.message.contains("fetch it anew with refresh") == true)
        #expect(bench.names == ["a"] && FileIdentity(path: bench.out + "/a") == before)
        let found = try await bench.verify()
        #expect(found.map(\.result) == [.damaged] && found[0].damaged == [Int64(Self.mib)..<Int64(2 * Self.mib)])
        isWell.withLock { $0 = true }
        #expect(try await bench.control.repair(found) == 1)
        #expect(await bench.finished(id)?.path == bench.out + "/a")
        #expect(try bench.out("a") == Self.content && bench.names == ["a"])
        #expect(try await bench.verify().map(\.result) == [.right])
        #expect(try bench.stored(id).former == nil)
    }

    @Test("a mirror has another version: the task's own server repairs the file", arguments: ["\"m\"", nil])
    func mirror(_ etag: String?) async throws {
        let (bench, id) = try await bench(change: { $0.mirrors = ["http://m.example/a"] }) { request in
            request.urlRequest.url?.host == "m.example"
                ? .file(Self.other, etag: etag, to: request) : .file(Self.content, to: request)
        }
        _ = try await bench.control.repair(try await bench.verify())
        #expect(await bench.finished(id)?.state == .complete)
        #expect(try bench.out("a") == Self.content && bench.names == ["a"])
        #expect(bench.hosts.suffix(2) == ["m.example", "h.example"])
    }

    @Test("a refused repair: a refresh fetches the other version, and the damaged file is replaced")
    func refreshed() async throws {
        let (bench, id) = try await bench { .file(Self.other, etag: "\"2\"", to: $0) }
        _ = try await bench.control.repair(try await bench.verify())
        #expect(await bench.finished(id)?.error?.code == .changedOnServer)
        let records = StoreReader(bench.workPath).records([id]).filter(\.mayRenew)
        #expect(records.map(\.ofFinished.validator?.etag) == ["\"1\""])
        _ = await bench.engine.answer(.renew([Renewal(id)]))
        #expect(await bench.finished(id)?.path == bench.out + "/a")
        #expect(try bench.out("a") == Self.other && bench.names == ["a"])
    }

    @Test(
        "a server that knows no ranges sends the whole file once: it is the same, and the file is repaired",
        arguments: [true, false])
    func withoutRanges(hasLength: Bool) async throws {
        let (bench, id) = try await bench(etag: nil) { _ in Self.whole(Self.content, hasLength: hasLength) }
        let before = bench.transport.requests.count
        _ = try await bench.control.repair(try await bench.verify())
        #expect(await bench.finished(id)?.state == .complete)
        #expect(try bench.out("a") == Self.content && bench.names == ["a"])
        // A range, which is not served, and the file.
        #expect(bench.transport.requests.count == before + 2)
    }

    @Test("a damaged file that somebody has edited is kept under another name once it is repaired, and not before")
    func edited() async throws {
        let gate = TestGate()
        let (bench, id) = try await bench { .file(Self.content, to: $0, gate: gate, pauseAt: 1_000) }
        let path = bench.out + "/a"
        try setTime(try #require(FileIdentity(path: path)).time + 1_000_000, of: path)
        _ = try await bench.control.repair(try await bench.verify())
        await gate.reached()
        #expect(try bench.out("a") == Self.damaged)
        gate.open()
        #expect(await bench.finished(id)?.path == path)
        #expect(try bench.out("a") == Self.content && bench.out("a.1") == Self.damaged && bench.names.count == 2)
        #expect(await bench.downloader.takeProblems().contains { $0.message.contains("kept as \(path).1") })
    }

    /// Where a repair ends before it is whole.
    enum Moment: CaseIterable {
        case suspended, cancelled, running, killed
    }

    @Test("forget after a repair that has not ended keeps the damaged file alone", arguments: Moment.allCases)
    func forget(_ moment: Moment) async throws {
        let (first, id, gate) = try await repairing(1_000)
        var bench = first
        switch moment {
        case .suspended: try await first.control.suspend(.id(id))
        case .cancelled: try await first.control.cancel(.id(id))
        case .running: break
        case .killed:
            await first.downloader.close()
            bench = try await Bench(in: first.folder, isActive: false, content: Self.content)
        }
        #expect(try bench.out("a") == Self.damaged)
        #expect(bench.names.count == (moment == .cancelled ? 1 : 2))
        let result = try #require(try await bench.control.forget(.id(id)).first)
        #expect(result.note == "forgotten, kept \(bench.out)/a")
        gate.open()
        #expect(try bench.out("a") == Self.damaged && bench.names == ["a"])
    }

    @Test(
        "a repair that is stopped continues with its copy, and replaces the file",
        arguments: [Moment.suspended, .killed])
    func continues(_ moment: Moment) async throws {
        let (first, id, gate) = try await repairing(300_000)
        var bench = first
        if moment == .killed {
            await first.downloader.close()
            bench = try await Bench(in: first.folder, content: Self.content)
        } else {
            try await first.control.suspend(.id(id))
            gate.open()
            try await first.control.resume(.id(id))
        }
        #expect(await bench.finished(id)?.state == .complete)
        #expect(try bench.out("a") == Self.content && bench.names == ["a"])
        #expect(bench.sent("Range").last == "bytes=\(Self.mib + 300_000)-\(2 * Self.mib - 1)")
        #expect(try await bench.verify().map(\.result) == [.right])
    }

    @Test("a suspended repair that is asked for again continues with its copy, and replaces the file")
    func askedForAgain() async throws {
        let (bench, id, gate) = try await repairing(300_000)
        // It runs.
        #expect(try await bench.control.repair(try await bench.verify()) == 0)
        try await bench.control.suspend(.id(id))
        gate.open()
        let found = try await bench.verify()
        #expect(found.map(\.result) == [.damaged])
        #expect(try await bench.control.repair(found) == 1)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(try bench.out("a") == Self.content && bench.names == ["a"])
        #expect(bench.sent("Range").last == "bytes=\(Self.mib + 300_000)-\(2 * Self.mib - 1)")
        #expect(try await bench.verify().map(\.result) == [.right])
    }

    @Test("a suspended repair whose file has other damage by now begins again")
    func otherDamage() async throws {
        let (bench, id, gate) = try await repairing(300_000)
        try await bench.control.suspend(.id(id))
        gate.open()
        let path = bench.out + "/a"
        let time = try #require(FileIdentity(path: path)).time
        try bench.folder.write(Self.changed(Self.damaged, at: 5), to: "out/a")
        try setTime(time, of: path)
        #expect(try await bench.control.repair(try await bench.verify()) == 1)
        try await bench.expect("a", Self.content, of: id)
        #expect(try await bench.verify().map(\.result) == [.right])
    }

    @Test("a damaged file that is gone when its repair begins is fetched as a whole")
    func goneMeanwhile() async throws {
        let (bench, id) = try await bench { .file(Self.content, to: $0) }
        let found = try await bench.verify()
        #expect(unlink(bench.out + "/a") == 0)
        _ = try await bench.control.repair(found)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(try bench.out("a") == Self.content && bench.names == ["a"])
    }

    @Test("a missing file that its server does not have either is named until it is there and right")
    func missing() async throws {
        let (bench, id) = try await bench { _ in .status(404) }
        #expect(unlink(bench.out + "/a") == 0)
        _ = try await bench.control.repair(try await bench.verify())
        #expect(await bench.finished(id)?.state == .error)
        #expect(try await bench.verify().map(\.result) == [.missing])
        try bench.folder.write(Self.damaged, to: "out/a")
        #expect(try await bench.verify().map(\.result) == [.damaged])
        try bench.folder.write(Self.content, to: "out/a")
        #expect(try await bench.verify().map(\.result) == [.right])
    }

    @Test("a repair whose process has ended is begun again by the next request")
    func interrupted() async throws {
        let (first, id, _) = try await repairing(1_000)
        await first.downloader.close()
        let next = try await Bench(in: first.folder, isActive: false, content: Self.content)
        let found = try await next.verify()
        #expect(found.map(\.result) == [.damaged])
        #expect(try await next.control.repair(found) == 1)
        await next.engine.activate()
        #expect(await next.finished(id)?.state == .complete)
        #expect(try next.out("a") == Self.content && next.names == ["a"])
    }

    @Test("a process that ends before the repaired file has its name: the damaged file and one set aside stay")
    func renameMissing() async throws {
        let (first, id, _) = try await repairing(1_000)
        await first.downloader.close()
        let aside = first.out + "/" + FileNameRules.rejectedName(for: "a", id: id, number: 0)
        try Data([1]).write(to: URL(fileURLWithPath: aside))
        try first.workPath.change(id) {
            $0.state = .complete
            $0.path = first.out + "/a"
            $0.setAside = [SetAsideFile(path: aside, written: try #require(FileIdentity(path: aside)))]
        }
        let next = try await Bench(in: first.folder, isActive: false, content: Self.content)
        #expect(try await next.record(id).state != .complete)
        #expect(try await next.record(id).former != nil)
        #expect(try next.out("a") == Self.damaged)
        #expect(FileManager.default.fileExists(atPath: aside))
        await next.engine.activate()
        try await next.control.resume(.id(id))
        #expect(await next.finished(id)?.state == .complete)
        #expect(try next.out("a") == Self.content && next.names == ["a"])
    }
}
