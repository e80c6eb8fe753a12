import TestSupport
import Testing

@testable import FKStore

@Suite("Live counters")
struct LiveCountersTests {
    @Test("stores reach the file once attached, at once and without a record")
    func mirror() throws {
        let scratch = try ScratchWorkPath()
        let record = TaskRecord.sample()
        let path = scratch.path.infoPath(record.id)
        try scratch.add(record)
        let counters = LiveCounters([SavedRange(start: 10, end: 20, position: 15)])
        #expect(counters.value(0) == 15)
        try counters.attach(path: path)
        #expect(counters.isAttached)
        #expect(try InfoFile.readCounters(path)[0] == 15)
        counters.store(0, 17)
        counters.store(63, 3)
        #expect(try InfoFile.readCounters(path)[0] == 17)
        #expect(try InfoFile.readCounters(path)[63] == 3)
        counters.detach()
        counters.store(0, 18)
        #expect(counters.value(0) == 18)
        #expect(try InfoFile.readCounters(path)[0] == 17)
        #expect(try InfoFile.read(path).record == record)
    }

    @Test("while more follows, the file may be behind by less than 64 KiB, until it is flushed")
    func lazy() throws {
        let scratch = try ScratchWorkPath()
        let record = TaskRecord.sample()
        let path = scratch.path.infoPath(record.id)
        try scratch.add(record)
        let counters = LiveCounters([SavedRange(start: 100, end: nil), SavedRange(start: 5_000_000, end: nil)])
        try counters.attach(path: path)
        var seen: [Int64] = []
        for step in 1...42 {
            let value = 100 + (Int64(step) << 14)
            counters.store(0, value, moreFollows: true)
            #expect(counters.value(0) == value)
            let word = try InfoFile.readCounters(path)[0]
            #expect(word <= value && value - word < LiveCounters.maxUnwritten)
            if seen.last != word { seen.append(word) }
        }
        #expect(seen.count == 11)
        counters.store(1, 5_000_001)
        #expect(try InfoFile.readCounters(path)[..<2] == [seen[10], 5_000_001])
        counters.flush()
        #expect(try InfoFile.readCounters(path)[..<2] == [100 + (42 << 14), 5_000_001])
        // Begun anew: what lies behind the word is written at once.
        counters.store(0, 200, moreFollows: true)
        #expect(try InfoFile.readCounters(path)[0] == 200)
        counters.store(0, 300, moreFollows: true)
        try counters.invalidateMirror()
        counters.flush()
        #expect(try InfoFile.readCounters(path)[0] == -1)
        counters.validateMirror()
        #expect(try InfoFile.readCounters(path)[0] == 300)
    }

    @Test("an index outside the counters is ignored; those beyond the mirror stay in the process")
    func indices() throws {
        let scratch = try ScratchWorkPath()
        let record = TaskRecord.sample()
        try scratch.add(record)
        let counters = LiveCounters(count: 100)
        try counters.attach(path: scratch.path.infoPath(record.id))
        counters.store(99, 5)
        counters.store(100, 5)
        counters.store(-1, 5)
        #expect(counters.value(99) == 5)
        #expect(counters.value(100) == 0)
        #expect(try InfoFile.read(scratch.path.infoPath(record.id)).counters.allSatisfy { $0 == 0 })
        #expect(LiveCounters(count: 0).count == 1)
    }

    @Test("a file that cannot be mirrored leaves the mirror there was")
    func badFile() throws {
        let scratch = try ScratchWorkPath()
        let record = TaskRecord.sample()
        let path = scratch.path.infoPath(record.id)
        try scratch.add(record)
        let counters = LiveCounters()
        #expect(throws: DownloadError.self) { try counters.attach(path: path + "x") }
        try counters.attach(path: path)
        let bad = scratch.path.root + "/bad.info"
        try write(Array(try bytes(path)[..<40]), bad)
        #expect(throws: DownloadError.self) { try counters.attach(path: bad) }
        counters.store(0, 4)
        #expect(try InfoFile.readCounters(path)[0] == 4)
    }

    @Test("an info file that is cut short under its counters ends no process, and what is stored is kept")
    func cutShort() throws {
        let scratch = try ScratchWorkPath()
        let record = TaskRecord.sample()
        let path = scratch.path.infoPath(record.id)
        try scratch.add(record)
        let counters = LiveCounters()
        try counters.attach(path: path)
        #expect(truncate(path, 0) == 0)
        counters.store(0, 17)
        try counters.invalidateMirror()
        counters.validateMirror()
        counters.store(1, 18)
        #expect(counters.value(0) == 17 && counters.value(1) == 18)
    }

