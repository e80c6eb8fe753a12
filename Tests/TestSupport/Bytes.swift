import FKMiddleware
import Foundation

/// Test data that is the same on every run and different at every position, so that a misplaced byte shows.
package enum Bytes {
    /// - Parameter seed: different seeds give different data.
    package static func pattern(count: Int, seed: UInt64 = 1) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            var state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
            var index = 0
            while index < count {
                // xorshift64*
                state ^= state >> 12
                state ^= state << 25
                state ^= state >> 27
                var word = state &* 0x2545_f491_4f6c_dd1d
                for _ in 0..<min(8, count - index) {
                    buffer[index] = UInt8(truncatingIfNeeded: word)
                    word >>= 8
                    index += 1
                }
            }
            initialized = count
        }
    }

    /// Changes three bytes of a file as a damaged disk does: the file's time stays, in whole seconds as some disks store it.
    package static func damage(_ path: String, at offset: UInt64) throws {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seek(toOffset: offset)
        try file.write(contentsOf: Data([1, 2, 3]))
        try file.close()
        guard let date = attributes[.modificationDate] as? Date else { throw CocoaError(.fileReadUnknown) }
        let time = Date(timeIntervalSince1970: date.timeIntervalSince1970.rounded(.down))
        try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: path)
    }

    /// SHA-256 as lower-case hexadecimal digits.
    package static func sha256(_ bytes: [UInt8]) -> String { hex(.sha256, bytes) }

    /// MD5 as lower-case hexadecimal digits.
    package static func md5(_ bytes: [UInt8]) -> String { hex(.md5, bytes) }

    /// A digest as headers have it.
    package static func base64(_ algorithm: Checksum.Algorithm, _ bytes: [UInt8]) -> String {
        Data(digest(algorithm, bytes)).base64EncodedString()
    }

    package static func digest(_ algorithm: Checksum.Algorithm, _ bytes: [UInt8]) -> [UInt8] {
        let digester = Digester(algorithm)
        bytes.withUnsafeBytes { digester.update($0) }
        return digester.bytes()
    }

    private static func hex(_ algorithm: Checksum.Algorithm, _ bytes: [UInt8]) -> String {
        Digester.hex(digest(algorithm, bytes))
    }
}
