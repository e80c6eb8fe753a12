import TestSupport
import Testing

@Suite("Barrel files")
struct BarrelFileTests {
    private func barrel(_ name: String = "books", members: Int) -> BarrelRecord {
        BarrelRecord(
            name: name, created: Date(timeIntervalSince1970: 1_700_000_000.5),
            options: BarrelOptions(directory: "/d", options: TaskRecord.full().task.options),
            members: (0..<members).map { index in
                let url = "https://example.com/\(index)?a=%20"
                return BarrelMember(id: TaskID(url: url), url: url)
            })
    }

    @Test("what is saved is loaded again", arguments: [0, 1, 2, 100, 100_000])
    func roundTrip(count: Int) throws {
        let scratch = try ScratchWorkPath()
        let saved = barrel(members: count)
        try BarrelFile.write(saved, in: scratch.path)
        #expect(try BarrelFile.read("books", in: scratch.path) == saved)
        #expect(scratch.names(scratch.path.barrelsFolder) == ["books.barrel"])
        let lines = try String(contentsOfFile: scratch.path.barrelPath("books"), encoding: .utf8).split(separator: "\n")
        #expect(lines.count == 2 + count && !lines[1].contains("\"sums\""))
        #expect(saved.members.last.map { "\($0.id.hex)\t\($0.url)" } == (count > 0 ? lines.last.map(String.init) : nil))
    }

    @Test(
        "names of all kinds have files of their own",
        arguments: [
            "a", "A", "a b", "ä", "日本", "a%20b", ".hidden", "a..b", "%", "~", "a\\b", String(repeating: "é", count: 50),
            String(repeating: "x", count: 100), "-", "CON",
        ])
    func names(name: String) throws {
        let scratch = try ScratchWorkPath()
        try BarrelFile.write(barrel(name, members: 1), in: scratch.path)
        #expect(try BarrelFile.read(name, in: scratch.path).name == name)
        #expect(try BarrelFile.list(in: scratch.path) == [name])
        #expect(try BarrelFile.readAll(in: scratch.path).barrels.map(\.name) == [name])
        let file = try #require(scratch.names(scratch.path.barrelsFolder).first)
        #expect(!file.hasPrefix(".") && file.utf8.count <= 255 && file.utf8.allSatisfy { $0 < 0x80 })
        #expect(try BarrelFile.delete(name, in: scratch.path))
        #expect(try !BarrelFile.delete(name, in: scratch.path))
        #expect(try BarrelFile.list(in: scratch.path).isEmpty)
    }

    @Test(
        "names that cannot be are refused",
        arguments: [
            "", ".", "..", "a/b", "/", "a\nb", "\u{1b}[0m", "\u{0}", "\u{85}", String(repeating: "x", count: 101),
            String(repeating: "é", count: 51),
        ])
    func badNames(name: String) throws {
        #expect(throws: DownloadError.self) { try name.validateAsBarrelName() }
        let scratch = try ScratchWorkPath()
        #expect(throws: DownloadError.self) { try BarrelFile.write(barrel(name, members: 0), in: scratch.path) }
        #expect(scratch.names(scratch.path.barrelsFolder).isEmpty)
    }

    @Test("a missing barrel is not found")
    func missing() throws {
        let scratch = try ScratchWorkPath()
        #expect { try BarrelFile.read("x", in: scratch.path) } throws: { ($0 as? DownloadError)?.code == .notFound }
    }

    @Test("a URL with a line feed cannot break the lines")
    func lineFeed() throws {
        let scratch = try ScratchWorkPath()
        var bad = barrel(members: 1)
        bad.members[0].url = "https://example.com/\n"
        #expect(throws: DownloadError.self) { try BarrelFile.write(bad, in: scratch.path) }
    }

    @Test("a cut or damaged file never loads as something else")
    func damage() throws {
        let scratch = try ScratchWorkPath()
        let saved = barrel(members: 3)
        try BarrelFile.write(saved, in: scratch.path)
        let path = scratch.path.barrelPath("books")
        let good = try bytes(path)
        for index in good.indices {
            var flipped = good
            flipped[index] ^= 1 << UInt8(index % 8)
            for image in [flipped, Array(good[..<index])] {
                try write(image, path)
                #expect((try? BarrelFile.read("books", in: scratch.path)).map { $0 == saved } ?? true, "byte \(index)")
            }
        }
    }

    @Test("a header that claims a billion members is refused")
    func hugeClaim() throws {
        let scratch = try ScratchWorkPath()
        try BarrelFile.write(barrel(members: 1), in: scratch.path)
        let path = scratch.path.barrelPath("books")
        let text = String(decoding: try bytes(path), as: UTF8.self)
        try write(Array(text.replacingOccurrences(of: "\"count\":1", with: "\"count\":1000000000").utf8), path)
        #expect(throws: DownloadError.self) { try BarrelFile.read("books", in: scratch.path) }
    }

    @Test("loading all moves garbage to the quarantine, leaves later versions, and goes on")
    func loadAll() throws {
        let scratch = try ScratchWorkPath()
        try BarrelFile.write(barrel("b", members: 1), in: scratch.path)
        var older = barrel("z", members: 1)
        older.created = Date(timeIntervalSince1970: 1)
        try BarrelFile.write(older, in: scratch.path)
        let folder = scratch.path.barrelsFolder
        try write(Array("garbage".utf8), folder + "/bad.barrel")
        try write(Array("{\"format\":3,\"count\":0,\"crc\":0}\n".utf8), folder + "/later.barrel")
        try write(try bytes(scratch.path.barrelPath("b")), folder + "/copy.barrel")
        let (barrels, problems) = try BarrelFile.readAll(in: scratch.path)
        #expect(barrels.map(\.name) == ["z", "b"])
        #expect(
            problems.map(\.code).sorted { $0.rawValue < $1.rawValue } == [.corruptInfo, .corruptInfo, .laterVersion])
        #expect(scratch.names(folder) == ["b.barrel", "later.barrel", "z.barrel"])
        #expect(scratch.names(scratch.path.quarantineFolder).count == 2)
    }
}
