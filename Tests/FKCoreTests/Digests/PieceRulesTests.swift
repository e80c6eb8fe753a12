import TestSupport
import Testing

@testable import FKEngine

@Suite("Checksums of pieces, repairs, refreshes")
struct PieceRulesTests {
    private static let mib = Int(PieceSums.pieceLength)

    private func crc(_ bytes: some Sequence<UInt8>) -> UInt32 { Array(bytes).withUnsafeBytes { CRC32C.checksum($0) } }

    private func add(_ sums: inout PieceSums, _ content: [UInt8], _ range: Range<Int>, step: Int = 16_384) {
        for start in stride(from: range.lowerBound, to: range.upperBound, by: step) {
            content[start..<min(start + step, range.upperBound)].withUnsafeBytes { sums.add($0, at: Int64(start)) }
        }
    }

    @Test("the sums of bytes in order, in any steps, are those of the pieces", arguments: [1, 4_096, 700_001, 5 << 20])
    func inOrder(_ step: Int) {
        let content = Bytes.pattern(count: 2 * Self.mib + (step == 1 ? 7 : 100_000))
        var sums = PieceSums()
        add(&sums, content, (step == 1 ? 2 * Self.mib : 0)..<content.count, step: step)
        let table = sums.table(length: Int64(content.count))
        #expect(table.count == 3)
        #expect(table[2] == crc(content[(2 * Self.mib)...]))
        if step > 1 {
            #expect(table[0] == crc(content[..<Self.mib]) && table[1] == crc(content[Self.mib..<(2 * Self.mib)]))
        }
    }

    @Test(
        "a piece that two connections have filled, or that did not arrive whole, is unknown; one that arrived twice alike is known"
    )
    func connections() {
        let content = Bytes.pattern(count: 4 * Self.mib)
        var (first, second) = (PieceSums(), PieceSums())
        add(&first, content, 0..<(Self.mib + 5_000))
        add(&second, content, (Self.mib + 5_000)..<content.count)
        add(&second, content, (3 * Self.mib)..<(4 * Self.mib))
        first.merge(second)
        let table = first.table(length: Int64(content.count))
        #expect(table.map { $0 != nil } == [true, false, true, true])
        var other = PieceSums()
        add(&other, [UInt8](repeating: 9, count: 4 * Self.mib), (2 * Self.mib)..<(3 * Self.mib))
        first.merge(other)
        #expect(first.table(length: Int64(content.count)).map { $0 != nil } == [true, false, false, true])
    }

    @Test("a file of sums is read as it was written; any damage, another file and another version are no sums")
    func file() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.pieces").path
        let identity = FileIdentity(inode: 7, length: 2_500_000, time: -9)
        let file = PieceFile(identity: identity, sums: [1, 0xffff_ffff, 3])
        try file.write(path)
        #expect(PieceFile.read(path, of: identity) == file)
        #expect(file.bytes.count == 48 + 3 * 4 + 4)
        #expect(PieceFile.read(path, of: FileIdentity(inode: 8, length: 2_500_000, time: -9)) == nil)
        #expect(PieceFile.read(folder.file("none").path, of: identity) == nil)
        for index in file.bytes.indices {
            var bytes = file.bytes
            bytes[index] ^= 1
            #expect(PieceFile(bytes) == nil, "byte \(index)")
        }
        for count in 0..<file.bytes.count { #expect(PieceFile(Array(file.bytes.prefix(count))) == nil) }
        #expect(PieceFile(file.bytes + [0, 0, 0, 0]) == nil)
        #expect(!PieceFile.isFor(length: PieceSums.pieceLength) && PieceFile.isFor(length: PieceSums.pieceLength + 1))
    }

    @Test("the ranges of a repair cover the file, with the damaged bytes missing; many holes are joined")
    func ranges() throws {
        func missing(_ ranges: [SavedRange]?) -> [Range<Int64>] {
            (ranges ?? []).compactMap { $0.position < $0.end ?? 0 ? $0.position..<($0.end ?? 0) : nil }
        }
        let id = TaskID(url: "http://h/")
        for damage in [[0..<10], [90..<100], [0..<100], [5..<6, 6..<9, 50..<60]] as [[Range<Int64>]] {
            let ranges = try #require(Renewal(id, damaged: damage).ranges(length: 100))
            #expect(ranges.first?.start == 0 && ranges.last?.end == 100)
            #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.end == $1.start })
            #expect(missing(ranges) == damage)
            let normal = SegmentPlanner.normalize(ranges, expected: 100)
            #expect(missing(normal).reduce(0) { $0 + $1.count } == damage.reduce(0) { $0 + $1.count })
        }
        for damage in [[], [0..<101], [10..<20, 15..<30], [5..<5], [20..<30, 0..<5]] as [[Range<Int64>]] {
            #expect(Renewal(id, damaged: damage).ranges(length: 100) == nil)
        }
        let many = (0..<1_000).map { Int64($0) * 100..<Int64($0) * 100 + 1 }
        let joined = try #require(Renewal(id, damaged: many).ranges(length: 100_000))
        #expect(joined.count <= SegmentPlanner.maxRanges + 1)
        let holes = missing(joined)
        #expect(many.allSatisfy { hole in holes.contains { $0.contains(hole.lowerBound) } })
    }

