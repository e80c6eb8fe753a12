import FKMiddleware
import Foundation

/// A change that the owner of a work path reports to its followers.
package enum JournalChange: Codable, Sendable, Hashable {
    /// A task has a new state, at this place among its states. A task that runs may be reported again.
    case state(DownloadInfo, order: ChangeOrder)
    /// An attempt of a task with this URL has begun or ended.
    case attempt(AttemptInfo, url: String)

    package var id: TaskID {
        switch self {
        case .state(let info, _): info.id
        case .attempt(let info, _): info.id
        }
    }
}

/// The lock that tells the owner of a work path whether other processes follow it.
///
/// Each follower holds a shared lock (`flock`) on `<root>/followers`. The lock ends with its process.
package final class FollowerLock: Sendable {
    private let workPath: WorkPath
    private let descriptor: Int32

    /// Acquires the lock. It may wait for an instant, while an owner looks.
    ///
    /// - Throws: `.disk` and similar codes if the file cannot be opened.
    package init(_ workPath: WorkPath) throws {
        self.workPath = workPath
        descriptor = try FileIO.open(workPath.followersPath, O_RDWR | O_CREAT)
        while flock(descriptor, LOCK_SH) != 0, errno == EINTR {}
    }

    deinit {
        FileLock.release(descriptor)
        // The owner may have ended before its last follower.
        ChangeJournal.removeAbandoned(workPath)
    }

    /// True while a process follows the work path.
    package static func isHeld(_ workPath: WorkPath) -> Bool { FileLock.isHeld(workPath.followersPath, LOCK_EX) }
}

/// The changes that the owner of a work path writes for its followers, in `<root>/changes`. It is open only while
/// there are followers.
///
/// The file has one JSON object a line. The first line names the owner and the part. A part that has reached
/// `maxPart` bytes is replaced by the next one, with a rename. A reader that still has the old one open reads it to
/// its end first. A reader that misses a part knows it by the number. A new reader begins at the end of the file, because the
/// info files say what was before.
///
/// Confined to the engine. The file is not synced, because no follower survives a power cut.
final class ChangeJournal {
    /// The first line of a part.
    struct Header: Codable, Hashable {
        /// Differs for each owner.
        var owner: String
        /// Counts the parts of this owner.
        var part: Int
    }

    /// The size in bytes from which a part is replaced by the next one.
    static let maxPart = 4 << 20

    private let workPath: WorkPath
    private let owner = UUID().uuidString
    private var part = 0
    private var descriptor: Int32 = -1
    private var size = 0
    private var pending: [UInt8] = []
    /// True once this owner has looked for a file that nobody reads.
    private var hasEnded = false

    init(_ workPath: WorkPath) { self.workPath = workPath }

    deinit { if descriptor >= 0 { FileIO.close(descriptor) } }

    /// True while changes are written.
    var isOpen: Bool { descriptor >= 0 }

    /// Begins a part, if none is open or if the file of the open one is gone.
    ///
    /// - Returns: true if a part was begun.
    /// - Throws: `.noSpace` or `.disk`.
    func open() throws -> Bool {
        var ours = stat()
        var named = stat()
        if isOpen, fstat(descriptor, &ours) == 0, stat(workPath.changesPath, &named) == 0, ours.st_ino == named.st_ino {
            return false
        }
        try beginPart()
        return true
    }

    private func beginPart() throws {
        part += 1
        let header = try StoreJSON.encode(Header(owner: owner, part: part)) + [0x0a]
        let aside = workPath.changesPath + ".new"
        _ = try FileIO.remove(aside)
        let next = try FileIO.open(aside, O_RDWR | O_CREAT | O_EXCL)
        do {
            try header.withUnsafeBytes { try FileIO.write($0, to: next, at: 0, path: aside) }
            try FileIO.rename(aside, to: workPath.changesPath)
        } catch {
            FileIO.close(next)
            throw error
        }
        if descriptor >= 0 { FileIO.close(descriptor) }
        descriptor = next
        size = header.count
    }

    /// Adds a change. `flush` writes it.
    func append(_ change: JournalChange) {
        guard isOpen, let line = try? StoreJSON.encode(change) else { return }
        pending += line
        pending.append(0x0a)
    }

    /// Writes the changes that were added. If the disk refuses, they are lost, and the next part tells followers
    /// so by its number.
    func flush() {
        guard !pending.isEmpty else { return }
        defer { pending.removeAll(keepingCapacity: pending.count < 1 << 16) }
        guard isOpen else { return }
        do {
            try pending.withUnsafeBytes {
                try FileIO.write($0, to: descriptor, at: size, path: workPath.changesPath)
            }
            size += pending.count
            if size >= Self.maxPart { try beginPart() }
        } catch {
            close()
            part += 1
        }
    }

