import FKMiddleware
import Foundation
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Names a message: `<wall clock in ns, 20 digits>-<pid>-<random>`, so that names sort by time of posting.
package struct MessageID: Sendable, Hashable, Codable, CustomStringConvertible {
    package let name: String
    package var description: String { name }

    private static let last = Atomic<UInt64>(0)

    /// A new name; those of one process ascend even when the clock is set back.
    package init() {
        let now = UInt64(max(0, Date().timeIntervalSince1970) * 1e9)
        var time = now
        var seen = Self.last.load(ordering: .relaxed)
        while true {
            time = max(now, seen + 1)
            let (done, original) = Self.last.compareExchange(expected: seen, desired: time, ordering: .relaxed)
            if done { break }
            seen = original
        }
        let digits = String(time)
        let random = String(UInt32.random(in: 0 ... .max), radix: 16)
        name = "\(String(repeating: "0", count: max(0, 20 - digits.count)))\(digits)-\(getpid())-\(random)"
    }

    fileprivate init(name: String) { self.name = name }
}

/// How processes that do not own the engine ask it for something, and get an answer.
///
/// A message is a file in `mailbox/`, an answer one in `replies/`, both written aside and renamed in. The engine deletes
/// a message only once it was handled (`finish`): when it is killed in between, the next engine handles it again,
/// so requests are idempotent.
///
/// Safe from any thread. One object per process and work path on the engine's side, because it remembers what it looked
/// at and what it has handed out.
package final class Mailbox: Sendable {
    /// Larger messages are set aside unread.
    package static let maxMessage = 64 << 20
    /// Seconds after which an answer nobody fetched is dropped.
    package static let replyLifetime: Double = 600
    /// Folder times are as coarse as the kernel's timer (4 to 10 ms): a folder changed this recently, in seconds,
    /// may have changed again without showing it.
    private static let granularity: Double = 0.02

    private struct Look: Equatable {
        var inode: UInt64
        var seconds: Int
        var nanoseconds: Int
        var time: Double { Double(seconds) + Double(nanoseconds) / 1e9 }
    }

    private struct State {
        /// The folder as it was when it was last read, if it was quiet then.
        var look: Look?
        /// Taken and not finished: not handed out again by this process.
        var inHand: Set<String> = []
    }

    private let workPath: WorkPath
    private let state = Locked(State())

    package init(_ workPath: WorkPath) {
        self.workPath = workPath
    }

    private func messagePath(_ id: MessageID) -> String { "\(workPath.mailboxFolder)/\(id.name).msg" }
    private func replyPath(_ id: MessageID) -> String { "\(workPath.repliesFolder)/\(id.name).reply" }

    // MARK: For those who ask

    /// Leaves a request for the engine.
    ///
    /// - Throws: `.noSpace`, `.disk`, `.notFound` (no such work path), `.tooLarge` above 64 MiB.
    @discardableResult
    package func post(_ request: EngineRequest) throws -> MessageID {
        let bytes = try StoreJSON.encode(request)
        guard bytes.count <= Self.maxMessage else {
            throw DownloadError(.tooLarge, "A request may have 64 MiB; this one has \(bytes.count) bytes. Split it.")
        }
        let id = MessageID()
        try bytes.withUnsafeBytes {
            try FileIO.replace(messagePath(id), aside: "\(workPath.mailboxFolder)/.tmp-\(id.name)", $0)
        }
        return id
    }

    /// The engine's answer, once; nil while there is none.
    ///
    /// - Throws: `.corruptInfo` for an answer that cannot be read; it is removed as well.
    package func readReply(_ id: MessageID) throws -> EngineReply? {
        let path = replyPath(id)
        do {
            let bytes = try FileIO.contents(of: path, limit: Self.maxMessage)
            try FileIO.remove(path)
            return try StoreJSON.decode(EngineReply.self, from: bytes)
        } catch let error as DownloadError where error.code == .notFound {
            return nil
        }
    }

    /// Takes a request back. Returns false when it was not there any more; when it returns true the engine may
    /// nevertheless have begun with it.
    @discardableResult
    package func withdraw(_ id: MessageID) throws -> Bool {
        try FileIO.remove(messagePath(id))
    }

    // MARK: For the engine

    /// False when the mailbox has certainly not changed since the last `take`: one stat.
    package func hasNews() -> Bool {
        guard let look = lookNow() else { return false }
        return state.withLock { $0.look != look }
    }

    /// The requests that are there, oldest first, without those taken and not finished. What cannot be read is moved to
    /// the quarantine and reported in its place; it needs no `finish`.
    package func take(now: Date = Date()) -> [(MessageID, Result<EngineRequest, DownloadError>)] {
        let before = lookNow()
        let names = FileIO.names(in: workPath.mailboxFolder).filter { $0.hasSuffix(".msg") }.sorted()
        let fresh = state.withLock { state in
            let quiet = before.map { now.timeIntervalSince1970 - $0.time > Self.granularity } ?? false
            state.look = quiet ? before : nil
            let fresh = names.map { String($0.dropLast(4)) }.filter { !state.inHand.contains($0) }
            state.inHand.formUnion(fresh)
            return fresh
        }
        return fresh.compactMap { name in
            let id = MessageID(name: name)
            do {
                let bytes = try FileIO.contents(of: messagePath(id), limit: Self.maxMessage)
                return (id, .success(try StoreJSON.decode(EngineRequest.self, from: bytes)))
            } catch {
                state.withLock { _ = $0.inHand.remove(name) }
                // Withdrawn since the folder was read.
                if (error as? DownloadError)?.code == .notFound { return nil }
                return (id, .failure(Quarantine.move(messagePath(id), in: workPath, because: error, now: now)))
            }
        }
    }

    /// Leaves the answer for whoever posted the request.
    package func reply(to id: MessageID, _ reply: EngineReply) throws {
        let bytes = try StoreJSON.encode(reply)
        try bytes.withUnsafeBytes {
            try FileIO.replace(replyPath(id), aside: "\(workPath.repliesFolder)/.tmp-\(id.name)", $0)
        }
    }

    /// The request was handled: its message goes.
    package func finish(_ id: MessageID) throws {
        try FileIO.remove(messagePath(id))
        state.withLock { _ = $0.inHand.remove(id.name) }
    }

    /// Drops answers nobody fetched, and what interrupted posts left, once they are older than `replyLifetime`.
    package func sweep(now: Date = Date()) {
        for folder in [workPath.repliesFolder, workPath.mailboxFolder] {
            for name in FileIO.names(in: folder) where name.hasSuffix(".reply") || name.hasPrefix(".tmp-") {
                var status = stat()
                guard lstat("\(folder)/\(name)", &status) == 0 else { continue }
                let time = FileTime.modified(status)
                if now.timeIntervalSince1970 - Double(time.seconds) > Self.replyLifetime { unlink("\(folder)/\(name)") }
            }
        }
    }

    private func lookNow() -> Look? {
        var status = stat()
        guard stat(workPath.mailboxFolder, &status) == 0 else { return nil }
        let time = FileTime.modified(status)
        return Look(inode: UInt64(status.st_ino), seconds: time.seconds, nanoseconds: time.nanoseconds)
    }
}

/// Times of a file where the systems spell them differently.
package enum FileTime {
    package static func modified(_ status: stat) -> (seconds: Int, nanoseconds: Int) {
        #if canImport(Darwin)
            (status.st_mtimespec.tv_sec, status.st_mtimespec.tv_nsec)
        #else
            (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
        #endif
    }
}
