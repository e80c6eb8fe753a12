import CSystem

/// CRC-32C (Castagnoli polynomial, RFC 3720 section 12.1), computed by the processor if it can, else eight bytes a
/// step.
///
/// It detects torn and damaged slots. It does not protect against forgery.
package struct CRC32C: Sendable {
    /// Inverted, as the algorithm defines.
    private var state: UInt32 = 0xffff_ffff

    package init() {}

    package static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        var crc = CRC32C()
        crc.update(bytes)
        return crc.value
    }

    /// The checksum of all bytes so far. More may follow.
    package var value: UInt32 { ~state }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        if Self.isBuiltIn {
            let triples = bytes.count / (3 * Self.run)
            if triples > 0 {
                state = Self.shift.withUnsafeBufferPointer {
                    fk_crc32c_triples(state, bytes.baseAddress, triples, $0.baseAddress)
                }
            }
            let rest = UnsafeRawBufferPointer(rebasing: bytes[(triples * 3 * Self.run)...])
            state = fk_crc32c(state, rest.baseAddress, rest.count)
        } else {
            updateByTables(bytes)
        }
    }

    /// Adds bytes of which only the checksum and the number are known.
    package mutating func append(_ checksum: UInt32, count: Int64) {
        state = ~(Self.shifted(~state, by: count) ^ checksum)
    }

    /// The change of a value by `count` zero bytes: it is multiplied by x to the power of 8 times `count`, modulo the
    /// polynomial.
    private static func shifted(_ value: UInt32, by count: Int64) -> UInt32 {
        var value = value
        var count = count
        var power = 3
        while count > 0 {
            if count & 1 == 1 { value = product(powers[power % 31], value) }
            count >>= 1
            power += 1
        }
        return value
    }

    /// x to the power of 2 to the power of each index; the exponents repeat after 31 (2^31 - 1 is a multiple of the order of x).
    private static let powers: [UInt32] = {
        var powers: [UInt32] = [1 << 30]
        while powers.count < 31 { powers.append(product(powers[powers.count - 1], powers[powers.count - 1])) }
        return powers
    }()

    /// The product of two polynomials modulo the checksum's. The highest bit is the coefficient of x^0.
    private static func product(_ one: UInt32, _ other: UInt32) -> UInt32 {
        var other = other
        var product: UInt32 = 0
        var bit: UInt32 = 1 << 31
        while bit > 0 {
            if one & bit != 0 { product ^= other }
            other = other >> 1 ^ (other & 1 == 1 ? 0x82f6_3b78 : 0)
            bit >>= 1
        }
        return product
    }

    private static let isBuiltIn = fk_has_crc32c() != 0
    private static let run = Int(FK_CRC32C_RUN)

    /// Four tables of 256: the change of each byte of a state by `run` zero bytes. Without its inversions the
    /// algorithm is linear, so the bytes of a state can be looked up separately.
    private static let shift: [UInt32] = {
        let zeros = [UInt8](repeating: 0, count: run)
        var tables = [UInt32](repeating: 0, count: 4 * 256)
        zeros.withUnsafeBytes { zeros in
            for bit in 0..<32 {
                tables[256 * (bit / 8) + (1 << (bit % 8))] = fk_crc32c(1 << bit, zeros.baseAddress, run)
            }
        }
        for index in tables.indices {
            let byte = index & 255
            let lowest = byte & -byte
            if byte != lowest { tables[index] = tables[index - lowest] ^ tables[index - byte + lowest] }
        }
        return tables
    }()

    /// Adds bytes without the processor's instruction.
    mutating func updateByTables(_ bytes: UnsafeRawBufferPointer) {
        state = Self.tables.update(state, bytes)
    }

    private static let tables = CyclicTables<UInt32>(0x82f6_3b78)
}
