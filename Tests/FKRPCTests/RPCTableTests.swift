import TestSupport
import Testing

@testable import FKRPC

@Suite("RPC lists")
struct RPCTableTests {
    private func record(_ number: UInt64, _ state: DownloadState = .idle, priority: Int = 0) -> TaskRecord {
        var task = TaskDescription(url: "http://h/\(number)")
        task.priority = priority
        var record = TaskRecord(task: task, number: number, created: Date(timeIntervalSince1970: Double(number)))
        record.state = state
        return record
    }

    @Test("a move gives the order that was asked for, and changes few tasks") func moves() {
        var random = SeededRandom(seed: 4_711)
        for _ in 0..<2_000 {
            let count = 1 + random.below(12)
            var queue = (0..<count).map {
                QueueMove.Element(id: TaskID(url: "\($0)"), priority: random.below(3), number: UInt64($0))
            }
            for _ in 0..<6 {
                queue.sort { ($1.priority, $0.number) < ($0.priority, $1.number) }
                let from = random.below(count)
                let to = random.below(count)
                var wanted = queue.map(\.id)
                wanted.insert(wanted.remove(at: from), at: to)
                let changes = QueueMove.priorities(queue, from: from, to: to)
                for index in queue.indices { queue[index].priority = changes[queue[index].id] ?? queue[index].priority }
                let now = queue.sorted { ($1.priority, $0.number) < ($0.priority, $1.number) }.map(\.id)
                #expect(now == wanted)
                #expect(changes.count <= count / 2 + 1)
            }
        }
    }

    @Test("the three lists and their counts follow reports, in any order") func lists() {
        var table = TaskTable()
        for number in 1...5 as ClosedRange<UInt64> { table.insert(record(number)) }
        table.insert(record(6, .complete))
        let ids = (1...5).map { TaskID(url: "http://h/\($0)") }
        #expect(table.waiting.places.map(\.id) == ids)
        var info = DownloadInfo(id: ids[2], url: "", state: .action, count: .init(received: 5, expected: 10))
        info.bytesPerSecond = 7
        #expect(table.absorb(info)?.after == .action)
        #expect(table.absorb(info) == nil)
        #expect(table.active.count == 1 && table.waiting.count == 4 && table.bytesPerSecond == 7)
        info.state = .error
        #expect(table.absorb(info)?.before == .action)
        #expect(table.stopped.count == 2 && table.bytesPerSecond == 0)
        info.state = .unknown
        #expect(table.absorb(info)?.after == .unknown)
        #expect(table.rows[ids[2]] == nil && table.ids(ofGIDPrefix: String(ids[2].hex.prefix(16))).isEmpty)
        // A late report of progress does not bring a task back.
        info.state = .action
        table.progress(info)
        #expect(table.count == 5 && table.states[.idle] == 4)
    }

    @Test("a negative offset counts from the end and reverses") func windows() {
        var places = SortedPlaces()
        let ids = (0..<5).map { TaskID(url: "\($0)") }
        for (index, id) in ids.enumerated().reversed() { places.insert(.init(major: Int64(index), minor: 0, id: id)) }
        #expect(places.window(offset: 1, count: 2) == [ids[1], ids[2]])
        #expect(places.window(offset: 4, count: Int.max) == [ids[4]])
        #expect(places.window(offset: -1, count: 2) == [ids[4], ids[3]])
        #expect(places.window(offset: -4, count: 10) == [ids[1], ids[0]])
        #expect(places.window(offset: -5, count: 1) == [ids[0]])
        #expect(places.window(offset: -6, count: 1).isEmpty && places.window(offset: Int.min, count: 1).isEmpty)
        #expect(places.window(offset: 9, count: 1).isEmpty && places.window(offset: -1, count: 0).isEmpty)
        #expect(places.window(offset: Int.max, count: Int.max).isEmpty)
    }

