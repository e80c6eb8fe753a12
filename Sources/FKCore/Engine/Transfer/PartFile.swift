import FKMiddleware
import Foundation
import Synchronization

/// The file that receives the bytes before it gets its final name. Writing is safe from several threads at once if
/// their ranges do not overlap. A file that is open for writing is locked (`PartClaim`).
final class PartFile: Sendable {
    let name: String
    let folder: Folder
    /// The length of the file in bytes when it was opened.
    let openedLength: Int64
    /// The time of the last write when it was opened, in nanoseconds since 1970.
    let openedTime: Int64
    let descriptor: Int32
    /// The identity of the opened file.
    private let opened: Folder.Identity?
    /// Set if the file has the window of a stream and not the whole file.
    let ring: ByteRing?
    private let isOpen = Atomic<Bool>(true)
    private let isAbandoned = Atomic<Bool>(false)

    /// Opens an existing file, to adopt it (`Folder.openPart`).
    convenience init(writing name: String, in folder: Folder) throws(DownloadError) {
        try self.init(in: folder, name: name, flags: O_RDWR | O_NONBLOCK)
    }

    /// Opens a finished file, to compare and sync it. It may be read-only or a running program. It is never created.
    convenience init(reading name: String, in folder: Folder) throws(DownloadError) {
        try self.init(in: folder, name: name, flags: O_RDONLY | O_NONBLOCK)
    }

    private init(in folder: Folder, name: String, flags: Int32) throws(DownloadError) {
        self.folder = folder
        self.name = name
        ring = nil
        descriptor = try folder.open(name, flags: flags)
        var status = stat()
        let isKnown = fstat(descriptor, &status) == 0
        openedLength = isKnown ? Int64(status.st_size) : 0
        openedTime = isKnown ? status.modificationTime : 0
        opened = isKnown ? Folder.Identity(status) : nil
        guard isKnown, status.st_mode & S_IFMT == S_IFREG else {
            Foundation.close(descriptor)
            isOpen.store(false, ordering: .relaxed)
            throw DownloadError(.destination, "\(folder.path(of: name)) is not a regular file.")
        }
    }

    /// An open file that was moved to another folder. It takes the descriptor over.
    init(_ file: PartFile, movedTo folder: Folder) {
        self.folder = folder
        ring = file.ring
        (name, descriptor) = (file.name, file.descriptor)
        (openedLength, openedTime, opened) = (file.openedLength, file.openedTime, file.opened)
        file.isOpen.store(false, ordering: .releasing)
    }

    /// An open file that has the window of a stream from now on. It takes the descriptor over.
    init(_ file: PartFile, in ring: ByteRing) {
        self.ring = ring
        (folder, name, descriptor) = (file.folder, file.name, file.descriptor)
        (openedLength, openedTime, opened) = (file.openedLength, file.openedTime, file.opened)
        file.isOpen.store(false, ordering: .releasing)
    }

    /// Creates a new part file, locks it, and gives it the mark of its work path.
    ///
    /// - Returns: nil if the name is taken, or if the file cannot have a mark and its name does not say whose it is.
    static func made(in folder: Folder, name: String, _ key: PartKey) throws(DownloadError) -> PartFile? {
        let part: PartFile
        do throws(DownloadError) {
            part = try PartFile(in: folder, name: name, flags: O_RDWR | O_CREAT | O_EXCL)
        } catch {
            if folder.contains(name) { return nil }
            throw error
        }
        // Another process has adopted the empty file.
        guard part.lock() else { return nil }
        if key.owner.markPart(part.descriptor, as: key.id) { return part }
        folder.recordLackOfMarks()
        if FileNameRules.workPath(inPartName: name) != nil { return part }
        part.remove()
        return nil
    }

    /// Takes the lock.
    ///
    /// - Returns: false if another process has the file open.
    func lock() -> Bool { PartLock.acquire(descriptor) }

    deinit { close() }

    var path: String { folder.path(of: name) }

