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
/// task's info file, mapped shared. A `store` then writes both, without a lock or a system call, so a killed process
/// loses nothing that it had written to the part file, and other processes can follow the progress.
///
/// Threads: `store` is called by the transport's thread after each pwrite has returned; everything else by
/// the engine. Any of them may run at the same time. Two threads must not store the same counter at once.
///
/// Unsafe pieces, and why they hold:
/// - `values` is allocated in `init` and freed in `deinit`; whoever stores holds a reference to the object.
/// - a mapping is published with its whole length mapped, and only unmapped in `deinit`: a thread that read the
///   pointer just before a `detach` may still write through it.
/// - the words lie at a multiple of 8 in the file and the mapping begins on a page, so they are aligned.
/// - nobody but the engine changes an info file's length, and the engine never makes one shorter. Whoever truncates
///   it by hand while the task runs gets the process a SIGBUS.
package final class LiveCounters: Sendable {
    /// Counters from this index on are kept in the process only.
    package static let mirroredCount = InfoFormat.counterCount

    package let count: Int
    private nonisolated(unsafe) let values: UnsafeMutablePointer<Atomic<Int64>>
    /// Address of the first counter word of the mapped file; 0 while nothing is mirrored.
    private let mirror = Atomic<UInt>(0)
    private let mappings = Locked(Mappings())

    private struct Mappings {
        struct Mapping {
            let base: UnsafeMutableRawPointer
            let length: Int
            let counters: UnsafeMutableRawPointer
        }
        /// The last one is the present one, unless detached.
        var all: [Mapping] = []
        var isAttached = false
    }

    /// - Parameter count: at least 1. All begin as 0.
    package init(count: Int = LiveCounters.mirroredCount) {
        self.count = max(1, count)
        let memory = Heap.take(self.count * MemoryLayout<Atomic<Int64>>.stride)
        values = memory.bindMemory(to: Atomic<Int64>.self).baseAddress!
        for index in 0..<self.count { (values + index).initialize(to: Atomic(0)) }
    }

    /// Begins with the positions of these ranges; has room for as many more as fit into the mirror.
    package convenience init(_ ranges: [SavedRange]) {
        self.init(count: max(ranges.count, LiveCounters.mirroredCount))
        for (index, range) in ranges.enumerated() { store(index, range.position) }
    }

    deinit {
        Heap.giveBack(values.deinitialize(count: count))
        mappings.withLock { mappings in
            for mapping in mappings.all { munmap(mapping.base, mapping.length) }
        }
    }

    /// Sets a counter, here and in the mirror. An index outside `0..<count` is ignored.
    ///
    /// Sequentially consistent, like the loads in `copyToMirror`: either this store sees the new mirror, or the
    /// copying sees this store.
    package func store(_ index: Int, _ value: Int64) {
        guard index >= 0, index < count else { return }
        values[index].store(value, ordering: .sequentiallyConsistent)
        guard index < Self.mirroredCount,
            let mirror = UnsafeMutableRawPointer(bitPattern: mirror.load(ordering: .sequentiallyConsistent))
        else { return }
        Self.word(mirror, index).pointee.store(value, ordering: .sequentiallyConsistent)
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

    package var isAttached: Bool { mappings.withLock { $0.isAttached } }

    /// Maps the counters of an info file and writes the present values to them. Replaces the mirror there was.
    ///
    /// - Throws: what reading the header throws; `.disk` when it cannot be mapped. The mirror there was stays then.
    package func attach(path: String) throws {
        let descriptor = try FileIO.open(path, O_RDWR)
        defer { FileIO.close(descriptor) }
        let geometry = try withUnsafeTemporaryAllocation(byteCount: InfoFormat.headerSize, alignment: 16) { header in
            let count = try FileIO.read(into: header, from: descriptor, at: 0, path: path)
            return try InfoFormat.readHeader(UnsafeRawBufferPointer(rebasing: header[..<count]))
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, Int(status.st_size) >= geometry.fileSize,
            geometry.counterCount >= Self.mirroredCount
        else {
            throw DownloadError(.corruptInfo, "The info file \(path) ends before its counters.")
        }
        let base = mmap(nil, geometry.fileSize, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
        // MAP_FAILED is -1; the macro is not visible to Swift on every system.
        guard let base, base != UnsafeMutableRawPointer(bitPattern: -1) else {
            throw DownloadError(system: errno, "map", path)
        }
        publish(.init(base: base, length: geometry.fileSize, counters: base + geometry.counterOffset))
    }

    /// Stores go to the process's own counters only from now on.
    package func detach() {
        mappings.withLock { mappings in
            mappings.isAttached = false
            mirror.store(0, ordering: .sequentiallyConsistent)
        }
    }

    /// Makes the words in the file mean nothing (-1 lies outside every range) while the record that gives them their
    /// meaning is replaced. Stores meanwhile go to the process's own counters.
    func invalidateMirror() {
        mappings.withLock { mappings in
            guard mappings.isAttached, let mapping = mappings.all.last else { return }
            mirror.store(0, ordering: .sequentiallyConsistent)
            for index in 0..<Self.mirroredCount {
                Self.word(mapping.counters, index).pointee.store(-1, ordering: .sequentiallyConsistent)
            }
        }
    }

    /// Ends what `invalidateMirror` began.
    func validateMirror() {
        mappings.withLock { mappings in
            guard mappings.isAttached, let mapping = mappings.all.last else { return }
            mirror.store(UInt(bitPattern: mapping.counters), ordering: .sequentiallyConsistent)
            copyToMirror(mapping.counters)
        }
    }

    private func publish(_ mapping: sending Mappings.Mapping) {
        mappings.withLock { mappings in
            mappings.all.append(mapping)
            mappings.isAttached = true
            mirror.store(UInt(bitPattern: mapping.counters), ordering: .sequentiallyConsistent)
            copyToMirror(mapping.counters)
        }
    }

    /// Copies until a value read again is the one copied: a store between the two may have been overtaken by ours.
    private func copyToMirror(_ mirror: UnsafeMutableRawPointer) {
        for index in 0..<min(count, Self.mirroredCount) {
            var value = values[index].load(ordering: .sequentiallyConsistent)
            while true {
                Self.word(mirror, index).pointee.store(value, ordering: .sequentiallyConsistent)
                let again = values[index].load(ordering: .sequentiallyConsistent)
                if again == value { break }
                value = again
            }
        }
    }

    /// `Atomic<Int64>` has the size, alignment and bits of `Int64`; all systems we build for are little-endian, as the
    /// file format is.
    private static func word(_ base: UnsafeMutableRawPointer, _ index: Int) -> UnsafeMutablePointer<Atomic<Int64>> {
        base.assumingMemoryBound(to: Atomic<Int64>.self) + index
    }
}
