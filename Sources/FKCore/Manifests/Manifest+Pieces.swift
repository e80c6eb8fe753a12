import FKMiddleware

extension PieceDigests {
    /// Creates digests from those of a list; nil if they are too long.
    package init?(_ pieces: Manifest.Pieces) {
        self.init(pieces.algorithm, length: pieces.length, bytes: pieces.bytes)
    }
}

extension Manifest.Pieces {
    /// The digests for a list; nil if they are not in memory.
    package init?(_ digests: PieceDigests) {
        guard digests.algorithm.isListed, let bytes = digests.bytes else { return nil }
        self.init(length: digests.length, algorithm: digests.algorithm, bytes: Array(bytes))
    }
}
