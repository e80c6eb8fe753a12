/// Converts offsets to lines and columns. Increasing offsets are cheap: only the bytes since the last one are
/// scanned.
struct TextPlaces {
    private var offset = 0
    private var line = 1
    private var lineStart = 0

    /// The line and column of an offset, both from 1. Lines end with LF, CRLF or CR.
    mutating func place(of target: Int, in bytes: [UInt8]) -> (line: Int, column: Int) {
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

    private static func isLineEnd(_ index: Int, _ bytes: [UInt8]) -> Bool {
        bytes[index] == 0x0a || (bytes[index] == 0x0d && (index + 1 >= bytes.count || bytes[index + 1] != 0x0a))
    }
}
