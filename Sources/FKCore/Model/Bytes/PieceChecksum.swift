/// The CRC-32C of a piece of the file, computed while the bytes arrived.
///
/// After a power cut, it shows whether a file that was never synced still has the received bytes. It is no digest: it
/// detects losses of a disk, but not forgery.
package struct PieceChecksum: Codable, Sendable, Hashable {
    package var start: Int64
    /// The offset after the last byte.
    package var end: Int64
    package var crc32c: UInt32

    package init(start: Int64, end: Int64, crc32c: UInt32) {
        self.start = start
        self.end = end
        self.crc32c = crc32c
    }

    /// The pieces in order if they cover the file; nil otherwise. If two of them overlap, both must match.
    package static func covering(_ pieces: [PieceChecksum]?, length: Int64) -> [PieceChecksum]? {
        guard let pieces else { return nil }
        let sorted = pieces.count > 1 ? pieces.sorted { $0.start < $1.start } : pieces
        var end: Int64 = 0
        for piece in sorted {
            guard piece.start >= 0, piece.start <= end, piece.end > piece.start else { return nil }
            end = max(end, piece.end)
        }
        return end == length ? sorted : nil
    }
}
