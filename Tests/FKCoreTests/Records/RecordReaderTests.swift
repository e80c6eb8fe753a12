import TestSupport
import Testing

@testable import FKCore

@Suite("Record reader: nothing is read twice that has not changed")
struct RecordReaderTests {
    private static func url(_ number: Int) -> String { "https://example.com/\(number)" }

    private func filled(_ count: Int) throws -> (ScratchWorkPath, [TaskID: InfoHandle]) {
        let scratch = try ScratchWorkPath()
        var handles: [TaskID: InfoHandle] = [:]
        for number in 1...count {
            let record = TaskRecord.sample(Self.url(number), number: UInt64(number))
            handles[record.id] = try scratch.add(record)
            try age(record.id, scratch)
        }
        return (scratch, handles)
    }

    /// As if it had been written a minute ago.
    private func age(_ id: TaskID, _ scratch: ScratchWorkPath) throws {
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -60)], ofItemAtPath: scratch.path.infoPath(id))
    }

    @Test("what was written in this moment is read again: the next write may leave the same time")
    func fresh() throws {
        let (scratch, _) = try filled(1)
        try scratch.add(.sample(Self.url(2), number: 2))
        let later = Date(timeIntervalSinceNow: 60)
        try FileManager.default.setAttributes(
            [.modificationDate: later], ofItemAtPath: scratch.path.infoPath(TaskID(url: Self.url(2))))
        let reader = try reader(scratch)
        _ = try reader.records()
        _ = try reader.records()
        #expect(reader.reads == 3)
    }

    private func reader(_ scratch: ScratchWorkPath) throws -> RecordReader {
        try RecordReader(workPath: URL(fileURLWithPath: scratch.path.root))
    }

    @Test("the first query reads every file, the next page and the next query none")
    func twice() throws {
        let (scratch, _) = try filled(1_500)
        let reader = try reader(scratch)
        var query = RecordQuery()
        query.limit = 1_000
        let first = try reader.records(query)
        #expect(first.records.map(\.number) == Array(1...1_000) && first.total == 1_500)
        #expect(reader.reads == 1_500)
        let second = try reader.records(try #require(first.next))
        #expect(second.records.map(\.number) == Array(1_001...1_500))
        query.text = "/7"
        #expect(try reader.records(query).total > 0)
        #expect(reader.reads == 1_500)
    }

    @Test("a later query reads what has changed, what is new, and forgets what is gone")
    func changes() throws {
        var (scratch, handles) = try filled(20)
        let reader = try reader(scratch)
        _ = try reader.records()
        for number in [3, 5] {
            var record = TaskRecord.sample(Self.url(number), number: UInt64(number))
            record.state = .error
            try InfoFile.update(scratch.path.infoPath(record.id), record: record, handle: &handles[record.id]!)
        }
        try scratch.add(.sample(Self.url(21), number: 21))
        try FileIO.remove(scratch.path.infoPath(TaskID(url: Self.url(1))))
        let page = try reader.records()
        #expect(page.records.map(\.number) == Array(2...21))
        #expect(page.records.filter { $0.state == .error }.map(\.number) == [3, 5])
        #expect(reader.reads == 23)
    }

    @Test("a query by barrel or by id reads no other file")
    func narrow() throws {
        let (scratch, _) = try filled(50)
        var barrel = BarrelRecord(name: "few", created: Date(timeIntervalSince1970: 0))
        for number in [7, 9] {
            barrel.members.append(.init(id: TaskID(url: Self.url(number)), url: Self.url(number)))
            var record = TaskRecord.sample(Self.url(number), number: UInt64(number))
            record.barrels = ["few"]
            try FileIO.remove(scratch.path.infoPath(record.id))
            try scratch.add(record)
            try age(record.id, scratch)
        }
        try BarrelFile.write(barrel, in: scratch.path)
        let reader = try reader(scratch)
        var query = RecordQuery()
        query.barrel = "few"
        #expect(try reader.records(query).records.map(\.number) == [7, 9])
        #expect(reader.reads == 2)
        query = RecordQuery()
        query.ids = [TaskID(url: Self.url(9)), TaskID(url: Self.url(30)), TaskID(url: "https://example.com/none")]
        #expect(try reader.records(query).records.map(\.number) == [9, 30])
        #expect(reader.reads == 3)
        query = RecordQuery()
        query.barrel = "none"
        #expect(throws: DownloadError.self) { try reader.records(query) }
    }

    @Test("a running task is read each time: its counters move without a trace in the file's times")
    func running() throws {
        let (scratch, _) = try filled(2)
        var record = TaskRecord.sample(Self.url(3), number: 3)
        record.state = .action
        try scratch.add(record)
        let lock = try #require(try EngineLock.tryAcquire(scratch.path))
        defer { lock.release() }
        let reader = try reader(scratch)
        #expect(try reader.records().records.last?.state == .action)
        #expect(try reader.records().total == 3)
        #expect(reader.reads == 4)
    }

    @Test("a work path that is not there, and a damaged info file")
    func bad() throws {
        let (scratch, _) = try filled(3)
        try write([1, 2, 3], scratch.path.infoPath(TaskID(url: Self.url(2))))
        #expect(try reader(scratch).records().records.map(\.number) == [1, 3])
        #expect(throws: DownloadError.self) { try RecordReader(workPath: URL(fileURLWithPath: "/nonexistent/work")) }
    }
}
