import TestSupport
import Testing

@testable import FKModel

extension TaskRecord: CustomTestStringConvertible {
    public var testDescription: String { "task \(number)" }
}

@Suite("A record's JSON, written the fast way and read by Foundation")
struct RecordJSONTests {
    @Test("the full example leaves no member unset, so that a new one cannot be forgotten")
    func isFull() {
        for child in Mirror(reflecting: Self.full().own).children {
            let value = Mirror(reflecting: child.value)
            let isNil = value.displayStyle == .optional && value.children.isEmpty
            #expect(!isNil, "\(child.label ?? "") is not set in full()")
        }
    }

    private static func usual() -> TaskRecord {
        var task = TaskDescription(url: "https://example.com/a%20b?x=1")
        task.directory = "/tmp/\"quoted\"\\ \n\u{1}é漢🙂"
        var record = TaskRecord(
            task: task, number: UInt64(Int64.max) - 5, created: Date(timeIntervalSince1970: 1_800_000_000.125))
        record.edit { $0.ranges = [SavedRange(start: 0, end: 10, position: 3), SavedRange(start: 10, end: nil)] }
        return record
    }

    private static func full() -> TaskRecord {
        var record = usual()
        record.task.mirrors = ["http://a/", "http://b/"]
        record.task.fileName = "名前.bin"
        record.task.type = .foreground
        record.task.priority = -3
        record.task.attributes = ["model": "7", "ключ": "\t"]
        record.task.options.maxSize = 5
        record.task.options.headers = [.init("X-A", "b\"c")]
        record.task.options.connections = .fixed(4)
        record.state = .error
        record.change(FileChange(by: "unpack", length: 9, crc32c: "0000002a"))
        record.edit {
            $0.waiting = Waiting(.retry, until: Date(timeIntervalSince1970: 1_800_000_001))
            $0.pieces = [PieceChecksum(start: 0, end: 3, crc32c: 7)]
            $0.expected = 1 << 62
            $0.validator = Validator(etag: "W/\"x\"", lastModified: "Fri, 20 Nov 2026 22:29:34 GMT", date: nil)
            $0.validator?.digest = try? Checksum(.md5, hex: String(repeating: "a0", count: 16))
            $0.attempts = 3
            $0.error = DownloadError(.httpStatus, "The server answered 503.", status: 503, isRetryable: true)
            $0.response = ResponseHead(
                status: 206, fields: [.init("ETag", "\"q\""), .init("Date", "now")], url: "http://a/", redirects: 1)
        }
        let read = FileIdentity(inode: 7, length: 3, time: 1_800_000_000_000_000_002)
        record.adopt(AdoptedFile(path: "/tmp/a.part", read: read, isInUse: false), [], length: nil)
        record.barrels = ["one", "two/three"]
        record.edit {
            $0.partName = FileNameRules.partName(for: "a", id: $0.id)
            $0.partFolder = "/parts"
            $0.partTime = 1_800_000_000_000_000_001
            $0.path = "/tmp/a"
            $0.written = FileIdentity(inode: .max, length: 1 << 62, time: 1_800_000_000_000_000_001)
            $0.setAside = [
                SetAsideFile(
                    path: "/tmp/\(FileNameRules.rejectedName(for: "a", id: $0.id, number: 2))",
                    written: FileIdentity(inode: 1, length: 2, time: -3))
            ]
            $0.leftBehind = ["/tmp/b", "/c/\"d\""]
            $0.former = FormerFile(
                path: "/tmp/a", expected: 9, written: FileIdentity(inode: 1, length: 9, time: 3),
                validator: Validator(etag: "\"1\""), source: "http://b/",
                pieces: [PieceChecksum(start: 0, end: 9, crc32c: 1)], finished: Date(timeIntervalSince1970: 2),
                isForeign: false, trace: Trace(), damaged: [Renewal.Damage(start: 1, end: 2)])
            $0.started = Date(timeIntervalSince1970: -1.5)
            $0.finished = Date(timeIntervalSince1970: 0)
            $0.source = "http://b/"
            $0.needsDigest = true
            $0.announced = try? AnnouncedDigest(
                Checksum(parsing: "md5=d41d8cd98f00b204e9800998ecf8427e"), by: "http://b/")
            $0.progress = ProgressMark(received: 9, attempts: 2)
            $0.offered = ["http://m/", "http://n/"]
            $0.completedBy = "1.0.0"
            $0.trace = Trace()
            $0.trace?.record(5..<9, from: "http://b/")
            $0.trace?.pass(through: ["http://c/?token=x"])
            $0.trace?.recordChange()
            $0.lastUsed = Date(timeIntervalSince1970: 1_800_000_500.5)
        }
        record.relink(to: "http://c/")
        record.bytesPerSecond = 1_048_576
        record.edit {
            $0.isForeign = true
            $0.synced = false
        }
        record.bootID = "boot"
        record.edit {
            $0.lengthVerified = false
            $0.history = [HistoryLine(time: Date(timeIntervalSince1970: 1), by: "resume", what: "x")]
        }
        return record
    }