    @Test("a gid that is taken falls back to the task's own, and prefixes find one or several") func gids() {
        var table = TaskTable()
        var first = record(1)
        first.task.attributes["gid"] = "00000000000000ab"
        var second = record(2)
        second.task.attributes["gid"] = "00000000000000ab"
        table.insert(first)
        table.insert(second)
        #expect(table.id(ofGID: 0xab) == first.id)
        #expect(table.rows[second.id]?.gid == second.id.leadingWord)
        #expect(table.ids(ofGIDPrefix: "0000") == [first.id])
        #expect(table.ids(ofGIDPrefix: "00000000000000ab") == [first.id])
        #expect(table.ids(ofGIDPrefix: "xyz").isEmpty && table.ids(ofGIDPrefix: "").isEmpty)
    }

    @Test("the bits of a file are those of its whole pieces") func bitfield() {
        var row = TaskRow(record(1, .suspend))
        #expect(Aria2Status(row).bitfield == nil)
        row.expected = (10 << 20) + 1
        row.received = 3 << 20
        #expect(Aria2Status(row).bitfield == "e000")
        let ranges: [(start: Int64, position: Int64)] = [(0, (2 << 20) - 1), (4 << 20, (10 << 20) + 1)]
        #expect(Aria2Status(row, ranges: ranges).bitfield == "8fe0")
        row.state = .complete
        #expect(Aria2Status(row).bitfield == "ffe0")
    }

    @Test(
        "every error code has one of aria2's", arguments: DownloadError.Code.known.sorted { $0.rawValue < $1.rawValue })
    func errorCodes(code: DownloadError.Code) {
        #expect((0...32).contains(Aria2ErrorCode.of(DownloadError(code, ""))))
    }

    @Test(
        "HTTP statuses have aria2's codes", arguments: [(404, 3), (410, 3), (401, 24), (403, 22), (503, 29), (500, 22)])
    func statusCodes(status: Int, code: Int) {
        var error = DownloadError(.httpStatus, "")
        error.status = status
        #expect(Aria2ErrorCode.of(error) == code)
    }

    @Test("rates have one sample a second, with gaps filled") func rates() {
        var history = RateHistory()
        let start = ContinuousClock.now
        history.add(5, at: start)
        history.add(6, at: start + .milliseconds(300))
        history.add(7, at: start + .seconds(1))
        history.add(8, at: start + .milliseconds(3_100))
        #expect(history.last(5) == [0, 5, 7, 8, 8])
        for second in 0..<2_000 { history.add(1, at: start + .seconds(10 + second)) }
        #expect(history.last(600) == [Int64](repeating: 1, count: 600))
    }

    @Test("a window of ten thousand tasks reads the rows that it shows, with the sums of all of them") func window() {
        var table = TaskTable()
        for number in 1...10_000 as ClosedRange<UInt64> {
            table.insert(record(number, number % 4 == 0 ? .complete : number % 4 == 1 ? .suspend : .idle))
        }
        var query = TaskQuery()
        query.offset = 5_000
        query.limit = 200
        var window = query.window(of: &table)
        #expect(window.readRows == 200 && window.rows.count == 200 && window.totals.count == 10_000)
        // 7,500 wait, in the order of their numbers.
        #expect(window.rows.first?.number == table.rows[table.waiting.places[5_000].id]?.number)
        query.states = [.suspend]
        query.offset = 2_400
        window = query.window(of: &table)
        #expect(window.readRows == 100 && window.totals.count == 2_500 && window.totals.states.count == 1)
        query.isAscending = false
        #expect(query.window(of: &table).readRows == 100)
        // A search makes the text of each row once, and again for a row with another name.
        query = TaskQuery()
        query.text = SearchText("H/77")
        window = query.window(of: &table)
        #expect(window.totals.count == 111 && table.madeSearchTexts == 10_000)
        var info = DownloadInfo(id: window.rows[0].id, url: "", state: .action)
        _ = table.absorb(info)
        _ = query.window(of: &table)
        #expect(table.madeSearchTexts == 10_000)
        info.fileName = "new"
        _ = table.absorb(info)
        _ = query.window(of: &table)
        #expect(table.madeSearchTexts == 10_001)
    }

