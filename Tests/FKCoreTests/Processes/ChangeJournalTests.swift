import TestSupport
import Testing

@testable import FKEngine

@Suite("Changes for followers", .timeLimit(.minutes(10)))
struct ChangeJournalTests {
    private let folder: TemporaryFolder
    private let workPath: WorkPath

    init() throws {
        folder = try TemporaryFolder()
        workPath = WorkPath(folder.file("work"))
        try workPath.open(create: true)
    }

    private func change(_ number: Int, _ state: DownloadState = .action) -> Change {
        let task = TaskDescription(url: "http://h.example/\(number)")
        return .state(DownloadInfo(id: task.id, url: task.url, state: state))
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

    @Test("a reader gets the changes in order, each once, and the first look counts as a gap")
    func order() throws {
        let journal = ChangeJournal(workPath)
        var reader = ChangeReader(workPath)
        #expect(reader.read().hasGap == false && !reader.isConnected)
        try journal.open()
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
        #expect(all.changes == changes && all.hasGap)
        #expect(second.read().changes.isEmpty)
    }

    @Test("attempts keep their phase, their error and their time")
    func attempts() throws {
        let journal = ChangeJournal(workPath)
        try journal.open()
        let id = TaskDescription(url: "http://h.example/a").id
        let phases: [AttemptInfo.Phase] = [
            .began, .succeeded, .stopped, .progressed(ByteCount(received: 1, previousReceived: 0, expected: 2)),
            .failed(DownloadError(.httpStatus, "no", status: 503), next: .gaveUp),
            .failed(
                DownloadError(.timeout, "late"), next: .retry(url: "u", at: Date(timeIntervalSince1970: 1_700_000_000))),
        ]
        let changes = phases.map { Change.attempt(AttemptInfo(id: id, url: "u", number: 3, phase: $0), url: "v") }
        for change in changes { journal.append(change) }
        journal.flush()
        var reader = ChangeReader(workPath)
        #expect(reader.read().changes == changes)
    }

    @Test("a full part is replaced: a reader that looks in between misses nothing, and one that does not knows it")
    func parts() throws {
        let journal = ChangeJournal(workPath)
        try journal.open()
        var steady = ChangeReader(workPath)
        var slow = ChangeReader(workPath)
        _ = steady.read()
        _ = slow.read()
        var number = 0
        var heard: [Change] = []
        var written: [Change] = []
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
            try first.open()
            reader = ChangeReader(workPath)
            first.append(change(1))
            first.flush()
            #expect(reader.read().changes == [change(1)])
            // Written before the owner ended, and read after the next one has begun.
            first.append(change(2))
            first.flush()
        }
        let second = ChangeJournal(workPath)
        try second.open()
        second.append(change(3))
        second.flush()
        let news = reader.read()
        #expect(news.hasGap && news.changes == [change(2), change(3)])
    }

    @Test("a journal that was not written for a while is a gap")
    func paused() throws {
        let lock = try FollowerLock(workPath)
        let journal = ChangeJournal(workPath)
        try journal.open()
        var reader = ChangeReader(workPath)
        journal.append(change(1))
        journal.flush()
        _ = reader.read()
        journal.end()
        journal.append(change(2))
        try journal.open()
        journal.append(change(3))
        journal.flush()
        let news = reader.read()
        #expect(news.hasGap && news.changes == [change(3)])
        withExtendedLifetime(lock) {}
    }

    @Test("half a line is not a change before its other half is there")
    func half() throws {
        let journal = ChangeJournal(workPath)
        try journal.open()
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
        try journal.open()
        journal.append(change(1))
        journal.end()
        #expect(FileManager.default.fileExists(atPath: workPath.changesPath) == isFollowed)
        var reader = ChangeReader(workPath)
        #expect(reader.read().changes == (isFollowed ? [change(1)] : []))
        withExtendedLifetime(lock) {}
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
