/// Finds the bytes that a JSON string contains without an escape, eight at a time: all but `"`, `\` and those below 0x20 (RFC
/// 8259 section 7).
enum PlainBytes {
    /// The number of plain bytes at the start of a text, rounded down to a multiple of eight unless all are plain, and whether
    /// all of these are ASCII.
    static func prefix(of text: UnsafeRawBufferPointer) -> (count: Int, isASCII: Bool) {
        var index = 0
        var union: UInt64 = 0
        while index &+ 8 <= text.count {
            let word = text.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            guard isPlain(word) else { return (index, union & high == 0) }
            union |= word
            index &+= 8
        }
        if index == text.count { return (index, union & high == 0) }
        if text.count >= 8 {
            // The last eight bytes: some of them for the second time.
            let word = text.loadUnaligned(fromByteOffset: text.count &- 8, as: UInt64.self)
            guard isPlain(word) else { return (index, union & high == 0) }
            return (text.count, (union | word) & high == 0)
        }
        for byte in text {
            guard byte >= 0x20, byte != 0x22, byte != 0x5c else { return (0, true) }
            union |= UInt64(byte)
        }
        return (text.count, union & high == 0)
    }

    private static let high: UInt64 = 0x8080_8080_8080_8080
    private static let ones: UInt64 = 0x0101_0101_0101_0101

    /// A subtraction borrows from the high bit of a byte that is too small, which is how bytes below a limit, and zero bytes,
    /// are found in a whole word.
    @inline(__always)
    static func isPlain(_ word: UInt64) -> Bool {
        let quote = word ^ 0x22 &* ones
        let slash = word ^ 0x5c &* ones
        let controls = (word &- 0x20 &* ones) & ~word
        let quotes = (quote &- ones) & ~quote
        let slashes = (slash &- ones) & ~slash
        return (controls | quotes | slashes) & high == 0
    }
}
