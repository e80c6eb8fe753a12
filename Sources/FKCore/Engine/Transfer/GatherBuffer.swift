import FKMiddleware

/// Bytes that arrived in many small pieces and are written to the part file with one call. Not thread-safe.
///
/// libcurl delivers 16 KiB at a time, whatever it has read. For whole blocks of 64 KiB the kernel needs a quarter less time,
/// which is more than the copy costs (Docs/Performance.md).
final class GatherBuffer {
    /// The maximum number of bytes, which a kill can lose. With 256 KiB a GiB would take a tenth less on ext4.
    static let capacity = 64 << 10

    /// The free buffers. A buffer is in use only while a transport hands over the bytes it has read, so there are few.
    private static let spares = Locked<[GatherBuffer]>([])
    private static let maxSpares = 4

    private let storage = UnsafeMutableRawBufferPointer.allocate(byteCount: GatherBuffer.capacity, alignment: 4096)
    private var count = 0

    private init() {}

    deinit { storage.deallocate() }

    /// An empty buffer.
    static func taken() -> GatherBuffer { spares.withLock { $0.popLast() } ?? GatherBuffer() }

    /// Keeps the buffer for the next user. Its bytes are forgotten.
    func giveBack() {
        count = 0
        Self.spares.withLock { if $0.count < Self.maxSpares { $0.append(self) } }
    }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: storage[..<count]) }

    /// Appends as many of the bytes as fit before a multiple of `capacity` in the file.
    ///
    /// - Parameter start: the offset in the file of the buffer's first byte.
    /// - Returns: their number.
    func append(_ bytes: UnsafeRawBufferPointer, start: Int64) -> Int {
        let taken = min(bytes.count, room(start: start))
        UnsafeMutableRawBufferPointer(rebasing: storage[count...]).copyMemory(
            from: .init(rebasing: bytes.prefix(taken)))
        count += taken
        return taken
    }

    /// The bytes that still fit. Whole blocks of the file are cheaper than blocks that two calls share.
    func room(start: Int64) -> Int { Self.capacity - Int(start % Int64(Self.capacity)) - count }
}
