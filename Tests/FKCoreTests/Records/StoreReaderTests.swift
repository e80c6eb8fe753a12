import TestSupport
import Testing

@Suite("Store reader")
struct StoreReaderTests {
    @Test("tasks come in the order of submission, whatever their ids are")
    func order() throws {
        let scratch = try ScratchWorkPath()
        for number in (1...30).reversed() {
            try scratch.add(.sample("https://example.com/\(number)", number: UInt64(number)))
        }
        let reader = StoreReader(scratch.path)
        #expect(try reader.records().map(\.number) == Array(1...30))
        #expect(try reader.records { $0.number % 10 == 0 }.map(\.number) == [10, 20, 30])
        let ids = [3, 99, 1].map { TaskID(url: "https://example.com/\($0)") }
        #expect(reader.records(ids).map(\.number) == [3, 1])
    }

    @Test("all tasks of a URL are found, and no other")
    func byURL() throws {
        let scratch = try ScratchWorkPath()
        let url = "https://example.com/a?b=%22"
        try scratch.add(.sample(url, number: 2))
        try scratch.add(.sample(url, number: 1, directory: "/data"))
        var mirror = TaskRecord.sample("https://example.com/other", number: 3)
        mirror.task.mirrors = [url]
        try scratch.add(mirror)
        let reader = StoreReader(scratch.path)
        #expect(try reader.records(url: url).map(\.number) == [1, 2])
        #expect(try reader.records(named: url).map(\.number) == [1, 2])
        #expect(try reader.records(url: "https://example.com/a").isEmpty)
        #expect(throws: DownloadError.self) { try reader.records(named: "https://example.com/a") }
    }

    @Test("the beginning of an id names a task when it is long enough and fits one only")
    func byPrefix() throws {
        let scratch = try ScratchWorkPath()
        let record = TaskRecord.sample()
        try scratch.add(record)
        let reader = StoreReader(scratch.path)
        for count in [4, 12, 64] {
            #expect(try reader.record(idPrefix: String(record.id.hex.prefix(count))).id == record.id)
            #expect(try reader.records(named: record.id.hex.prefix(count).uppercased()).map(\.id) == [record.id])
        }
        for bad in ["", "abc", "xyzx", record.id.hex + "0", "00/.."] {
            #expect(throws: DownloadError.self) { try reader.record(idPrefix: bad) }
        }
        let twin = try #require(TaskID(hex: record.id.hex.prefix(10) + String(repeating: "0", count: 54)))
        try FileManager.default.copyItem(
            atPath: scratch.path.infoPath(record.id), toPath: scratch.path.infoPath(twin))
        do {
            _ = try reader.record(idPrefix: String(record.id.hex.prefix(6)))
            Issue.record("must be ambiguous")
        } catch let error as DownloadError {
            #expect(error.code == .invalidArgument)
            #expect(error.message.contains(record.id.short) && error.message.contains(twin.short))
        }
        #expect(try reader.record(idPrefix: String(record.id.hex.prefix(20))).id == record.id)
    }

    @Test("a running task is shown with its live counters; without an engine, as waiting for one")
    func live() throws {
        let scratch = try ScratchWorkPath()
        var record = TaskRecord.sample()
        record.state = .action
        record.bootID = BootID.current
        record.edit { $0.ranges = [SavedRange(start: 0, end: 100, position: 10)] }
        try scratch.add(record)
        let counters = LiveCounters(record.ranges)
        try counters.attach(path: scratch.path.infoPath(record.id))
        counters.store(0, 42)
        let reader = StoreReader(scratch.path)
        let lock = try #require(try EngineLock.tryAcquire(scratch.path))
        #expect(try reader.record(record.id).received == 42)
        #expect(try reader.record(record.id).state == .action)
        lock.release()
        #expect(try reader.record(record.id).state == .idle)
        #expect(try reader.records().map(\.waiting) == [Waiting(.engine)])
        #expect(try reader.record(record.id).received == 42)
    }

    @Test("info files that cannot be read are reported, skipped and left where they are")
    func corrupt() throws {
        let scratch = try ScratchWorkPath()
        let good = TaskRecord.sample("https://example.com/good")
        let bad = TaskRecord.sample("https://example.com/bad")
        try scratch.add(good)
        try scratch.add(bad)
        try write([1, 2, 3], scratch.path.infoPath(bad.id))
        let reader = StoreReader(scratch.path)
        var problems: [DownloadError] = []
        #expect(try reader.records(problem: { problems.append($0) }).map(\.id) == [good.id])
        #expect(problems.map(\.code) == [.corruptInfo])
        #expect(problems.first?.message.contains(bad.id.hex) == true)
        #expect(try scratch.path.allTaskIDs().count == 2)
        #expect(throws: DownloadError.self) { try reader.record(bad.id) }
        #expect { try reader.record(TaskID(url: "other")) } throws: { ($0 as? DownloadError)?.code == .notFound }
    }

    @Test("barrels are listed and loaded; a missing work path is empty")
    func barrels() throws {
        let scratch = try ScratchWorkPath()
        for name in ["b", "a"] {
            try BarrelFile.write(BarrelRecord(name: name, created: Date(timeIntervalSince1970: 1)), in: scratch.path)
        }
        #expect(try StoreReader(scratch.path).barrelNames() == ["a", "b"])
        #expect(try StoreReader(scratch.path).barrel("a").name == "a")
        let missing = StoreReader(WorkPath(scratch.path.root + "/missing"))
        #expect(try missing.records().isEmpty && missing.barrelNames().isEmpty)
    }

    @Test("numbers are unique and ascending over closing, crashing and garbage")
    func numbers() throws {
        let scratch = try ScratchWorkPath()
        var numbers: [UInt64] = []
        let first = try SubmissionCounter(scratch.path)
        for _ in 0..<1_500 { numbers.append(try first.next()) }
        #expect(numbers == Array(1...1_500))
        first.close()
        let second = try SubmissionCounter(scratch.path)
        numbers.append(try second.next())
        #expect(numbers.last == 1_501)
        // It dies without closing.
        let third = try SubmissionCounter(scratch.path)
        numbers.append(try third.next())
        #expect(numbers.sorted() == numbers && Set(numbers).count == numbers.count)
        // Garbage and absence: the info files tell.
        try scratch.add(.sample(number: 9_000))
        try write(Array(repeating: 7, count: 16), scratch.path.numberPath)
        #expect(try SubmissionCounter(scratch.path).next() == 9_001)
        try FileIO.remove(scratch.path.numberPath)
        #expect(try SubmissionCounter(scratch.path).next() == 9_001)
        #expect(try SubmissionCounter(scratch.path, scan: { _ in 0 }).next() > 9_001)
    }

    @Test("the quarantine keeps the file and says where it is")
    func quarantine() throws {
        let scratch = try ScratchWorkPath()
        let path = scratch.path.tasksFolder + "/bad.info"
        try write([1], path)
        let now = Date(timeIntervalSince1970: 1_700_000_000)
        let report = Quarantine.move(path, in: scratch.path, because: DownloadError(.corruptInfo, "Bad."), now: now)
        #expect(report.code == .corruptInfo)
        #expect(scratch.names(scratch.path.quarantineFolder) == ["1700000000000-bad.info"])
        #expect(report.message.contains("1700000000000-bad.info"))
        let again = Quarantine.move(path, in: scratch.path, because: DownloadError(.corruptInfo, "Bad."), now: now)
        #expect(again.message.contains("could not be moved"))
    }
}
