/// Converts offsets to lines and columns. Increasing offsets are cheap: only the bytes since the last one are
/// scanned.
///
/// Offsets are those of the bytes in memory. `drop` says that bytes have left it.
struct TextPlaces: Sendable {
    /// A line and a column in bytes, both from 1.
    typealias Place = (line: Int, column: Int)

    private var offset = 0
    private var line = 1
    /// Negative if the beginning of the line has left the memory.
    private var lineStart = 0

    /// The place of an offset. Lines end with LF, CRLF or CR.
    ///
    /// If bytes were dropped, an offset before the last one has to be in the memory with the whole of its line.
    mutating func place(of target: Int, in bytes: [UInt8]) -> Place {
        let end = min(target, bytes.count)
        while offset < end {
            if Self.isLineEnd(offset, bytes) {
                line += 1
                lineStart = offset + 1
            }
            offset += 1
        }
        if end < lineStart {
            while offset > end {
                offset -= 1
                if Self.isLineEnd(offset, bytes) { line -= 1 }
            }
            lineStart = end
            while lineStart > 0, !Self.isLineEnd(lineStart - 1, bytes) { lineStart -= 1 }
        }
        offset = end
        return (line, target - lineStart + 1)
    }

    /// Counts the lines of the first bytes, which leave the memory. A byte has to follow them, because a CR at the end
    /// may be one of a CRLF.
    mutating func drop(_ count: Int, of bytes: [UInt8]) {
        _ = place(of: count, in: bytes)
        offset -= count
        lineStart -= count
    }

    private static func isLineEnd(_ index: Int, _ bytes: [UInt8]) -> Bool {
        bytes[index] == 0x0a || (bytes[index] == 0x0d && (index + 1 >= bytes.count || bytes[index + 1] != 0x0a))
    }
}
