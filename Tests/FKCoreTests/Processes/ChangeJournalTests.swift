import TestSupport
import Testing

@testable import FKEngine

@Suite("Changes for followers")
struct ChangeJournalTests {
    private let folder: TemporaryFolder
    private let workPath: WorkPath

    init() throws {
        folder = try TemporaryFolder()
        workPath = WorkPath(folder.file("work"))
        try workPath.open(create: true)
    }

    private func change(_ number: Int, _ state: DownloadState = .action) -> JournalChange {
        let task = TaskDescription(url: "http://h.example/\(number)")
        return .state(DownloadInfo(id: task.id, url: task.url, state: state), order: .unknown)
    }

    @Test("a change that is older than the info file does not set the progress back")
    func olderChange() {
        func info(_ received: Int64, attempt: Int, _ state: DownloadState = .action) -> DownloadInfo {
            var info = DownloadInfo(
                id: TaskID(url: "http://h.example/a"), url: "http://h.example/a", state: state,
                count: ByteCount(received: received))
            info.attempts = attempt
            return info
        }
        var speeds = FollowedSpeeds()
        #expect(speeds.latest(info(2, attempt: 1)).count.received == 2)
        _ = speeds.measured(info(5, attempt: 1))
        #expect(speeds.latest(info(2, attempt: 1)).count.received == 5)
        #expect(speeds.latest(info(9, attempt: 1)).count.received == 9)
        // Another attempt may have started the file again, and a settled task has its last count.
        #expect(speeds.latest(info(2, attempt: 2)).count.received == 2)
        #expect(speeds.latest(info(2, attempt: 1, .suspend)).count.received == 2)
    }

    @Test("a reader gets the changes in order, each once, from where it began; the first look counts as a gap")
    func order() throws {
        let journal = ChangeJournal(workPath)
        var reader = ChangeReader(workPath)
        #expect(reader.read().hasGap == false && !reader.isConnected)
        #expect(try journal.open())
        #expect(try !journal.open())
        let changes = (0..<5).map { change($0) }
        journal.append(changes[0])
        #expect(reader.read().changes.isEmpty, "what is not flushed is not there")
        journal.flush()
        journal.append(changes[1])
        journal.flush()
        var second = ChangeReader(workPath)
        let first = reader.read()
        #expect(first.changes.count == 2 || first.changes.count == 1)
        for change in changes[2...] { journal.append(change) }
        journal.flush()
        let rest = reader.read()
        #expect(first.changes + rest.changes == changes)
        #expect(!rest.hasGap && reader.isConnected)
        let all = second.read()
        #expect(all.changes.isEmpty && all.hasGap && second.isConnected, "the past of the journal is no news")
        journal.append(changes[0])
        journal.flush()
        #expect(second.read().changes == [changes[0]])
    }

    @Test("attempts keep their phase, their error and their time")
    func attempts() throws {
        let journal = ChangeJournal(workPath)
        _ = try journal.open()
        let id = TaskDescription(url: "http://h.example/a").id
        let phases: [AttemptInfo.Phase] = [
            .began, .succeeded, .stopped, .progressed(ByteCount(received: 1, previousReceived: 0, expected: 2)),
            .failed(DownloadError(.httpStatus, "no", status: 503), next: .gaveUp),
            .failed(
                DownloadError(.timeout, "late"), next: .retry(url: "u", at: Date(timeIntervalSince1970: 1_700_000_000))),
        ]
        let changes = phases.map {
            JournalChange.attempt(AttemptInfo(id: id, url: "u", number: 3, phase: $0), url: "v")
        }
        var reader = ChangeReader(workPath)
        _ = reader.read()
        for change in changes { journal.append(change) }
        journal.flush()
        #expect(reader.read().changes == changes)
    }

    @Test("a full part is replaced: a reader that looks in between misses nothing, and one that does not knows it")
    func parts() throws {
        let journal = ChangeJournal(workPath)
        _ = try journal.open()
        var steady = ChangeReader(workPath)
        var slow = ChangeReader(workPath)
        _ = steady.read()
        _ = slow.read()
        var number = 0
        var heard: [JournalChange] = []
        var written: [JournalChange] = []
        var gaps = 0
        // Enough for three parts.
        for _ in 0..<60 {
            for _ in 0..<1_000 {
                number += 1
                journal.append(change(number))
                written.append(change(number))
            }
            journal.flush()
            let news = steady.read()
            heard += news.changes
            if news.hasGap { gaps += 1 }
        }
        #expect(heard == written && gaps == 0)
        let late = slow.read()
        #expect(late.hasGap)
        #expect(late.changes.last == written.last)
    }