    /// False if the file was moved away or replaced by another one.
    var hasItsName: Bool { opened != nil && folder.status(of: name).map(Folder.Identity.init) == opened }

    /// The status of the file, found by its name. Renaming another file would publish unverified bytes.
    ///
    /// - Throws: `.destination` if another file has the name.
    func namedStatus() throws(DownloadError) -> stat {
        if let status = folder.status(of: name), opened == Folder.Identity(status) { return status }
        throw DownloadError(
            .destination, "The part file \(path) was removed or replaced: the file is fetched again.",
            isRetryable: true)
    }

    /// Gives the file the umask's mode, right before its final name. Until then only the owner reads and writes it. A file with
    /// another mode than a part's keeps it: it had a final name already.
    func open(forOthers status: stat) {
        guard status.st_mode & 0o777 == 0o600, UsualMask.finishedMode != 0o600 else { return }
        fchmod(descriptor, UsualMask.finishedMode)
    }

    /// The current length of the file in bytes.
    var length: Int64 {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? Int64(status.st_size) : 0
    }

    /// The disk space of the file in bytes, without holes.
    var occupied: Int64 {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? Int64(status.st_blocks) * 512 : 0
    }

    /// The time of the last write, in nanoseconds since 1970; nil if the system does not report it.
    var time: Int64? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? status.modificationTime : nil
    }

    /// The identity of the file as it is now; nil if the system does not report it.
    var identity: FileIdentity? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? FileIdentity(status, born: born) : nil
    }

    /// When the file was created, in nanoseconds since 1970; nil if the file system does not tell.
    var born: Int64? { FileBirth.time("", in: descriptor) }

    /// Marks the file as this task's. Call it after the last write.
    func mark(_ identity: FileIdentity, as id: TaskID, _ owner: FileOwner) { owner.mark(descriptor, identity, as: id) }

    /// Makes functions that read the whole file end soon with `.cancelled`, because the digest is no longer needed.
    func abandon() { isAbandoned.store(true, ordering: .relaxed) }

    func checkWanted() throws(DownloadError) {
        if isAbandoned.load(ordering: .relaxed) {
            throw DownloadError(.cancelled, "Reading \(path) was stopped.")
        }
    }

    /// Fills this empty file with the bytes of another one: cloned if the file system can share blocks, else copied. It
    /// blocks. It ends early if one of them is abandoned.
    func fill(from source: PartFile) throws(DownloadError) {
        if FileClone.clone(source.descriptor, to: descriptor) { return }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while true {
            try checkWanted()
            try source.checkWanted()
            let count = try source.read(into: buffer, at: offset)
            if count == 0 { return }
            try write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: offset)
            offset += Int64(count)
        }
    }

    /// Writes all of `bytes` or throws. It continues short writes and interrupted calls.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(DownloadError) {
        guard let ring else { return try writePlain(bytes, at: offset) }
        for piece in ring.pieces(of: ring.needed(offset, bytes.count)) {
            let start = Int(piece.offset - offset)
            try writePlain(UnsafeRawBufferPointer(rebasing: bytes[start..<start + piece.count]), at: piece.place)
        }
    }

    private func writePlain(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(DownloadError) {
        var done = 0
        while done < bytes.count {
            let count = pwrite(descriptor, bytes.baseAddress! + done, bytes.count - done, off_t(offset) + off_t(done))
            if count > 0 {
                done += count
            } else if count == 0 {
                throw DownloadError(system: ENOSPC, "write to", path, in: .destination)
            } else if errno != EINTR {
                throw DownloadError(system: errno, "write to", path, in: .destination)
            }
        }
    }

    /// Reads up to `buffer.count` bytes; fewer only at the end of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(DownloadError) -> Int {
        guard let ring else { return try readPlain(into: buffer, at: offset) }
        var done = 0
        for piece in ring.pieces(of: offset..<offset + Int64(buffer.count)) {
            let target = UnsafeMutableRawBufferPointer(rebasing: buffer[done..<done + piece.count])
            let count = try readPlain(into: target, at: piece.place)
            done += count
            if count < piece.count { break }
        }
        return done
    }

    private func readPlain(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(DownloadError) -> Int {
        var done = 0
        while done < buffer.count {
            let count = pread(descriptor, buffer.baseAddress! + done, buffer.count - done, off_t(offset) + off_t(done))
            if count == 0 { break }
            if count > 0 {
                done += count
            } else if errno != EINTR {
                throw DownloadError(system: errno, "read", path, in: .destination)
            }
        }
        return done
    }

    /// Returns up to `count` bytes from `offset`; fewer only at the end of the file.
    func bytes(at offset: Int64, count: Int) throws(DownloadError) -> [UInt8] {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
        defer { buffer.deallocate() }
        return Array(buffer.prefix(try read(into: buffer, at: offset)))
    }

    /// True if the file still has these checksums. It blocks, so it must not run on the engine's or transport's
    /// thread.
    func matches(_ pieces: [PieceChecksum]) throws(DownloadError) -> Bool {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        for piece in pieces {
            var crc = CRC32C()
            var offset = piece.start
            while offset < piece.end {
                try checkWanted()
                let count = Int(min(Int64(buffer.count), piece.end - offset))
                let read = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), at: offset)
                if read == 0 { return false }
                crc.update(UnsafeRawBufferPointer(rebasing: buffer[..<read]))
                offset += Int64(read)
            }
            guard crc.value == piece.crc32c else { return false }
        }
        return true
    }

    #if canImport(Darwin)
        private static let seekHole: Int32 = 3
    #else
        /// `SEEK_HOLE` is missing in the headers that Swift imports.
        private static let seekHole: Int32 = 4
    #endif

    /// The first byte of the range that was never written and therefore reads as zero; nil if there is none or the
    /// file system cannot tell.
    func hole(in range: Range<Int64>) -> Int64? {
        guard !range.isEmpty else { return nil }
        let found = lseek(descriptor, off_t(range.lowerBound), Self.seekHole)
        return found >= 0 && found < range.upperBound ? Int64(found) : nil
    }

    /// True if bytes may have been written behind the received bytes of the range.
    func hasBytes(after range: SavedRange) -> Bool {
        guard range.position < min(range.end ?? .max, openedLength) else { return false }
        let nextBlock = (range.position + 4095) / 4096 * 4096
        return nextBlock >= openedLength || hole(in: nextBlock..<nextBlock + 1) == nil
    }

    /// Sets the time of the last write, so that the file counts as the one that was copied.
    func setTime(_ nanoseconds: Int64?) {
        guard let nanoseconds else { return }
        let time = timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
        futimens(descriptor, [time, time])
    }

    /// Syncs the file.
    func synchronize() throws(DownloadError) {
        guard fsync(descriptor) == 0 else { throw DownloadError(system: errno, "sync", path, in: .destination) }
    }

    /// The digest of the whole file, read 1 MiB at a time. It blocks, so it must not run on the engine's or
    /// transport's thread.
    func digest(_ algorithm: Checksum.Algorithm) throws(DownloadError) -> String {
        let digester = Digester(algorithm, length: length)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while true {
            try checkWanted()
            let count = try read(into: buffer, at: offset)
            if count == 0 { return digester.hex() }
            digester.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
        }
    }

    /// Another descriptor of the same file, for a reader. It stays valid when this one is closed, and has no lock.
    ///
    /// - Throws: the system's error, such as the lack of descriptors.
    func reader() throws(DownloadError) -> ReadFile {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw DownloadError(system: errno, "open", path, in: .destination) }
        return ReadFile(copy, path: path, ring: ring)
    }

    func close() {
        guard isOpen.exchange(false, ordering: .acquiringAndReleasing) else { return }
        PartLock.release(descriptor)
        Foundation.close(descriptor)
    }
}
