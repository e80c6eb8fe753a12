import TestSupport
import Testing

@Suite("Record queries: which, in which order, which page")
struct RecordQueryTests {
    /// Six records that differ in everything a query can ask for.
    private static let records: [DownloadRecord] = {
        func make(_ number: UInt64, _ url: String, _ change: (inout RecordDraft) -> Void) -> DownloadRecord {
            var record = TaskRecord(
                task: TaskDescription(url: url), number: number,
                created: Date(timeIntervalSince1970: Double(number) * 100))
            record.edit(change)
            return DownloadRecord(record)
        }
        return [
            make(1, "http://a.example/one.ZIP") {
                $0.state = .complete
                $0.expected = 300
                $0.ranges = [SavedRange(start: 0, end: 300, position: 300)]
                $0.path = "/data/Renamed.zip"
                $0.finished = Date(timeIntervalSince1970: 1_000)
                $0.lastUsed = Date(timeIntervalSince1970: 5_000)
                $0.barrels = ["zoo"]
            },
            make(2, "https://B.example:8080/two%20words.tar.gz") {
                $0.state = .idle
                $0.task.priority = 9
                $0.task.attributes = ["model": "7", "owner": "Åsa"]
            },
            make(3, "http://a.example/three") {
                $0.state = .error
                $0.expected = 100
                $0.ranges = [SavedRange(start: 0, end: 100, position: 50)]
                $0.finished = Date(timeIntervalSince1970: 900)
                $0.response = ResponseHead(
                    status: 200, fields: [.init("Content-Type", "Text/HTML; charset=utf-8")],
                    url: "http://a.example/three")
            },
            make(4, "http://[::1]:80/four.zip") {
                $0.state = .complete
                $0.expected = 100
                $0.path = "/data/four.zip"
                $0.finished = Date(timeIntervalSince1970: 1_000)
                $0.barrels = ["zoo", "other"]
                $0.task.attributes = ["model": "7"]
            },
            make(5, "http://user:secret@c.example/.hidden") { $0.state = .suspend },
            make(6, "http://c.example/six.iso") {
                $0.state = .idle
                $0.task.mirrors = ["http://mirror.example/SIX.iso"]
            },
        ]
    }()

    private static func numbers(_ change: (inout RecordQuery) -> Void) throws -> [UInt64] {
        var query = RecordQuery()
        change(&query)
        return try query.page(of: records.reversed()).records.map(\.number)
    }

    @Test("a record tells host, name, format and type as a person would")
    func fields() {
        let records = Self.records
        #expect(records.map(\.host) == ["a.example", "b.example", "a.example", "[::1]", "c.example", "c.example"])
        #expect(records[0].name == "Renamed.zip" && records[0].format == "zip" && records[0].fraction == 1)
        #expect(records[1].name == "two words.tar.gz" && records[1].format == "gz" && records[1].fraction == nil)
        #expect(records[2].mimeType == "text/html" && records[2].fraction == 0.5 && records[2].path == nil)
        #expect(records.map(\.size) == [300, nil, 100, 100, nil, nil])
        #expect(records.map(\.received) == [300, 0, 50, 0, 0, 0])
    }

    @Test("without conditions: all, in the order of submission")
    func all() throws {
        #expect(try Self.numbers { _ in } == [1, 2, 3, 4, 5, 6])
    }

    @Test("each condition leaves out what does not meet it")
    func conditions() throws {
        #expect(try Self.numbers { $0.states = [.complete] } == [1, 4])
        #expect(try Self.numbers { $0.states = [.idle, .suspend] } == [2, 5, 6])
        #expect(try Self.numbers { $0.states = [] } == [])
        #expect(try Self.numbers { $0.ids = [Self.records[2].id] } == [3])
        #expect(try Self.numbers { $0.barrel = "zoo" } == [1, 4])
        #expect(try Self.numbers { $0.barrel = "Zoo" } == [])
        #expect(try Self.numbers { $0.host = "B.Example" } == [2])
        #expect(try Self.numbers { $0.size = 100...299 } == [3, 4])
        #expect(try Self.numbers { $0.size = 0...Int64.max } == [1, 3, 4])
        #expect(try Self.numbers { $0.created = Self.time(200)...Self.time(400) } == [2, 3, 4])
        #expect(try Self.numbers { $0.finished = .distantPast...Self.time(950) } == [3])
        #expect(try Self.numbers { $0.lastUsed = Self.time(5_000)...Self.time(5_000) } == [1])
        #expect(try Self.numbers { $0.formats = ["ZIP", "iso"] } == [1, 4, 6])
        #expect(try Self.numbers { $0.formats = [""] } == [3, 5])
        #expect(try Self.numbers { $0.attributes = ["model": "7"] } == [2, 4])
        #expect(try Self.numbers { $0.attributes = ["model": "7", "owner": "Åsa"] } == [2])
        #expect(try Self.numbers { $0.attributes = ["model": "8"] } == [])
    }

