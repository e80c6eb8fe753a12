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
/// ```text
/// asker   mailbox/<id>.msg   ->   engine carries it out   ->   replies/<id>.reply   ->   asker
///                                                              the engine removes <id>.msg
/// ```
///
/// Both are written aside and renamed in. A request counts as carried out once its answer is there: an engine that finds both
/// removes the request. So a kill at any moment has it carried out once, or a second time where the kill came between the act
/// and the answer; the engine sees to it that the second time changes nothing (`Engine+Mailbox`).
///
/// Where an answer cannot be written, the request is renamed to `<id>.done`, so that it is not carried out again, and the
/// answer is tried again.
///
/// Safe from any thread. One object per process and work path on the engine's side, because it remembers what it looked
/// at and what it has handed out.
package final class Mailbox: Sendable {
    /// Larger messages are set aside unread.
    package static let maxMessage = 64 << 20
    /// An answer of more than about so many bytes is written in pages.
    static let pageSize = 8 << 20
    /// Larger pages are not read. A page is larger than `pageSize` only by what one result takes.
    private static let maxPage = 64 << 20
    /// Seconds after which an answer nobody fetched is dropped.
    package static let replyLifetime: Double = 600
    /// With more answers than this, the oldest are dropped.
    static let maxReplies = 1_000
    /// Folder times are as coarse as the kernel's timer (4 to 10 ms): a folder changed this recently, in seconds,
    /// may have changed again without showing it.
    private static let granularity: Double = 0.02

    static let lostAnswer = DownloadError(
        .disk,
        "The request was carried out, but its answer could not be written: is the disk full? List the tasks to see.")

    /// Where a request is on its way.
    enum Standing {
        /// In the mailbox, perhaps being carried out.
        case waiting
        /// Carried out, and its answer could not be written yet.
        case done
        /// Answered, withdrawn, or unreadable.
        case gone
    }

    /// The answer's file where the answer itself is in pages: `<id>.1.page` and so on.
    private struct Pages: Codable {
        var pages: Int
    }

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
        /// Answers that could not be written yet, the oldest first.
        var unwritten: [(id: MessageID, reply: EngineReply)] = []
    }

    private let workPath: WorkPath
    private let state = Locked(State())

    package init(_ workPath: WorkPath) {
        self.workPath = workPath
    }

    private func messagePath(_ id: MessageID) -> String { "\(workPath.mailboxFolder)/\(id.name).msg" }
    private func donePath(_ id: MessageID) -> String { "\(workPath.mailboxFolder)/\(id.name).done" }
    private func pagePath(_ id: MessageID, _ page: Int) -> String {
        "\(workPath.repliesFolder)/\(id.name).\(page).page"
    }
    private func replyPath(_ id: MessageID) -> String { "\(workPath.repliesFolder)/\(id.name).reply" }

    // MARK: For those who ask

    /// Leaves a request for the engine.
    ///
    /// - Throws: `.noSpace`, `.disk`, `.notFound` (no such work path), `.tooLarge` above 64 MiB.
    @discardableResult
    package func post(_ request: EngineRequest) throws -> MessageID {
        let id = MessageID()
        try write(request, as: id)
        return id
    }

    private func write(_ request: EngineRequest, as id: MessageID) throws {
        let bytes = try StoreJSON.encode(request)
        guard bytes.count <= Self.maxMessage else {
            throw DownloadError(.tooLarge, "A request may have 64 MiB; this one has \(bytes.count) bytes. Split it.")
        }
        try replace(messagePath(id), in: workPath.mailboxFolder, id, bytes)
    }

    private func replace(_ path: String, in folder: String, _ id: MessageID, _ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { try FileIO.replace(path, aside: "\(folder)/.tmp-\(id.name)", $0) }
    }

    /// The engine's answer, once; nil while there is none.
    ///
    /// - Throws: `.corruptInfo` for an answer that cannot be read; it is removed as well.
    package func readReply(_ id: MessageID) throws -> EngineReply? {
        do {
            let bytes = try FileIO.contents(of: replyPath(id), limit: Self.maxPage)
            defer { removeReply(id) }
            guard bytes.count < 100, let pages = try? StoreJSON.decode(Pages.self, from: bytes).pages else {
                return try StoreJSON.decode(EngineReply.self, from: bytes)
            }
            return try EngineReply(pages: try (0..<max(1, pages)).map { try page($0, of: id) })
        } catch let error as DownloadError where error.code == .notFound {
            return nil
        } catch {
            removeReply(id)
            throw error
        }
    }

    private func page(_ number: Int, of id: MessageID) throws -> EngineReply {
        do {
            let bytes = try FileIO.contents(of: pagePath(id, number + 1), limit: Self.maxPage)
            return try StoreJSON.decode(EngineReply.self, from: bytes)
        } catch let error as DownloadError where error.code == .notFound {
            throw DownloadError(.corruptInfo, "A page of the engine's answer is missing.")
        }
    }

    /// The request first: as long as it is there, its answer says that it has been carried out.
    private func removeReply(_ id: MessageID) {
        unlink(messagePath(id))
        unlink(donePath(id))
        unlink(replyPath(id))
        var page = 1
        while unlink(pagePath(id, page)) == 0 { page += 1 }
    }

    /// Takes a request back. Returns false when it was not there any more; when it returns true the engine may
    /// nevertheless have begun with it. Its answer, if there is one, is dropped.
    @discardableResult
    package func withdraw(_ id: MessageID) throws -> Bool {
        let wasDone = unlink(donePath(id)) == 0
        let wasThere = try FileIO.remove(messagePath(id))
        removeReply(id)
        return wasThere || wasDone
    }

    func standing(of id: MessageID) -> Standing {
        if FileNames.exists(messagePath(id)) { return .waiting }
        return FileNames.exists(donePath(id)) ? .done : .gone
    }

    // MARK: For the engine

    /// False when the mailbox has certainly not changed since the last `take`: one stat.
    package func hasNews() -> Bool {
        guard let look = lookNow() else { return false }
        return state.withLock { $0.look != look }
    }

    /// The requests that are there, oldest first, without those taken and not finished. What cannot be read is moved to
    /// the quarantine and reported in its place; it needs no `finish`. What an earlier engine has carried out is not handed
    /// out again.
    package func take(now: Date = Date()) -> [(MessageID, Result<EngineRequest, DownloadError>)] {
        let before = lookNow()
        let names = FileIO.names(in: workPath.mailboxFolder).sorted()
        let fresh = state.withLock { state in
            let quiet = before.map { now.timeIntervalSince1970 - $0.time > Self.granularity } ?? false
            state.look = quiet ? before : nil
            let fresh = names.filter { $0.hasSuffix(".msg") }.map { String($0.dropLast(4)) }
                .filter { !state.inHand.contains($0) }
            state.inHand.formUnion(fresh)
            return fresh
        }
        for name in names where name.hasSuffix(".done") { answerLost(MessageID(name: String(name.dropLast(5)))) }
        return fresh.compactMap { name in
            let id = MessageID(name: name)
            do {
                if FileNames.exists(replyPath(id)) {
                    try finish(id)
                    return nil
                }
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

    /// Of a request that an engine carried out whose process has ended with the answer.
    private func answerLost(_ id: MessageID) {
        guard !state.withLock({ $0.unwritten.contains { $0.id == id } }) else { return }
        if !FileNames.exists(replyPath(id)) { try? reply(to: id, .failed(Self.lostAnswer)) }
        if FileNames.exists(replyPath(id)) { unlink(donePath(id)) }
    }

    /// Puts another request in the place of one that was taken: the one to carry out after a kill.
    package func replace(_ id: MessageID, by request: EngineRequest) throws { try write(request, as: id) }

    /// Writes the answer, in pages where it is long.
    package func reply(to id: MessageID, _ reply: EngineReply) throws {
        let pages = reply.pages(ofBytes: Self.pageSize)
        guard pages.count > 1 else {
            return try replace(replyPath(id), in: workPath.repliesFolder, id, try StoreJSON.encode(reply))
        }
        for (index, page) in pages.enumerated() {
            try replace(pagePath(id, index + 1), in: workPath.repliesFolder, id, try StoreJSON.encode(page))
        }
        try replace(replyPath(id), in: workPath.repliesFolder, id, try StoreJSON.encode(Pages(pages: pages.count)))
    }

    /// The request was carried out: its answer is written, and its message goes. Nothing is written for an asker who has
    /// withdrawn the request meanwhile.
    ///
    /// - Returns: what is in the way of the answer; it is tried again with `writeReplies`.
    package func answer(_ id: MessageID, _ reply: EngineReply) -> DownloadError? {
        defer { state.withLock { _ = $0.inHand.remove(id.name) } }
        guard standing(of: id) == .waiting else { return nil }
        do {
            try self.reply(to: id, reply)
        } catch {
            _ = try? FileIO.rename(messagePath(id), to: donePath(id))
            state.withLock { $0.unwritten.append((id, reply)) }
            return DownloadError(wrapping: error, code: .disk, message: "A request could not be answered.")
        }
        // The message is withdrawn: nobody will fetch the answer.
        if (try? finish(id)) == false { removeReply(id) }
        return nil
    }

    /// Tries again to write the answers that could not be written.
    package func writeReplies() {
        let unwritten = state.withLock { state in
            defer { state.unwritten = [] }
            return state.unwritten
        }
        for (id, reply) in unwritten where standing(of: id) != .gone {
            do {
                try self.reply(to: id, reply)
                unlink(donePath(id))
                unlink(messagePath(id))
            } catch {
                state.withLock { $0.unwritten.append((id, reply)) }
            }
        }
    }

    /// An answer that could not be written, for an asker in the engine's own process.
    func takeUnwritten(_ id: MessageID) -> EngineReply? {
        state.withLock { state in
            state.unwritten.firstIndex { $0.id == id }.map { state.unwritten.remove(at: $0).reply }
        }
    }

    /// The request was handled: its message goes. Returns false when it was withdrawn before.
    @discardableResult
    package func finish(_ id: MessageID) throws -> Bool {
        let wasThere = try FileIO.remove(messagePath(id))
        state.withLock { _ = $0.inHand.remove(id.name) }
        return wasThere
    }

    /// Drops answers nobody fetched, and what interrupted posts left, once they are older than `replyLifetime`; of very many
    /// answers the oldest at once.
    package func sweep(now: Date = Date()) {
        let replies = FileIO.names(in: workPath.repliesFolder).filter { $0.hasSuffix(".reply") }.sorted()
        for name in replies.dropLast(Self.maxReplies) { removeReply(MessageID(name: String(name.dropLast(6)))) }
        for folder in [workPath.repliesFolder, workPath.mailboxFolder] {
            for name in FileIO.names(in: folder) where !name.hasSuffix(".msg") {
                var status = stat()
                guard lstat("\(folder)/\(name)", &status) == 0 else { continue }
                let time = FileTime.modified(status)
                guard now.timeIntervalSince1970 - Double(time.seconds) > Self.replyLifetime else { continue }
                if name.hasSuffix(".reply") {
                    removeReply(MessageID(name: String(name.dropLast(6))))
                } else if name.hasPrefix(".tmp-") || name.hasSuffix(".page") || name.hasSuffix(".done") {
                    unlink("\(folder)/\(name)")
                }
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
