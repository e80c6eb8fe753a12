import TestSupport
import Testing

/// Somebody else writes to the part file between two attempts, or shortens it.
@Suite("The part file is edited")
struct EditedPartTests {
    private static let content = Bytes.pattern(count: 400_000)

    /// Half of the file is there and the task is suspended; then `meddle` has the part file, and the task goes on.
    private func resumed(
        closes: Bool, _ meddle: (URL) throws -> Void
    ) async throws -> (requests: [FaultRequest], bytes: [UInt8]) {
        let server = try FaultServer()
        let gate = Gate()
        server.route("/a") { request in
            FaultResponse.ranged(Self.content, for: request, etag: "\"1\"").stalling(
                at: request.index == 0 ? 200_000 : 0, until: gate)
        }
        var live = try LiveBench()
        let id = try await live.add(server.url("/a"))
        try await live.received(200_000, of: id)
        try await live.downloader.control.suspend(.id(id))
        gate.open()
        if closes { await live.downloader.close() }
        try meddle(URL(fileURLWithPath: "\(live.out)/\(try #require(live.names.first))"))
        if closes { live = try LiveBench(in: live.folder) }
        try await live.downloader.control.resume(.id(id))
        let info = try #require(await live.downloader.messager.finished(id))
        #expect(info.state == .complete, "\(String(describing: info.error))")
        await live.downloader.close()
        return (server.requests, try live.out("a"))
    }

    @Test(
        "a part that was edited, or written anew and shorter, is not built upon", arguments: [false, true],
        [(nil, [1, 2, 3]), (0, [UInt8](repeating: 7, count: 10_000))] as [(UInt64?, [UInt8])])
    func edited(_ closes: Bool, _ edit: (length: UInt64?, bytes: [UInt8])) async throws {
        let (requests, bytes) = try await resumed(closes: closes) { part in
            let file = try FileHandle(forUpdating: part)
            if let length = edit.length { try file.truncate(atOffset: length) } else { try file.seek(toOffset: 1_000) }
            try file.write(contentsOf: Data(edit.bytes))
            try file.close()
        }
        #expect(bytes == Self.content)
        #expect(requests.map { $0["Range"] } == [nil, nil])
    }

    @Test("a part that was not touched, or only read, is continued", arguments: [false, true])
    func untouched(_ closes: Bool) async throws {
        let (requests, bytes) = try await resumed(closes: closes) { part in
            let held = try Data(contentsOf: part)
            #expect(held.count == 200_000)
            #expect(chmod(part.path, 0o600) == 0)
        }
        #expect(bytes == Self.content)
        #expect(requests.map { $0["Range"] } == [nil, "bytes=200000-"])
    }

    @Test("a record that names a part file elsewhere is damaged, and nothing there is touched")
    func elsewhere() throws {
        var record = TaskRecord.full()
        record.edit { $0.partName = "../precious" }
        let payload = try record.json()
        #expect(throws: DownloadError.self) {
            try payload.withUnsafeBytes { bytes in _ = try TaskRecord.read(bytes) }
        }
        let name = FileNameRules.partName(for: "a", id: record.id)
        record.edit { $0.partName = name }
        let own = try record.json()
        #expect(try own.withUnsafeBytes { bytes in try TaskRecord.read(bytes) }.partName == name)
    }
}
