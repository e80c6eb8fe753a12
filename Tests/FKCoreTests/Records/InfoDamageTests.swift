import TestSupport
import Testing

@testable import FKStore

/// What a reader makes of files that were torn, cut or damaged: an older or the newer generation, or a typed error.
@Suite("Damaged info files")
struct InfoDamageTests {
    /// A file with generations 2 and 3, both states as records, and the file as it was before generation 3.
    private struct Fixture {
        let old: TaskRecord
        let new: TaskRecord
        let before: [UInt8]
        let after: [UInt8]
        let path: String
        let scratch: ScratchWorkPath

        init() throws {
            scratch = try ScratchWorkPath()
            var record = TaskRecord.sample()
            path = scratch.path.infoPath(record.id)
            var handle = try InfoFile.create(at: path, record: record)
            record.edit { $0.attempts = 22 }
            try InfoFile.update(path, record: record, handle: &handle)
            old = record
            before = try bytes(path)
            record.edit { $0.attempts = 333 }
            record.state = .suspend
            try InfoFile.update(path, record: record, handle: &handle)
            new = record
            after = try bytes(path)
        }

        /// Reads an image the way `InfoFile.read` does, without touching the disk.
        func read(_ image: [UInt8]) throws -> TaskRecord? {
            try image.withUnsafeBytes { file in
                let geometry = try InfoFormat.readHeader(file)
                guard let slot = InfoFormat.validSlots(file, geometry).first else { return nil }
                return try StoreJSON.decode(
                    TaskRecord.self, from: UnsafeRawBufferPointer(rebasing: file[slot.payload]))
            }
        }
    }

    @Test("a slot write torn at any byte leaves the older generation")
    func torn() throws {
        let fixture = try Fixture()
        let changed = fixture.before.indices.filter { fixture.before[$0] != fixture.after[$0] }
        let first = try #require(changed.first)
        let last = try #require(changed.last)
        for cut in first...last {
            // From the beginning, and, as a disk may do it, from the end.
            let head = Array(fixture.after[..<cut]) + fixture.before[cut...]
            #expect(try fixture.read(head) == fixture.old, "cut at \(cut)")
            if cut > first {
                let tail = Array(fixture.before[..<cut]) + fixture.after[cut...]
                #expect(try fixture.read(tail) == fixture.old, "tail from \(cut)")
            }
        }
        #expect(try fixture.read(fixture.after) == fixture.new)
    }

    @Test("a torn slot is also skipped on the disk, and written over by the next update")
    func tornOnDisk() throws {
        let fixture = try Fixture()
        let slot = InfoFormat.Geometry(slotSize: InfoFormat.usualSlotSize).slotOffset(generation: 3)
        try write(Array(fixture.after[..<(slot + 100)]) + fixture.before[(slot + 100)...], fixture.path)
        var contents = try InfoFile.read(fixture.path)
        #expect(contents.record == fixture.old)
        #expect(contents.handle.generation == 2)
        try InfoFile.update(fixture.path, record: fixture.new, handle: &contents.handle)
        contents = try InfoFile.read(fixture.path)
        #expect(contents.record == fixture.new)
        #expect(contents.handle.generation == 3)
    }

    @Test("any single flipped bit gives one of the generations or a typed error")
    func bitFlips() throws {
        let fixture = try Fixture()
        for index in fixture.after.indices {
            var image = fixture.after
            image[index] ^= 1 << UInt8(index % 8)
            do {
                let record = try fixture.read(image)
                #expect(record == fixture.new || record == fixture.old, "byte \(index)")
            } catch let error as DownloadError {
                #expect(error.code == .corruptInfo && index < InfoFormat.headerSize, "byte \(index)")
            }
        }
    }

    @Test("any shorter file gives one of the generations or a typed error")
    func cuts() throws {
        let fixture = try Fixture()
        for size in stride(from: 0, to: fixture.after.count, by: 7) {
            try write(Array(fixture.after[..<size]), fixture.path)
            do {
                let contents = try InfoFile.read(fixture.path)
                #expect(contents.record == fixture.new || contents.record == fixture.old, "size \(size)")
                #expect(contents.counters.isEmpty)
            } catch let error as DownloadError {
                #expect(error.code == (size == 0 ? .notFound : .corruptInfo), "size \(size)")
            }
        }
    }

    @Test("a file that was cut behind its first slot: the task continues", arguments: [0, 1, 700])
    func cutFile(_ beyond: Int) async throws {
        let content = Bytes.pattern(count: 400_000)
        let first = try await Bench(content: content)
        let id = try await first.completed("a") { $0.options.existing = .overwrite }
        await first.downloader.close()
        let path = first.workPath.infoPath(id)
        #expect(truncate(path, off_t(InfoFormat.headerSize + InfoFormat.usualSlotSize + beyond)) == 0)
        let second = try await Bench(in: first.folder, content: content)
        _ = try await second.add("a") { $0.options.existing = .overwrite }
        try await second.expect("a", content, of: id)
        #expect(try second.stored(id).state == .complete)
    }

    @Test("a slot with a right checksum whose payload is no record gives way to the older one")
    func validGarbage() throws {
        let fixture = try Fixture()
        let payload = Array("{\"id\":1}".utf8)
        var image = fixture.after
        let offset = InfoFormat.Geometry(slotSize: InfoFormat.usualSlotSize).slotOffset(generation: 3)
        let start = offset + InfoFormat.slotHeaderSize
        image.replaceSubrange(start..<start + payload.count, with: payload)
        image.withUnsafeMutableBytes { file in
            InfoFormat.sealSlot(
                generation: 5, UnsafeMutableRawBufferPointer(rebasing: file[offset..<start + payload.count]))
        }
        try write(image, fixture.path)
        #expect(try InfoFile.read(fixture.path).record == fixture.old)
    }

    @Test("ranges that counters could fill beyond what a number holds are no record")
    func endlessRanges() throws {
        let scratch = try ScratchWorkPath()
        var record = TaskRecord.sample()
        record.edit { $0.ranges = [SavedRange(start: 0, end: 10), SavedRange(start: 10, end: nil)] }
        try scratch.add(record)
        #expect(try InfoFile.read(scratch.path.infoPath(record.id)).record == record)
        var forged = TaskRecord.sample("https://example.com/b.bin")
        forged.edit { $0.ranges = [SavedRange(start: 0, end: nil), SavedRange(start: 0, end: nil)] }
        try scratch.add(forged)
        #expect(throws: DownloadError.self) { try InfoFile.read(scratch.path.infoPath(forged.id)) }
    }

    @Test("a header that claims sizes nobody has is refused before memory is taken for it")
    func hugeClaims() throws {
        let scratch = try ScratchWorkPath()
        for slotSize in [0, 8, 16, InfoFormat.maxSlotSize + 8, Int(UInt32.max) & ~7] {
            var image = [UInt8](repeating: 0, count: 4_096)
            image.withUnsafeMutableBytes { InfoFormat.writeHeader(.init(slotSize: slotSize), into: $0) }
            let path = scratch.path.root + "/x.info"
            try write(image, path)
            #expect(throws: DownloadError.self, "\(slotSize)") { try InfoFile.read(path) }
        }
    }
}
