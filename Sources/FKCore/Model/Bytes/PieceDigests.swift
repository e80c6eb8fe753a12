import FKMiddleware
import Foundation

/// The digests that a list gives for the pieces of a file. A task with them refuses wrong pieces while they arrive.
///
/// A request has the digests in `bytes`. They are written to a file beside the info file (`PieceDigestFile`), and the record
/// keeps the rest.
package struct PieceDigests: Codable, Sendable, Hashable {
    package var algorithm: Checksum.Algorithm
    /// The length in bytes of every piece except the last, at least 1.
    package var length: Int64
    package var count: Int
    /// The CRC-32C of all digests, which binds the file of digests to the record.
    package var crc32c: UInt32
    /// All digests in order; nil in a record.
    package var bytes: Data?

    /// The maximum length of all digests of a file in bytes: 32 MiB, enough for 1 TiB with SHA-256 and pieces of 1 MiB.
    package static let maxBytes = 32 << 20

    /// Creates digests.
    ///
    /// - Parameter bytes: all digests in order. Returns nil if they are none, too long, or not a multiple of a digest.
    package init?(_ algorithm: Checksum.Algorithm, length: Int64, bytes: some Collection<UInt8>) {
        guard length > 0, !bytes.isEmpty, bytes.count <= Self.maxBytes, bytes.count % algorithm.byteCount == 0 else {
            return nil
        }
        self.algorithm = algorithm
        self.length = length
        count = bytes.count / algorithm.byteCount
        let data = Data(bytes)
        crc32c = data.withUnsafeBytes { CRC32C.checksum($0) }
        self.bytes = data
    }

    /// The digests as a record keeps them.
    package var summary: PieceDigests {
        var summary = self
        summary.bytes = nil
        return summary
    }

    /// True if a file of this length has that many pieces.
    package func fit(_ total: Int64) -> Bool {
        guard total > 0 else { return false }
        return (total - 1) / length + 1 == Int64(count)
    }

    /// The bytes of a piece in a file of this length.
    package func range(_ index: Int, of total: Int64) -> Range<Int64> {
        let start = Int64(index) * length
        return start..<(total - start < length ? total : start + length)
    }

    /// The digest of a piece; nil without `bytes`.
    package subscript(index: Int) -> [UInt8]? {
        bytes.map { Array($0.dropFirst(index * algorithm.byteCount).prefix(algorithm.byteCount)) }
    }

    /// The reason why these are no digests, for a description from another program; nil if they are valid.
    package var fault: String? {
        guard let bytes else { return nil }
        guard let same = PieceDigests(algorithm, length: length, bytes: bytes), same == self else {
            return "the digests of its pieces contradict each other"
        }
        return nil
    }
}
