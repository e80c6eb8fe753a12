import TestSupport
import Testing

@testable import FKEngine

@Suite("A process that ends between the record and the rename")
struct PublishingTests {
    /// A work path as it is left behind: the record says complete, the part file still has its own name.
    private func leftBehind(
        _ content: [UInt8], in folder: TemporaryFolder, bootID: String = BootID.current
    ) throws -> (WorkPath, TaskRecord) {
        let workPath = WorkPath(folder.file("work"))
        try workPath.open(create: true)
        var task = TaskDescription(url: "http://h.example/a.bin")
        task.directory = folder.path + "/out"
        var record = TaskRecord(task: task, number: 1, created: Date(timeIntervalSince1970: 1))
        record.edit { $0.expected = Int64(content.count) }
        record.finish(received: Int64(content.count), at: Date(timeIntervalSince1970: 2))
        record.state = .complete
        record.edit {
            $0.partName = FileNameRules.partName(for: "a.bin", id: $0.id)
            $0.path = folder.path + "/out/a.bin"
        }
        record.bootID = bootID
        _ = try InfoFile.create(at: workPath.infoPath(record.id), record: record)
        _ = try folder.write(content, to: "out/\(record.partName ?? "")")
        return (workPath, record)
    }

    /// The next engine works on the task until it has ended.
    private func settle(_ record: TaskRecord, in folder: TemporaryFolder, _ transport: ScriptedTransport) async throws {
        let engine = try Engine(
            configure: Configure(workPath: folder.file("work")), scope: .all, transport: transport)
        await engine.activate()
        await engine.waitUntilSettled(record.id)
        await engine.close()
    }

    @Test("is not shown as complete, and the next engine finishes without a request")
    func rename() async throws {
        let folder = try TemporaryFolder()
        let content = Bytes.pattern(count: 1_000)
        let (workPath, record) = try leftBehind(content, in: folder)
        let shown = try StoreReader(workPath).record(record.id)
        #expect(shown.state == .idle && shown.path == nil)

        let transport = ScriptedTransport { _, _ in .status(500) }
        try await settle(record, in: folder, transport)
        #expect(try StoreReader(workPath).record(record.id).state == .complete)
        #expect(try folder.read("out/a.bin") == content)
        #expect(transport.requests.isEmpty)
    }

    @Test("after a power cut the bytes, which nobody has synced, are fetched again")
    func powerCut() async throws {
        let folder = try TemporaryFolder()
        let content = Bytes.pattern(count: 1_000)
        // The length has reached the disk, the bytes have not.
        let (workPath, record) = try leftBehind([UInt8](repeating: 0, count: 1_000), in: folder, bootID: "another boot")
        try await settle(record, in: folder, ScriptedTransport { request, _ in .file(content, to: request) })
        #expect(try StoreReader(workPath).record(record.id).state == .complete)
        #expect(try folder.read("out/a.bin") == content)
    }

    @Test("a foreign file that took the name meanwhile stays, and ours gets the next one")
    func taken() async throws {
        let folder = try TemporaryFolder()
        let content = Bytes.pattern(count: 1_000)
        let (workPath, record) = try leftBehind(content, in: folder)
        _ = try folder.write([1, 2, 3], to: "out/a.bin")
        #expect(try StoreReader(workPath).record(record.id).state == .idle)

        try await settle(record, in: folder, ScriptedTransport { _, _ in .status(500) })
        #expect(try folder.read("out/a.bin") == [1, 2, 3])
        #expect(try folder.read("out/a.1.bin") == content)
    }

    @Test("a foreign file kept under --skip is recorded as foreign on disk, so that no later trash deletes it")
    func skipped() async throws {
        let folder = try TemporaryFolder()
        let content = Bytes.pattern(count: 1_000)
        _ = try folder.write([UInt8](repeating: 7, count: 900), to: "out/named.bin")
        let transport = ScriptedTransport { request, _ in
            .file(content, to: request, fields: [.init("Content-Disposition", "attachment; filename=named.bin")])
        }
        let configure = Configure(workPath: folder.file("work"))
        var task = TaskDescription(url: "http://h.example/a")
        task.directory = folder.path + "/out"
        task.options.existing = .skip
        let first = try Engine(configure: configure, scope: .all, transport: transport)
        await first.activate()
        _ = try await first.add([task], barrel: nil, run: true)
        await first.waitUntilSettled(task.id)
        await first.close()
        let workPath = WorkPath(configure.workPath)
        let record = try InfoFile.read(workPath.infoPath(task.id)).record
        #expect(record.isForeign == true && record.expected == 900 && record.received == 900)

        let second = try Engine(configure: configure, scope: .all, transport: transport)
        _ = try await second.apply(.trash, to: .id(task.id))
        await second.close()
        #expect(try folder.read("out/named.bin").count == 900)
    }
}
