import FKMiddleware
import Foundation

/// Passes requests from processes that do not own the engine to the engine, and its answers back.
///
/// ```text
/// asker   mailbox/<id>.msg   ->   engine performs it   ->   replies/<id>.reply   ->   asker
///                                                           the engine removes <id>.msg
/// ```
///
/// Both files are written aside and renamed. A request counts as performed once its answer exists: an engine that
/// finds both removes the request. After a kill at any moment, the request is therefore performed once, or twice if
/// the kill came between the action and the answer. The engine ensures that the second time changes nothing
/// (`Engine+Mailbox`).
///
/// If an answer cannot be written, the request is renamed to `<id>.done`, so that it is not performed again, and
/// writing the answer is retried.
///
/// Safe to use from any thread. The engine's side needs one object per process and work path, because the object
/// stores the last look at the folder and the requests it has returned.
package final class Mailbox: Sendable {
    /// The maximum size of a message in bytes. Larger ones are quarantined unread.
    package static let maxMessage = 64 << 20
    /// The approximate size in bytes above which an answer is written in pages.
    package static let pageSize = 8 << 20
    /// The maximum size of a page in bytes. A page exceeds `pageSize` by one result at most.
    private static let maxPage = 64 << 20
    /// The seconds after which an answer that was not fetched is discarded.
    package static let replyLifetime: Double = 600
    /// With more answers than this, the oldest are discarded.
    static let maxReplies = 1_000
    /// A request that could not be read this many times is quarantined.
    static let maxReads = 5
    /// The seconds after which a change of the folder certainly shows. Folder times are as coarse as the kernel's
    /// timer (4 to 10 ms).
    private static let granularity: Double = 0.02

    package static let lostAnswer = DownloadError(
        .disk,
        "The request was carried out, but its answer could not be written: is the disk full? List the tasks to see.")

    /// The progress of a request.
    package enum RequestState {
        /// In the mailbox, possibly being performed.
        case waiting
        /// Performed, but its answer could not be written yet.
        case done
        /// Answered, withdrawn, or unreadable.
        case gone
    }

    /// The content of the answer's file if the answer is in pages: `<id>.1.page` and so on.
    private struct Pages: Codable {
        var pages: Int
    }

    private struct Look: Equatable {
        var inode: UInt64
        /// Nanoseconds since 1970.
        var modified: Int64
        var time: Double { Double(modified) / 1e9 }
    }

    private struct State {
        /// The folder at the last read, if it had not changed just before.
        var look: Look?
        /// Taken and not finished, so this process does not return it again.
        var inHand: Set<String> = []
        /// How often each of these requests could not be read.
        var unread: [String: Int] = [:]
        /// Answers that could not be written yet, oldest first.
        var unwritten: [(id: MessageID, reply: EngineReply)] = []
    }

    private let workPath: WorkPath
    private let state = Locked(State())

    /// Opens the mailbox of a work path. It reads no files yet.
    package init(_ workPath: WorkPath) {
        self.workPath = workPath
    }

    private func messagePath(_ id: MessageID) -> String { "\(workPath.mailboxFolder)/\(id.name).msg" }
    private func donePath(_ id: MessageID) -> String { "\(workPath.mailboxFolder)/\(id.name).done" }
    private func pagePath(_ id: MessageID, _ page: Int) -> String {
        "\(workPath.repliesFolder)/\(id.name).\(page).page"
    }
    private func replyPath(_ id: MessageID) -> String { "\(workPath.repliesFolder)/\(id.name).reply" }

    // MARK: For askers

    /// Posts a request for the engine.
    ///
    /// - Throws: `.noSpace`, `.disk`, `.notFound` (no such work path), or `.tooLarge` above 64 MiB.
    @discardableResult
    package func post(_ message: EngineMessage) throws -> MessageID {
        let id = MessageID()
        try write(message, as: id)
        return id
    }

    private func write(_ message: EngineMessage, as id: MessageID) throws {
        let bytes = try StoreJSON.encode(message)
        guard bytes.count <= Self.maxMessage else {
            throw DownloadError(.tooLarge, "A request may have 64 MiB; this one has \(bytes.count) bytes. Split it.")
        }
        try replace(messagePath(id), in: workPath.mailboxFolder, id, bytes)
    }

    private func replace(_ path: String, in folder: String, _ id: MessageID, _ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { try FileIO.replace(path, aside: "\(folder)/.tmp-\(id.name)", $0) }
    }

    /// Removes and returns the engine's answer; nil while there is none.
    ///
    /// - Throws: `.corruptInfo` for an unreadable answer, which is removed as well.
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

    /// Removes the request first: while it exists, its answer shows that it was performed.
    private func removeReply(_ id: MessageID) {
        unlink(messagePath(id))
        unlink(donePath(id))
        unlink(replyPath(id))
        var page = 1
        while unlink(pagePath(id, page)) == 0 { page += 1 }
    }

    /// Withdraws a request. Returns false if it was gone already. If it returns true, the engine may still have
    /// started on it. An existing answer is discarded.
    @discardableResult
    package func withdraw(_ id: MessageID) throws -> Bool {
        let wasDone = unlink(donePath(id)) == 0
        let wasThere = try FileIO.remove(messagePath(id))
        removeReply(id)
        return wasThere || wasDone
    }

    package func requestState(of id: MessageID) -> RequestState {
        if messagePath(id).existsOnDisk { return .waiting }
        return donePath(id).existsOnDisk ? .done : .gone
    }

    // MARK: For the engine

    /// False if the mailbox has certainly not changed since the last `take`. It costs one stat.
    package func hasNews() -> Bool {
        guard let look = lookNow() else { return false }
        return state.withLock { $0.look != look }
    }

    /// The requests in the mailbox, oldest first, without those that were taken and not finished. A malformed one
    /// is moved to the quarantine and reported in its place; it needs no `finish`. Requests that an earlier engine
    /// has performed are not returned again.
    ///
    /// A request that the system cannot read now is left to the next call: without a limit while the process is out of
    /// descriptors, and `maxReads` times after another error.
    ///
    /// - Parameter read: returns the content of a message.
    /// - Throws: `.disk` if the folder cannot be listed. The next call tries again.
    package func drain(
        now: Date = Date(), read: (String) throws -> [UInt8] = { try FileIO.contents(of: $0, limit: maxMessage) }
    ) throws -> [(MessageID, Result<EngineMessage, DownloadError>)] {
        let before = lookNow()
        let names = try FileIO.names(in: workPath.mailboxFolder).sorted()
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
                if replyPath(id).existsOnDisk {
                    try finish(id)
                    return nil
                }
                let bytes = try read(messagePath(id))
                state.withLock { _ = $0.unread.removeValue(forKey: name) }
                return (id, .success(try StoreJSON.decode(EngineMessage.self, from: bytes)))
            } catch {
                state.withLock { _ = $0.inHand.remove(name) }
                // Withdrawn since the folder was read.
                if (error as? DownloadError)?.code == .notFound || isLeft(name, because: error) { return nil }
                return (id, .failure(Quarantine.move(messagePath(id), in: workPath, because: error, now: now)))
            }
        }
    }

    /// True if the next `take` tries to read the request again.
    private func isLeft(_ name: String, because error: any Error) -> Bool {
        guard let error = error as? DownloadError, error.isUnanswered else { return false }
        return state.withLock { state in
            let reads = error.isOutOfDescriptors ? 0 : state.unread[name, default: 0] + 1
            state.unread[name] = reads < Self.maxReads ? reads : nil
            if reads < Self.maxReads { state.look = nil }
            return reads < Self.maxReads
        }
    }

    /// The answer to a request that an engine performed before its process ended without writing the answer.
    private func answerLost(_ id: MessageID) {
        guard !state.withLock({ $0.unwritten.contains { $0.id == id } }) else { return }
        if !replyPath(id).existsOnDisk { try? reply(to: id, .failed(Self.lostAnswer)) }
        if replyPath(id).existsOnDisk { unlink(donePath(id)) }
    }

    /// Replaces a taken request by another one, to be performed after a kill. It ignores a withdrawn request.
    package func replace(_ id: MessageID, by message: EngineMessage) throws {
        if requestState(of: id) == .waiting { try write(message, as: id) }
    }

    /// Writes the answer, in pages if it is long.
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

    /// Ends a performed request: writes its answer and removes its message. If the asker has withdrawn it, no answer
    /// is left.
    ///
    /// - Returns: the error that prevented the answer; nil without one. `writeReplies` retries it.
    package func answer(_ id: MessageID, _ reply: EngineReply) -> DownloadError? {
        defer { state.withLock { _ = $0.inHand.remove(id.name) } }
        guard requestState(of: id) == .waiting else { return nil }
        do {
            try self.reply(to: id, reply)
        } catch {
            _ = try? FileIO.rename(messagePath(id), to: donePath(id))
            state.withLock { $0.unwritten.append((id, reply)) }
            return DownloadError(wrapping: error, code: .disk, message: "A request could not be answered.")
        }
        // The request was withdrawn, so the answer would never be fetched.
        if (try? finish(id)) == false { removeReply(id) }
        return nil
    }

    /// Retries the answers that could not be written.
    package func writeReplies() {
        let unwritten = state.withLock { state in
            defer { state.unwritten = [] }
            return state.unwritten
        }
        for (id, reply) in unwritten where requestState(of: id) != .gone {
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
    func drainUnwritten(_ id: MessageID) -> EngineReply? {
        state.withLock { state in
            state.unwritten.firstIndex { $0.id == id }.map { state.unwritten.remove(at: $0).reply }
        }
    }

    /// Removes the message of a handled request. Returns false if it was withdrawn before.
    @discardableResult
    package func finish(_ id: MessageID) throws -> Bool {
        let wasThere = try FileIO.remove(messagePath(id))
        state.withLock { _ = $0.inHand.remove(id.name) }
        return wasThere
    }

    /// Discards answers that were not fetched, and leftovers of interrupted posts, once they are older than
    /// `replyLifetime`. If there are very many answers, it discards the oldest at once.
    ///
    /// - Throws: `.disk` if a folder cannot be listed.
    package func sweep(now: Date = Date()) throws {
        let replies = try FileIO.names(in: workPath.repliesFolder).filter { $0.hasSuffix(".reply") }.sorted()
        for name in replies.dropLast(Self.maxReplies) { removeReply(MessageID(name: String(name.dropLast(6)))) }
        for folder in [workPath.repliesFolder, workPath.mailboxFolder] {
            for name in try FileIO.names(in: folder) where !name.hasSuffix(".msg") {
                var status = stat()
                guard lstat("\(folder)/\(name)", &status) == 0 else { continue }
                let age = now.timeIntervalSince1970 - Double(status.modificationTime) / 1e9
                guard age > Self.replyLifetime else { continue }
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
        return Look(inode: UInt64(status.st_ino), modified: status.modificationTime)
    }
}
