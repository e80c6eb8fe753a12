import TestSupport
import Testing

@Suite("Engine lock")
struct EngineLockTests {
    @Test("two holders exclude each other, in one process as well")
    func exclusion() throws {
        let scratch = try ScratchWorkPath()
        #expect(!EngineLock.isHeld(scratch.path))
        #expect(EngineLock.holder(scratch.path) == nil)
        let first = try #require(try EngineLock.tryAcquire(scratch.path))
        #expect(try EngineLock.tryAcquire(scratch.path) == nil)
        #expect(EngineLock.isHeld(scratch.path))
        first.release()
        first.release()
        #expect(!EngineLock.isHeld(scratch.path))
        #expect(EngineLock.holder(scratch.path) == nil)
        let second = try #require(try EngineLock.tryAcquire(scratch.path))
        try first.touch(Date())
        second.release()
    }

    @Test("an abandoned lock is free")
    func abandoned() throws {
        let scratch = try ScratchWorkPath()
        do {
            let lock = try #require(try EngineLock.tryAcquire(scratch.path))
            #expect(EngineLock.isHeld(scratch.path))
            _ = lock
        }
        #expect(!EngineLock.isHeld(scratch.path))
    }

    @Test("the holder writes down who it is and when it last ticked, in a file of one length")
    func holder() throws {
        let scratch = try ScratchWorkPath()
        let lock = try #require(try EngineLock.tryAcquire(scratch.path))
        defer { lock.release() }
        let holder = try #require(EngineLock.holder(scratch.path))
        #expect(holder.pid == ProcessInfo.processInfo.processIdentifier)
        #expect(holder.bootID == BootID.current)
        let size = try bytes(scratch.path.lockPath).count
        let tick = Date(timeIntervalSince1970: 1_800_000_000.5)
        try lock.touch(tick)
        #expect(EngineLock.holder(scratch.path)?.tick == tick)
        #expect(EngineLock.holder(scratch.path)?.started == holder.started)
        #expect(try bytes(scratch.path.lockPath).count == size)
        #expect(try mode(scratch.path.lockPath) == 0o600)
    }

    @Test(
        "until a new holder has described itself, the file shows the former one, which has ended: a reader waits an instant"
    )
    func successor() throws {
        let scratch = try ScratchWorkPath()
        let lock = try #require(try EngineLock.tryAcquire(scratch.path))
        defer { lock.release() }
        let present = try #require(EngineLock.holder(scratch.path))
        let ended = Process()
        ended.executableURL = URL(filePath: "/bin/true")
        try ended.run()
        ended.waitUntilExit()
        var former = present
        former.pid = ended.processIdentifier
        var reads = 0
        func found(after count: Int) -> EngineLock.Holder? {
            reads = 0
            return EngineLock.holder {
                reads += 1
                return reads > count ? present : former
            }
        }
        #expect(found(after: 0) == present && reads == 1)
        #expect(found(after: 2) == present && reads == 3)
        // A process of another container cannot be seen either.
        #expect(found(after: .max) == former)
        former.host = "another.example"
        #expect(found(after: 2) == former && reads == 1)
    }

    @Test("looking at the lock does not keep anybody from taking it")
    func probing() async throws {
        let scratch = try ScratchWorkPath()
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for _ in 0..<500 { _ = EngineLock.isHeld(scratch.path) } }
            group.addTask {
                for _ in 0..<50 {
                    let lock = try? EngineLock.tryAcquire(scratch.path)
                    #expect(lock != nil)
                    lock?.release()
                }
            }
        }
    }

    @Test("garbage in the lock file hurts nobody")
    func garbage() throws {
        let scratch = try ScratchWorkPath()
        try write(Array("garbage".utf8), scratch.path.lockPath)
        let lock = try #require(try EngineLock.tryAcquire(scratch.path))
        #expect(EngineLock.holder(scratch.path) != nil)
        lock.release()
    }

    @Test("a lock file that was removed and made again is another lock")
    func replaced() throws {
        let scratch = try ScratchWorkPath()
        let first = try #require(try EngineLock.tryAcquire(scratch.path))
        try FileIO.remove(scratch.path.lockPath)
        #expect(!EngineLock.isHeld(scratch.path))
        let second = try #require(try EngineLock.tryAcquire(scratch.path))
        first.release()
        #expect(EngineLock.isHeld(scratch.path))
        second.release()
    }

    @Test("a process that dies gives the lock back")
    func otherProcess() async throws {
        let scratch = try ScratchWorkPath()
        try EngineLock.tryAcquire(scratch.path)?.release()
        let input = Pipe()
        let output = Pipe()
        // `flock` of util-linux takes the same kind of lock; `cat` ends with its input.
        let process = try ChildProcess(
            [
                "/bin/sh", "-c",
                "command -v flock >/dev/null || { echo none; exit; }; flock -x -n \"$0\" sh -c 'echo locked; exec cat'",
                scratch.path.lockPath,
            ],
            input: .descriptor(input.fileHandleForReading.fileDescriptor),
            output: .descriptor(output.fileHandleForWriting.fileDescriptor))
        let said = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        if said.hasPrefix("locked") {
            #expect(EngineLock.isHeld(scratch.path))
            #expect(try EngineLock.tryAcquire(scratch.path) == nil)
        }
        try input.fileHandleForWriting.close()
        process.end()
        let lock = try #require(try EngineLock.tryAcquire(scratch.path))
        lock.release()
    }
}
