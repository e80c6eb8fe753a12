/// What happens to files: bits flip, blocks vanish, ends are missing, halves of two files come together.
package enum Mutation {
    /// Numbers at which arithmetic ends.
    package static let evilNumbers: [UInt64] = [
        0, 1, 2, 7, 15, 16, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 53,
        0x7fff_ffff_ffff_ffff, 0x8000_0000_0000_0000, 0xffff_ffff_ffff_fff0, .max,
    ]

    /// One change somewhere in the bytes.
    ///
    /// - Parameter other: a second file of the same kind, from which pieces come.
    package static func apply(_ bytes: inout [UInt8], with other: [UInt8] = [], _ random: inout SeededRandom) {
        guard !bytes.isEmpty else {
            bytes = garbage(random.below(64), &random)
            return
        }
        switch random.below(11) {
        case 0, 1: bytes[random.below(bytes.count)] ^= 1 << UInt8(random.below(8))
        case 2: bytes[random.below(bytes.count)] = UInt8(random.below(256))
        case 3: bytes.removeLast(random.below(bytes.count + 1))
        case 4: fill(&bytes, random.oneIn(4) ? 0xff : 0, &random)
        case 5: number(&bytes, &random)
        case 6: splice(&bytes, other, &random)
        case 7: swap(&bytes, &random)
        case 8: insert(&bytes, &random)
        case 9: remove(&bytes, &random)
        default: overwrite(&bytes, &random)
        }
    }

    package static func garbage(_ count: Int, _ random: inout SeededRandom) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 8)
        while bytes.count < count {
            withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) }
        }
        bytes.removeLast(bytes.count - count)
        return bytes
    }

    /// A piece of up to a page, now and then all of it.
    private static func piece(_ count: Int, _ random: inout SeededRandom) -> Range<Int> {
        if random.oneIn(8) { return 0..<count }
        let block = random.pick([8, 64, 512, 4_096])
        let start = random.below(count)
        let begin = random.oneIn(2) ? start - start % block : start
        return begin..<min(count, begin + 1 + random.below(block))
    }

    private static func fill(_ bytes: inout [UInt8], _ value: UInt8, _ random: inout SeededRandom) {
        for index in piece(bytes.count, &random) { bytes[index] = value }
    }

    private static func number(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
        let width = random.pick([4, 8])
        guard bytes.count >= width else { return }
        let start = random.below((bytes.count - width) / 4 + 1) * 4
        withUnsafeBytes(of: random.pick(evilNumbers).littleEndian) { number in
            for index in 0..<width { bytes[start + index] = number[index] }
        }
    }

    private static func splice(_ bytes: inout [UInt8], _ other: [UInt8], _ random: inout SeededRandom) {
        let cut = random.oneIn(2) ? random.below(bytes.count) : random.below(bytes.count / 512 + 1) * 512
        bytes =
            random.oneIn(2)
            ? Array(bytes.prefix(cut) + other.dropFirst(cut)) : Array(other.prefix(cut) + bytes.dropFirst(cut))
    }

    private static func swap(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
        let range = piece(bytes.count, &random)
        let target = random.below(bytes.count - range.count + 1)
        let moved = Array(bytes[range])
        for (index, byte) in moved.enumerated() {
            bytes[range.lowerBound + index] = bytes[target + index]
            bytes[target + index] = byte
        }
    }

    private static func insert(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
        let count = random.oneIn(8) ? random.below(4_096) : random.below(16)
        bytes.insert(contentsOf: garbage(count, &random), at: random.below(bytes.count + 1))
    }

    private static func remove(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
        bytes.removeSubrange(piece(bytes.count, &random))
    }

    private static func overwrite(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
        let range = piece(bytes.count, &random)
        bytes.replaceSubrange(range, with: garbage(range.count, &random))
    }
}
