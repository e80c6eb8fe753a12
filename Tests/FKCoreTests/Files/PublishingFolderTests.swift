import TestSupport
import Testing

@testable import FKEngine

@Suite("Places of folders and names")
struct PublishingFolderTests {
    @Test("files that arrive together share one look at their folder; the next turn looks again")
    func turns() throws {
        let scratch = try ScratchWorkPath()
        let path = scratch.path.root + "/files"
        var cache = FolderCache()
        let folder = try cache.folder(path, outside: nil, now: 0)
        func isThere() -> Bool { (try? cache.checkStillThere(folder)) != nil }
        cache.beginTurn()
        let before = isThere()
        try FileManager.default.moveItem(atPath: path, toPath: path + ".moved")
        let inTurn = isThere()
        cache.endTurn()
        let outside = isThere()
        cache.beginTurn()
        let next = isThere()
        cache.endTurn()
        #expect(before && inTurn && !outside && !next)
    }

    @Test("an engine without running tasks keeps no folder open")
    func unused() throws {
        let scratch = try ScratchWorkPath()
        var cache = FolderCache()
        for (index, name) in ["a", "b"].enumerated() {
            _ = try cache.folder("\(scratch.path.root)/\(name)", outside: nil, now: Int64(index) * FolderCache.trust)
        }
        cache.closeUnused(now: FolderCache.trust)
        let one = cache.count
        cache.closeUnused(now: 2 * FolderCache.trust)
        #expect(one == 1 && cache.count == 0)
    }

    @Test("a folder that was not in its place is looked at again in the same turn")
    func failures() throws {
        let scratch = try ScratchWorkPath()
        let path = scratch.path.root + "/files"
        var cache = FolderCache()
        let folder = try cache.folder(path, outside: nil, now: 0)
        try FileManager.default.moveItem(atPath: path, toPath: path + ".moved")
        cache.beginTurn()
        #expect(throws: DownloadError.self) { try cache.checkStillThere(folder) }
        try FileManager.default.moveItem(atPath: path + ".moved", toPath: path)
        try cache.checkStillThere(folder)
        cache.endTurn()
    }

    @Test(
        "a file gets a free name and never a taken one, whichever ways the file system has",
        arguments: [[.rename, .link, .reserve], [.link, .reserve], [.reserve]] as [[Folder.ExclusiveWay]])
    func exclusively(_ ways: [Folder.ExclusiveWay]) throws {
        let scratch = try ScratchWorkPath()
        let folder = try Folder(path: scratch.path.root + "/files", creates: true)
        try Data([1]).write(to: URL(fileURLWithPath: folder.path(of: "part")))
        try Data([2]).write(to: URL(fileURLWithPath: folder.path(of: "taken")))
        #expect(try !folder.rename("part", to: "taken", replacing: false, ways: ways))
        #expect(try folder.rename("part", to: "free", replacing: false, ways: ways))
        #expect(!folder.contains("part"))
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder.path(of: "free"))) == Data([1]))
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder.path(of: "taken"))) == Data([2]))
        #expect(throws: DownloadError.self) { try folder.rename("none", to: "other", replacing: false, ways: ways) }
        #expect(!folder.contains("other"))
    }

    @Test("a name is known as taken once a number was sought for it")
    func knownNames() {
        var names = NameNumbers()
        #expect(!names.isKnown("/d/item"))
        let number = names.next("/d/item", owner: "me", least: 1) { _ in .free }
        #expect(number == 1 && names.isKnown("/d/item") && !names.isKnown("/d/other"))
    }

    @Test("the host of a list's URLs is recognised by its bytes, and a longer host or port is another one")
    func sites() {
        var texts = SharedTexts()
        for url in [
            "http://a.example/1", "http://a.example/2", "http://a.example.org/1", "http://a.example:81/1",
            "http://a.example:8/1", "http://a.example:81/2", "http://a.example", "https://a.example/1",
            "http://a.example./1", "http://[2001:db8:0::1]/1", "http://[2001:db8::1]/1", "http://a.example/3",
            "http://me@a.example/1", "http://a.example?q", "",
        ] {
            #expect(texts.site(of: url) == url.site, "\(url)")
            #expect(texts.site(of: url) == url.site, "\(url), again")
        }
    }
}
