import FKMiddleware

/// What is computed over the bytes of one response as they are written: the digest of the file, and checksums of the written piece.
struct BodyDigests {
    /// The digest of the file while its bytes arrive in order from 0; nil as soon as they do not, and for a large file.
    private(set) var digester: Digester?
    /// Computes the digest of a large file whose bytes arrive in order from 0.
    private(set) var follower: DigestFollower?
    /// The position up to which the follower may read.
    private var followed: Int64 = 0
    /// The checksums of the file's pieces, of the bytes that were written.
    private(set) var sums = PieceSums()
    private var wantsSums = false
    private var crc = CRC32C()
    /// The offset of the first byte that was written; nil if none was.
    private(set) var start: Int64?

    /// Nothing is computed yet.
    init() {}

    /// The head has come. `position` is the offset of the first byte.
    mutating func begin(_ plan: RangeReceiver.Plan, _ head: ResponseHead, at position: Int64, total: Int64?) {
        guard plan.part.ring == nil else { return }
        wantsSums = (total ?? .max) > PieceSums.pieceLength
        guard position == 0, let algorithm = plan.digest ?? ServerDigest.parse(head)?.algorithm,
            algorithm != .gitBlob || total != nil, algorithm != .crc32c || !wantsSums
        else { return }
        if let total, total >= DigestFollower.minLength {
            follower = DigestFollower(algorithm, length: total, of: plan.part)
        } else {
            digester = Digester(algorithm, length: total ?? 0)
        }
    }

    /// Bytes were written. `wantsPiece` is `RangeReceiver.Plan.wantsPiece`.
    mutating func add(_ bytes: UnsafeRawBufferPointer, at position: Int64, wantsPiece: Bool) {
        if start == nil { start = position }
        if wantsSums { sums.add(bytes, at: position) } else if wantsPiece { crc.update(bytes) }
        digester?.update(bytes)
        let end = position + Int64(bytes.count)
        if let follower, end - followed >= DigestFollower.step {
            followed = end
            follower.advance(to: end)
        }
    }

    /// The checksum of all written bytes as one.
    var whole: UInt32 { wantsSums ? sums.whole : crc.value }
}
