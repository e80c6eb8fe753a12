import FKMiddleware
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// How far each byte range of a running task has come, as an offset in the file: range `i` holds all bytes from its
/// start up to counter `i`.
///
/// The truth is in this process, in memory of its own. `attach` adds a mirror: the counter words at the end of the
/// task's info file. Stores then reach both, without a lock, so a killed process loses next to nothing that it had
/// written to the part file, and other processes can follow the progress.
///
/// The words are written with `pwrite`, never through a mapping. A store into a mapped file has no way to fail: where
/// the system cannot carry it out, because a copy-on-write file system is full, the disk has an error, or somebody has
/// shortened the file, it ends the process with SIGBUS.
///
/// Threads: `store` is called by the transport's thread after each pwrite has returned; everything else by
/// the engine. Any of them may run at the same time. Two threads must not store the same counter at once.
///
/// Unsafe pieces, and why they hold:
/// - `values` and `written` are allocated in `init` and freed in `deinit`; whoever stores holds a reference to the object.
/// - a descriptor is only closed in `deinit`: a thread that read its number just before a `detach` may still write
///   through it, and must not meet another file under that number.
package final class LiveCounters: Sendable {
    /// Counters from this index on are kept in the process only.
    package static let mirroredCount = InfoFormat.counterCount

    package let count: Int
    private nonisolated(unsafe) let values: UnsafeMutablePointer<Atomic<Int64>>
    /// What was last written to the mirror, of each counter that has a word there.
    private nonisolated(unsafe) let written: UnsafeMutablePointer<Atomic<Int64>>
    /// Where stores go at present; `Place.nowhere` while nothing is mirrored.
    private let mirror = Atomic<UInt64>(Place.nowhere.word)
    private let mirrors = Locked(Mirrors())

    /// An open info file and where its counters begin, in one word.
    private struct Place {
        static let nowhere = Place(descriptor: -1, offset: 0)

        var descriptor: Int32
        /// Bytes. A file with slots of the largest size is far below 4 GiB.
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
        /// - Returns: the error number of the system; nil when all of them are written.
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
        /// Every file that was opened.
        var descriptors: [Int32] = []
        /// The present one; nil while nothing is mirrored.
        var present: (place: Place, path: String)?
    }

    /// - Parameter count: at least 1. All begin as 0.
    package init(count: Int = LiveCounters.mirroredCount) {
        self.count = max(1, count)
        let all = self.count + Self.mirroredCount
        values = Heap.take(all * MemoryLayout<Atomic<Int64>>.stride).bindMemory(to: Atomic<Int64>.self).baseAddress!
        written = values + self.count
        for index in 0..<all { (values + index).initialize(to: Atomic(0)) }
    }

    /// Begins with the positions of these ranges; has room for as many more as fit into the mirror.
    package convenience init(_ ranges: [SavedRange]) {
        self.init(count: max(ranges.count, LiveCounters.mirroredCount))
        for (index, range) in ranges.enumerated() { store(index, range.position) }
    }

    deinit {
        Heap.giveBack(values.deinitialize(count: count + Self.mirroredCount))
        mirrors.withLock { mirrors in
            for descriptor in mirrors.descriptors { FileIO.close(descriptor) }
        }
    }

    /// So many bytes may be in the part file without a word of them in the mirror, and so long, which is until
    /// `flush`, called once a second.
    ///
    /// Written for each piece of 16 KiB, the words of a large file would cost a tenth of its processor time.
    package static let mostUnwritten: Int64 = 64 << 10

    /// Sets a counter, here and in the mirror. An index outside `0..<count` is ignored.
    ///
    /// A mirror that cannot be written keeps its older word. That word is behind and not wrong: after a kill, the bytes
    /// since then are fetched again.
    ///
    /// Sequentially consistent, like the loads in `copyToMirror`: either this store sees the new mirror, or the
    /// copying sees this store.
    ///
    /// - Parameter moreFollows: the mirror may wait, until `mostUnwritten` bytes have come.
    package func store(_ index: Int, _ value: Int64, moreFollows: Bool = false) {
        guard index >= 0, index < count else { return }
        values[index].store(value, ordering: .sequentiallyConsistent)
        guard index < Self.mirroredCount else { return }
        if moreFollows {
            let ahead = value - written[index].load(ordering: .relaxed)
            if ahead >= 0, ahead < Self.mostUnwritten { return }
        }
        let place = Place(word: mirror.load(ordering: .sequentiallyConsistent))
        if place.descriptor >= 0, place.write(value, to: index) == nil {
            written[index].store(value, ordering: .relaxed)
        }
    }

    /// Writes what the mirror lacks.
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

    /// 0 for an index outside `0..<count`.
    package func load(_ index: Int) -> Int64 {
        guard index >= 0, index < count else { return 0 }
        return values[index].load(ordering: .acquiring)
    }

    /// The ranges with their positions brought forward to the counters; a counter outside its range changes nothing.
    package func applied(to ranges: [SavedRange]) -> [SavedRange] {
        ranges.enumerated().map { $1.advanced(to: load($0)) }
    }

    // MARK: Mirror

    package var isAttached: Bool { mirrors.withLock { $0.present != nil } }

    /// Opens the counters of an info file and writes the present values to them. Replaces the mirror there was.
    ///
    /// - Throws: what opening the file and reading its header throws; `.noSpace` or `.disk` when the values cannot be
    ///   written. The mirror there was stays then.
    package func attach(path: String) throws {
        let descriptor = try FileIO.open(path, O_RDWR | O_NONBLOCK)
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
        var status = stat()
        guard fstat(descriptor, &status) == 0, Int(status.st_size) >= geometry.fileSize,
            geometry.counterCount >= mirroredCount
        else {
            throw DownloadError(.corruptInfo, "The info file \(path) ends before its counters.")
        }
        return geometry
    }

    /// Stores go to the process's own counters only from now on.
    package func detach() {
        mirrors.withLock { mirrors in
            mirrors.present = nil
            mirror.store(Place.nowhere.word, ordering: .sequentiallyConsistent)
        }
    }

    /// Makes the words in the file mean nothing (-1 lies outside every range) while the record that gives them their
    /// meaning is replaced. Stores go to the process's own counters until `validateMirror`, which is called once the new
    /// record is in the file, and only then.
    ///
    /// - Throws: `.noSpace` or `.disk`. The record must not be replaced then: words that still count would be
    ///   taken for positions in its ranges.
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

    /// Ends what `invalidateMirror` began. A word that cannot be written stays what it is: -1, or behind its counter.
    func validateMirror() {
        mirrors.withLock { mirrors in
            guard let (place, _) = mirrors.present else { return }
            mirror.store(place.word, ordering: .sequentiallyConsistent)
            _ = copyToMirror(place)
        }
    }

    /// - Returns: the error number of the system; nil when all words are written.
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

    /// Copies until a value read again is the one copied: a store between the two may have been overtaken by ours.
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
