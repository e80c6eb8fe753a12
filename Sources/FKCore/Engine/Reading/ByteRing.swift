import FKMiddleware
import Foundation
import Synchronization

/// The window of a stream: a part file of fixed size has the bytes around the reader, each at its offset modulo the size. So the
/// disk space is limited on every file system, and is given back with the file.
///
/// ```text
/// not needed  | behind |  reader  | received or on its way        | not fetched yet
///             floor    position                                   horizon
/// ```
///
/// Threads: the reader moves it, the transport's thread asks it, the engine does both.
package final class ByteRing: Sendable {
    /// The bytes behind the reader that stay: a resumed connection compares those before its first one.
    static let behind: Int64 = 64 << 10
    /// The minimum of a window in bytes: 1 MiB.
    package static let minWindow: Int64 = 1 << 20
    /// The maximum of a window in bytes: 1 TiB.
    static let maxWindow: Int64 = 1 << 40
    /// The largest offset that is read. No file is as long, and a window behind it is still a number.
    package static let maxOffset: Int64 = 1 << 62

    /// The bytes ahead of the reader.
    package let window: Int64
    /// The size of the part file.
    let size: Int64
    private let position: Atomic<Int64>
    private let isBlocked = Atomic<Bool>(false)
    private let told: Atomic<Int64>
    private let onRoom = Locked<(@Sendable () -> Void)?>(nil)

    /// Creates a window.
    ///
    /// - Parameters:
    ///   - window: bytes; the nearest of `minWindow` and `maxWindow` outside of them.
    ///   - start: the first byte that is read.
    package init(window: Int64, start: Int64 = 0) {
        self.window = min(max(Self.minWindow, window), Self.maxWindow)
        size = self.window + Self.behind
        position = Atomic(start)
        told = Atomic(start)
    }

    /// The next byte of the reader.
    package var readerPosition: Int64 { position.load(ordering: .acquiring) }
    /// The offset after the last byte that may be written now.
    var horizon: Int64 { position.load(ordering: .sequentiallyConsistent) + window }
    /// Bytes before it are not needed any more.
    var floor: Int64 { max(0, position.load(ordering: .acquiring) - Self.behind) }

    /// Calls `body` when a connection that has found no space may continue.
    func whenRoom(_ body: @escaping @Sendable () -> Void) { onRoom.withLock { $0 = body } }

    /// The number of bytes that may be written at an offset; 0 if the reader has to move first. `whenRoom` is called then.
    func room(at offset: Int64) -> Int64 {
        let room = horizon - offset
        if room > 0 { return room }
        isBlocked.store(true, ordering: .sequentiallyConsistent)
        // The reader may have moved meanwhile.
        return max(0, horizon - offset)
    }

    /// Somebody waits until the reader has moved.
    func recordBlocked() { isBlocked.store(true, ordering: .sequentiallyConsistent) }

    /// The reader has taken all bytes before `offset`. Connections continue after an eighth of the window, so that they are not
    /// stopped again at once.
    package func advance(to offset: Int64) {
        position.store(offset, ordering: .sequentiallyConsistent)
        guard offset - told.load(ordering: .relaxed) >= window / 8,
            isBlocked.exchange(false, ordering: .sequentiallyConsistent)
        else { return }
        told.store(offset, ordering: .relaxed)
        onRoom.withLock(\.self)?()
    }

    // MARK: Places

    /// A piece of the file and its place in the part file.
    struct Piece: Equatable {
        var offset: Int64
        var place: Int64
        var count: Int
    }

    /// The bytes of a write that are still needed.
    func needed(_ offset: Int64, _ count: Int) -> Range<Int64> {
        let end = offset + Int64(count)
        return min(max(offset, floor), end)..<end
    }

    /// The places of a range of the file, no longer than the part file.
    func pieces(of range: Range<Int64>) -> [Piece] {
        guard !range.isEmpty else { return [] }
        let place = range.lowerBound % size
        let first = min(Int64(range.count), size - place)
        let one = Piece(offset: range.lowerBound, place: place, count: Int(first))
        guard Int64(range.count) > first else { return [one] }
        return [one, Piece(offset: range.lowerBound + first, place: 0, count: range.count - Int(first))]
    }
}

/// A file that a reader reads: a part file, or a finished one. It keeps its bytes when the file gets another name.
package final class ReadFile: Sendable {
    private let descriptor: Int32
    private let path: String
    private let ring: ByteRing?

    /// It closes the descriptor at its end.
    init(_ descriptor: Int32, path: String, ring: ByteRing? = nil) {
        (self.descriptor, self.path, self.ring) = (descriptor, path, ring)
    }

    /// Opens a file that no engine of this process has open.
    ///
    /// - Throws: `.destination` if it cannot be opened, or if it is no regular file.
    package convenience init(path: String) throws(DownloadError) {
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw DownloadError(system: errno, "open", path, in: .destination) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw DownloadError(.destination, "\(path) is not a regular file.")
        }
        self.init(descriptor, path: path)
    }

    deinit { close(descriptor) }

    /// The identity of the file; nil if the system does not report it.
    package var identity: FileIdentity? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? FileIdentity(status) : nil
    }

    /// The length of the file in bytes.
    package var length: Int64 {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? Int64(status.st_size) : 0
    }

    /// Reads up to `buffer.count` bytes; fewer only at the end of the file.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(DownloadError) -> Int {
        let pieces =
            ring?.pieces(of: offset..<offset + Int64(buffer.count))
            ?? [ByteRing.Piece(offset: offset, place: offset, count: buffer.count)]
        var done = 0
        for piece in pieces {
            var place = 0
            while place < piece.count {
                let count = pread(
                    descriptor, buffer.baseAddress! + done, piece.count - place, off_t(piece.place) + off_t(place))
                if count == 0 { return done }
                if count > 0 {
                    done += count
                    place += count
                } else if errno != EINTR {
                    throw DownloadError(system: errno, "read", path, in: .destination)
                }
            }
        }
        return done
    }
}