    @Test("comes back equal", arguments: [usual(), full()])
    func roundTrip(_ record: TaskRecord) throws {
        let bytes = try record.json()
        #expect(try StoreJSON.decode(TaskRecord.self, from: bytes) == record)
    }

    @Test("has the same members and values as the Codable form", arguments: [usual(), full()])
    func sameAsCodable(_ record: TaskRecord) throws {
        let ours = try JSONSerialization.jsonObject(with: Data(try record.json())) as? NSDictionary
        let theirs = try JSONSerialization.jsonObject(with: Data(try StoreJSON.encode(record))) as? NSDictionary
        #expect(ours == theirs)
    }
}

@Suite("A record's JSON, read the fast way and by Foundation")
struct RecordReadingTests {
    static func records() -> [TaskRecord] {
        var records = [TaskRecord.sample(), TaskRecord.full()]
        for state in DownloadState.allCases {
            var record = TaskRecord.sample("https://example.com/\(state.rawValue)", number: UInt64(Int64.max))
            record.state = state
            record.edit {
                $0.created = Date(timeIntervalSince1970: -0.001)
                $0.finished = Date(timeIntervalSince1970: 1_799_999_999.999)
            }
            record.task.options.checksum = try? Checksum(.md5, hex: String(repeating: "a0", count: 16))
            record.task.options.existing = .skip
            record.task.options.list = ListOrigin("a \"list\"", signer: "é")
            record.task.options.secretOrigin = "https://example.com/"
            record.task.options.size = 12
            record.task.attributes = ["a": "", "b": "\"\\/\u{8}\u{c}\u{1f}\u{7f}\u{2028}🙂"]
            record.edit {
                $0.ranges = [SavedRange(start: 0, end: .max, position: .max)]
                $0.error = DownloadError(.timeout, "a\nb\r\t", isRetryable: true, retryAfter: .seconds(0.25))
                $0.waiting = Waiting(.noSpace)
                $0.history = [HistoryLine(time: $0.created, by: "é", what: "")]
            }
            records.append(record)
        }
        return records
    }

    private func byHand(_ bytes: [UInt8]) -> TaskRecord? { bytes.withUnsafeBytes { TaskRecord.readOwn($0) } }

    private func byFoundation(_ bytes: [UInt8]) -> TaskRecord? {
        try? StoreJSON.decode(TaskRecord.self, from: bytes)
    }

    @Test("what we write is read by hand, and comes back equal", arguments: records())
    func own(_ record: TaskRecord) throws {
        let bytes = try record.json()
        #expect(byHand(bytes) == record)
        #expect(byFoundation(bytes) == record)
    }

