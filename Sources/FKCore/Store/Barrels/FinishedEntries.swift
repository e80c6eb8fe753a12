import FKMiddleware
import Foundation

/// The fields of a finished task that a run shows.
struct FinishedEntry {
    var id: TaskID
    var stamp = Stamp()
    var received: Int64
    var expected: Int64?
    var attempts: Int
    var url: String
    var path: String?

    /// - Returns: nil if the info has anything else to show, or texts too long for an entry.
    init?(_ info: DownloadInfo) {
        guard info.state == .complete, info.error == nil, info.wait == nil,
            info.url.utf8.count + (info.path?.utf8.count ?? 0) <= Self.maxText
        else { return nil }
        id = info.id
        received = info.count.received
        expected = info.count.expected
        attempts = info.attempts
        url = info.url
        path = info.path
    }

    init(
        id: TaskID, stamp: Stamp, received: Int64, expected: Int64?, attempts: Int, url: String, path: String?
    ) {
        self.id = id
        self.stamp = stamp
        self.received = received
        self.expected = expected
        self.attempts = attempts
        self.url = url
        self.path = path
    }

    static let maxText = 1 << 14

    /// The info, without barrels and the time of the last byte. A file that a response middleware has changed has another length than the
    /// one here: its record tells.
    var info: DownloadInfo {
        var info = DownloadInfo(
            id: id, url: url, state: .complete, count: ByteCount(received: received, expected: expected))
        info.attempts = attempts
        info.path = path
        info.knownName = path?.lastPathPart
        info.lengthLeft = expected
        return info
    }
}

/// Writes entries in blocks. In a block, an entry has only the end of its URL and its path that differs from the entry before.
final class FinishedWriter {
    private let path: String
    private let descriptor: Int32
    private var offset: Int
    private var block: [UInt8] = []
    private var last: (url: [UInt8], path: [UInt8]) = ([], [])

    static let blockSize = 1 << 16

    init(_ path: String, _ descriptor: Int32, from offset: Int) {
        self.path = path
        self.descriptor = descriptor
        self.offset = offset
        block.reserveCapacity(Self.blockSize + 2 * FinishedEntry.maxText)
    }

    /// - Throws: `.noSpace` or `.disk`.
    func append(_ entry: FinishedEntry) throws {
        withUnsafeBytes(of: entry.id.bits) { block += $0 }
        withUnsafeBytes(of: entry.stamp.inode.littleEndian) { block += $0 }
        withUnsafeBytes(of: entry.stamp.changed.littleEndian) { block += $0 }
        append(UInt64(bitPattern: entry.received))
        append(entry.expected.map { UInt64(bitPattern: $0) &+ 1 } ?? 0)
        append(UInt64(max(0, entry.attempts)))
        append(entry.url, after: &last.url)
        append(entry.path == nil ? 0 : 1)
        if let path = entry.path { append(path, after: &last.path) }
        if block.count >= Self.blockSize { try flush() }
    }

    /// A number in groups of seven bits, the lowest first.
    private func append(_ number: UInt64) {
        var number = number
        while number >= 0x80 {
            block.append(UInt8(truncatingIfNeeded: number) | 0x80)
            number >>= 7
        }
        block.append(UInt8(number))
    }

    private func append(_ text: String, after last: inout [UInt8]) {
        var text = text
        text.withUTF8 { text in
            var shared = 0
            while shared < min(text.count, last.count), text[shared] == last[shared] { shared += 1 }
            append(UInt64(shared))
            append(UInt64(text.count - shared))
            block += text[shared...]
            last.replaceSubrange(shared..., with: text[shared...])
        }
    }

    func flush() throws {
        guard !block.isEmpty else { return }
        var head: [UInt8] = []
        withUnsafeBytes(of: UInt32(block.count).littleEndian) { head += $0 }
        withUnsafeBytes(of: block.withUnsafeBytes { CRC32C.checksum($0) }.littleEndian) { head += $0 }
        try head.withUnsafeBytes { try FileIO.write($0, to: descriptor, at: offset, path: path) }
        try block.withUnsafeBytes { try FileIO.write($0, to: descriptor, at: offset + head.count, path: path) }
        offset += head.count + block.count
        block.removeAll(keepingCapacity: true)
        last = ([], [])
    }
}

/// Reads entries. A damaged block ends the file.
struct FinishedBlocks {
    private let path: String
    private let descriptor: Int32
    private var offset: Int
    private var block: [UInt8] = []
    private var place = 0
    private var url: [UInt8] = []
    private var text: [UInt8] = []

