import TestSupport
import Testing

@testable import FKStore

@Suite("Index of finished members")
struct FinishedIndexTests {
    private let scratch: ScratchWorkPath
    private let index: FinishedIndex
    private let infos: [DownloadInfo]

    init() throws {
        scratch = try ScratchWorkPath()
        index = FinishedIndex("b", in: scratch.path)
        var infos: [DownloadInfo] = []
        for number in 0..<400 {
            let record = TaskRecord.sample("https://example.com/files/\(number)", number: UInt64(number + 1))
            try scratch.add(record)
            var info = DownloadInfo(
                id: record.id, url: record.task.url, state: .complete,
                count: ByteCount(received: Int64(number) << 20, expected: number % 3 == 0 ? nil : Int64(number) << 20))
            info.attempts = number % 4
            if number % 5 > 0 {
                info.path = "/data/\(number % 7)/été \(number)"
                info.fileName = "été \(number)"
            }
            infos.append(info)
        }
        self.infos = infos
    }

    private var path: String { scratch.path.donePath("b") }
    private func save(_ infos: [DownloadInfo], where isFinished: (TaskID) -> Bool = { _ in true }) throws {
        let spool = try FinishedSpool("b", in: scratch.path)
        for info in infos { try spool.append(info) }
        index.add(spool, where: isFinished)
    }

    private func answers(_ workPath: WorkPath? = nil) -> [DownloadInfo] {
        let reader = FinishedIndex("b", in: workPath ?? scratch.path).reader()
        var infos: [DownloadInfo] = []
        while true {
            let next = reader.next(atMost: 100)
            if next.isEmpty { return infos }
            infos += next
        }
    }

    private func isLike(_ one: DownloadInfo, _ other: DownloadInfo) -> Bool {
        one.id == other.id && one.url == other.url && one.state == other.state && one.count == other.count
            && one.attempts == other.attempts && one.path == other.path && one.fileName == other.fileName
    }

    @Test("it answers what was added, in order, and takes more") func roundTrip() throws {
        #expect(answers().isEmpty)
        try save(Array(infos[..<250]))
        try save(Array(infos[250...])) { $0 != infos[300].id }
        let answers = answers()
        #expect(answers.count == 399)
        #expect(zip(answers, infos.filter { $0.id != infos[300].id }).allSatisfy(isLike))
        #expect(scratch.names(scratch.path.barrelsFolder) == ["b.barrel.done"])
        #expect(try mode(path) == 0o600)
        let each = try bytes(path).count / answers.count
        #expect(each < 100, "\(each) bytes for each")
        // A barrel that is short now has none.
        try BarrelFile.write(BarrelRecord(name: "b", created: Date()), in: scratch.path)
        #expect(scratch.names(scratch.path.barrelsFolder) == ["b.barrel"])
        try save(infos)
        try BarrelFile.delete("b", in: scratch.path)
        #expect(scratch.names(scratch.path.barrelsFolder) == [])
    }

    @Test("tasks that are not complete, or have more to say than an entry, are not in it") func others() throws {
        var failed = infos[0]
        failed.state = .error
        var noted = infos[1]
        noted.error = DownloadError(.disk, "x")
        var long = infos[2]
        long.path = "/" + String(repeating: "x", count: FinishedEntry.maxText)
        try save([failed, noted, long, infos[3]])
        #expect(answers().map(\.id) == [infos[3].id])
    }

    @Test("a record that is written, replaced, touched or removed is not answered for")
    func changed() throws {
        try save(infos)
        let paths = infos[..<5].map { scratch.path.infoPath($0.id) }
        // A verb writes in place.
        var contents = try InfoFile.read(paths[0])
        try InfoFile.update(paths[0], record: contents.record, handle: &contents.handle)
        // Restored from a backup, with all its times.
        let copy = paths[1] + ".copy"
        try FileManager.default.copyItem(atPath: paths[1], toPath: copy)
        let times = try FileManager.default.attributesOfItem(atPath: paths[1])[.modificationDate]
        try FileManager.default.setAttributes([.modificationDate: times as Any], ofItemAtPath: copy)
        try FileIO.rename(copy, to: paths[1])
        // An editor, with the same bytes.
        try overwrite(paths[2], with: bytes(paths[2]))
        try FileIO.remove(paths[3])
        // Something else has the name.
        try FileIO.remove(paths[4])
        try FileManager.default.createSymbolicLink(atPath: paths[4], withDestinationPath: paths[5 % 5])
        #expect(answers().map(\.id) == infos[5...].map(\.id))
        // They are answered for once they were heard of again.
        try save([infos[0], infos[2]])
        #expect(answers().map(\.id) == infos[5...].map(\.id) + [infos[0].id, infos[2].id])
    }

    @Test("a copied work path is not answered for") func copied() throws {
        try save(infos)
        let other = WorkPath(scratch.path.root + ".copy")
        defer { try? FileManager.default.removeItem(atPath: other.root) }
        _ = try Program.run("cp", ["-a", scratch.path.root, other.root])
        #expect(answers(other).isEmpty && answers().count == infos.count)
    }

    @Test("an index of another boot, of another form, cut off or damaged answers nothing wrong")
    func damaged() throws {
        try save(infos)
        let whole = try bytes(path)
        for place in 0..<FinishedIndex.headerSize {
            var changed = whole
            changed[place] ^= 1
            try write(changed, path)
            #expect(answers().isEmpty)
        }
        var random = SeededRandom(seed: 5)
        for _ in 0..<60 {
            var changed = whole
            let place = Int.random(in: FinishedIndex.headerSize..<whole.count, using: &random)
            if Bool.random(using: &random) { changed.removeLast(whole.count - place) } else { changed[place] ^= 0x10 }
            try write(changed, path)
            let answers = answers()
            #expect(answers.count < infos.count && zip(answers, infos).allSatisfy(isLike))
        }
        // It is made again.
        try write(Array(whole[..<100]), path)
        try write([1, 2, 3], path + ".new")
        try save(infos)
        #expect(answers().count == infos.count)
    }

    @Test("a record that was written a moment ago is not answered for: a change of the same moment would not show")
    func recent() {
        let now: Int64 = 1_700_000_000_123_456_789
        #expect(Stamp(inode: 1, changed: now - 25_000_000).isSettled(at: now))
        #expect(!Stamp(inode: 1, changed: now - 10_000_000).isSettled(at: now))
        #expect(!Stamp(inode: 1, changed: now + 1_000_000_000).isSettled(at: now))
        // A file system with whole seconds.
        #expect(!Stamp(inode: 1, changed: 1_700_000_000_000_000_000 - 1_000_000_000).isSettled(at: now))
        #expect(Stamp(inode: 1, changed: 1_699_999_990_000_000_000).isSettled(at: now))
    }

    @Test("what the disk refuses leaves the index that there was") func refused() throws {
        try save(Array(infos[..<10]))
        try FileManager.default.createDirectory(atPath: path + ".new/x", withIntermediateDirectories: true)
        #expect(throws: DownloadError.self) { try FinishedSpool("b", in: scratch.path) }
        #expect(answers().count == 10)
    }
}