    @Test("another owner is a gap, and its changes follow")
    func owners() throws {
        var reader: ChangeReader
        do {
            let first = ChangeJournal(workPath)
            _ = try first.open()
            reader = ChangeReader(workPath)
            _ = reader.read()
            first.append(change(1))
            first.flush()
            #expect(reader.read().changes == [change(1)])
            // Written before the owner ended, and read after the next one has begun.
            first.append(change(2))
            first.flush()
        }
        let second = ChangeJournal(workPath)
        _ = try second.open()
        second.append(change(3))
        second.flush()
        let news = reader.read()
        #expect(news.hasGap && news.changes == [change(2), change(3)])
    }

    @Test("a journal that was not written for a while is a gap")
    func paused() throws {
        let lock = try FollowerLock(workPath)
        let journal = ChangeJournal(workPath)
        _ = try journal.open()
        var reader = ChangeReader(workPath)
        _ = reader.read()
        journal.append(change(1))
        journal.flush()
        #expect(reader.read().changes == [change(1)])
        journal.end()
        journal.append(change(2))
        _ = try journal.open()
        journal.append(change(3))
        journal.flush()
        let news = reader.read()
        #expect(news.hasGap && news.changes == [change(3)])
        withExtendedLifetime(lock) {}
    }

    @Test("half a line is not a change before its other half is there")
    func half() throws {
        let journal = ChangeJournal(workPath)
        _ = try journal.open()
        var reader = ChangeReader(workPath)
        _ = reader.read()
        let line = try StoreJSON.encode(change(1)) + [0x0a]
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: workPath.changesPath))
        try file.seekToEnd()
        try file.write(contentsOf: Data(line.prefix(20)))
        #expect(reader.read().changes.isEmpty)
        try file.write(contentsOf: Data(line.dropFirst(20)))
        #expect(reader.read().changes == [change(1)])
    }

    @Test("an owner that ends leaves no file, unless somebody reads it", arguments: [false, true])
    func removed(_ isFollowed: Bool) throws {
        let lock = isFollowed ? try FollowerLock(workPath) : nil
        let journal = ChangeJournal(workPath)
        _ = try journal.open()
        journal.append(change(1))
        journal.end()
        #expect(FileManager.default.fileExists(atPath: workPath.changesPath) == isFollowed)
        withExtendedLifetime(lock) {}
    }

    @Test("the file is gone when nobody follows, in whatever order owner and followers end or are killed")
    func abandoned() throws {
        func isThere() -> Bool { FileManager.default.fileExists(atPath: workPath.changesPath) }
        var one: FollowerLock? = try FollowerLock(workPath)
        var two: FollowerLock? = try FollowerLock(workPath)
        var owner: EngineLock? = try EngineLock.acquire(workPath)
        let journal = ChangeJournal(workPath)
        #expect(try journal.open())
        journal.end()
        owner?.release()
        ChangeJournal.removeAbandoned(workPath)
        #expect(isThere(), "two follow it")
        one = nil
        #expect(isThere(), "one follows it")
        two = nil
        #expect(!isThere())
        // Followers that end before the owner leave it to the owner.
        owner = try EngineLock.acquire(workPath)
        one = try FollowerLock(workPath)
        #expect(try journal.open())
        one = nil
        #expect(isThere())
        journal.end()
        #expect(!isThere())
        // An owner and a follower that were killed: the next owner removes it.
        #expect(try journal.open())
        ChangeJournal(workPath).end()
        #expect(!isThere())
        // A file that was removed under an owner is begun again.
        #expect(try journal.open())
        _ = (one, two, owner)
    }

    @Test(
        "states have one order: records by generation, states in memory after the record, a new task after an old one")
    func places() {
        let order = [
            ChangeOrder(number: 1, generation: 1, isInMemory: false),
            ChangeOrder(number: 1, generation: 1, isInMemory: true),
            ChangeOrder(number: 1, generation: 2, isInMemory: false),
            ChangeOrder(number: 1, generation: 1 << 40, isInMemory: true),
            ChangeOrder(number: 2, generation: 1, isInMemory: false),
            ChangeOrder(number: 1 << 50, generation: 1, isInMemory: false),
        ]
        for (index, one) in order.enumerated() {
            for (other, two) in order.enumerated() {
                #expect(one.isBefore(two) == (index < other))
                #expect(one.later(than: two) == order[max(index, other)])
            }
            #expect(!ChangeOrder.unknown.isBefore(one) && !one.isBefore(.unknown))
            #expect(ChangeOrder.unknown.later(than: one) == one)
        }
    }

    @Test("the lock of followers is seen while one of them lives")
    func lock() throws {
        #expect(!FollowerLock.isHeld(workPath))
        var one: FollowerLock? = try FollowerLock(workPath)
        let two = try FollowerLock(workPath)
        #expect(FollowerLock.isHeld(workPath))
        one = nil
        #expect(FollowerLock.isHeld(workPath))
        withExtendedLifetime(two) {}
        _ = one
    }
}
