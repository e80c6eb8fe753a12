import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite("Info file")
struct InfoFileTests {
    @Test("what is written is read again", arguments: [TaskRecord.sample(), TaskRecord.full()])
    func roundTrip(record: TaskRecord) throws {
        let scratch = try ScratchWorkPath()
        let path = scratch.path.infoPath(record.id)
        let handle = try InfoFile.create(at: path, record: record)
        let contents = try InfoFile.read(path)
        #expect(contents.record == record)
        #expect(contents.handle == handle)
        #expect(contents.counters == Array(repeating: 0, count: 64))
        #expect(try mode(path) == 0o600)
        #expect(try StoreJSON.decode(TaskRecord.self, from: Array(InfoFile.rawPayload(path).utf8)) == record)
    }

    @Test("the usual file is one page")
    func onePage() throws {
        let scratch = try ScratchWorkPath()
        let record = TaskRecord.sample()
        try scratch.add(record)
        #expect(try bytes(scratch.path.infoPath(record.id)).count == 4_096)
    }

    @Test("creating twice fails and leaves the first")
    func exclusive() throws {
        let scratch = try ScratchWorkPath()
        var record = TaskRecord.sample()
        try scratch.add(record)
        record.edit { $0.attempts = 5 }
        #expect { try scratch.add(record) } throws: { ($0 as? DownloadError)?.code == .fileExists }
        #expect(try InfoFile.read(scratch.path.infoPath(record.id)).record.attempts == 0)
    }

