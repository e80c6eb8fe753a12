import TestSupport
import Testing

@testable import FKStore

@Suite("Shards") struct ShardTests {
    private let ids = (0..<20_000).map { TaskID(url: "https://example.com/file/\($0)") }

    @Test("Every task is in exactly one shard", arguments: [1, 2, 3, 7, 1_000, 1_000_000])
    func partition(count: Int) throws {
        for id in ids.prefix(200) {
            let shard = Shard(of: id, count: count)
            #expect((1...count).contains(shard.index) && shard.contains(id))
            if count > 1 {
                let other = try #require(Shard(shard.index % count + 1, of: count))
                #expect(!other.contains(id))
            }
        }
    }

    @Test("The shards have about equally many tasks: within five standard deviations") func balance() {
        for count in [2, 16, 100] {
            var sizes = [Int](repeating: 0, count: count)
            for id in ids { sizes[Shard(of: id, count: count).index - 1] += 1 }
            let mean = Double(ids.count) / Double(count)
            for size in sizes { #expect(abs(Double(size) - mean) < 5 * mean.squareRoot()) }
        }
    }

    @Test("The assignment is part of the format of a divided list: it never changes") func fixed() {
        let shards = ["a", "b", "c", "d"].map {
            Shard(of: TaskID(url: "https://example.com/\($0)"), count: 1_000).index
        }
        #expect(shards == [179, 844, 713, 720])
    }

    @Test("Texts of shards", arguments: [("1/1", 1, 1), ("3/8", 3, 8), ("1000000/1000000", 1_000_000, 1_000_000)])
    func parse(text: String, index: Int, count: Int) throws {
        let shard = try #require(Shard(parsing: text))
        #expect(shard.index == index && shard.count == count && shard.description == text)
        #expect(Shard(folder: shard.folder) == shard)
    }

    @Test(
        "Texts that are no shards",
        arguments: [
            "", "/", "3", "0/4", "5/4", "x", "1/0", "-1/4", "+1/4", "01/4", "1/4/2", " 1/4", "1/1000001", "1/x", "٣/٨",
        ])
    func refuse(text: String) { #expect(Shard(parsing: text) == nil) }

    @Test(
        "Names in the folder of the shards that are no shards",
        arguments: ["plan", "books.plan", "3-of", "0-of-4", "5-of-4"])
    func otherNames(name: String) { #expect(Shard(folder: name) == nil) }

    // MARK: The plan

    @Test("The first of several processes records the plan, and the others read it") func first() throws {
        let folder = try TemporaryFolder()
        let path = WorkPath(folder.path)
        try path.open(create: true)
        try path.makeShardsFolder()
        #expect(try ShardPlan.read("books", in: path) == nil)
        let plan = ShardPlan(count: 8, numbering: ShardNumbering(.slurm, first: 0, size: 8))
        #expect(try plan.recordFirst("books", in: path) == plan)
        let late = ShardPlan(count: 4, numbering: ShardNumbering(size: 4))
        #expect(try late.recordFirst("books", in: path) == plan)
        #expect(try ShardPlan.read("books", in: path) == plan)
        #expect(try ShardPlan.read("films", in: path) == nil && ShardPlan.read(nil, in: path) == nil)
        #expect(try late.recordFirst(nil, in: path) == late)
        #expect(try FileIO.names(in: path.shardsFolder).sorted() == ["books.plan", "plan"], "no file is left over")
        try late.replace("books", in: path)
        #expect(try ShardPlan.read("books", in: path) == late)
    }

    @Test(
        "A plan that cannot be right is refused with its path",
        arguments: [
            "", "{", "{\"format\":1}",
            "{\"format\":1,\"plan\":{\"count\":0,\"numbering\":{\"first\":0,\"scheduler\":\"slurm\",\"size\":1,\"step\":1}}}",
            "{\"format\":1,\"plan\":{\"count\":4,\"numbering\":{\"first\":0,\"scheduler\":\"slurm\",\"size\":0,\"step\":1}}}",
            "{\"format\":1,\"plan\":{\"count\":4,\"numbering\":{\"first\":0,\"scheduler\":\"slurm\",\"size\":4,\"step\":0}}}",
            "{\"format\":1,\"plan\":{\"count\":4,\"numbering\":{\"first\":0,\"scheduler\":\"slurm\",\"size\":9223372036854775807,\"step\":1}}}",
        ])
    func damaged(text: String) throws {
        let folder = try TemporaryFolder()
        let path = WorkPath(folder.path)
        try path.open(create: true)
        try path.makeShardsFolder()
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(path.shardsFolder)/plan"))
        #expect { try ShardPlan.read(nil, in: path) } throws: { error in
            let error = error as? DownloadError
            return error?.code == .corruptInfo && error?.message.contains("\(path.shardsFolder)/plan") == true
        }
    }

    @Test("A plan of a later version stays untouched") func later() throws {
        let folder = try TemporaryFolder()
        let path = WorkPath(folder.path)
        try path.open(create: true)
        try path.makeShardsFolder()
        let text =
            "{\"format\":2,\"plan\":{\"count\":4,\"numbering\":{\"first\":0,\"scheduler\":\"slurm\",\"size\":4,\"step\":1}}}"
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(path.shardsFolder)/plan"))
        #expect { try ShardPlan.read(nil, in: path) } throws: { ($0 as? DownloadError)?.code == .laterVersion }
    }

    // MARK: Network file systems

    @Test("File systems that several machines share") func networks() {
        for (magic, name) in [(0x6969, "NFS"), (0x0bd0_0bd0, "Lustre"), (0x4750_4653, "GPFS"), (0xfe53_4d42, "SMB")] {
            #expect(NetworkFileSystem.name(ofMagic: UInt32(magic)) == name)
        }
        // ext4, tmpfs, btrfs, xfs, overlay
        for magic in [0xef53, 0x0102_1994, 0x9123_683e, 0x5846_5342, 0x794c_7630] {
            #expect(NetworkFileSystem.name(ofMagic: UInt32(magic)) == nil)
        }
        #expect(NetworkFileSystem.name(ofType: "fuse.sshfs") == "sshfs")
        #expect(NetworkFileSystem.name(ofType: "fuse.ntfs-3g") == nil)
        #expect(NetworkFileSystem.name(of: NSTemporaryDirectory()) == nil)
        #expect(NetworkFileSystem.name(of: "/proc/there is none") == nil)
    }

    @Test("The deepest mount point decides, with spaces in its name and none that only begins alike") func mounts() {
        let mounts = """
            /dev/vda / ext4 rw 0 0
            host:/data /mnt/my\\040data fuse.sshfs rw 0 0
            tmpfs /mnt/my\\040data/local tmpfs rw 0 0
            broken
            """
        #expect(NetworkFileSystem.type(of: "/mnt/my data/w", in: mounts) == "fuse.sshfs")
        #expect(NetworkFileSystem.type(of: "/mnt/my data", in: mounts) == "fuse.sshfs")
        #expect(NetworkFileSystem.type(of: "/mnt/my data/local/w", in: mounts) == "tmpfs")
        #expect(NetworkFileSystem.type(of: "/mnt/my datax", in: mounts) == "ext4")
        #expect(NetworkFileSystem.type(of: "/x", in: "") == nil)
        #if os(Linux)
            #expect(NetworkFileSystem.type(of: "/proc/self", in: NetworkFileSystem.mounts()) == "proc")
        #endif
    }
}
