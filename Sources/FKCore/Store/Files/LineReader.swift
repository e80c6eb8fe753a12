import FKMiddleware
import Foundation

/// Reads the lines of a file one after the other, with a checksum over them. It holds a portion of the file.
package final class LineReader {
    private let path: String
    private let descriptor: Int32
    private let maxLine: Int
    private var buffer: UnsafeMutableRawBufferPointer
    /// The bytes of the buffer that were read and are not consumed yet.
    private var rest = 0..<0
    /// The offset in the file behind the buffer.
    private var end: Int
    private var crc = CRC32C()

    /// - Parameters:
    ///   - descriptor: an open file; the caller closes it.
    ///   - offset: where the first line begins; the default is the beginning of the file.
    ///   - portion: the bytes that are read at once.
    ///   - maxLine: the longest line in bytes, with its line feed. The file ends before a longer one.
    package init(
        _ path: String, _ descriptor: Int32, from offset: Int = 0, portion: Int = 1 << 18, maxLine: Int = 4 << 20
    ) {
        self.path = path
        self.descriptor = descriptor
        self.maxLine = maxLine
        end = offset
        buffer = .allocate(byteCount: portion, alignment: 16)
    }

    deinit { buffer.deallocate() }

    /// The offset in the file of the next line.
    package var offset: Int { end - rest.count }

    /// True if bytes without a line feed follow the last line.
    var hasRest: Bool { !rest.isEmpty }

    /// The CRC-32C of all lines since `startChecksum()`.
    package var checksum: UInt32 { crc.value }

    func startChecksum() { crc = CRC32C() }

    /// Passes the next line without its line feed to `body`; nil at the end of the file.
    package func next<Value>(_ body: (UnsafeBufferPointer<UInt8>) throws -> Value) throws -> Value? {
        var searched = 0
        while true {
            let bytes = UnsafeRawBufferPointer(rebasing: buffer[rest])
            if let base = bytes.baseAddress, bytes.count > searched,
                let found = memchr(base + searched, 0x0a, bytes.count - searched)
            {
                let length = UnsafeRawPointer(found) - base
                crc.update(UnsafeRawBufferPointer(rebasing: bytes[...length]))
                rest = rest.lowerBound + length + 1..<rest.upperBound
                return try body(UnsafeBufferPointer(start: base.assumingMemoryBound(to: UInt8.self), count: length))
            }
            searched = bytes.count
            guard try fill() else { return nil }
        }
    }

    /// Reads on. Returns false at the end of the file, and if the buffer has the longest line.
    private func fill() throws -> Bool {
        if rest.count == buffer.count {
            guard rest.count < maxLine else { return false }
            let larger = UnsafeMutableRawBufferPointer.allocate(
                byteCount: min(2 * buffer.count, maxLine), alignment: 16)
            larger.copyMemory(from: UnsafeRawBufferPointer(buffer))
            buffer.deallocate()
            buffer = larger
        } else if rest.lowerBound > 0 {
            if let base = buffer.baseAddress { memmove(base, base + rest.lowerBound, rest.count) }
            rest = 0..<rest.count
        }
        let free = UnsafeMutableRawBufferPointer(rebasing: buffer[rest.upperBound...])
        let count = try FileIO.read(into: free, from: descriptor, at: end, path: path)
        end += count
        rest = rest.lowerBound..<rest.upperBound + count
        return count > 0
    }
}