    @Test(
        "text is looked for in URL, mirrors, name and attributes, whatever its case",
        arguments: [
            ("ONE", [1]), ("renamed", [1]), ("words.TAR", [2]), ("mirror.example", [6]), ("åSA", [2]),
            ("", [1, 2, 3, 4, 5, 6]), ("model", []), ("nowhere", []),
        ] as [(String, [UInt64])])
    func text(_ text: String, _ found: [UInt64]) throws {
        #expect(try Self.numbers { $0.text = text } == found)
    }

    @Test("all conditions must hold")
    func together() throws {
        #expect(
            try Self.numbers {
                $0.states = [.complete]
                $0.barrel = "zoo"
                $0.size = 0...200
            } == [4])
    }

    @Test(
        "sorted either way: the submission number decides between equals, what is not known comes last",
        arguments: [
            (.number, [1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]),
            (.name, [5, 4, 1, 6, 3, 2], [2, 3, 6, 1, 4, 5]),
            (.host, [4, 1, 3, 2, 5, 6], [5, 6, 2, 1, 3, 4]),
            (.size, [3, 4, 1, 2, 5, 6], [1, 3, 4, 2, 5, 6]),
            (.received, [2, 4, 5, 6, 3, 1], [1, 3, 2, 4, 5, 6]),
            (.percentage, [4, 3, 1, 2, 5, 6], [1, 3, 4, 2, 5, 6]),
            (.created, [1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]),
            (.finished, [3, 1, 4, 2, 5, 6], [1, 4, 3, 2, 5, 6]),
            (.lastUsed, [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]),
            (.queue, [2, 1, 3, 4, 5, 6], [1, 3, 4, 5, 6, 2]),
        ] as [(RecordQuery.Sort, [UInt64], [UInt64])])
    func sorted(_ sort: RecordQuery.Sort, _ up: [UInt64], _ down: [UInt64]) throws {
        let names = Self.records.sorted { $0.name.lowercased() < $1.name.lowercased() }.map(\.number)
        #expect(try Self.numbers { $0.sort = sort } == (sort == .name ? names : up))
        #expect(
            try Self.numbers {
                $0.sort = sort
                $0.ascending = false
            } == (sort == .name ? names.reversed() : down))
    }

    @Test("states are sorted in the order in which a task goes through them")
    func states() throws {
        let order = DownloadState.allCases
        let sorted = try Self.numbers { $0.sort = .state }.compactMap { number in
            Self.records.first { $0.number == number }.flatMap { order.firstIndex(of: $0.state) }
        }
        #expect(sorted == sorted.sorted() && sorted.count == 6)
    }

    @Test("pages follow each other without gap or overlap, and know how many match in all")
    func pages() throws {
        var query = RecordQuery()
        query.limit = 4
        let first = try query.page(of: Self.records)
        #expect(first.records.map(\.number) == [1, 2, 3, 4] && first.total == 6)
        let second = try #require(first.next).page(of: Self.records)
        #expect(second.records.map(\.number) == [5, 6] && second.total == 6 && second.next == nil)
        query.offset = 100
        let beyond = try query.page(of: Self.records)
        #expect(beyond.records.isEmpty && beyond.total == 6 && beyond.next == nil)
    }

    @Test("an impossible page is refused, with the number", arguments: [(-1, 5), (0, 0), (0, -3)])
    func impossible(_ offset: Int, _ limit: Int) {
        var query = RecordQuery()
        query.offset = offset
        query.limit = limit
        #expect {
            try query.page(of: Self.records)
        } throws: {
            let error = $0 as? DownloadError
            return error?.code == .invalidArgument && error?.message.contains("\(min(offset, limit))") == true
        }
    }

    private static func time(_ seconds: Double) -> Date { Date(timeIntervalSince1970: seconds) }
}

@Suite("Attributes: what fits into an info file")
struct AttributeRulesTests {
    @Test("a change sets, replaces and removes pairs, and leaves the others")
    func change() throws {
        let old = ["a": "1", "b": "2", "c": "3"]
        let new = try old.changingAttributes(["a": nil, "b": "two", "d": "4", "e": nil])
        #expect(new == ["b": "two", "c": "3", "d": "4"])
    }

    @Test("what is too long or too many is refused")
    func limits() throws {
        let many = Dictionary(uniqueKeysWithValues: (0..<64).map { ("\($0)", "") })
        #expect(try many.changingAttributes([:]).count == 64)
        let good = [String(repeating: "k", count: 255): String(repeating: "v", count: 4_096)]
        #expect(throws: Never.self) { try good.checkAsAttributes() }
        for bad in [["": "x"], [String(repeating: "k", count: 256): ""], ["k": String(repeating: "v", count: 4_097)]] {
            #expect(throws: DownloadError.self) { try bad.checkAsAttributes() }
        }
        #expect(throws: DownloadError.self) { try many.changingAttributes(["new": ""]) }
    }
}
