import FKMiddleware

/// The byte format of an info file, without input or output.
///
/// ```text
/// 0      64-byte header   magic, format version, slot size, number of counters, CRC-32C
/// 64     slot 0           even generations
///        slot 1           odd generations
///        counters         one 8-byte word per byte range: its position
/// ```
///
/// All numbers are little-endian. With the usual sizes, a file has exactly 4,096 bytes: one page, one block.
/// Docs/InfoFile.md lists all offsets.
package enum InfoFormat {
    /// `FK-INFO` and a line feed. Magic, version and the header's CRC keep their offsets in all later versions.
    package static let magic: UInt64 = 0x0a4f_464e_492d_4b46
    static let version: UInt32 = 1
    static let headerSize = 64
    /// The size of generation, length and CRC before a slot's payload.
    static let slotHeaderSize = 16
    static let usualSlotSize = TaskRecord.usualPayload
    package static let counterCount = 64
    /// The maximum size of a payload in bytes. Larger ones are neither written nor parsed.
    package static let maxPayload = 16 << 20
    /// No task is written this often. A higher generation means damage, and a next generation always exists.
    static let maxGeneration: UInt64 = 1 << 62
    /// The usual size, doubled as often as the largest payload needs.
    static let maxSlotSize = usualSlotSize << 14

    /// The offsets in one file.
    struct Geometry: Hashable, Sendable {
        var slotSize: Int
        var counterCount: Int = InfoFormat.counterCount

        var counterOffset: Int { headerSize + 2 * slotSize }
        var fileSize: Int { counterOffset + 8 * counterCount }
        /// A generation has a fixed offset, so a writer that knows the newest one needs no read.
        func slotOffset(generation: UInt64) -> Int { headerSize + Int(generation & 1) * slotSize }

        /// The smallest geometry for a payload of this many bytes: the usual one, doubled as often as necessary.
        ///
        /// - Throws: `.tooLarge` above `maxPayload`.
        static func holding(payload: Int) throws -> Geometry {
            guard payload <= maxPayload else {
                throw DownloadError(
                    .tooLarge, "A task's record may have \(maxPayload) bytes; this one has \(payload).")
            }
            var size = usualSlotSize
            while size < slotHeaderSize + payload { size *= 2 }
            return Geometry(slotSize: size)
        }
    }

    /// One valid slot. Its payload is `file[payload]`.
    package struct Slot: Hashable, Sendable {
        var generation: UInt64
        var payload: Range<Int>
    }

    static func writeHeader(_ geometry: Geometry, into file: UnsafeMutableRawBufferPointer) {
        let header = UnsafeMutableRawBufferPointer(rebasing: file[..<headerSize])
        header.initializeMemory(as: UInt8.self, repeating: 0)
        header.storeBytes(of: magic.littleEndian, as: UInt64.self)
        header.storeBytes(of: version.littleEndian, toByteOffset: 8, as: UInt32.self)
        header.storeBytes(of: UInt32(geometry.slotSize).littleEndian, toByteOffset: 12, as: UInt32.self)
        header.storeBytes(of: UInt32(geometry.counterCount).littleEndian, toByteOffset: 16, as: UInt32.self)
        let crc = CRC32C.checksum(UnsafeRawBufferPointer(rebasing: header[..<60]))
        header.storeBytes(of: crc.littleEndian, toByteOffset: 60, as: UInt32.self)
    }

    /// Reads the header.
    ///
    /// - Throws: `.corruptInfo`, or `.laterVersion` for a valid header of a later format.
    static func readHeader(_ file: UnsafeRawBufferPointer) throws -> Geometry {
        guard file.count >= headerSize else { throw DownloadError(.corruptInfo, "The info file is cut short.") }
        func word(_ offset: Int) -> UInt32 {
            UInt32(littleEndian: file.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
        }
        guard UInt64(littleEndian: file.loadUnaligned(as: UInt64.self)) == magic else {
            throw DownloadError(.corruptInfo, "This is not an info file.")
        }
        guard word(60) == CRC32C.checksum(UnsafeRawBufferPointer(rebasing: file[..<60])) else {
            throw DownloadError(.corruptInfo, "The info file's header is damaged.")
        }
        guard word(8) == version else {
            throw DownloadError(
                .laterVersion, "The info file has format \(word(8)); this program knows \(version).")
        }
        let geometry = Geometry(slotSize: Int(word(12)), counterCount: Int(word(16)))
        guard geometry.slotSize > slotHeaderSize, geometry.slotSize <= maxSlotSize, geometry.slotSize % 8 == 0,
            geometry.counterCount <= 4_096
        else {
            throw DownloadError(.corruptInfo, "The info file's header holds impossible sizes.")
        }
        return geometry
    }

    /// Writes generation, length and checksum in front of a payload that is in place and fills the rest of the slot.
    ///
    /// - Parameter head: the beginning of the payload, if the slot on the disk has it already; the default is nil.
    static func sealSlot(
        generation: UInt64, _ slot: UnsafeMutableRawBufferPointer, after head: RecordHead? = nil
    ) {
        let payload = UnsafeRawBufferPointer(rebasing: slot[slotHeaderSize...])
        let length = (head?.count ?? 0) + payload.count
        slot.storeBytes(of: generation.littleEndian, as: UInt64.self)
        slot.storeBytes(of: UInt32(length).littleEndian, toByteOffset: 8, as: UInt32.self)
        let crc = checksum(UnsafeRawBufferPointer(slot), after: head, payload: payload)
        slot.storeBytes(of: crc.littleEndian, toByteOffset: 12, as: UInt32.self)
    }

    /// The valid slots of a file, newest first. A slot is valid if it lies within the file, its generation belongs to
    /// its offset, its length fits and its checksum is right.
    static func validSlots(_ file: UnsafeRawBufferPointer, _ geometry: Geometry) -> [Slot] {
        var slots: [Slot] = []
        for index in 0..<2 {
            let offset = headerSize + index * geometry.slotSize
            guard file.count >= offset + slotHeaderSize else { continue }
            let generation = UInt64(littleEndian: file.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            let length = Int(UInt32(littleEndian: file.loadUnaligned(fromByteOffset: offset + 8, as: UInt32.self)))
            let crc = UInt32(littleEndian: file.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
            let payload = offset + slotHeaderSize..<offset + slotHeaderSize + length
            guard generation > 0, generation <= maxGeneration, Int(generation & 1) == index, length > 0,
                length <= maxPayload,
                length + slotHeaderSize <= geometry.slotSize, payload.upperBound <= file.count,
                crc
                    == checksum(
                        UnsafeRawBufferPointer(rebasing: file[offset..<offset + 12]),
                        payload: UnsafeRawBufferPointer(rebasing: file[payload]))
            else { continue }
            slots.append(Slot(generation: generation, payload: payload))
        }
        return slots.sorted { $0.generation > $1.generation }
    }

    /// The counters; none if the file ends before them.
    static func counters(_ file: UnsafeRawBufferPointer, _ geometry: Geometry) -> [Int64] {
        guard file.count >= geometry.fileSize, geometry.counterCount > 0 else { return [] }
        return [Int64](unsafeUninitializedCapacity: geometry.counterCount) { words, count in
            count = geometry.counterCount
            for index in 0..<count {
                let word = file.loadUnaligned(fromByteOffset: geometry.counterOffset + 8 * index, as: Int64.self)
                words.initializeElement(at: index, to: Int64(littleEndian: word))
            }
        }
    }

    /// The CRC-32C of generation, length and payload.
    private static func checksum(
        _ numbers: UnsafeRawBufferPointer, after head: RecordHead? = nil, payload: UnsafeRawBufferPointer
    ) -> UInt32 {
        var crc = CRC32C()
        crc.update(UnsafeRawBufferPointer(rebasing: numbers[..<12]))
        if let head { crc.append(head.checksum, count: Int64(head.count)) }
        crc.update(payload)
        return crc.value
    }
}
