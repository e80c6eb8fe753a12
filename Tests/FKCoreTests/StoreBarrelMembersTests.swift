import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore

@Suite("Members of long barrels")
struct StoreBarrelMembersTests {
    private func member(_ index: Int) -> BarrelMember {
        let url = "https://example.com/\(index)" + String(repeating: "x", count: index % 7)
        return BarrelMember(id: TaskID(url: url), url: url)
    }

    @Test("whatever joins and leaves, before and after saves, members and order are those of a list")
    func random() throws {
        let scratch = try ScratchWorkPath()
        var random = SeededRandom(seed: 19)
        var barrel = BarrelEntry(record: BarrelRecord(name: "b", created: Date(timeIntervalSince1970: 0)))
        var list: [BarrelMember] = []
        var next = 0
        for round in 0..<12 {
            for _ in 0..<(round < 6 ? 1_500 : 200) {
                let isNew = barrel.insert(member(next))
                #expect(isNew)
                list.append(member(next))
                next += 1
            }
            let isNew = barrel.insert(list[0])
            #expect(!isNew)
            // The last rounds leave less than stays in memory.
            for _ in 0..<(round < 6 ? 100 : 1_500) where list.count > 10 {
                let member = list.remove(at: Int.random(in: 0..<list.count, using: &random))
                let wasThere = barrel.remove(member.id)
                #expect(wasThere && !barrel.contains(member.id))
            }
            if round % 2 == 0 { _ = try barrel.save(in: scratch.path) }
            #expect(try barrel.members() == list)
            #expect(barrel.ids == list.map(\.id) && barrel.count == list.count)
        }
        _ = try barrel.save(in: scratch.path)
        #expect(try BarrelFile.read("b", in: scratch.path).members == list)
        #expect(try BarrelEntry("b", in: scratch.path).members() == list)
    }

    @Test("a long barrel is saved and read in portions; a save that fails leaves the file and the members")
    func long() throws {
        let scratch = try ScratchWorkPath()
        let members = (0..<(BarrelMembers.countInMemory + 1_000)).map(member)
        try BarrelFile.write(
            BarrelRecord(name: "b", created: Date(timeIntervalSince1970: 0), members: members), in: scratch.path)
        let before = try bytes(scratch.path.barrelPath("b"))
        var barrel = try BarrelEntry("b", in: scratch.path)
        let isNew = barrel.insert(BarrelMember(id: TaskID(url: "bad"), url: "http://h/\n"))
        #expect(isNew)
        #expect(throws: DownloadError.self) { try barrel.save(in: scratch.path) }
        #expect(try bytes(scratch.path.barrelPath("b")) == before)
        #expect(scratch.names(scratch.path.barrelsFolder) == ["b.barrel"])
        let wasThere = barrel.remove(TaskID(url: "bad"))
        #expect(wasThere)
        _ = try barrel.save(in: scratch.path)
        #expect(try bytes(scratch.path.barrelPath("b")) == before)
        // The file that the entry has open is not the one of that name any more.
        #expect(try BarrelFile.delete("b", in: scratch.path))
        #expect(try barrel.members() == members)
    }
}
