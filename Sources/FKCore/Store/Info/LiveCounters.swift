import FKMiddleware
import Foundation
import Synchronization

/// The positions of the byte ranges of a running task, as offsets in the file: range `i` has all bytes from its start
/// to counter `i`.
///
/// The values in this process's memory are authoritative. `attach` adds a mirror: the counter words at the end of the
/// task's info file. Stores then update both without a lock. A killed process therefore loses almost none of the
/// bytes written to the part file, and other processes can follow the progress.
///
/// The words are written with `pwrite`, never through a mapping. A store to a mapped file cannot report an error: if
/// a copy-on-write file system is full, the disk has an error, or the file was shortened, the process ends with
/// SIGBUS.
///
/// Threads: the transport's thread calls `store` after each pwrite; the engine calls all other functions. They may
/// run at the same time. Two threads must not store the same counter at once.
///
/// The unsafe parts are correct because:
/// - `values` and `written` are allocated in `init` and freed in `deinit`, and every caller of `store` retains the
///   object.
/// - A descriptor is closed only in `deinit`. A thread that read its number just before a `detach` may still write
///   through it, and must not reach another file under that number.
package final class LiveCounters: Sendable {
    /// Counters from this index on are kept only in memory.
    package static let mirroredCount = InfoFormat.counterCount

    package let count: Int
    private nonisolated(unsafe) let values: UnsafeMutablePointer<Atomic<Int64>>
    /// The last value written to the mirror, for each counter with a word there.
    private nonisolated(unsafe) let written: UnsafeMutablePointer<Atomic<Int64>>
    /// The current destination of stores; `Place.nowhere` without a mirror.
    private let mirror = Atomic<UInt64>(Place.nowhere.word)
    private let mirrors = Locked(Mirrors())
    /// The counters that a reader waits for, one bit each; the last bit is for all others too.
    private let awaited = Atomic<UInt64>(0)
    private let onAwaited = Locked<(@Sendable () -> Void)?>(nil)

    /// An open info file and the offset of its counters, in one word.
    private struct Place {
        static let nowhere = Place(descriptor: -1, offset: 0)

        var descriptor: Int32
        /// In bytes. A file with slots of the largest size is far smaller than 4 GiB.
        var offset: UInt32

        var word: UInt64 { UInt64(UInt32(bitPattern: descriptor)) << 32 | UInt64(offset) }

        init(descriptor: Int32, offset: UInt32) {
            self.descriptor = descriptor
            self.offset = offset
        }

        init(word: UInt64) {
            descriptor = Int32(bitPattern: UInt32(truncatingIfNeeded: word >> 32))
            offset = UInt32(truncatingIfNeeded: word)
        }

        /// Writes words from `index` on.
        ///
        ///
        /// - Returns: the system's error number; nil if all words are written.
        func write(_ words: UnsafeBufferPointer<Int64>, from index: Int) -> Int32? {
            let bytes = UnsafeRawBufferPointer(words)
            var done = 0
            while done < bytes.count {
                let place = off_t(offset) + off_t(index * MemoryLayout<Int64>.size + done)
                let count = pwrite(descriptor, bytes.baseAddress! + done, bytes.count - done, place)
                if count > 0 {
                    done += count
                } else if count == 0 {
                    return ENOSPC
                } else if errno != EINTR {
                    return errno
                }
            }
            return nil
        }

        func write(_ value: Int64, to index: Int) -> Int32? {
            withUnsafePointer(to: value.littleEndian) { write(UnsafeBufferPointer(start: $0, count: 1), from: index) }
        }
    }

    private struct Mirrors {
        /// All files that were opened.
        var descriptors: [Int32] = []
        /// The current mirror; nil without one.
        var present: (place: Place, path: String)?
    }

    /// Creates counters with the value 0.
    ///
    /// - Parameter count: at least 1; the default is `mirroredCount`.
    package init(count: Int = LiveCounters.mirroredCount) {
        self.count = max(1, count)
        let all = self.count + Self.mirroredCount
        values = .allocate(capacity: all)
        written = values + self.count
        for index in 0..<all { (values + index).initialize(to: Atomic(0)) }
    }

    /// Creates counters with the positions of these ranges, and space for as many more as fit into the mirror.
    package convenience init(_ ranges: [SavedRange]) {
        self.init(count: max(ranges.count, LiveCounters.mirroredCount))
        for (index, range) in ranges.enumerated() { store(index, range.position) }
    }

    deinit {
        values.deinitialize(count: count + Self.mirroredCount)
        values.deallocate()
        mirrors.withLock { mirrors in
            for descriptor in mirrors.descriptors { FileIO.close(descriptor) }
        }
    }

    /// The bytes that may be in the part file before the mirror is written. `flush`, called once a second, writes it
    /// at the latest.
    ///
    /// Writing the word for each piece of 16 KiB would take a tenth of the processor time of a large file.
    package static let maxUnwritten: Int64 = 64 << 10

    /// Sets a counter, in memory and in the mirror. An index outside `0..<count` is ignored.
    ///
    /// A mirror that cannot be written keeps its older word. That word is behind but valid: after a kill, the bytes
    /// since then are fetched again.
    ///
    /// The store is sequentially consistent, like the loads in `copyToMirror`: either this store sees the new mirror,
    /// or the copy sees this store.
    ///
    /// - Parameter moreFollows: true lets the mirror wait until `maxUnwritten` bytes have arrived; the default is
    ///   false.
    package func store(_ index: Int, _ value: Int64, moreFollows: Bool = false) {
        guard index >= 0, index < count else { return }
        values[index].store(value, ordering: .sequentiallyConsistent)
        if awaited.load(ordering: .sequentiallyConsistent) & Self.bit(index) != 0 { tellReaders() }
        guard index < Self.mirroredCount else { return }
        if moreFollows {
            let ahead = value - written[index].load(ordering: .relaxed)
            if ahead >= 0, ahead < Self.maxUnwritten { return }
        }
        let place = Place(word: mirror.load(ordering: .sequentiallyConsistent))
        if place.descriptor >= 0, place.write(value, to: index) == nil {
            written[index].store(value, ordering: .relaxed)
        }
    }

    /// Writes all words that the mirror lacks.
    package func flush() {
        mirrors.withLock { mirrors in
            guard let (place, _) = mirrors.present,
                mirror.load(ordering: .sequentiallyConsistent) == place.word
            else { return }
            for index in 0..<min(count, Self.mirroredCount) {
                let value = values[index].load(ordering: .sequentiallyConsistent)
                if value != written[index].load(ordering: .relaxed) { _ = copy(index, value, to: place) }
            }
        }
    }

    /// The value of a counter; 0 for an index outside `0..<count`.
    package func value(_ index: Int) -> Int64 {
        guard index >= 0, index < count else { return 0 }
        return values[index].load(ordering: .acquiring)
    }

    /// The ranges with their positions advanced to the counters. A counter outside its range is ignored.
    package func applied(to ranges: [SavedRange]) -> [SavedRange] {
        ranges.enumerated().map { $1.advanced(to: value($0)) }
    }

    // MARK: Readers

    private static func bit(_ index: Int) -> UInt64 { 1 << UInt64(min(index, 63)) }

    /// Calls `body` once, at the next store of this counter. Look at the counters afterwards: a store may have come before.
    ///
    /// - Parameter index: nil for any counter.
    package func wake(at index: Int?, _ body: @escaping @Sendable () -> Void) {
        onAwaited.withLock { $0 = body }
        awaited.bitwiseOr(index.map(Self.bit) ?? .max, ordering: .sequentiallyConsistent)
    }

    private func tellReaders() {
        awaited.store(0, ordering: .sequentiallyConsistent)
        onAwaited.withLock(\.self)?()
    }

    // MARK: Mirror

    package var isAttached: Bool { mirrors.withLock { $0.present != nil } }

    /// Opens the counters of an info file and writes the current values to them. It replaces the previous mirror.
    ///
    /// - Throws: the errors of opening the file and reading its header; `.noSpace` or `.disk` if the values cannot be
    ///   written. The previous mirror stays then.
    package func attach(path: String) throws {
        let descriptor = try FileIO.open(path, O_RDWR)
        let geometry: InfoFormat.Geometry
        do {
            geometry = try Self.geometry(descriptor, path: path)
        } catch {
            FileIO.close(descriptor)
            throw error
        }
        let place = Place(descriptor: descriptor, offset: UInt32(geometry.counterOffset))
        try mirrors.withLock { mirrors in
            mirrors.descriptors.append(descriptor)
            let previous = mirror.exchange(place.word, ordering: .sequentiallyConsistent)
            if let number = copyToMirror(place) {
                mirror.store(previous, ordering: .sequentiallyConsistent)
                throw DownloadError(system: number, "write", path)
            }
            mirrors.present = (place, path)
        }
    }

    private static func geometry(_ descriptor: Int32, path: String) throws -> InfoFormat.Geometry {
        let geometry = try withUnsafeTemporaryAllocation(byteCount: InfoFormat.headerSize, alignment: 16) { header in
            let count = try FileIO.read(into: header, from: descriptor, at: 0, path: path)
            return try InfoFormat.readHeader(UnsafeRawBufferPointer(rebasing: header[..<count]))
        }
        guard geometry.counterCount >= mirroredCount else {
            throw DownloadError(.corruptInfo, "The info file \(path) has too few counters.")
        }
        // A file that was cut behind a valid slot gets room for its counters again.
        var status = stat()
        guard fstat(descriptor, &status) == 0,
            Int(status.st_size) >= geometry.fileSize || ftruncate(descriptor, off_t(geometry.fileSize)) == 0
        else { throw DownloadError(system: errno, "write", path) }
        return geometry
    }

    /// Removes the mirror. Stores then update only the memory.
    package func detach() {
        mirrors.withLock { mirrors in
            mirrors.present = nil
            mirror.store(Place.nowhere.word, ordering: .sequentiallyConsistent)
        }
    }

    /// Makes the words in the file invalid (-1 is outside every range) while the record that defines their meaning is
    /// replaced. Stores update only the memory until `validateMirror`, which must be called after the new record is
    /// in the file and not earlier.
    ///
    /// - Throws: `.noSpace` or `.disk`. The record must not be replaced then, because valid words would be taken for
    ///   positions in its ranges.
    func invalidateMirror() throws {
        try mirrors.withLock { mirrors in
            guard let (place, path) = mirrors.present else { return }
            mirror.store(Place.nowhere.word, ordering: .sequentiallyConsistent)
            let nothing = [Int64](repeating: -1, count: Self.mirroredCount)
            if let number = nothing.withUnsafeBufferPointer({ place.write($0, from: 0) }) {
                throw DownloadError(system: number, "write", path)
            }
        }
    }

    /// Ends `invalidateMirror`. A word that cannot be written stays -1 or behind its counter.
    func validateMirror() {
        mirrors.withLock { mirrors in
            guard let (place, _) = mirrors.present else { return }
            mirror.store(place.word, ordering: .sequentiallyConsistent)
            _ = copyToMirror(place)
        }
    }

    /// Writes all words to a new mirror.
    ///
    /// - Returns: the system's error number; nil if all words are written.
    private func copyToMirror(_ place: Place) -> Int32? {
        let count = min(count, Self.mirroredCount)
        let copied = (0..<count).map { values[$0].load(ordering: .sequentiallyConsistent) }
        if let number = copied.withUnsafeBufferPointer({ place.write($0, from: 0) }) { return number }
        for (index, value) in copied.enumerated() {
            written[index].store(value, ordering: .relaxed)
            let present = values[index].load(ordering: .sequentiallyConsistent)
            if present != value, let number = copy(index, present, to: place) { return number }
        }
        return nil
    }

    /// Copies until the value is unchanged after the copy, because a concurrent store may have been overwritten.
    private func copy(_ index: Int, _ value: Int64, to place: Place) -> Int32? {
        var value = value
        while true {
            if let number = place.write(value, to: index) { return number }
            written[index].store(value, ordering: .relaxed)
            let present = values[index].load(ordering: .sequentiallyConsistent)
            if present == value { return nil }
            value = present
        }
    }
}
