/// A checksum of a store that is no digest.
enum CyclicSum {
    case crc32c(CRC32C)
    case crc64nvme(CRC64NVME)

    /// A checksum of zero bytes; nil for a digest.
    init?(_ algorithm: Checksum.Algorithm) {
        switch algorithm {
        case .crc32c: self = .crc32c(CRC32C())
        case .crc64nvme: self = .crc64nvme(CRC64NVME())
        case .md5, .sha1, .gitBlob, .sha224, .sha256, .sha384, .sha512, .blake2b: return nil
        }
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        switch self {
        case .crc32c(var crc):
            crc.update(bytes)
            self = .crc32c(crc)
        case .crc64nvme(var crc):
            crc.update(bytes)
            self = .crc64nvme(crc)
        }
    }

    /// The checksum of the bytes so far, with the highest byte first.
    var bytes: [UInt8] {
        switch self {
        case .crc32c(let crc): withUnsafeBytes(of: crc.value.bigEndian) { Array($0) }
        case .crc64nvme(let crc): withUnsafeBytes(of: crc.value.bigEndian) { Array($0) }
        }
    }
}

/// CRC-64/NVME (NVM Express NVM Command Set, section 5.2.1.3.4), eight bytes a step.
struct CRC64NVME {
    private static let tables = CyclicTables<UInt64>(0x9a6c_9329_ac4b_c9b5)
    /// Inverted, as the algorithm defines.
    private var state = UInt64.max

    /// The checksum of all bytes so far. More may follow.
    var value: UInt64 { ~state }

    mutating func update(_ bytes: UnsafeRawBufferPointer) { state = Self.tables.update(state, bytes) }
}

/// Computes the checksum of a polynomial with reflected bits, eight bytes a step.
struct CyclicTables<Sum: FixedWidthInteger & UnsignedInteger & Sendable>: Sendable {
    /// Eight tables of 256: table `n` is the effect of a byte followed by `n` zero bytes.
    private let tables: [Sum]

    init(_ polynomial: Sum) {
        var tables = [Sum](repeating: 0, count: 8 * 256)
        for byte in 0..<256 {
            var crc = Sum(byte)
            for _ in 0..<8 { crc = crc >> 1 ^ (crc & 1 == 1 ? polynomial : 0) }
            tables[byte] = crc
        }
        for index in 256..<tables.count {
            let previous = tables[index - 256]
            tables[index] = previous >> 8 ^ tables[Int(previous & 0xff)]
        }
        self.tables = tables
    }

    /// The state after more bytes.
    @inline(__always)
    func update(_ state: Sum, _ bytes: UnsafeRawBufferPointer) -> Sum {
        tables.withUnsafeBufferPointer { tables in
            var crc = state
            var index = 0
            while index + 8 <= bytes.count {
                let word =
                    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)) ^ UInt64(crc)
                crc = 0
                for table in 0..<8 {
                    crc ^= tables[(7 - table) << 8 | Int(truncatingIfNeeded: word >> UInt64(8 * table)) & 0xff]
                }
                index += 8
            }
            while index < bytes.count {
                crc = crc >> 8 ^ tables[Int(truncatingIfNeeded: crc ^ Sum(bytes[index])) & 0xff]
                index += 1
            }
            return crc
        }
    }
}
