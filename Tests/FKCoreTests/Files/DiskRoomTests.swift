import TestSupport
import Testing

@testable import FKEngine

@Suite("Room on the disk")
struct DiskRoomTests {
    private func failure(_ needed: Int64, _ room: DiskRoom, isResumed: Bool = false) -> DownloadError? {
        do throws(DownloadError) {
            try room.check(needed, folder: "/d/e", isResumed: isResumed)
            return nil
        } catch {
            return error
        }
    }

    private func fits(_ needed: Int64, _ room: DiskRoom) -> Bool { failure(needed, room) == nil }

    @Test("a file fits when what is kept and promised stays free; nothing needs no room")
    func check() {
        let room = DiskRoom(free: 1_000, promised: 300, kept: 100)
        #expect(room.spare == 600)
        #expect(fits(600, room) && !fits(601, room))
        let full = DiskRoom(free: 0, kept: .max)
        #expect(fits(0, full) && !fits(1, full))
        #expect(DiskRoom(free: 0, promised: .max, kept: .max).spare == .min)
        #expect(!fits(.max, DiskRoom(free: .max - 1, kept: 0)))
    }

    @Test(
        "the error names the folder and the sizes, and can pass by itself where bytes are held",
        arguments: [false, true])
    func message(isResumed: Bool) throws {
        let room = DiskRoom(free: 3 << 20, promised: 1 << 20, kept: 64 << 20)
        let error = failure(5 << 20, room, isResumed: isResumed)
        #expect(error?.code == .noSpace && error?.isRetryable == isResumed)
        for text in ["/d/e", "5.0 MiB", "3.0 MiB", "1.0 MiB", "64.0 MiB", "minFree"] {
            #expect(error?.description.contains(text) == true)
        }
        let policy = RetryPolicy()
        let decision = RetryRules.decide(
            error: try #require(error), attempt: 1, policy: policy, mirrors: 3, resumed: isResumed, random: 0)
        #expect((decision == .fail) == !isResumed)
    }

    @Test("of small files the disk is looked at once for as many as it has room for, and again after a second")
    func smallFiles() {
        var room = SmallFileRoom()
        var looks = 0
        func take(_ bytes: Int64, at now: Int64, spare: Int64, device: dev_t = 1, kept: Int64 = 0) -> Bool {
            room.reserve(bytes, on: device, keeping: kept, now: now) {
                looks += 1
                return spare
            }
        }
        for _ in 0..<10 { #expect(take(100, at: 0, spare: 1_000)) }
        #expect(looks == 1)
        #expect(!take(100, at: 0, spare: 99))
        #expect(take(100, at: 0, spare: 100))
        #expect(looks == 3)
        #expect(take(100, at: 5, spare: 1_000_000) && take(100, at: 999_999_999, spare: 0))
        #expect(!take(100, at: 1_000_000_005, spare: 0))
        #expect(take(100, at: 5, spare: 200, device: 2) && take(100, at: 5, spare: 200, kept: 7))
    }

    @Test("the holes of a part file take no room")
    func holes() throws {
        let folder = try TemporaryFolder()
        let part = try PartFile(in: try Folder(path: folder.path), name: "a")
        #expect(try mode("\(folder.path)/a") == 0o600)
        try overwrite(part.path, with: [UInt8](repeating: 1, count: 4_096), at: 10 << 20)
        #expect(part.length == (10 << 20) + 4_096)
        #expect((4_096...65_536).contains(part.occupied))
    }

    @Test("no byte of a file that does not fit is taken, whatever its length", arguments: [1_000, 3_000_000])
    func engine(count: Int) async throws {
        let content = Bytes.pattern(count: count)
        let bench = try await Bench(content: content) { $0.minFree = .max }
        let id = try await bench.add("a")
        let error = try #require(await bench.finished(id)?.error)
        #expect(error.code == .noSpace && error.message.contains(bench.out))
        #expect(bench.names == [] && bench.transport.requests.count == 1)
        // The task's own option goes over it.
        try await bench.completed("b") { $0.options.minFree = 0 }
        #expect(try bench.out("b") == content)
    }
}
