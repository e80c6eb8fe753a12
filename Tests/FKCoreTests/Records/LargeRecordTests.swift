import TestSupport
import Testing

@testable import FKStore

@Suite("Info file: a record with many mirrors")
struct LargeRecordTests {
    private let scratch: ScratchWorkPath
    private let path: String
    private var record = TaskRecord.sample()
    private var handle: InfoHandle

    init() throws {
        scratch = try ScratchWorkPath()
        record.task.mirrors = (0..<2_000).map { "http://mirror\($0).example/file" }
        path = scratch.path.infoPath(record.id)
        handle = try InfoFile.create(at: path, record: record)
    }

    /// - Returns: the number of bytes written.
    @discardableResult
    private mutating func update(_ attempts: Int) throws -> Int {
        record.edit { $0.attempts = attempts }
        let count = try InfoFile.update(path, record: record, handle: &handle)
        let contents = try InfoFile.read(path)
        #expect(contents.record == record && contents.handle == handle)
        return count
    }

    @Test("an update writes the description once into each slot, and then only the rest of the record")
    mutating func rest() throws {
        #expect(try update(1) > 50_000)
        for attempts in 2..<9 { #expect(try update(attempts) < 2_000) }
        #expect(
            try StoreJSON.decode(TaskRecord.self, from: Array(InfoFile.rawPayload(path).utf8)) == record)
    }

    @Test("a changed description is written once into each slot")
    mutating func changed() throws {
        for attempts in 1..<4 { try update(attempts) }
        record.task.mirrors.removeLast()
        #expect(try update(4) > 50_000)
        #expect(try update(5) > 50_000)
        #expect(try update(6) < 2_000)
        // The same mirrors in another array are the same description.
        record.task.mirrors = record.task.mirrors.map { String($0) }
        #expect(try update(7) < 2_000)
        record.task.options.rateLimit = 5
        #expect(try update(8) > 50_000)
    }

    @Test("another writer knows no slot and writes the whole record")
    mutating func reopened() throws {
        for attempts in 1..<4 { try update(attempts) }
        handle = try InfoFile.read(path).handle
        #expect(try update(4) > 50_000)
        #expect(try update(5) > 50_000)
        #expect(try update(6) < 2_000)
    }

    @Test("after a failed write of another description its slot is written whole again")
    mutating func failed() throws {
        for attempts in 1..<4 { try update(attempts) }
        let (mirrors, away) = (record.task.mirrors, path + ".away")
        try FileIO.rename(path, to: away)
        record.task.mirrors.removeLast()
        #expect(throws: DownloadError.self) { try InfoFile.update(path, record: record, handle: &handle) }
        // The write ended in the middle of the description.
        var content = try bytes(away)
        let offset = InfoFormat.Geometry(slotSize: Int(handle.slotSize)).slotOffset(generation: handle.generation + 1)
        content.replaceSubrange(offset + 1_000..<offset + 1_100, with: repeatElement(0, count: 100))
        try write(content, path)
        record.task.mirrors = mirrors
        for attempts in 4..<8 { try update(attempts) }
    }

    @Test("a rest that outgrows its slot moves the record to a larger file")
    mutating func grows() throws {
        for attempts in 1..<4 { try update(attempts) }
        let size = handle.slotSize
        record.edit { $0.barrels = (0..<Int(size) / 20).map { "barrel number \($0)" } }
        try update(4)
        #expect(handle.slotSize > size)
        let whole = try update(5)
        #expect(try update(6) < whole - 50_000)
    }

    @Test("a kill between the two writes of an update, or a write cut at any byte, leaves the record before it")
    mutating func torn() throws {
        for attempts in 1..<4 { try update(attempts) }
        let (before, known) = (try bytes(path), record)
        try update(4)
        let after = try bytes(path)
        let changed = before.indices.filter { before[$0] != after[$0] }
        let offset = InfoFormat.Geometry(slotSize: Int(handle.slotSize)).slotOffset(generation: handle.generation)
        let numbers = offset..<offset + InfoFormat.slotHeaderSize
        for cut in 0..<changed.count {
            // The rest is written first, then the numbers.
            let order = changed.filter { !numbers.contains($0) } + changed.filter { numbers.contains($0) }
            var torn = before
            for index in order.prefix(cut) { torn[index] = after[index] }
            try write(torn, path)
            #expect(try InfoFile.read(path).record == known)
        }
        try write(after, path)
        #expect(try InfoFile.read(path).record == record)
    }
}