    init(_ path: String, _ descriptor: Int32, from offset: Int) {
        self.path = path
        self.descriptor = descriptor
        self.offset = offset
    }

    /// True if the file begins with these bytes.
    func hasHeader(_ header: [UInt8]) -> Bool { read(header.count, at: 0) == header }

    /// The next entry; nil at the end.
    mutating func next() -> FinishedEntry? {
        if place >= block.count {
            guard readBlock() else { return nil }
        }
        guard place + 48 <= block.count else { return end() }
        let (id, inode, changed) = block.withUnsafeBytes { bytes in
            (
                TaskID(bits: bytes.loadUnaligned(fromByteOffset: place, as: SIMD4<UInt64>.self)),
                UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place + 32, as: UInt64.self)),
                Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: place + 40, as: Int64.self))
            )
        }
        place += 48
        guard let received = number(), let expected = number(), let attempts = number(),
            let (count, rest) = share(url.count)
        else { return end() }
        url.replaceSubrange(count..., with: block[rest])
        guard let hasPath = number() else { return end() }
        if hasPath > 0 {
            guard let (count, rest) = share(text.count) else { return end() }
            text.replaceSubrange(count..., with: block[rest])
        }
        return FinishedEntry(
            id: id, stamp: Stamp(inode: inode, changed: changed), received: Int64(bitPattern: received),
            expected: expected == 0 ? nil : Int64(bitPattern: expected &- 1), attempts: Int(clamping: attempts),
            url: String(decoding: url, as: UTF8.self), path: hasPath == 0 ? nil : String(decoding: text, as: UTF8.self))
    }

    private mutating func end() -> FinishedEntry? {
        block = []
        place = 0
        offset = Int.max / 2
        return nil
    }

    private mutating func number() -> UInt64? {
        var number: UInt64 = 0
        var shift: UInt64 = 0
        while place < block.count, shift < 64 {
            let byte = block[place]
            place += 1
            number |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return number }
            shift += 7
        }
        return nil
    }

    /// The number of bytes that a text shares with the one before, which has `most`, and the place of the others in the block.
    private mutating func share(_ most: Int) -> (count: Int, rest: Range<Int>)? {
        guard let shared = number(), let rest = number(), shared <= UInt64(most),
            rest <= UInt64(block.count - place)
        else { return nil }
        defer { place += Int(rest) }
        return (Int(shared), place..<place + Int(rest))
    }

    private mutating func readBlock() -> Bool {
        guard let head = read(8, at: offset) else { return false }
        let (length, crc) = head.withUnsafeBytes { bytes in
            (
                Int(UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self))),
                UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
            )
        }
        guard length > 0, length <= FinishedWriter.blockSize + 2 * FinishedEntry.maxText,
            let bytes = read(length, at: offset + 8), bytes.withUnsafeBytes({ CRC32C.checksum($0) }) == crc
        else { return false }
        offset += 8 + length
        block = bytes
        place = 0
        url = []
        text = []
        return true
    }

    /// nil if the file has fewer bytes.
    private func read(_ count: Int, at offset: Int) -> [UInt8]? {
        let bytes = try? [UInt8](unsafeUninitializedCapacity: count) { buffer, length in
            length = try FileIO.read(
                into: UnsafeMutableRawBufferPointer(buffer), from: descriptor, at: offset, path: path)
        }
        return bytes?.count == count ? bytes : nil
    }
}

/// The finished tasks that were reported to a run, in an unlinked file in the folder of the index that is made from them.
package final class FinishedSpool {
    private let path: String
    private let descriptor: Int32
    private let writer: FinishedWriter
    package private(set) var count = 0

    /// - Throws: `.noSpace` or `.disk`.
    package init(_ barrel: String, in workPath: WorkPath) throws {
        path = workPath.donePath(barrel) + ".new"
        _ = try FileIO.remove(path)
        descriptor = try FileIO.open(path, O_RDWR | O_CREAT | O_EXCL)
        unlink(path)
        writer = FinishedWriter(path, descriptor, from: 0)
    }

    deinit { FileIO.close(descriptor) }

    /// - Throws: `.noSpace` or `.disk`.
    package func append(_ info: DownloadInfo) throws {
        guard let entry = FinishedEntry(info) else { return }
        try writer.append(entry)
        count += 1
    }

    func forEach(_ body: (FinishedEntry) throws -> Void) throws {
        try writer.flush()
        var reader = FinishedBlocks(path, descriptor, from: 0)
        while let entry = reader.next() { try body(entry) }
    }
}
