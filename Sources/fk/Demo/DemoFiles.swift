import FKMiddleware

/// One file of the demo's server. Its bytes are computed when they are needed and never stored.
struct DemoFile: Sendable, Hashable {
    var name: String
    var size: Int64
    /// Determines the bytes; it is unique for each file.
    var seed: UInt64

    /// A strong ETag: the same one always means the same bytes (RFC 9110 section 8.8.1).
    var etag: String { "\"\(String(seed, radix: 16))-\(size)\"" }

    /// Computes the bytes from `offset` on and fills the buffer.
    func fill(_ buffer: UnsafeMutableRawBufferPointer, from offset: Int64) {
        var position = 0
        // In words of eight bytes at multiples of eight. The first and the last word may be cut.
        while position < buffer.count {
            let absolute = UInt64(offset) + UInt64(position)
            let inside = Int(absolute & 7)
            let word = Self.mix(seed &+ absolute >> 3).littleEndian
            if inside == 0, buffer.count - position >= 8 {
                buffer.storeBytes(of: word, toByteOffset: position, as: UInt64.self)
                position += 8
            } else {
                buffer[position] = UInt8(truncatingIfNeeded: word >> UInt64(inside * 8))
                position += 1
            }
        }
    }

    /// The SHA-256 of the whole file as hexadecimal digits. It takes about a second for 1 GB.
    func digest() -> String {
        let digester = Digester(.sha256)
        let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
        defer { chunk.deallocate() }
        var offset: Int64 = 0
        while offset < size {
            let piece = UnsafeMutableRawBufferPointer(rebasing: chunk[..<Int(min(Int64(chunk.count), size - offset))])
            fill(piece, from: offset)
            digester.update(UnsafeRawBufferPointer(piece))
            offset += Int64(piece.count)
        }
        return digester.hex()
    }

    /// The finaliser of SplitMix64: consecutive numbers give unrelated words.
    private static func mix(_ value: UInt64) -> UInt64 {
        var z = value &* 0x9e37_79b9_7f4a_7c15
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}

extension DemoFile {
    /// The files of the demo: 36 of mixed size, from empty to 32 MiB, 200 MiB in total. The same seed gives the same
    /// bytes.
    static func set(seed: UInt64 = 1) -> [DemoFile] {
        let mebibyte: Int64 = 1 << 20
        var sizes: [(String, Int64)] = []
        for (stem, suffix, size, count) in [
            ("system", "iso", 32 * mebibyte, 2), ("film", "mp4", 16 * mebibyte, 4), ("album", "zip", 6 * mebibyte, 8),
            ("photo", "jpg", 2 * mebibyte + 4_321, 10), ("page", "html", 300_007, 8),
        ] {
            for number in 1...count { sizes.append(("\(stem)-\(number < 10 ? "0" : "")\(number).\(suffix)", size)) }
        }
        sizes += [("one.byte", 1), ("empty.txt", 0), ("café 東京.pdf", 65_537)]
        let rest = 200 * mebibyte - sizes.reduce(0) { $0 + $1.1 }
        sizes.append(("rest.bin", rest))
        return sizes.enumerated().map { index, file in
            DemoFile(name: file.0, size: file.1, seed: seed << 48 | UInt64(index + 1) << 40)
        }
    }
}