    @Test("words stay out of force until the record that gives them their new meaning is in the file")
    func failedUpdate() throws {
        let scratch = try ScratchWorkPath()
        var record = TaskRecord.sample()
        let path = scratch.path.infoPath(record.id)
        record.bootID = BootID.current
        record.edit { $0.ranges = [SavedRange(start: 0, end: 1_000, position: 500)] }
        var handle = try InfoFile.create(at: path, record: record)
        let counters = LiveCounters(record.ranges)
        try counters.attach(path: path)
        counters.store(0, 0)
        record.edit { $0.ranges = [SavedRange(start: 0, end: 2_000)] }
        let moved = path + ".moved"
        try FileManager.default.moveItem(atPath: path, toPath: moved)
        #expect(throws: DownloadError.self) {
            try InfoFile.update(path, record: record, handle: &handle, counters: counters, rangesChanged: true)
        }
        // Position 900 of the new file, and nothing of the old one.
        counters.store(0, 900)
        #expect(try InfoFile.readCounters(moved).allSatisfy { $0 == -1 })
        try FileManager.default.moveItem(atPath: moved, toPath: path)
        #expect(try InfoFile.read(path).record.ranges[0].position == 500)
        try InfoFile.update(path, record: record, handle: &handle, counters: counters, rangesChanged: true)
        #expect(try InfoFile.readCounters(path)[0] == 900)
    }

    @Test("stores on several threads while the mirror is attached, moved and detached")
    func concurrent() async throws {
        let scratch = try ScratchWorkPath()
        let paths = try (0..<4).map { index in
            let record = TaskRecord.sample("https://example.com/\(index)")
            try scratch.add(record)
            return scratch.path.infoPath(record.id)
        }
        let counters = LiveCounters()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<3 {
                group.addTask { for value in 1...20_000 { counters.store(writer, Int64(value)) } }
            }
            group.addTask {
                for round in 0..<200 {
                    try counters.attach(path: paths[round % paths.count])
                    if round % 3 == 0 { counters.detach() }
                    if round % 5 == 0 {
                        try counters.invalidateMirror()
                        counters.validateMirror()
                    }
                }
                try counters.attach(path: paths[0])
            }
            try await group.waitForAll()
        }
        #expect((0..<3).map(counters.value) == [20_000, 20_000, 20_000])
        #expect(try InfoFile.readCounters(paths[0])[..<3] == [20_000, 20_000, 20_000])
    }

    @Test("while ranges get a new meaning the words in the file mean nothing")
    func rangesChanged() throws {
        let scratch = try ScratchWorkPath()
        var record = TaskRecord.sample()
        let path = scratch.path.infoPath(record.id)
        record.edit { $0.ranges = [SavedRange(start: 0, end: 100)] }
        record.bootID = BootID.current
        var handle = try InfoFile.create(at: path, record: record)
        let counters = LiveCounters(record.ranges)
        try counters.attach(path: path)
        counters.store(0, 60)
        // Begun anew: the file changed on the server.
        counters.store(0, 0)
        record.edit { $0.ranges = [SavedRange(start: 0, end: 200)] }
        try counters.invalidateMirror()
        #expect(try InfoFile.readCounters(path).allSatisfy { $0 == -1 })
        counters.store(0, 7)
        #expect(try InfoFile.readCounters(path)[0] == -1)
        counters.validateMirror()
        #expect(try InfoFile.readCounters(path)[0] == 7)
        try InfoFile.update(path, record: record, handle: &handle, counters: counters, rangesChanged: true)
        let contents = try InfoFile.read(path)
        #expect(contents.counters[0] == 7)
        #expect(contents.record.applyingLiveCounters(contents.counters).ranges[0].position == 7)
    }

    /// start 100, end 200, position 120, synced 110
    static let cases: [(counter: Int64, sameBoot: Bool, position: Int64)] = [
        (150, true, 150), (200, true, 200), (121, true, 121),
        // Behind the record, outside the range, garbage: the record stands.
        (119, true, 120), (100, true, 120), (0, true, 120), (-1, true, 120), (201, true, 120), (.max, true, 120),
        (.min, true, 120),
        // Another boot: only what was synced.
        (150, false, 110), (0, false, 110),
    ]

    @Test("counters move positions forward within their range, in the same boot only", arguments: cases)
    func applying(counter: Int64, sameBoot: Bool, position: Int64) {
        var record = TaskRecord.sample()
        record.bootID = "a"
        record.edit { $0.ranges = [SavedRange(start: 100, end: 200, position: 120, synced: 110)] }
        let result = record.applyingLiveCounters([counter], bootID: sameBoot ? "a" : "b")
        #expect(result.ranges == [SavedRange(start: 100, end: 200, position: position, synced: 110)])
    }

    @Test("an open end takes any forward counter; missing counters change nothing; a complete record stays")
    func applyingSpecial() {
        var record = TaskRecord.sample()
        record.bootID = "a"
        record.edit { $0.ranges = [SavedRange(start: 0, end: nil), SavedRange(start: 5, end: 9, position: 6)] }
        #expect(record.applyingLiveCounters([1 << 40], bootID: "a").ranges.map(\.position) == [1 << 40, 6])
        #expect(record.applyingLiveCounters([], bootID: "a") == record)
        record.state = .complete
        #expect(record.applyingLiveCounters([5, 5], bootID: "b") == record)
        record.state = .action
        record.bootID = nil
        record.edit { $0.ranges = [SavedRange(start: 5, end: 9, position: 7, synced: 3)] }
        #expect(record.applyingLiveCounters([8], bootID: "a").ranges.map(\.position) == [5])
    }

    @Test("the boot id can be overridden and is never empty")
    func bootID() {
        #expect(BootID.read(environment: ["FK_BOOT_ID": "x"]) == "x")
        #expect(!BootID.read(environment: ["FK_BOOT_ID": ""]).isEmpty)
        #expect(!BootID.current.isEmpty)
        #expect(BootID.read(environment: [:]) == BootID.read(environment: [:]))
    }
}