    /// What version 1.0 has written, byte by byte.
    private static let former = #"""
        {"id":"b6c4fae13a973d74a0ad27bf2e8919450c1d694ad88649dac49d8a2243898226","task":{\#
        "url":"https://example.com/d/a%20b?x=1","mirrors":["http://a/","http://b/"],\#
        "directory":"/data/\"é\"\u000a","fileName":"名前.bin","type":"foreground","priority":-3,"attributes":{\#
        "k":"v","ключ":"\t"},"options":{"connections":{"fixed":{"_0":4}},"maxSize":5}},"number":77,\#
        "state":"error","waiting":{"host":"example.com","limit":2,"reason":"retry","until":1700000001},\#
        "ranges":[{"start":0,"end":10,"position":3,"synced":2},{"start":10,"position":10,"synced":10}],\#
        "pieces":[{"start":0,"end":3,"crc32c":4294967295}],"expected":1099511627776,"validator":{\#
        "etag":"W/\"x\"","lastModified":"Fri, 20 Nov 2026 22:29:34 GMT",\#
        "date":"Fri, 20 Nov 2026 22:29:35 GMT","digest":{"algorithm":"md5",\#
        "hex":"a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0"},"coding":"br"},"source":"http://b/","attempts":3,"error":{\#
        "code":"http-status","isRetryable":true,"message":"The server answered 503.","retryAfter":0.25,\#
        "status":503,"underlying":"x","url":"http://b/"},"response":{"status":206,"httpVersion":"2",\#
        "fields":[{"name":"ETag","value":"\"q\""},{"name":"Date","value":"now"}],"url":"http://b/",\#
        "redirects":1},"barrels":["one","two/three"],"partName":".名前.bin.b6c4fae13a973d74.fkpart",\#
        "partTime":1800000000000000001,"path":"/data/a/b","written":{"inode":18446744073709551615,\#
        "length":1099511627776,"time":-1},"setAside":[{"path":"/data/.a.b6c4fae13a973d74.fkrejected",\#
        "written":{"inode":1,"length":2,"time":-3}}],"leftBehind":["/tmp/b"],"created":1700000000.250,\#
        "started":-1.500,"finished":0,"lastUsed":1800000500.125,"bytesPerSecond":1048576,"isForeign":true,\#
        "synced":false,"bootID":"boot","lengthVerified":false,"history":[{"by":"resume","time":1.125,\#
        "what":"\"x\"/y"}]}
        """#

    @Test("what a former version wrote is read, and written again with the same bytes")
    func formerBytes() throws {
        let bytes = Array(Self.former.utf8)
        let record = try #require(byHand(bytes))
        #expect(record == byFoundation(bytes))
        #expect(String(decoding: try record.json(), as: UTF8.self) == Self.former)
        var checked = record
        try checked.check()
        #expect(checked == record)
    }

    @Test("the options that lists give have the bytes of the Codable form, and are read without it", arguments: 0..<64)
    func listedOptions(choice: Int) throws {
        var options = TaskOptions()
        if choice & 1 != 0 { options.checksum = try Checksum(parsing: "md5=d41d8cd98f00b204e9800998ecf8427e") }
        if choice & 2 != 0 { options.size = 12 }
        if choice & 4 != 0 { options.list = ListOrigin("S\u{e9} \"q\"/x", signer: choice & 8 != 0 ? "me" : nil) }
        if choice & 16 != 0 { options.existing = .skip }
        if choice & 32 != 0 { options.secretOrigin = "https://h/" }
        var task = TaskDescription(url: "http://h/a")
        task.options = options
        var text = JSONText()
        try task.writeJSON(to: &text)
        let written = text.withMemory { String(decoding: $0, as: UTF8.self) }
        let plain = String(decoding: try StoreJSON.encode(options), as: UTF8.self)
        #expect(written.contains("\"options\":\(plain)"), "\(written)")
        let read = try Array(plain.utf8).withUnsafeBufferPointer { bytes in
            var scanner = JSONScanner(bytes)
            return try TaskOptions.readUsual(&scanner)
        }
        #expect(read == options)
    }

    @Test(
        "attributes are written as Foundation writes them", arguments: ["source-version", "", "a\"b", "\u{1}\t", "é漢🙂"])
    func attributes(key: String) throws {
        let pairs = [key: key, "other": "b/c", "Z": ""]
        var text = JSONText()
        try pairs.write(to: &text)
        let written = text.withMemory { Array($0) }
        let plain = try StoreJSON.encode(pairs)
        #expect(written == plain, "\(String(decoding: written, as: UTF8.self))")
        var next = JSONText()
        try [String: String]().write(to: &next)
        #expect(next.withMemory { Array($0) } == Array("{}".utf8))
    }

    @Test("what is damaged at any place is never read in another way than Foundation's", arguments: records())
    func damaged(_ record: TaskRecord) throws {
        let bytes = try record.json()
        let structure = Array("{}[]\",:".utf8)
        for index in bytes.indices {
            var changes = structure.contains(bytes[index]) ? structure : [0x30]
            changes.removeAll { $0 == bytes[index] }
            for byte in changes {
                var changed = bytes
                changed[index] = byte
                expectSame(changed)
            }
            var shorter = bytes
            shorter.remove(at: index)
            expectSame(shorter)
        }
        for count in stride(from: 0, to: bytes.count, by: 7) { #expect(byHand(Array(bytes[..<count])) == nil) }
    }

    private func expectSame(_ bytes: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) {
        guard let ours = byHand(bytes) else { return }
        let isSame = ours == byFoundation(bytes)
        #expect(isSame, "\(String(decoding: bytes, as: UTF8.self))", sourceLocation: sourceLocation)
    }

    @Test("what Foundation can read and we do not write is read as well")
    func tolerant() throws {
        for record in Self.records() {
            let sorted = try JSONSerialization.data(
                withJSONObject: JSONSerialization.jsonObject(with: Data(try record.json())),
                options: [.prettyPrinted, .sortedKeys])
            let bytes = [UInt8](sorted)
            #expect(byHand(bytes) == nil)
            #expect(try bytes.withUnsafeBytes { try TaskRecord.read($0) } == byFoundation(bytes))
        }
    }
}
