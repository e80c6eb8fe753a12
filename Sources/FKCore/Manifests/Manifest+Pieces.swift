import FKMiddleware

extension PieceDigests {
    /// Creates digests from those of a list; nil if they are too long.
    package init?(_ pieces: Manifest.Pieces) {
        guard let algorithm = Checksum.Algorithm(rawValue: pieces.algorithm.rawValue) else { return nil }
        self.init(algorithm, length: pieces.length, bytes: pieces.bytes)
    }
}

extension Manifest.Pieces {
    /// The digests for a list; nil if they are not in memory.
    package init?(_ digests: PieceDigests) {
        guard let algorithm = ManifestDigest.Algorithm(rawValue: digests.algorithm.rawValue), let bytes = digests.bytes
        else { return nil }
        self.init(length: digests.length, algorithm: algorithm, bytes: Array(bytes))
    }
}
