import TestSupport
import Testing

@Suite("Lists of records")
struct RecordListTests {
    private static let keptCount = 64
    private static let portionCount = 128
    /// More than are kept in memory and than are read at once.
    private static let count = 300

    private func list(
        _ reader: StoreReader, _ query: RecordQuery = .init(), problem: @escaping (DownloadError) -> Void = { _ in }
    ) throws -> RecordList {
        try RecordList(
            reader, query, keptCount: Self.keptCount, portionCount: Self.portionCount, problem: problem)
    }

    /// Tasks whose ids are in another order than their numbers.
    private func scene(_ count: Int) throws -> ScratchWorkPath {
        let scratch = try ScratchWorkPath()
        for index in 0..<count {
            var record = TaskRecord.sample("http://h\(index % 3).example/f\(index)", number: UInt64(index + 1))
            record.task.priority = index % 5
            record.state = [.idle, .complete, .error][index % 3]
            try scratch.add(record)
        }
        return scratch
    }

    @Test("a list is in the order of submission, a portion at a time, and can be read again", arguments: [10, count])
    func order(count: Int) throws {
        let scratch = try scene(count)
        let list = try list(StoreReader(scratch.path))
        #expect(list.count == count)
        for _ in 0..<2 {
            var numbers: [UInt64] = []
            list.forEachPortion { records in
                #expect(records.count <= Self.portionCount)
                numbers += records.map(\.number)
            }
            #expect(numbers == (1...UInt64(count)).map(\.self))
        }
    }

    @Test("a query gives the same page from a list as from records in memory", arguments: [40, count])
    func queries(count: Int) throws {
        let scratch = try scene(count)
        let reader = StoreReader(scratch.path)
        let records = try reader.records().map { DownloadRecord($0) }
        for sort in RecordQuery.Sort.allCases {
            for isAscending in [true, false] {
                for states: Set<DownloadState>? in [nil, [.error, .idle]] {
                    for (offset, limit) in [(0, nil), (7, 20)] as [(Int, Int?)] {
                        var query = RecordQuery()
                        (query.sort, query.ascending, query.states) = (sort, isAscending, states)
                        (query.offset, query.limit) = (offset, limit)
                        let list = try list(reader, query)
                        var ids: [TaskID] = []
                        list.forEach { ids.append($0.id) }
                        #expect(ids == (try query.page(of: records)).records.map(\.id), "\(sort) \(isAscending)")
                    }
                }
            }
        }
    }

    @Test("the given order stays, and tasks that are gone are left out")
    func given() throws {
        let scratch = try scene(20)
        let reader = StoreReader(scratch.path)
        var ids = try reader.records().reversed().map(\.id)
        ids.insert(TaskID(url: "http://h/gone"), at: 3)
        var seen = 0
        let list = RecordList(reader, inOrder: ids) { _ in seen += 1 }
        var numbers: [UInt64] = []
        list.forEach { numbers.append($0.number) }
        #expect(seen == 20 && numbers == (1...20).reversed().map { UInt64($0) })
    }

    @Test("an unreadable task is reported once, however long the list is", arguments: [10, count])
    func problems(count: Int) throws {
        let scratch = try scene(count)
        let reader = StoreReader(scratch.path)
        let id = try #require(reader.records { $0.number == 5 }.first).id
        try write(Array("garbage".utf8), scratch.path.infoPath(id))
        var problems: [DownloadError] = []
        let list = try list(reader) { problems.append($0) }
        for _ in 0..<2 {
            var shown = 0
            list.forEach { _ in shown += 1 }
            #expect(shown == count - 1)
        }
        #expect(problems.map(\.code) == [.corruptInfo])
    }

    @Test("the number of a task is found without parsing, also in a record that tries to mislead, or is large")
    func numbers() throws {
        let scratch = try ScratchWorkPath()
        var record = TaskRecord.full()
        record.task.attributes = ["number": "3", "x\"number\":4": "\"number\":5,", "y": "number"]
        try scratch.add(record)
        #expect(InfoFile.number(in: scratch.path.infoPath(record.id)) == 77)
        var large = TaskRecord.sample("http://h/large", number: 12_345)
        large.task.attributes = ["a": String(repeating: "x", count: 4_000)]
        try scratch.add(large)
        #expect(InfoFile.number(in: scratch.path.infoPath(large.id)) == 12_345)
        #expect(InfoFile.number(in: scratch.path.infoPath(TaskID(url: "http://h/none"))) == nil)
    }
}