    @Test("what the answer to a conditional request means")
    func refresh() {
        func head(_ status: Int, _ fields: [(String, String)] = []) -> Result<ResponseHead, DownloadError> {
            .success(ResponseHead(status: status, fields: fields.map { .init($0.0, $0.1) }, url: "http://h/"))
        }
        func decide(_ answer: Result<ResponseHead, DownloadError>, _ known: Validator?) -> RefreshedFile.Result {
            RefreshRules.decide(
                answer, known: FileVersion(source: "http://h/", length: 5, validator: known), askedAt: "http://h/")
        }
        let tagged = Validator(etag: "\"1\"", lastModified: "A")
        let dated = Validator(lastModified: "A")
        #expect(decide(head(304), tagged) == .unchanged)
        #expect(decide(head(404), tagged) == .gone && decide(head(410), nil) == .gone)
        #expect(decide(head(200, [("ETag", "\"1\"")]), tagged) == .unchanged)
        #expect(decide(head(200, [("ETag", "W/\"1\"")]), tagged) == .unchanged)
        #expect(decide(head(200, [("ETag", "\"2\""), ("Last-Modified", "A")]), tagged) == .changed)
        #expect(decide(head(200, [("Last-Modified", "A")]), dated) == .unchanged)
        #expect(decide(head(200, [("Last-Modified", "A"), ("Content-Length", "5")]), dated) == .unchanged)
        #expect(decide(head(200, [("Last-Modified", "A"), ("Content-Length", "6")]), dated) == .changed)
        #expect(decide(head(200, [("Last-Modified", "B")]), dated) == .changed)
        #expect(decide(head(200), nil) == .changed)
        guard case .failed = decide(head(200, [("Content-Length", "0")]), tagged) else {
            Issue.record("an empty answer without validators replaces a file that had both")
            return
        }
        for status in [301, 401, 403, 500, 503] {
            guard case .failed(let error) = decide(head(status), tagged) else {
                Issue.record("\(status)")
                continue
            }
            #expect(error.status == status)
        }
        #expect(decide(.failure(DownloadError(.connect, "no")), tagged) == .failed(DownloadError(.connect, "no")))
        #expect(RefreshRules.conditions(tagged).map(\.name) == ["If-None-Match", "If-Modified-Since"])
        #expect(RefreshRules.conditions(nil).isEmpty)
    }

    @Test("a bound file without comparable validators has changed only if its length or its digest says so")
    func bound() throws {
        func head(_ status: Int, _ fields: [String: String]) -> Result<ResponseHead, DownloadError> {
            .success(ResponseHead(status: status, fields: fields.map { .init($0.key, $0.value) }, url: "http://h/"))
        }
        let ours = try Checksum(.sha256, hex: String(repeating: "00", count: 32))
        let same = "sha-256=:\(Data(count: 32).base64EncodedString()):"
        let other = "sha-256=:\(Data(repeating: 1, count: 32).base64EncodedString()):"
        let rows: [(fields: [String: String], status: Int, result: RefreshedFile.Result)] = [
            ([:], 200, .unchanged), (["Content-Length": "5"], 200, .unchanged),
            (["Content-Length": "6"], 200, .changed),
            (["Content-Range": "bytes 0-0/5", "Content-Length": "1"], 206, .unchanged),
            (["Content-Range": "bytes 0-0/6", "Content-Length": "1"], 206, .changed),
            (["Repr-Digest": same], 200, .unchanged), (["Repr-Digest": other], 200, .changed),
            (["ETag": "\"1\""], 200, .unchanged),
        ]
        for row in rows {
            for digest in [ours, nil] where digest != nil || row.fields["Repr-Digest"] == nil {
                let known = FileVersion(source: "http://h/", length: 5, validator: Validator(digest: digest))
                let result = RefreshRules.decide(
                    head(row.status, row.fields), known: known, askedAt: "http://h/", isBound: true)
                #expect(result == row.result, "\(row)")
            }
        }
        let tagged = FileVersion(
            source: "http://h/", length: 5, validator: Validator(etag: "\"2\"", digest: ours), isVouched: true)
        let changed = RefreshRules.decide(
            head(200, ["ETag": "\"1\""]), known: tagged, askedAt: "http://h/", isBound: true)
        #expect(changed == .changed, "validators that differ are evidence")
    }
}
