import FKMiddleware

/// CRC-32C of the pieces of a file, 1 MiB each, computed while its bytes arrive. Bytes may arrive in any order, on several
/// connections.
///
/// It is no digest: it detects losses of a disk, but not forgery. Its use is that it says where a file is damaged.
package struct PieceSums: Sendable {
    /// The length of every piece except the last, in bytes.
    package static let pieceLength: Int64 = 1 << 20

    /// Bytes of one piece with their checksum.
    package struct Run: Sendable, Hashable {
        var start: Int64
        var end: Int64
        var crc32c: UInt32
    }

    /// Bytes whose runs do not count, because they were wrong and were fetched again.
    private var spoiled: [Range<Int64>] = []
    /// Completed runs, none of them beyond the end of a piece.
    package private(set) var runs: [Run] = []
    /// The run that is being added to.
    private var start: Int64 = -1
    private var end: Int64 = -1
    private var crc = CRC32C()
    /// Of the bytes of all completed runs, one after the other.
    private var completed = CRC32C()

    package init() {}

    /// The checksum of all added bytes as one, in the order in which they were added. Merged runs do not count.
    package var whole: UInt32 {
        var whole = completed
        if start >= 0 { whole.append(crc.value, count: end - start) }
        return whole.value
    }

    /// Adds bytes that were written at an offset of the file.
    package mutating func add(_ bytes: UnsafeRawBufferPointer, at offset: Int64) {
        var bytes = bytes
        var offset = offset
        if offset != end { close() }
        while !bytes.isEmpty {
            if start < 0 { (start, end) = (offset, offset) }
            let room = Self.pieceLength - offset % Self.pieceLength
            let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(min(room, Int64(bytes.count)))))
            crc.update(part)
            offset += Int64(part.count)
            end = offset
            if offset % Self.pieceLength == 0 { close() }
            bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(part.count))
        }
    }

    private mutating func close() {
        if start >= 0 {
            runs.append(Run(start: start, end: end, crc32c: crc.value))
            completed.append(crc.value, count: end - start)
        }
        (start, end, crc) = (-1, -1, CRC32C())
    }

    /// The bytes were wrong and are fetched again: the checksums of their pieces are not known.
    package mutating func spoil(_ bytes: Range<Int64>) { spoiled.append(bytes) }

    /// Adds the runs of another connection.
    package mutating func merge(_ other: PieceSums) {
        var other = other
        other.close()
        close()
        runs += other.runs
    }

    /// The checksums of all pieces of a file. A piece that did not arrive as a whole on one connection is nil.
    ///
    /// - Parameter length: the length of the file in bytes.
    package func table(length: Int64) -> [UInt32?] {
        var sums = self
        sums.close()
        var table = [UInt32?](repeating: nil, count: Self.count(length))
        var isTwice = Set<Int>()
        for run in sums.runs where run.start % Self.pieceLength == 0 {
            let index = Int(run.start / Self.pieceLength)
            guard index < table.count, run.end == Self.range(index, of: length).upperBound else { continue }
            // Two different answers. Only reading the file can tell which bytes it has.
            if let known = table[index], known != run.crc32c { isTwice.insert(index) }
            table[index] = run.crc32c
        }
        for index in isTwice { table[index] = nil }
        for bytes in spoiled {
            let first = Int(bytes.lowerBound / Self.pieceLength)
            let last = Int((bytes.upperBound - 1) / Self.pieceLength)
            for index in first...max(first, last) where index < table.count { table[index] = nil }
        }
        return table
    }

    /// The CRC-32C of a whole file from those of its pieces, as hexadecimal digits.
    package static func whole(_ sums: [UInt32], length: Int64) -> String {
        var crc = CRC32C()
        for (index, sum) in sums.enumerated() { crc.append(sum, count: Int64(range(index, of: length).count)) }
        return Digester.hex(withUnsafeBytes(of: crc.value.bigEndian) { Array($0) })
    }

    /// The number of pieces of a file.
    package static func count(_ length: Int64) -> Int { Int((length + pieceLength - 1) / pieceLength) }

    package static func range(_ index: Int, of length: Int64) -> Range<Int64> {
        let start = Int64(index) * pieceLength
        return start..<min(start + pieceLength, length)
    }
}
