import TestSupport
import Testing

/// Info files that were damaged, cut, mixed up or forged: an untouched generation is found whatever happened to the rest,
/// and what is taken for a record can be worked with.
@Suite("Fuzzed info files")
struct FuzzInfoFileTests {
    /// A file as its engine left it, and what it says.
    private struct Base: Sendable {
        let image: InfoImage
        /// By slot.
        let records: [TaskRecord]
        let header: [UInt8]
        let slots: [[UInt8]]

        init(_ image: InfoImage, records: [TaskRecord]) {
            self.image = image
            self.records = records
            header = Array(image.bytes.prefix(64))
            slots = [Array(image.slot(0)), Array(image.slot(1))]
        }
    }

    private static let bases: [Base] = {
        var records: [(TaskRecord, TaskRecord)] = []
        for (number, first) in [TaskRecord.sample(), .full(), .sample("http://h.example/b?q=1", directory: "/data")]
            .enumerated()
        {
            var old = first
            old.edit { $0.attempts = number }
            var new = old
            new.edit {
                $0.attempts += 1
                $0.ranges = [
                    SavedRange(start: 0, end: 4_000, position: 1_000),
                    SavedRange(start: 4_000, end: 9_000, position: 5_000),
                ]
                $0.expected = 9_000
                $0.path = number == 1 ? "/data/x" : nil
            }
            new.bootID = "boot"
            new.state = number == 1 ? .complete : .action
            records.append((old, new))
            new.edit { $0.error = DownloadError(.tls, String(repeating: "no. ", count: 500 * (number + 1))) }
            records.append((old, new))
        }
        return records.enumerated().compactMap { index, pair in
            let generation = UInt64(2 + 3 * index)
            guard let image = try? InfoImage(old: pair.0, new: pair.1, generation: generation) else { return nil }
            return Base(image, records: generation & 1 == 0 ? [pair.0, pair.1] : [pair.1, pair.0])
        }
    }()

    @Test("damaged, cut and mixed up: the newest generation that is whole", arguments: FuzzRun.shards)
    func damaged(shard: Int) async throws {
        let file = try InfoScratch()
        try await FuzzRun("info files", usual: 60_000)(shard: shard, of: FuzzRun.shards.count) { random in
            let base = random.pick(Self.bases)
            let other = random.pick(Self.bases)
            var image = base.image
            for _ in 0...random.below(3) { Mutation.apply(&image.bytes, with: other.image.bytes, &random) }
            try file.write(image.bytes)
            return Self.fault(image, Result(catching: { try InfoFile.read(file.path) }), isForged: false)
        }
    }

    @Test(
        "forged with right checksums: an older true one, or a record that can be worked with", arguments: FuzzRun.shards
    )
    func forged(shard: Int) async throws {
        let file = try InfoScratch()
        try await FuzzRun("forged info files", usual: 40_000)(shard: shard, of: FuzzRun.shards.count) { random in
            var image = random.pick(Self.bases).image
            for _ in 0...random.below(2) { Self.forge(&image, &random) }
            try file.write(image.bytes)
            return Self.fault(image, Result(catching: { try InfoFile.read(file.path) }), isForged: true)
        }
    }

    // MARK: Making

    private static func forge(_ image: inout InfoImage, _ random: inout SeededRandom) {
        let slot = random.below(2)
        switch random.below(8) {
        case 0:
            // The header claims other sizes.
            image.put(UInt32(truncatingIfNeeded: random.pick(Mutation.evilNumbers)), at: random.pick([8, 12, 16]))
            image.sealHeader()
        case 1:
            let size = random.pick([1_760, 3_520, 28_160, 1_760 << 14, 24, 32])
            image.put(UInt32(size), at: 12)
            image.sealHeader()
        case 2:
            image.put(random.pick(Mutation.evilNumbers), at: image.offset(of: slot))
            image.sealSlot(slot)
        case 3:
            image.put(UInt32(truncatingIfNeeded: random.pick(Mutation.evilNumbers)), at: image.offset(of: slot) + 8)
            image.sealSlot(slot)
        case 4: image.setCounter(random.below(64), random.pick(Mutation.evilNumbers))
        default:
            guard image.offset(of: slot) + 16 + image.length(of: slot) <= image.bytes.count else { return }
            var payload = image.payload(of: slot)
            for _ in 0...random.below(3) { JSONMutation.apply(&payload, &random) }
            image.setSlot(image.generation(of: slot), payload)
        }
    }

    // MARK: Judging

