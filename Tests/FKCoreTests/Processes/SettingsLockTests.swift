import Dispatch
import TestSupport
import Testing

@testable import FKEngine
@testable import FKStore

@Suite("Files that are read, changed and replaced")
struct SettingsLockTests {
    @Test("many change the policies of hosts at once: none is lost")
    func hosts() throws {
        let folder = try TemporaryFolder()
        let workPath = WorkPath(folder.file("work"))
        try workPath.open(create: true)
        DispatchQueue.concurrentPerform(iterations: 24) { number in
            do {
                try HostPolicy.change(in: workPath) { $0.append(HostPolicy("h\(number).example", connections: 1)) }
            } catch {
                Issue.record(error)
            }
        }
        #expect(try HostPolicy.all(in: workPath).count == 24)
    }

    @Test("a lock that another process does not release: the error says so, and nothing was done")
    func held() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("settings.lock").path
        try FileLock.exclusively(path) {
            let error = #expect(throws: DownloadError.self) {
                try FileLock.exclusively(path, waiting: 0.01) { Issue.record("it ran") }
            }
            #expect(error?.code == .workPathBusy && error?.message.contains(path) == true)
        }
        #expect(try FileLock.exclusively(path, waiting: 0) { 7 } == 7)
    }

    @Test("a released lock is free at once, also while a program that is being started has the descriptor")
    func released() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("lock").path
        let descriptor = try FileIO.open(path, O_RDWR | O_CREAT)
        let copy = dup(descriptor)
        defer { close(copy) }
        #expect(flock(descriptor, LOCK_EX | LOCK_NB) == 0 && FileLock.isHeld(path, LOCK_SH))
        FileLock.release(descriptor)
        #expect(copy >= 0 && !FileLock.isHeld(path, LOCK_EX))
    }
}