    @Test("windows, orders and sums are those of a plain search, whatever has changed") func likePlain() {
        var random = SeededRandom(seed: 815)
        var table = TaskTable()
        let states: [DownloadState] = [.idle, .action, .suspend, .cancel, .error, .complete]
        for step in 0..<600 {
            let number = UInt64(1 + random.below(60))
            var record = record(number, random.pick(states), priority: random.below(3))
            record.task.directory = random.oneIn(2) ? "/d" : nil
            if table.rows[record.id] == nil {
                table.insert(record)
            } else if random.oneIn(6) {
                table.remove(record.id)
            } else {
                var info = DownloadInfo(id: record.id, url: "", state: random.pick(states))
                info.count = .init(received: Int64(random.below(100)), expected: random.oneIn(3) ? nil : 200)
                info.bytesPerSecond = Double(random.below(50))
                info.barrels = random.oneIn(2) ? ["b"] : []
                info.fileName = random.oneIn(2) ? "Näme\(random.below(9))" : nil
                _ = table.absorb(info)
            }
            guard step % 10 == 0 else { continue }
            var query = TaskQuery()
            query.sort = random.pick([.queue, .number, .name, .host, .size, .received, .percentage, .bytesPerSecond])
            query.isAscending = random.oneIn(2)
            if random.oneIn(2) { query.states = Set((0..<2).map { _ in random.pick(states) }) }
            if random.oneIn(3) { query.barrel = "b" }
            if random.oneIn(3) { query.text = SearchText("NÄME") }
            query.offset = random.below(20)
            query.limit = 1 + random.below(20)
            let window = query.window(of: &table)
            let wanted = table.rows.values.filter { row in
                (query.states?.contains(row.state) ?? true) && (query.barrel.map { row.barrels.contains($0) } ?? true)
                    && (query.text == nil || row.name.lowercased().contains("näme"))
            }
            var all = query
            all.offset = 0
            all.limit = 1_000
            let whole = all.window(of: &table).rows
            #expect(Set(whole.map(\.id)) == Set(wanted.map(\.id)) && window.totals.count == wanted.count)
            #expect(window.totals.received == wanted.reduce(0) { $0 + $1.received })
            #expect(window.bytesPerSecond == wanted.reduce(0) { $0 + $1.bytesPerSecond })
            #expect(
                (window.totals.unknownLengths == 0) == wanted.allSatisfy { $0.expected != nil || $0.state == .complete }
            )
            #expect(window.rows.map(\.id) == Array(whole.map(\.id).dropFirst(query.offset).prefix(query.limit)))
            if query.sort == .name {
                let names = query.isAscending ? whole.map(\.name) : whole.reversed().map(\.name)
                #expect(names == names.sorted())
            }
            let isTaken = wanted.isEmpty && table.isTaken("x", in: "/d")
            #expect(!isTaken)
            for row in table.rows.values where row.directory != nil {
                let others = table.rows.values.filter {
                    $0.name == row.name && $0.directory == "/d" && $0.state != .error && $0.state != .cancel
                }
                #expect(table.isTaken(row.name, in: "/d") == !others.isEmpty)
            }
        }
    }

    @Test("a remedy is shown in words for a person at the page") func remedy() throws {
        let error = DownloadError(.noSpace, "The disk is full. Free some space, then retry.", remedy: .lowerMinFree)
        #expect(error.text == "The disk is full. Free some space, then retry, or start fk rpc with a lower --min-free.")
        for remedy in Remedy.allCases {
            let text = DownloadError(.disk, "It failed.", remedy: remedy).text
            #expect(!text.contains("`") && text.hasSuffix(".") && !text.hasSuffix(".."), "\(text)")
        }
    }
}