    @Test("updates go to the slots in turn, in place")
    func updates() throws {
        let scratch = try ScratchWorkPath()
        var record = TaskRecord.sample()
        let path = scratch.path.infoPath(record.id)
        var handle = try InfoFile.create(at: path, record: record)
        let inode = try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int
        for attempt in 1...9 {
            record.edit { $0.attempts = attempt }
            try InfoFile.update(path, record: record, handle: &handle)
            #expect(handle.generation == UInt64(attempt + 1))
            let contents = try InfoFile.read(path)
            #expect(contents.record == record)
            #expect(contents.handle == handle)
        }
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int == inode)
        #expect(try bytes(path).count == 4_096)
    }

    @Test("an update of a file that is gone does not bring it back", arguments: [1, 100_000])
    func gone(size: Int) throws {
        let scratch = try ScratchWorkPath()
        var record = TaskRecord.sample()
        let path = scratch.path.infoPath(record.id)
        var handle = try InfoFile.create(at: path, record: record)
        try FileIO.remove(path)
        record.task.attributes["k"] = String(repeating: "x", count: size)
        #expect {
            try InfoFile.update(path, record: record, handle: &handle)
        } throws: { ($0 as? DownloadError)?.code == .notFound }
        #expect(handle.generation == 1)
        #expect(try scratch.path.allTaskIDs().isEmpty)
    }

    @Test("an empty file is not written yet; an older one has lost its record")
    func empty() throws {
        let scratch = try ScratchWorkPath()
        let record = TaskRecord.sample()
        let path = scratch.path.infoPath(record.id)
        _ = try InfoFile.create(at: path, record: record)
        #expect(truncate(path, 0) == 0)
        #expect { try InfoFile.read(path) } throws: { ($0 as? DownloadError)?.code == .notFound }
        let old = Date(timeIntervalSinceNow: -60)
        try FileManager.default.setAttributes([.modificationDate: old], ofItemAtPath: path)
        #expect { try InfoFile.read(path) } throws: { ($0 as? DownloadError)?.code == .corruptInfo }
    }

    @Test("a record that outgrows its slot moves; the counters come along", arguments: [2_000, 5_000, 300_000])
    func growth(size: Int) throws {
        let scratch = try ScratchWorkPath()
        var record = TaskRecord.sample()
        let path = scratch.path.infoPath(record.id)
        var handle = try InfoFile.create(at: path, record: record)
        let counters = LiveCounters()
        try counters.attach(path: path)
        for index in 0..<64 { counters.store(index, Int64(1_000 + index)) }
        record.task.attributes["k"] = String(repeating: "x", count: size)
        try InfoFile.update(path, record: record, handle: &handle, counters: counters)
        #expect(Int(handle.slotSize) > size)
        var contents = try InfoFile.read(path)
        #expect(contents.record == record)
        #expect(contents.handle == handle)
        #expect(contents.counters == (0..<64).map { Int64(1_000 + $0) })
        // Stores follow the file to its new place.
        counters.store(3, 9_999)
        #expect(try InfoFile.readCounters(path)[3] == 9_999)
        // The next update is in place again, in the other slot.
        record.task.attributes["k"] = "short"
        try InfoFile.update(path, record: record, handle: &handle)
        contents = try InfoFile.read(path)
        #expect(contents.record == record)
        #expect(contents.handle.generation == 3)
        #expect(scratch.names((path as NSString).deletingLastPathComponent).count == 1)
    }

    @Test("a record beyond 16 MiB is refused and the old one stays")
    func tooLarge() throws {
        let scratch = try ScratchWorkPath()
        var record = TaskRecord.sample()
        let path = scratch.path.infoPath(record.id)
        var handle = try InfoFile.create(at: path, record: record)
        record.task.attributes["k"] = String(repeating: "x", count: InfoFormat.maxPayload)
        #expect {
            try InfoFile.update(path, record: record, handle: &handle)
        } throws: { ($0 as? DownloadError)?.code == .tooLarge }
        #expect(try InfoFile.read(path).record.task.attributes.isEmpty)
    }

    @Test("a full disk is told as such, with the path", .enabled(if: access("/dev/full", F_OK) == 0, "needs /dev/full"))
    func fullDisk() throws {
        let descriptor = open("/dev/full", O_WRONLY)
        defer { close(descriptor) }
        do {
            // pwrite to a device ignores the offset and fails as a full disk does.
            try [UInt8]([1]).withUnsafeBytes { try FileIO.write($0, to: descriptor, at: 0, path: "/dev/full") }
            Issue.record("must fail")
        } catch let error as DownloadError {
            #expect(error.code == .noSpace)
            #expect(error.message.contains("/dev/full"))
        }
    }

    @Test("a newer version's file is told apart from a damaged one")
    func laterVersion() throws {
        let scratch = try ScratchWorkPath()
        let record = TaskRecord.sample()
        let path = scratch.path.infoPath(record.id)
        try scratch.add(record)
        var file = try bytes(path)
        file[8] = 2
        let crc = file[..<60].withUnsafeBytes { CRC32C.checksum($0) }
        for index in 0..<4 { file[60 + index] = UInt8(truncatingIfNeeded: crc >> (8 * UInt32(index))) }
        try write(file, path)
        do {
            _ = try InfoFile.read(path)
            Issue.record("must fail")
        } catch let error as DownloadError {
            #expect(error.code == .laterVersion)
            #expect(error.message.contains(path))
        }
    }

    @Test("a file that was never written is not found; a cut one is corrupt", arguments: [0, 1, 63, 64, 100])
    func short(size: Int) throws {
        let scratch = try ScratchWorkPath()
        let record = TaskRecord.sample()
        let path = scratch.path.infoPath(record.id)
        #expect(throws: DownloadError.self) { try InfoFile.read(path) }
        try scratch.add(record)
        try write(Array(try bytes(path)[..<size]), path)
        #expect {
            try InfoFile.read(path)
        } throws: { ($0 as? DownloadError)?.code == (size == 0 ? .notFound : .corruptInfo) }
    }

    @Test("a reader beside a writer always sees one of the writer's records, never going back")
    func readerBesideWriter() async throws {
        let scratch = try ScratchWorkPath()
        let first = TaskRecord.sample()
        let path = scratch.path.infoPath(first.id)
        let begun = try InfoFile.create(at: path, record: first)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                var record = first
                var handle = begun
                for attempt in 1...500 {
                    record.edit { $0.attempts = attempt }
                    // Grows now and then, so that renames are crossed as well.
                    record.task.attributes["k"] = String(repeating: "x", count: attempt * 20)
                    try InfoFile.update(path, record: record, handle: &handle)
                }
            }
            group.addTask {
                var last = 0
                while last < 500 {
                    let record = try InfoFile.read(path).record
                    #expect(record.attempts >= last)
                    #expect(record.task.attributes["k"]?.count ?? 0 == record.attempts * 20)
                    last = record.attempts
                }
            }
            try await group.waitForAll()
        }
    }
}
