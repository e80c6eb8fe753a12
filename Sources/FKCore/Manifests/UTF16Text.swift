/// Turns a list in UTF-16 into UTF-8, as it arrives. PowerShell writes UTF-16 with a byte order mark.
struct UTF16Text: Sendable {
    private enum Kind: Sendable { case unknown, plain, little, big }

    private var kind = Kind.unknown
    private var rest: [UInt8] = []
    /// The first half of a pair.
    private var high: UInt32?

    /// The text in UTF-8. A text without the mark of UTF-16 is returned as it is.
    static func plain(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.starts(with: [0xff, 0xfe]) || bytes.starts(with: [0xfe, 0xff]) else { return bytes }
        var text = UTF16Text()
        return text.decode(bytes) + text.finish()
    }

    /// Decodes the next portion, and returns what is known of its text.
    mutating func decode(_ bytes: [UInt8]) -> [UInt8] {
        switch kind {
        case .plain: return bytes
        case .unknown:
            rest += bytes
            guard rest.count >= 2 else {
                guard rest.first == 0xff || rest.first == 0xfe || rest.isEmpty else { return end() }
                return []
            }
            let mark = rest.prefix(2)
            kind = mark.elementsEqual([0xff, 0xfe]) ? .little : mark.elementsEqual([0xfe, 0xff]) ? .big : .plain
            guard kind != .plain else { return end() }
            rest.removeFirst(2)
            return decode()
        case .little, .big:
            rest += bytes
            return decode()
        }
    }

    /// The last bytes.
    mutating func finish() -> [UInt8] {
        if kind == .unknown { return end() }
        guard high != nil || !rest.isEmpty else { return [] }
        (high, rest) = (nil, [])
        return Array("\u{fffd}".utf8)
    }

    private mutating func end() -> [UInt8] {
        if kind == .unknown { kind = rest.isEmpty ? .unknown : .plain }
        defer { rest = [] }
        return rest
    }

    private mutating func decode() -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(rest.count)
        let count = rest.count / 2 * 2
        for index in stride(from: 0, to: count, by: 2) {
            let (one, two) = (UInt32(rest[index]), UInt32(rest[index + 1]))
            let unit = kind == .little ? two << 8 | one : one << 8 | two
            if let first = high {
                high = nil
                if (0xdc00..<0xe000).contains(unit) {
                    append(0x10000 + (first - 0xd800) << 10 + (unit - 0xdc00), to: &text)
                    continue
                }
                append(0xfffd, to: &text)
            }
            if (0xd800..<0xdc00).contains(unit) { high = unit } else { append(unit, to: &text) }
        }
        rest.removeFirst(count)
        return text
    }

    private func append(_ code: UInt32, to text: inout [UInt8]) {
        if code < 0x80 { return text.append(UInt8(code)) }
        text += Array(String(Character(Unicode.Scalar(code) ?? "\u{fffd}")).utf8)
    }
}
