import TestSupport
import Testing

@testable import FKMiddleware

@Suite("CRC-32C")
struct CRC32CTests {
    /// RFC 3720 appendix B.4, and the check value of the CRC catalogue.
    static let vectors: [([UInt8], UInt32)] = [
        ([], 0), (Array("123456789".utf8), 0xe306_9283), ([UInt8](repeating: 0, count: 32), 0x8a91_36aa),
        ([UInt8](repeating: 0xff, count: 32), 0x62a8_ab43), (Array(0..<32), 0x46dd_794e),
        (Array((0..<32).reversed()), 0x113f_db5c),
    ]

    @Test("known vectors", arguments: vectors)
    func vector(bytes: [UInt8], crc: UInt32) {
        #expect(bytes.withUnsafeBytes { CRC32C.checksum($0) } == crc)
        var tables = CRC32C()
        bytes.withUnsafeBytes { tables.updateByTables($0) }
        #expect(tables.value == crc)
    }

    @Test("any split into pieces gives the same sum")
    func pieces() {
        let bytes = (0..<100).map { UInt8(truncatingIfNeeded: $0 &* 37) }
        bytes.withUnsafeBytes { all in
            for cut in 0...all.count {
                var crc = CRC32C()
                crc.update(UnsafeRawBufferPointer(rebasing: all[..<cut]))
                crc.update(UnsafeRawBufferPointer(rebasing: all[cut...]))
                #expect(crc.value == CRC32C.checksum(all))
            }
        }
    }

    @Test(
        "checksums of pieces are joined to that of the whole",
        arguments: [0, 1, 7, 4_080, 65_536, 1 << 20, (1 << 20) + 3])
    func joined(count: Int) {
        var random = SeededRandom(seed: UInt64(count))
        let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
        bytes.withUnsafeBytes { all in
            for cut in [0, count / 3, count] {
                let (first, second) = (all[..<cut], all[cut...])
                var crc = CRC32C()
                crc.append(CRC32C.checksum(UnsafeRawBufferPointer(rebasing: first)), count: Int64(first.count))
                crc.append(CRC32C.checksum(UnsafeRawBufferPointer(rebasing: second)), count: Int64(second.count))
                #expect(crc.value == CRC32C.checksum(all))
            }
        }
    }

    /// The checksum of 2^40 zero bytes, computed with the polynomial's powers, equals that of 2^20 pieces of 2^20 bytes.
    @Test("large counts are joined")
    func largeCounts() {
        let piece = [UInt8](repeating: 0, count: 1 << 20).withUnsafeBytes { CRC32C.checksum($0) }
        var pieces = CRC32C()
        for _ in 0..<1 << 10 { pieces.append(piece, count: 1 << 20) }
        var twice = CRC32C()
        for _ in 0..<1 << 10 { twice.append(pieces.value, count: 1 << 30) }
        var doubled = piece
        for power in 20..<40 {
            var crc = CRC32C()
            crc.append(doubled, count: 1 << power)
            crc.append(doubled, count: 1 << power)
            doubled = crc.value
        }
        #expect(twice.value == doubled)
    }

    /// Long ones are summed up in three runs at once, 4,080 bytes a step.
    @Test("long buffers: the processor and the tables agree, wherever they begin and are cut")
    func long() {
        var random = SeededRandom(seed: 5)
        let bytes = (0..<20_000).map { _ in UInt8.random(in: 0...255, using: &random) }
        for count in [4_079, 4_080, 4_081, 8_159, 8_160, 12_240, 16_384, 19_993] {
            for start in 0..<8 where start + count <= bytes.count {
                var tables = CRC32C()
                var pieces = CRC32C()
                bytes[start..<start + count].withUnsafeBytes { all in
                    tables.updateByTables(all)
                    let cut = Int.random(in: 0...count, using: &random)
                    pieces.update(UnsafeRawBufferPointer(rebasing: all[..<cut]))
                    pieces.update(UnsafeRawBufferPointer(rebasing: all[cut...]))
                    #expect(CRC32C.checksum(all) == tables.value)
                }
                #expect(pieces.value == tables.value)
            }
        }
    }
}
