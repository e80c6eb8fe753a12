import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine

@Suite("Trimming to a number of bytes")
struct TrimTests {
    /// File systems allocate late and keep attributes in blocks of their own.
    private func isNear(_ one: Int64, _ other: Int64) -> Bool { abs(one - other) <= 16_384 }

    private func used(_ path: String) throws -> Int64 {
        var status = stat()
        try #require(lstat(path, &status) == 0)
        return Int64(status.st_blocks) * 512
    }

    @Test(
        "the least recently used goes first: whole barrels with their sets, single files, never one that is being read")
    func order() async throws {
        let bench = try await Bench(content: Bytes.pattern(count: 40_000))
        for name in ["a", "b"] { try await bench.completed(name, barrel: "old") }
        bench.clock.advance(seconds: 100)
        try await bench.completed("single")
        bench.clock.advance(seconds: 100)
        try await bench.completed("c", barrel: "new")
        let old = try await bench.downloader.barrel("old")
        let set = bench.folder.file("set")
        try await old.publish(to: set)
        // Publishing was a use: as old as its members again.
        let record = bench.workPath.setPath("old")
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: record)

        // Files of one length may have other numbers of blocks, for attributes.
        let sizes = try Dictionary(
            uniqueKeysWithValues: ["a", "b", "c", "single"].map { ($0, try used("\(bench.out)/\($0)")) })
        let (all, single) = (sizes.values.reduce(0, +), sizes["single"] ?? 0)
        let rest = sizes["c"] ?? 0
        try #require(single > 0 && rest > 0)

        let fits = try await bench.downloader.trim(to: all + 16_384)
        #expect(isNear(fits.usedBytes, all) && fits.freedBytes == 0 && fits.barrels == [] && fits.files == [])
        try await old.withFiles { _ in
            let kept = try await bench.downloader.trim(to: all - 20_000)
            #expect(kept.barrels == [] && kept.files.map(\.lastPathComponent) == ["single"])
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: record)
            #expect(isNear(kept.freedBytes, single) && isNear(kept.usedBytes, all - single))
            let held = try await bench.downloader.trim(to: all - single - 20_000)
            #expect(held.inUse.contains("old") && !held.barrels.contains("old"))
        }
        #expect(await old.isReady)
        let trimmed = try await bench.downloader.trim(to: 0)
        #expect(trimmed.barrels.contains("old") && trimmed.files == [] && trimmed.usedBytes == 0)
        #expect(isNear(trimmed.freedBytes, all - single - rest), "two names of a file are one file")
        #expect(!FileManager.default.fileExists(atPath: set.path))
        #expect(trimmed.folders.map(\.path) == [set.path] && trimmed.failures == [])
        #expect(bench.names == [])
        #expect(await old.state == .absent)
        try await old.publish(to: set)
        #expect(await old.isReady, "the files were downloaded again")
    }

    @Test("a use counts; a member of two barrels, a changed file and files of others in a set stay")
    func kept() async throws {
        let bench = try await Bench(content: Bytes.pattern(count: 40_000))
        let shared = try await bench.completed("shared", barrel: "one")
        for name in ["own", "more"] { try await bench.completed(name, barrel: "one") }
        bench.clock.advance(seconds: 100)
        try await bench.completed("other", barrel: "two")
        try await bench.messager.add(shared, toBarrel: "two")
        try bench.folder.write(Bytes.pattern(count: 200_000), to: "out/own")
        let one = try await bench.downloader.barrel("one")
        let size = try used(bench.out + "/shared")
        bench.clock.advance(seconds: 100)
        let trimmed = try await bench.downloader.trim(to: size * 2 + 16_384)
        #expect(trimmed.barrels == ["one"])
        #expect(bench.names == ["other", "own", "shared"])
        try await one.markUsed()
        #expect(try await bench.record(shared).lastUsed == bench.clock.date)
        await #expect(throws: DownloadError.self) { try await bench.downloader.trim(to: -1) }
    }

    @Test(
        "a published folder stays when its barrel was deleted, or a member was forgotten: no task could fetch its files again",
        arguments: ["delete", "forget"])
    func orphans(how: String) async throws {
        let bench = try await Bench(content: Bytes.pattern(count: 40_000))
        let first = try await bench.completed("a", barrel: "set")
        try await bench.completed("b", barrel: "set")
        let barrel = try await bench.downloader.barrel("set")
        let set = bench.folder.file("set")
        try await barrel.publish(to: set)
        if how == "delete" { try await barrel.delete() } else { try await bench.control.forget(.id(first)) }
        let trimmed = try await bench.downloader.trim(to: 0)
        #expect(trimmed.usedBytes == 0, "the folder does not count")
        for name in ["a", "b"] { #expect(try bench.folder.read("set/\(name)").count == 40_000) }
    }

    @Test("a published folder stays if a member has only the name of its file: the set has the only copy")
    func otherMember() async throws {
        let bench = try await Bench(content: Bytes.pattern(count: 40_000))
        let old = try await bench.completed("old/data", barrel: "set")
        let barrel = try await bench.downloader.barrel("set")
        try await barrel.publish(to: bench.folder.file("set"))
        try await bench.control.forget(.id(old))
        try FileManager.default.removeItem(atPath: "\(bench.out)/data")
        try await bench.completed("new/data", barrel: "set")
        try #require(bench.names == ["data"])
        let trimmed = try await bench.downloader.trim(to: 0)
        #expect(trimmed.barrels == ["set"] && trimmed.folders == [] && bench.names == [])
        #expect(try bench.folder.read("set/data").count == 40_000)
    }

    @Test("files of others in a published folder stay, and the set can be published there again")
    func others() async throws {
        let bench = try await Bench(content: Bytes.pattern(count: 40_000))
        try await bench.completed("a", barrel: "set")
        let barrel = try await bench.downloader.barrel("set")
        let set = bench.folder.file("set")
        try await barrel.publish(to: set)
        try bench.folder.write([7], to: "set/note")
        #expect(try await bench.downloader.trim(to: 0).barrels == ["set"])
        #expect(try bench.folder.read("set/note") == [7])
        #expect(await barrel.state == .partial)
        try await barrel.publish(to: set)
        #expect(try bench.folder.read("set/note") == [7])
        #expect(await barrel.isReady)
    }
}
