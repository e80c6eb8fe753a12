import TestSupport
import Testing

@testable import FKEngine

@Suite("Members of long barrels")
struct BarrelMembersTests {
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

    @Test("a member that joins a long barrel is appended; a kill at any byte leaves the barrel without it or with it")
    func appended() throws {
        let scratch = try ScratchWorkPath()
        let count = BarrelMembers.countInMemory + 100
        var members = (0..<count).map(member)
        try BarrelFile.write(
            BarrelRecord(name: "b", created: Date(timeIntervalSince1970: 0), members: members), in: scratch.path)
        var barrel = try BarrelEntry("b", in: scratch.path)
        for number in 0..<3 {
            members.append(member(count + number))
            let isNew = barrel.insert(members[count + number])
            let size = try barrel.save(in: scratch.path)
            #expect(isNew && size < 200)
            #expect(try barrel.members() == members && BarrelFile.read("b", in: scratch.path).members == members)
        }
        let path = scratch.path.barrelPath("b")
        let whole = try bytes(path)
        let last = whole.count - 120
        for cut in last..<whole.count {
            try Data(whole[..<cut]).write(to: URL(fileURLWithPath: path))
            let read = try BarrelFile.read("b", in: scratch.path).members
            #expect(read == Array(members.dropLast()) || read == Array(members.dropLast(2)), "\(cut)")
        }
        var damaged = whole
        damaged[whole.count - 5] ^= 1
        try Data(damaged).write(to: URL(fileURLWithPath: path))
        var torn = try BarrelEntry("b", in: scratch.path)
        #expect(torn.isTorn && torn.count == count + 2)
        // The next save writes the whole file, with the members of the records.
        try scratch.add(TaskRecord.sample(members[0].url, number: 1))
        _ = torn.insert(member(count + 9))
        #expect(try torn.save(in: scratch.path) > 10_000)
        #expect(try BarrelFile.read("b", in: scratch.path).members == members.dropLast() + [member(count + 9)])
        // A member that leaves changes the lines before.
        let wasThere = torn.remove(members[5].id)
        #expect(try wasThere && torn.save(in: scratch.path) > 10_000)
        // As many as half of the file are not appended.
        for number in 0..<3_000 { _ = torn.insert(member(count + 100 + number)) }
        #expect(try torn.save(in: scratch.path) > 500_000)
        #expect(try BarrelFile.read("b", in: scratch.path).members == torn.members())
    }

    @Test(
        "after a kill the members are those that the records name, and the URLs of many new ones are not all in memory")
    func reconciled() throws {
        let scratch = try ScratchWorkPath()
        let old = (0..<10).map(member)
        let record = BarrelRecord(name: "b", created: Date(timeIntervalSince1970: 0), members: old)
        try BarrelFile.write(record, in: scratch.path)
        func add(_ url: String, _ number: Int, _ barrels: [String]) throws {
            var record = TaskRecord.sample(url, number: UInt64(number))
            record.barrels = barrels
            try scratch.add(record)
        }
        // The first has no record, and the record of the second does not name the barrel.
        for index in 1..<10 { try add(old[index].url, index, index == 1 ? ["other"] : ["other", "b"]) }
        let tail = String(repeating: "y", count: 2_200)
        let count = BarrelMembers.countInMemory + 500
        let new = (0..<count).map { "https://example.com/new/\($0)/\(tail)" }
        // In the order of submission, which is not that of the files.
        for (index, url) in new.enumerated() { try add(url, 100 + index, ["b"]) }
        var (barrel, members) = try BarrelMembers.read("b", in: scratch.path)
        try members.reconcile(with: barrel, in: scratch.path)
        #expect(members.textCount < 4 << 20)
        let all = try members.all()
        #expect(all.map(\.url) == old[2...].map(\.url) + new && all.allSatisfy { $0.id == TaskID(url: $0.url) })
        barrel.members = []
        _ = try members.write(barrel, in: scratch.path)
        #expect(try BarrelFile.read("b", in: scratch.path).members == all)
    }
}