    /// The records of the slots that nobody touched, the newest first; nil where the header was touched.
    private static func whole(_ image: InfoImage) -> [(generation: UInt64, record: TaskRecord)]? {
        image.bytes.withUnsafeBytes { bytes in
            guard let header = bases.first(where: { bytes.holds($0.header, at: 0) }) else { return nil }
            var found: [(generation: UInt64, record: TaskRecord)] = []
            for slot in 0..<2 {
                let start = header.image.offset(of: slot)
                let base = bases.first {
                    $0.slots[slot].count <= header.image.slotSize && bytes.holds($0.slots[slot], at: start)
                }
                if let base { found.append((base.image.generation(of: slot), base.records[slot])) }
            }
            return found.sorted { $0.generation > $1.generation }
        }
    }

    private static func fault(_ image: InfoImage, _ result: Result<InfoContents, any Error>, isForged: Bool) -> String?
    {
        let whole = whole(image)
        switch result {
        case .failure(let error):
            guard let error = error as? DownloadError, [.corruptInfo, .laterVersion, .notFound].contains(error.code)
            else {
                return "an error of another kind: \(error)"
            }
            if error.code == .notFound, !image.bytes.isEmpty { return "said to be missing" }
            if let newest = whole?.first {
                return "generation \(newest.generation) is whole and was not found: \(error)"
            }
            return nil
        case .success(let contents):
            if let newest = whole?.first(where: { $0.generation == contents.handle.generation }),
                contents.record == newest.record
            {
                // A newer one may be there and be whole as well only if it is no record.
                let isNewest = whole?.first.map { $0.generation == contents.handle.generation } ?? true
                return isNewest
                    ? workFault(contents) : "generation \(newest.generation) was taken, a newer one is whole"
            }
            // Its bytes were changed, and the checksum was right all the same.
            guard isForged else { return "a record nobody wrote: \(contents.record)" }
            if let newest = whole?.first, newest.generation > contents.handle.generation {
                return "an older one was taken"
            }
            return workFault(contents)
        }
    }

    /// Does with a record what everybody does.
    private static func workFault(_ contents: InfoContents) -> String? {
        let record = contents.record
        if contents.handle.generation + 1 < contents.handle.generation { return "there is no next generation" }
        for boot in [record.bootID ?? "", "another boot"] {
            let live = record.applyingLiveCounters(contents.counters, bootID: boot)
            if live.received < 0 { return "\(live.received) bytes received" }
            for range in live.ranges where range.position < range.start || range.position > range.end ?? .max {
                return "a range at \(range)"
            }
        }
        if record.received < 0 || record.expected ?? 0 < 0 { return "negative lengths" }
        for name in [record.partName, record.task.fileName].compactMap(\.self) {
            if name.utf8.contains(0x2f) || name.utf8.contains(0) || name.utf8.elementsEqual("..".utf8) {
                return "a name like \(name)"
            }
        }
        for path in [record.path, record.task.directory].compactMap(\.self) where path.utf8.first != 0x2f {
            return "a path like \(path)"
        }
        let normal = SegmentPlanner.normalize(record.ranges, expected: record.expected)
        if normal.first?.start != 0 { return "ranges that do not begin at 0" }
        do {
            // Times finer than a millisecond are rounded when they are written for the first time.
            let again = try record.json().withUnsafeBytes { try TaskRecord.read($0) }
            let third = try again.json().withUnsafeBytes { try TaskRecord.read($0) }
            return third == again ? nil : "it is another one when read again: \(record)"
        } catch {
            return "it cannot be written and read again: \(error) \(record)"
        }
    }
}

extension UnsafeRawBufferPointer {
    /// True when these bytes stand at that place.
    fileprivate func holds(_ part: [UInt8], at offset: Int) -> Bool {
        guard let baseAddress, offset + part.count <= count else { return false }
        return memcmp(baseAddress + offset, part, part.count) == 0
    }
}

/// One file that is written anew for each case.
private final class InfoScratch: Sendable {
    private let folder: TemporaryFolder
    private let descriptor: Int32
    var path: String { folder.path + "/x.info" }

    init() throws {
        folder = try TemporaryFolder()
        descriptor = try FileIO.open(folder.path + "/x.info", O_RDWR | O_CREAT)
    }

    deinit { FileIO.close(descriptor) }

    func write(_ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { try FileIO.write($0, to: descriptor, at: 0, path: path) }
        guard ftruncate(descriptor, off_t(bytes.count)) == 0 else { throw DownloadError(system: errno, "cut", path) }
    }
}
