import TestSupport
import Testing

@testable import FKStore

/// Info files with a right checksum that say what is not so: bytes that were never received, a file that is not there, a
/// length that is not the file's.
@Suite("Fuzzed claims")
struct FuzzClaimTests {
    /// A task whose record may lie, and what its server delivers.
    private struct Claim {
        var record: TaskRecord
        let content: [UInt8]
    }

    @Test("are compared with the files: what ends complete has the right bytes", arguments: 0..<4)
    func claims(seed: Int) async throws {
        var random = SeededRandom(seed: UInt64(seed))
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(at: folder.file("out"), withIntermediateDirectories: false)
        let workPath = WorkPath(folder.file("work"))
        try workPath.open(create: true)
        var claims: [String: Claim] = [:]
        for number in 0..<120 {
            let claim = try makeClaim(number, in: folder, &random)
            let path = workPath.infoPath(claim.record.id)
            let handle = try InfoFile.create(at: path, record: claim.record)
            var image = try bytes(path)
            for index in 0..<4 where random.oneIn(3) {
                let offset = InfoFormat.Geometry(slotSize: Int(handle.slotSize)).counterOffset + 8 * index
                let counter = random.oneIn(2) ? random.pick(Mutation.evilNumbers) : random.next() % 40_000
                withUnsafeBytes(of: counter.littleEndian) { image.replaceSubrange(offset..<offset + 8, with: $0) }
            }
            try write(image, path)
            claims[claim.record.task.url] = claim
        }
        let contents = claims.mapValues(\.content)
        let bench = try await Bench(in: folder) { request, _ in
            .file(contents[request.urlRequest.url?.absoluteString ?? ""] ?? [], to: request)
        }
        // A person who asks for the file again, whatever has become of the task.
        let again = claims.values.map(\.record.task)
        let replies = try await bench.engine.add(again, barrel: nil, run: true)
        #expect(replies.allSatisfy { $0.error == nil }, "\(replies.compactMap(\.error))")
        try await bench.control.resumeAll()
        for claim in claims.values {
            let info = try #require(await bench.finished(claim.record.id))
            #expect(info.state == .complete, "\(claim.record) \(String(describing: info.error))")
            let path = try #require(info.path)
            #expect(path.hasPrefix(bench.out + "/"))
            #expect(try bytes(path) == claim.content, "\(claim.record)")
        }
    }

    /// Never bytes of another file in place of the right ones: that only a digest can tell.
    private func makeClaim(_ number: Int, in folder: TemporaryFolder, _ random: inout SeededRandom) throws -> Claim {
        let content = Bytes.pattern(count: 1 + random.below(40_000), seed: UInt64(number + 1))
        let size = Int64(content.count)
        var record = TaskRecord.sample(
            "http://h.example/f\(number)", number: UInt64(number + 1), directory: folder.path + "/out")
        record.state = random.pick([.idle, .action, .suspend, .complete, .error, .cancel])
        record.edit { $0.validator = random.oneIn(4) ? nil : Validator(etag: "\"1\"") }
        record.bootID = random.pick([BootID.current, "another boot", nil])
        record.edit {
            $0.attempts = random.below(3)
            $0.expected = random.pick([size, size, size, nil, size + 1_000, max(1, size - 1_000)])
        }
        let length = random.pick([record.expected ?? size, size, size + 5, 0, size / 2])
        record.edit { $0.ranges = makeRanges(upTo: random.oneIn(2) ? length : $0.expected ?? size, &random) }
        // A whole file of a wrong length is a file: only what still asks its server can hear of the right one.
        if record.expected != size, let index = record.ranges.firstIndex(where: { $0.end != $0.start }) {
            record.edit { $0.ranges[index].position = $0.ranges[index].start }
        }
        if random.oneIn(2) { record.edit { $0.synced = random.oneIn(2) } }
        if !random.oneIn(4) { record.edit { $0.partName = FileNameRules.partName(for: "f\(number)", id: $0.id) } }
        if record.state == .complete || random.oneIn(4) { record.edit { $0.path = folder.path + "/out/f\(number)" } }
        if let name = record.partName, !random.oneIn(5) {
            try makePart(folder.file("out/\(name)").path, content, length, &random)
        }
        // A file that is not the one: shorter or longer by at least a byte.
        if record.path != nil, random.oneIn(3), length != record.expected {
            try folder.write([UInt8](repeating: 0, count: Int(length)), to: "out/f\(number)")
        }
        return Claim(record: record, content: content)
    }

    private func makeRanges(upTo length: Int64, _ random: inout SeededRandom) -> [SavedRange] {
        var marks = [0, length]
        for _ in 0..<random.below(4) { marks.append(Int64(random.below(Int(length) + 1))) }
        marks.sort()
        var ranges: [SavedRange] = []
        for (start, end) in zip(marks, marks.dropFirst()) {
            let position = random.oneIn(3) ? start + Int64(random.below(Int(end - start) + 1)) : end
            ranges.append(
                SavedRange(start: start, end: end, position: position, synced: random.oneIn(2) ? position : start))
        }
        if random.oneIn(6) { ranges.removeLast() }
        if random.oneIn(6), !ranges.isEmpty { ranges[ranges.count - 1].end = nil }
        if random.oneIn(6) { ranges.shuffle(using: &random) }
        return ranges
    }

    /// The right bytes from the beginning on, as far as it was really received, and nothing behind: a hole.
    private func makePart(_ path: String, _ content: [UInt8], _ length: Int64, _ random: inout SeededRandom) throws {
        // Holes are as coarse as the file system's blocks.
        let received = random.pick([
            0, content.count, content.count / 4_096 * 4_096, random.below(content.count / 4_096 + 1) * 4_096,
        ])
        try write(Array(content.prefix(received)), path)
        guard truncate(path, off_t(length)) == 0 else { throw DownloadError(system: errno, "cut", path) }
    }
}