    /// Ends the journal, and removes its file unless a follower reads it. The next follower opens it again.
    func end() {
        if isOpen {
            flush()
            close()
            // Changes up to the next part are written nowhere.
            part += 1
        } else if hasEnded {
            return
        }
        // A file of an earlier owner that was killed goes as well.
        hasEnded = true
        if !FollowerLock.isHeld(workPath) { _ = try? FileIO.remove(workPath.changesPath) }
    }

    /// Removes the file where neither an owner writes it nor a follower reads it. Owners and followers call it when they
    /// have released their locks, so the last of them removes it.
    static func removeAbandoned(_ workPath: WorkPath) {
        guard access(workPath.changesPath, F_OK) == 0,
            let descriptor = try? FileIO.open(workPath.followersPath, O_RDWR)
        else { return }
        defer { FileLock.release(descriptor) }
        // While this lock is held, nobody begins to follow.
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, !EngineLock.isHeld(workPath) else { return }
        _ = try? FileIO.remove(workPath.changesPath)
    }

    private func close() {
        FileIO.close(descriptor)
        descriptor = -1
        pending = []
    }
}

/// Reads the changes of a work path's owner.
package struct ChangeReader {
    /// The changes since the last read.
    package struct News {
        /// In the order in which they happened.
        package var changes: [JournalChange] = []
        /// True if changes before these may be missing: the reader or the owner is new, or parts were missed.
        package var hasGap = false
    }

    private let path: String
    private var file: OpenJournal?
    private var header: ChangeJournal.Header?
    private var hasBegun = false

    /// Closes the file with the last copy of the reader.
    private final class OpenJournal {
        let descriptor: Int32
        let inode: UInt64
        var offset: Int64 = 0
        var rest: [UInt8] = []

        init?(_ path: String) {
            guard let descriptor = try? FileIO.open(path, O_RDONLY) else { return nil }
            var status = stat()
            guard fstat(descriptor, &status) == 0 else {
                FileIO.close(descriptor)
                return nil
            }
            self.descriptor = descriptor
            inode = UInt64(status.st_ino)
        }

        deinit { FileIO.close(descriptor) }

        /// Reads the first line, which is there from the beginning; nil if this version cannot read it.
        func header() -> ChangeJournal.Header? {
            var buffer = [UInt8](repeating: 0, count: 4_096)
            let count = buffer.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress!, $0.count, 0) }
            guard count > 0, let end = buffer[..<count].firstIndex(of: 0x0a) else { return nil }
            offset = Int64(end) + 1
            return try? StoreJSON.decode(ChangeJournal.Header.self, from: Array(buffer[..<end]))
        }

        /// Leaves out all complete lines.
        func skipToEnd() {
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { return }
            var buffer = [UInt8](repeating: 0, count: 1 << 14)
            var end = Int64(status.st_size)
            while end > offset {
                let begin = max(offset, end - Int64(buffer.count))
                let count = buffer.withUnsafeMutableBytes { bytes in
                    pread(descriptor, bytes.baseAddress!, Int(end - begin), off_t(begin))
                }
                guard count > 0 else { return }
                if let last = buffer[..<count].lastIndex(of: 0x0a) {
                    offset = begin + Int64(last) + 1
                    return
                }
                end = begin
            }
        }

        /// The complete lines since the last read.
        func lines() -> [ArraySlice<UInt8>] {
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = buffer.withUnsafeMutableBytes { bytes in
                    pread(descriptor, bytes.baseAddress!, bytes.count, off_t(offset))
                }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                offset += Int64(count)
                rest += buffer[..<count]
            }
            guard let end = rest.lastIndex(of: 0x0a) else { return [] }
            let lines = rest[..<end].split(separator: 0x0a)
            rest.removeSubrange(...end)
            return lines
        }
    }

    package init(_ workPath: WorkPath) { path = workPath.changesPath }

    /// True if an owner has written changes for followers since the reader exists.
    package var isConnected: Bool { header != nil }

    /// The changes since the last read. The first call returns none: it finds the end of the file.
    package mutating func read() -> News {
        defer { hasBegun = true }
        var news = News()
        if let file { absorb(file.lines(), into: &news) }
        var status = stat()
        guard stat(path, &status) == 0, file?.inode != UInt64(status.st_ino) else { return news }
        // The owner writes nothing to a part that it has replaced.
        if let file { absorb(file.lines(), into: &news) }
        guard let next = OpenJournal(path) else { return news }
        file = next
        let before = header
        header = next.header()
        // What was written before this reader began is no news.
        if !hasBegun { next.skipToEnd() }
        absorb(next.lines(), into: &news)
        if let header, let before, header.owner == before.owner, header.part == before.part + 1 { return news }
        news.hasGap = true
        return news
    }

    private mutating func absorb(_ lines: [ArraySlice<UInt8>], into news: inout News) {
        for line in lines {
            if let change = try? StoreJSON.decode(JournalChange.self, from: Array(line)) {
                news.changes.append(change)
            } else {
                // A line that this version cannot read.
                news.hasGap = true
            }
        }
    }
}
