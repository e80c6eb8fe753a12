/// The CRC-32C of a piece of the file, summed up while the bytes arrived.
///
/// It tells after a power cut whether a file that was never synced is still the one that was received. It is no digest:
/// it finds what a disk has lost, not what somebody has forged.
package struct PieceChecksum: Codable, Sendable, Hashable {
    package var start: Int64
    /// Exclusive.
    package var end: Int64
    package var crc32c: UInt32

    package init(start: Int64, end: Int64, crc32c: UInt32) {
        self.start = start
        self.end = end
        self.crc32c = crc32c
    }

    /// The pieces in order when they cover the file; else nil: of some of its bytes nothing is known. Where two of them
    /// overlap, both have to be right.
    static func covering(_ pieces: [PieceChecksum]?, length: Int64) -> [PieceChecksum]? {
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
